package fakegitea_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"aegis/proxy/gitea/fakegitea"
)

// recorded is one line of testdata/recorded.jsonl: a request to the real server
// with the parts of its answer that the double has to repeat. Lines with def
// name a shape that others use.
type recorded struct {
	As      string            `json:"as"`
	Do      string            `json:"do"`
	Send    json.RawMessage   `json:"send"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Type    string            `json:"type"`
	Shape   string            `json:"shape"`
	Message string            `json:"message"`
	Text    *string           `json:"text"`

	Def string `json:"def"`
}

// skipped are the recordings that are not compared, with the reason.
var skipped = map[string]string{
	"alice GET /api/v1/repos/acme/paths-lab/git/tags/{head}": notInDemo,
	"alice GET /api/v1/signing-key.gpg":                      notInDemo,
}

// notInDemo is the reason for skipping what answers 501.
const notInDemo = "not in the demo"

// otherBytes are recordings whose text differs because the files of the seeded
// world are not the recorded ones.
var otherBytes = map[string]bool{}

// TestReplay replays every recorded request, in order, on the lab world.
func TestReplay(t *testing.T) {
	t.Parallel()
	s := fakegitea.New(fakegitea.Options{Seed: fakegitea.SeedLab})
	tokens := map[string]string{"alice": s.Token("alice"), "bob": s.Token("bob"), "admin": s.Token("aegis-admin")}
	lines, defs := readRecorded(t)
	head := headOf(t, s, tokens["alice"], "acme/paths-lab", "main")
	for _, rec := range lines {
		if reason := skipped[rec.As+" "+rec.Do]; reason != "" {
			continue
		}
		t.Run(strings.ReplaceAll(rec.Do, "/", "_"), func(t *testing.T) {
			replay(t, s, tokens[rec.As], head, rec, defs)
		})
	}
}

// readRecorded reads the recordings and the shapes that they share.
func readRecorded(t *testing.T) ([]recorded, map[string]*shape) {
	t.Helper()
	data, err := os.ReadFile("testdata/recorded.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defs := map[string]*shape{}
	var out []recorded
	scan := bufio.NewScanner(bytes.NewReader(data))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var rec recorded
		if err := json.Unmarshal(scan.Bytes(), &rec); err != nil {
			t.Fatal(err)
		}
		if rec.Def != "" {
			defs[rec.Def] = (&shapeParser{rec.Shape, defs}).parse()
			continue
		}
		out = append(out, rec)
	}
	return out, defs
}

// replay sends one recorded request and compares.
func replay(t *testing.T, s *fakegitea.Server, token, head string, rec recorded, defs map[string]*shape) {
	fill := func(x string) string { return strings.ReplaceAll(x, "{head}", head) }
	method, target, _ := strings.Cut(fill(rec.Do), " ")
	res := call(s, request{method: method, target: target, token: token, body: string(rec.Send)})
	if res.Code != rec.Status {
		t.Fatalf("status %d, recorded %d: %.300s", res.Code, rec.Status, res.Body)
	}
	checkSchema(t, method, target, res)
	if got := res.Header().Get("Content-Type"); got != rec.Type {
		t.Errorf("content type %q, recorded %q", got, rec.Type)
	}
	for _, key := range []string{"link", "x-total-count", "x-total", "x-page", "x-perpage", "x-pagecount", "x-hasmore", "location", "content-disposition"} {
		got := strings.ReplaceAll(res.Header().Get(key), "http://gitea.test", "")
		if got != fill(rec.Headers[key]) {
			t.Errorf("%s: %q, recorded %q", key, got, fill(rec.Headers[key]))
		}
	}
	if rec.Shape != "" {
		for _, diff := range (&shapeParser{rec.Shape, defs}).parse().check(res.Body.Bytes()) {
			t.Error(diff)
		}
	}
	if rec.Message != "" && message(res) != fill(rec.Message) {
		t.Errorf("message %q, recorded %q", message(res), fill(rec.Message))
	}
	if rec.Text != nil && res.Body.String() != fill(*rec.Text) && !otherBytes[rec.Do] {
		t.Errorf("body %q, recorded %q", res.Body, fill(*rec.Text))
	}
}

// request is a request of a test.
type request struct {
	method, target, token, body string
	header                      http.Header
}

// call sends a request to the double; the target goes onto the wire as it is.
func call(h http.Handler, q request) *httptest.ResponseRecorder {
	var r *http.Request
	if q.body != "" {
		r = httptest.NewRequest(q.method, q.target, strings.NewReader(q.body))
	} else {
		r = httptest.NewRequest(q.method, q.target, nil)
	}
	r.Host = "gitea.test"
	if q.body != "" || slices.Contains([]string{"POST", "PUT", "PATCH"}, q.method) {
		r.Header.Set("Content-Type", "application/json")
	}
	if q.token != "" {
		r.Header.Set("Authorization", "token "+q.token)
	}
	for k, v := range q.header {
		r.Header[k] = v
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// message is the message of an error body.
func message(res *httptest.ResponseRecorder) string {
	var body struct {
		Message string `json:"message"`
	}
	json.Unmarshal(res.Body.Bytes(), &body) // no JSON has no message
	return body.Message
}

// headOf is the commit id of a branch.
func headOf(t *testing.T, s http.Handler, token, repo, branch string) string {
	t.Helper()
	var b struct {
		Commit struct {
			ID string `json:"id"`
		} `json:"commit"`
	}
	res := call(s, request{method: "GET", target: "/api/v1/repos/" + repo + "/branches/" + branch, token: token})
	if err := json.Unmarshal(res.Body.Bytes(), &b); err != nil || b.Commit.ID == "" {
		t.Fatalf("branch %s of %s: %d %s", branch, repo, res.Code, res.Body)
	}
	return b.Commit.ID
}
