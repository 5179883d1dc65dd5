package gitea_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/gitea"
)

// picking returns a call that keeps some fields only.
func picking(tool *proxy.Tool, args proxy.Arguments, fields ...string) *proxy.Call {
	k := call(tool, args)
	k.Options.Fields = fields
	return k
}

var inLab = proxy.Arguments{"owner": "acme", "repo": "lab"}

func TestFieldsArePickedWhileReading(t *testing.T) {
	t.Parallel()
	tools := builtin(t)
	body := ` [ {"number":1,"title":"\u00e9","body":"long","user":{"login":"a","id":1}} , {"number":2,"user":null} ]`
	u := serve(t, answer(200, "application/json;charset=utf-8", body, "X-Total-Count", "2"))
	c := client(t, u.URL)
	k := picking(tools["issueListIssues"], inLab, "number", "title", "user.login")
	k.Options.Needs = []string{"user.id"}
	res, err := c.Handle(context.Background(), k)
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"number":1,"title":"\u00e9","user":{"login":"a","id":1}},{"number":2,"user":null}]`; string(res.Body) != want || res.Kind != proxy.BodyJSON {
		t.Errorf("got  %s\nwant %s", res.Body, want)
	}
	if k.Stats.BytesIn != int64(len(body)) {
		t.Errorf("%d bytes in, %d were sent", k.Stats.BytesIn, len(body))
	}
	if res.Page == nil || res.Page.TotalCount == nil || *res.Page.TotalCount != 2 {
		t.Errorf("page %+v", res.Page)
	}
}

// TestPickedAnswersKeepTheirPlace: what pages and warnings are made of is there
// although the fields do not name it.
func TestPickedAnswersKeepTheirPlace(t *testing.T) {
	t.Parallel()
	tools := builtin(t)
	rows := strings.TrimSuffix(strings.Repeat(`{"id":1,"name":"x"},`, 7), ",")
	for _, tc := range []struct {
		op, body string
		args     proxy.Arguments
		fields   []string
	}{
		{"getWorkflowRuns", `{"workflow_runs":[` + rows + `],"total_count":40}`, inLab, []string{"nothing"}},
		{"repoSearch", `{"ok":true,"data":[` + rows + `]}`, nil, []string{"ok"}},
		{"GetTree", `{"sha":"a","tree":[` + rows + `],"truncated":true,"page":1}`, proxy.Arguments{"owner": "acme", "repo": "lab", "sha": "main"}, []string{"sha"}},
		{"issueListIssues", `[{"labels":[{"name":"ui"}],"milestone":{"id":1,"title":"one"}},{"labels":[]}]`,
			proxy.Arguments{"owner": "acme", "repo": "lab", "labels": "bug", "milestones": "two"}, []string{"title"}},
	} {
		tool := tools[tc.op]
		if tool == nil {
			t.Fatalf("no operation %s", tc.op)
		}
		u := serve(t, answer(200, "application/json", tc.body))
		c := client(t, u.URL)
		whole := must(t, c, call(tool, tc.args))
		some := must(t, c, picking(tool, tc.args, tc.fields...))
		a, _ := json.Marshal([]any{whole.Page, whole.Warnings})
		b, _ := json.Marshal([]any{some.Page, some.Warnings})
		if string(a) != string(b) {
			t.Errorf("%s:\nwhole  %s\npicked %s", tc.op, a, b)
		}
		if len(whole.Warnings) == 0 && whole.Page == nil {
			t.Errorf("%s shows nothing", tc.op)
		}
	}
}

func TestPickedAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	tools := builtin(t)
	nested := strings.Repeat("[", 101) + strings.Repeat("]", 101)
	for name, tc := range map[string]struct {
		status             int
		media, body, error string
	}{
		"cut short":    {200, "application/json", `{"number":1,"title":"x`, "cut short or broken"},
		"broken":       {200, "application/json", `{"number":1,,}` + strings.Repeat(" ", 100000), "cut short or broken"},
		"a page":       {200, "application/json", "\n <html>", "an HTML page"},
		"html":         {200, "text/html", "<html>", "an HTML page"},
		"invalid text": {200, "application/json", "{\"title\":\"\xff\"}", "cut short or broken"},
		"deep":         {200, "application/json", nested, "nested deeper"},
		"an error":     {404, "application/json", `{"message":"not here"}`, "not here"},
	} {
		u := serve(t, answer(tc.status, tc.media, tc.body))
		res, err := client(t, u.URL).Handle(context.Background(),
			picking(tools["issueGetIssue"],
				proxy.Arguments{"owner": "acme", "repo": "lab", "index": json.Number("1")}, "number"))
		if err == nil || !strings.Contains(err.Error(), tc.error) {
			t.Errorf("%s: %v, want %q; result %+v", name, err, tc.error, res)
		}
		if n := len(u.requests()); n != 1 {
			t.Errorf("%s: %d requests", name, n)
		}
	}
	for name, tc := range map[string]struct {
		media, body string
		kind        proxy.BodyKind
	}{
		"empty":  {"application/json", "", proxy.BodyEmpty},
		"text":   {"text/plain", "some text", proxy.BodyText},
		"binary": {"image/png", "\x89PNG\x00", proxy.BodyBinary},
	} {
		u := serve(t, answer(200, tc.media, tc.body))
		res := must(t, client(t, u.URL), picking(tools["repoGetRawFile"],
			proxy.Arguments{"owner": "acme", "repo": "lab", "filepath": "a"}, "number"))
		if res.Kind != tc.kind || string(res.Body) != tc.body {
			t.Errorf("%s: kind %d, %q", name, res.Kind, res.Body)
		}
	}
}

// TestPickedBounds: the bound counts what is kept, and an answer without an end
// ends all the same.
func TestPickedBounds(t *testing.T) {
	t.Parallel()
	tools := builtin(t)
	bound := func(cfg *config.Gitea, _ *gitea.Limits) { cfg.MaxResponseBytes = 10 << 10 }
	for _, chunked := range []bool{false, true} {
		for name, tc := range map[string]struct {
			rows   int
			fields string
			ok     bool
		}{
			"dropped":            {100, "number", true},
			"kept":               {100, "body", false},
			"more than 16 times": {2000, "number", false},
		} {
			u := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				list := `[` + strings.Repeat(`{"number":1,"body":"`+strings.Repeat("b", 200)+`"},`, tc.rows) + `{}]`
				if !chunked {
					w.Header().Set("Content-Length", fmt.Sprint(len(list)))
				}
				_, _ = w.Write([]byte(list))
			})
			_, err := client(t, u.URL, bound).Handle(context.Background(),
				picking(tools["issueListIssues"], inLab, tc.fields))
			var e *proxy.Error
			if tc.ok != (err == nil) || errors.As(err, &e) && e.Kind != proxy.KindPayloadTooLarge {
				t.Errorf("%s, chunked %v: %v", name, chunked, err)
			}
		}
	}
}

// TestPickingIsSmall: of a list of 50 MB with the fields number and title, little
// more than these takes memory.
func TestPickingIsSmall(t *testing.T) {
	tools := builtin(t)
	row := []byte(`{"id":1,"number":1234,"title":"A title of usual length","body":"` +
		strings.Repeat("Words that nobody asked for. ", 170) + `","labels":[{"id":1,"name":"bug"}]},`)
	rows := 50 << 20 / len(row)
	u := serveQuiet(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Total-Count", "30")
		_, _ = w.Write([]byte("["))
		for range rows {
			_, _ = w.Write(row)
		}
		_, _ = w.Write([]byte(`{"number":5}]`))
	}))
	c := client(t, u)
	must(t, c, picking(tools["issueListIssues"], inLab, "id")) // connections and pools
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	res := must(t, c, picking(tools["issueListIssues"], inLab, "number", "title"))
	runtime.ReadMemStats(&after)
	if !strings.HasSuffix(string(res.Body), `{"number":1234,"title":"A title of usual length"},{"number":5}]`) {
		t.Errorf("the end is %.80s", res.Body[max(0, len(res.Body)-80):])
	}
	used := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d bytes kept of 50 MB, %d allocated", len(res.Body), used)
	if used > 4<<20 {
		t.Errorf("%d bytes were allocated for %d that are kept", used, len(res.Body))
	}
}
