package fakegitea_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aegis/proxy/gitea/fakegitea"
	"aegis/spec"
	"aegis/spec/build"
)

// TestRoutes counts the operations, and holds the number that is answered from
// state; the others say "not in the demo" in the form of every refusal.
func TestRoutes(t *testing.T) {
	t.Parallel()
	s := fakegitea.New(fakegitea.Options{Seed: fakegitea.SeedEmpty})
	alice := s.Token("alice")
	routes := s.Routes()
	if len(routes) != 537 {
		t.Fatalf("%d routes, want 537", len(routes))
	}
	implemented := 0
	for _, r := range routes {
		if r.Implemented {
			implemented++
			continue
		}
		target := strings.NewReplacer("{", "", "}", "").Replace(r.Path)
		res := send(s, alice, r.Method, target, "{}")
		if res.Code == 501 && res.Body.String() != `{"message":"not in the demo","url":"http://gitea.test/api/swagger"}` {
			t.Errorf("%s %s: %s", r.Method, r.Path, res.Body)
		}
	}
	if implemented != 267 {
		t.Errorf("%d routes are answered from state, want 267", implemented)
	}
}

// TestRoutesAreThePinnedOnes compares the routes with the pinned facts of the API,
// which the double itself does not import.
func TestRoutesAreThePinnedOnes(t *testing.T) {
	t.Parallel()
	facts, err := build.DecodeFacts(spec.Facts())
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, o := range facts.Operations {
		want = append(want, o.Method+" "+o.Path)
	}
	for _, r := range fakegitea.New(fakegitea.Options{Seed: fakegitea.SeedEmpty}).Routes() {
		got = append(got, r.Method+" "+r.Path)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-facts +routes) %s", diff)
	}
}

// TestVersion holds the version that the double names without Options.Version to
// that of the pinned facts.
func TestVersion(t *testing.T) {
	t.Parallel()
	facts, err := build.DecodeFacts(spec.Facts())
	if err != nil {
		t.Fatal(err)
	}
	res := send(fakegitea.New(fakegitea.Options{Seed: fakegitea.SeedEmpty}), "", "GET", "/version", "")
	if want := `{"version":"` + facts.Version + `"}`; res.Body.String() != want {
		t.Errorf("%s, want %s", res.Body, want)
	}
}

// TestDemoSeed holds the two repositories of the demo that its texts send people to.
func TestDemoSeed(t *testing.T) {
	t.Parallel()
	s := fakegitea.New(fakegitea.Options{})
	alice, bob := s.Token("alice"), s.Token("bob")
	for _, c := range []struct {
		token, path string
		status      int
		has         string
	}{
		{"", "/repos/acme/garden", 200, `"private":false`},
		{"", "/repos/acme/garden/contents/README.md", 200, `"path":"README.md"`},
		{alice, "/repos/alice/notes", 200, `"private":true`},
		{alice, "/repos/alice/notes/raw/todo.md", 200, "- buy soil"},
		{bob, "/repos/alice/notes", 404, ""},
		{"", "/repos/alice/notes", 404, ""},
	} {
		res := send(s, c.token, "GET", c.path, "")
		if res.Code != c.status || !strings.Contains(res.Body.String(), c.has) {
			t.Errorf("%s: %d %s, want %d with %s", c.path, res.Code, res.Body, c.status, c.has)
		}
	}
}

// TestEveryRouteAnswers sends an empty request to every operation on every
// world: none may panic, be unrouted, or lack a body where it is refused.
func TestEveryRouteAnswers(t *testing.T) {
	t.Parallel()
	fill := strings.NewReplacer(
		"{owner}", "acme", "{repo}", "garden", "{org}", "acme", "{username}", "bob", "{index}", "1", "{id}", "1", "{branch}", "main",
		"{sha}", "main", "{ref}", "main", "{filepath}", "README.md", "{tag}", "v1.0.0", "{basehead}", "main...release/v1", "{archive}", "main.zip",
		"{pageName}", "Home", "{base}", "main", "{head}", "feature%2Ftomato", "{diffType}", "diff", "{template_owner}", "acme", "{template_repo}", "garden",
	)
	for _, seed := range []fakegitea.Seed{fakegitea.SeedDemo, fakegitea.SeedEmpty} {
		s := fakegitea.New(fakegitea.Options{Seed: seed})
		admin := s.Token("root1")
		for _, r := range s.Routes() {
			target := strings.NewReplacer("{", "", "}", "").Replace(fill.Replace(r.Path))
			res := send(s, admin, r.Method, target, "{}")
			if res.Code == 405 || strings.HasPrefix(res.Body.String(), "404 page not found") {
				t.Errorf("%s %s is not routed: %d", r.Method, target, res.Code)
			}
			if res.Code == 500 && !strings.Contains(target, "statuses") && target != "/orgs/acme" {
				t.Errorf("%s %s: %d %s", r.Method, target, res.Code, res.Body)
			}
		}
	}
}

// TestRecording records what arrived, bounded, and forgets on request.
func TestRecording(t *testing.T) {
	t.Parallel()
	s := fakegitea.New(fakegitea.Options{Seed: fakegitea.SeedEmpty})
	send(s, "", "POST", "/repos/a%2Fb/c?x=1&y=%20", `{"a":1}`)
	got := s.Requests()
	if len(got) != 1 || got[0].Method != "POST" || got[0].RequestURI != "/api/v1/repos/a%2Fb/c?x=1&y=%20" ||
		string(got[0].Body) != `{"a":1}` || got[0].Host != "gitea.test" || got[0].Header.Get("Content-Type") != "application/json" {
		t.Errorf("%+v", got)
	}
	for range 5000 {
		get(s, "", "/version")
	}
	get(s, "", "/version?last")
	all := s.Requests()
	if n := len(all); n != 4096 || all[n-1].RequestURI != "/api/v1/version?last" || all[0].RequestURI != "/api/v1/version" {
		t.Errorf("%d requests are kept, the last is %s", n, all[n-1].RequestURI)
	}
	s.ResetRequests()
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests after the reset", n)
	}
}

// TestHooks checks Intercept and AnswerAll.
func TestHooks(t *testing.T) {
	t.Parallel()
	s := fakegitea.New(fakegitea.Options{Seed: fakegitea.SeedEmpty})
	s.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != `{"a":1}` {
			return false
		}
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	if res := send(s, "", "POST", "/anything", `{"a":1}`); res.Code != 502 {
		t.Errorf("intercepted: %d", res.Code)
	}
	if res := get(s, "", "/version"); res.Code != 200 {
		t.Errorf("passed on: %d", res.Code)
	}
	s.AnswerAll(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "always") })
	if res := get(s, "", "/version"); res.Body.String() != "always" {
		t.Errorf("AnswerAll: %s", res.Body)
	}
	s.AnswerAll(nil)
	s.Intercept(nil)
	if res := get(s, "", "/version"); !strings.Contains(res.Body.String(), "28.1") {
		t.Errorf("after AnswerAll: %s", res.Body)
	}
	if len(s.Requests()) != 4 {
		t.Errorf("%d requests recorded", len(s.Requests()))
	}
}

// TestSetToken makes a chosen token valid.
func TestSetToken(t *testing.T) {
	t.Parallel()
	s := fakegitea.New(fakegitea.Options{})
	s.SetToken("bob", "chosen-token")
	if res := get(s, "chosen-token", "/user"); !strings.Contains(res.Body.String(), `"login":"bob"`) {
		t.Errorf("%d %s", res.Code, res.Body)
	}
}

// TestConcurrent lets many clients read and write at once; the race detector
// judges.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	s := fakegitea.New(fakegitea.Options{})
	srv := httptest.NewServer(s)
	defer srv.Close()
	alice := s.Token("alice")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 10 {
				send(s, alice, "POST", "/repos/acme/garden/issues", fmt.Sprintf(`{"title":"%d %d"}`, i, k))
				get(s, alice, "/repos/acme/garden/issues?state=all")
				get(s, alice, "/repos/acme/garden/pulls")
				s.Requests()
				s.NewToken("bob", "read:repository")
			}
		})
	}
	wg.Wait()
	if got := get(s, alice, "/repos/acme/garden/issues?state=all").Header().Get("X-Total-Count"); got != "123" {
		t.Errorf("%s issues, want 43 seeded and 80 new", got)
	}
}

// TestNotTheAPI answers outside of /api/v1 with nothing but the description.
func TestNotTheAPI(t *testing.T) {
	t.Parallel()
	s := fakegitea.New(fakegitea.Options{})
	for target, want := range map[string]string{
		"/API/v1/version": "Not found.\n", "/api/v1%2Fversion": "Not found.\n", "/": "Not found.\n",
		"/acme/garden/releases/download/v1.0.0/garden-linux-amd64.txt": "Not found.\n",
		"/api/v1/../v1/version": "404 page not found\n",
		"/api//v1///version":    `{"version":"28.1.0"}`,
		"/api/v1/%75ser":        "404 page not found\n",
	} {
		if got := call(s, request{method: "GET", target: target}).Body.String(); got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
}

// FuzzServe throws paths and bodies at the world; nothing may panic.
func FuzzServe(f *testing.F) {
	s := fakegitea.New(fakegitea.Options{})
	token := s.Token("root1")
	for _, seed := range []struct{ method, path, body string }{
		{"GET", "repos/acme/garden/contents/docs%2Fa%20b%231%3F.md?ref=main", ""},
		{"POST", "repos/acme/garden/contents/a/../b.txt", `{"content":"eA==","sha":null}`},
		{"PATCH", "repos/acme/garden/issues/1", `{"state":"closed","assignees":["bob"]}`},
		{"GET", "repos/acme/garden/compare/main...bob:main", ""},
		{"POST", "repos/acme/garden/pulls/41/merge", `{"Do":"rebase"}`},
		{"PUT", "orgs/acme/actions/secrets/X", `{"data":"x"}`},
		{"DELETE", "repos/acme/garden/branches/%2F", ""},
	} {
		f.Add(seed.method, seed.path, seed.body)
	}
	f.Fuzz(func(t *testing.T, method, path, body string) {
		r, err := http.NewRequest(method, "http://gitea.test/api/v1/"+path, strings.NewReader(body))
		if err != nil {
			t.Skip()
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "token "+token)
		s.ServeHTTP(httptest.NewRecorder(), r)
	})
}
