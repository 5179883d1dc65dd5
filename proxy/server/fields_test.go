package server_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestFieldsHideNothingFromMasking: fields are picked before masking runs, so
// what masking reads beside them must be there, and must not come out.
func TestFieldsHideNothingFromMasking(t *testing.T) {
	r := newRig(t, "")
	secret := "https://ci:" + "Zq8vRt2LmX4p" + "@git.example.org" // no rule knows its beginning in base64
	file := base64.StdEncoding.EncodeToString([]byte("user=ci\npass=" + r.gitea + "\nother=" + secret + "\n"))
	r.double.AnswerAll(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if q.URL.Path == "/api/v1/user" {
			fmt.Fprint(w, `{"login":"alice"}`)
			return
		}
		fmt.Fprintf(w, `{"name":"a","encoding":"base64","content":%q,"size":9}`, file)
	})
	s := r.connect(aliceToken, "2025-11-25")
	a := r.call(s, "gitea_contents_get", map[string]any{"owner": "acme", "repo": "issues-lab", "filepath": "a", "fields": []string{"content"}})
	var data map[string]string
	if err := json.Unmarshal(a.Data, &data); err != nil || len(data) != 1 {
		t.Fatalf("%s, %v", a.Data, err)
	}
	text, err := base64.StdEncoding.DecodeString(data["content"])
	if err != nil || strings.Contains(string(text), r.gitea) || strings.Contains(string(text), "Zq8vRt2LmX4p") || !strings.HasPrefix(string(text), "user=ci\npass=") {
		t.Errorf("the content reads %q, %v", text, err)
	}
}

// TestFieldsOfEveryKindOfData: text comes whole and the fields are named.
func TestFieldsOfEveryKindOfData(t *testing.T) {
	r := newRig(t, "")
	r.double.AnswerAll(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/api/v1/user" {
			fmt.Fprint(w, `{"login":"alice"}`)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, "diff --git a b\n")
	})
	s := r.connect(aliceToken, "2025-11-25")
	a := r.call(s, "gitea_pull_get_diff", map[string]any{"owner": "acme", "repo": "issues-lab", "index": 1, "diffType": "diff", "fields": []string{"number"}})
	if string(a.Data) != `"diff --git a b\n"` {
		t.Errorf("%+v", a)
	}
}
