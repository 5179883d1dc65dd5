package fakegitea_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"aegis/proxy/gitea/fakegitea"
)

// newLab serves the lab world with a token of alice.
func newLab(t *testing.T) (*fakegitea.Server, string) {
	t.Helper()
	s := fakegitea.New(fakegitea.Options{Seed: fakegitea.SeedLab})
	return s, s.Token("alice")
}

// get sends a GET below /api/v1.
func get(s http.Handler, token, target string) *httptest.ResponseRecorder {
	return call(s, request{method: "GET", target: "/api/v1" + target, token: token})
}

// send sends a JSON body below /api/v1.
func send(s http.Handler, token, method, target, body string) *httptest.ResponseRecorder {
	return call(s, request{method: method, target: "/api/v1" + target, token: token, body: body})
}

// items counts the elements of an array body, or of an array in a field.
func items(t *testing.T, res *httptest.ResponseRecorder, field string) int {
	t.Helper()
	raw := res.Body.Bytes()
	if field != "" {
		var obj map[string]json.RawMessage
		if err := json.Unmarshal(raw, &obj); err != nil {
			t.Fatalf("%v: %.200s", err, raw)
		}
		raw = obj[field]
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatalf("%v: %.200s", err, raw)
	}
	return len(list)
}

// TestPaging checks which routes page, by which parameter, and with which
// headers.
func TestPaging(t *testing.T) {
	t.Parallel()
	s, alice := newLab(t)
	admin := s.Token("aegis-admin")
	const paths, issues = "/repos/acme/paths-lab", "/repos/acme/issues-lab"
	for _, tt := range []struct {
		target, field string
		n             int
		total         string
		link, pages   bool
	}{
		{issues + "/issues?state=all", "", 30, "300", true, false},
		{issues + "/issues?state=all&limit=0", "", 30, "300", true, false},
		{issues + "/issues?state=all&limit=-1", "", 30, "300", true, false},
		{issues + "/issues?state=all&limit=abc&page=abc", "", 30, "300", true, false},
		{issues + "/issues?state=all&page=-1", "", 30, "300", true, false},
		{issues + "/issues?state=all&limit=1000", "", 50, "300", true, false},
		{issues + "/issues?state=all&limit=50&page=6", "", 50, "300", true, false},
		{issues + "/issues?state=all&limit=50&page=99", "", 0, "300", true, false},
		{paths + "/commits?limit=5&page=2", "", 5, "41", true, true},
		{paths + "/commits?path=history.txt&limit=1", "", 40, "40", true, true},
		{"/repos/acme/pulls-lab/pulls/4/files?limit=1", "", 1, "2", true, true},
		{"/repos/acme/pulls-lab/pulls/4/commits?limit=1", "", 1, "1", false, true},
		{paths + "/branches?limit=3", "", 3, "14", true, false},
		{paths + "/tags?limit=3", "", 3, "7", false, false},
		{"/repos/acme/releases-lab/releases?limit=2", "", 2, "6", true, false},
		{"/repos/search?limit=3", "data", 3, "16", true, false},
		{"/users/search?limit=2", "data", 2, "4", true, false},
		{"/orgs/acme/repos?limit=5", "", 5, "12", true, false},
		{issues + "/labels?limit=3", "", 3, "10", false, false},
		{issues + "/milestones?limit=2", "", 2, "3", false, false},
		{issues + "/issues/11/comments?limit=5", "", 60, "60", false, false},
		{issues + "/issues/11/comments?limit=5&page=2", "", 60, "60", false, false},
		{issues + "/issues/11/timeline?limit=5", "", 5, "5", false, false},
		{issues + "/issues/11/timeline?limit=5&page=2", "", 5, "5", false, false},
		{paths + "/git/trees/main?recursive=1&per_page=5", "tree", 5, "31", false, false},
		{paths + "/git/trees/main?recursive=1&limit=5", "tree", 31, "31", false, false},
		{"/repos/acme/wiki-lab/wiki/pages?limit=3", "", 3, "9", true, false},
		{"/repos/acme/hooks-lab/hooks?limit=1", "", 1, "2", false, false},
		{"/packages/acme?limit=2", "", 2, "5", true, false},
		{"/orgs/acme/teams?limit=1", "", 1, "3", true, false},
		{"/notifications?limit=2", "", 2, "187", true, false},
		{paths + "/contents?limit=2", "", 15, "", false, false},
		{paths + "/git/refs?limit=2", "", 22, "", false, false},
		{paths + "/branch_protections?limit=2", "", 6, "", false, false},
		{paths + "/topics?limit=1", "topics", 1, "3", false, false},
		{paths + "/activities/feeds?limit=2", "", 2, "198", false, false},
		{"/repos/acme/pulls-lab/pulls/2/reviews?limit=1", "", 1, "1", false, false},
	} {
		res := get(s, alice, tt.target)
		h := res.Header()
		if res.Code != 200 || items(t, res, tt.field) != tt.n || h.Get("X-Total-Count") != tt.total ||
			(h.Get("Link") != "") != tt.link || (h.Get("X-Page") != "") != tt.pages {
			t.Errorf("%s: %d, %d items, headers %v", tt.target, res.Code, items(t, res, tt.field), h)
		}
	}
	if res := get(s, admin, "/admin/users?limit=2"); items(t, res, "") != 2 || res.Header().Get("X-Total-Count") != "4" {
		t.Errorf("admin/users: %s", res.Body)
	}
}

// TestMaxItems caps pages at the configured number and says so.
func TestMaxItems(t *testing.T) {
	t.Parallel()
	s := fakegitea.New(fakegitea.Options{Seed: fakegitea.SeedLab, MaxItems: 7, RootURL: "https://git.example.org"})
	alice := s.Token("alice")
	res := get(s, alice, "/repos/acme/issues-lab/issues?limit=100")
	if items(t, res, "") != 7 || !strings.HasPrefix(res.Header().Get("Link"), "<https://git.example.org/api/v1/repos/acme/issues-lab/issues?limit=100&page=2>") {
		t.Errorf("%d items, Link %s", items(t, res, ""), res.Header().Get("Link"))
	}
	if body := get(s, "", "/settings/api").Body.String(); !strings.Contains(body, `"max_response_items":7`) {
		t.Error(body)
	}
}

// TestFilters drops unknown labels, milestones and words, and refuses unknown
// users.
func TestFilters(t *testing.T) {
	t.Parallel()
	s, alice := newLab(t)
	const p = "/repos/acme/issues-lab/issues?state=all&"
	count := func(q string) string { return get(s, alice, p+q).Header().Get("X-Total-Count") }
	bugs := count("labels=kind/bug")
	if bugs == "300" || bugs == "0" || count("labels=kind/bug,no-such") != bugs || count("labels=kind%2Fbug") != bugs {
		t.Errorf("kind/bug: %s, with an unknown label: %s", bugs, count("labels=kind/bug,no-such"))
	}
	for _, q := range []string{"labels=no-such", "labels=KIND/BUG", "milestones=no-such", "type=bogus", "sort=bogus", "foo=bar"} {
		if got := count(q); got != "300" {
			t.Errorf("%s: %s, want all 300", q, got)
		}
	}
	for q, want := range map[string]string{
		"milestones=v1.0": "50", "milestones=v1.1%20%2F%20next": "50", "created_by=bob": "100", "since=2099-01-01T00:00:00Z": "0", "labels=a%2Cb": "0",
	} {
		if got := count(q); got != want {
			t.Errorf("%s: %s, want %s", q, got, want)
		}
	}
	if got := get(s, alice, "/repos/acme/issues-lab/issues?state=bogus").Header().Get("X-Total-Count"); got != "225" {
		t.Errorf("state=bogus: %s, want the open ones", got)
	}
	for _, q := range []string{"created_by=nobody", "assigned_by=nobody"} {
		if res := get(s, alice, p+q); res.Code != 404 || message(res) != "user does not exist [uid: 0, name: nobody]" {
			t.Errorf("%s: %d %s", q, res.Code, res.Body)
		}
	}
}

// refusal is a request with the refusal that was measured.
type refusal struct {
	as, method, target, body string
	status                   int
	message                  string
}

// TestRefusals checks statuses and words of errors.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s, alice := newLab(t)
	tokens := map[string]string{"alice": alice, "bob": s.Token("bob"), "carol": s.Token("carol"), "admin": s.Token("aegis-admin"), "bad": strings.Repeat("0", 40)}
	const zero = "0000000000000000000000000000000000000000"
	for _, tt := range []refusal{
		{"", "GET", "/user", "", 401, "token is required"},
		{"bad", "GET", "/user", "", 401, "invalid username, password or token"},
		{"bad", "GET", "/repos/acme/paths-lab", "", 401, "invalid username, password or token"},
		{"bad", "GET", "/version", "", 401, "invalid username, password or token"},
		{"alice", "GET", "/admin/users", "", 403, "user should be the site admin"},
		{"bob", "POST", "/repos/alice/personal/labels", `{"name":"x","color":"#fff"}`, 403, "user should have a permission to write to a repo"},
		{"", "POST", "/repos/acme/issues-lab/issues", `{"title":"x"}`, 401, "token is required"},
		{"alice", "GET", "/repos/acme/nope", "", 404, "not found"},
		{"bob", "GET", "/repos/alice/private-notes", "", 404, "not found"},
		{"", "GET", "/repos/alice/private-notes", "", 404, "not found"},
		{"alice", "GET", "/repos/nobody/nope", "", 404, "not found"},
		{"alice", "GET", "/repos/acme/issues-lab/issues/99999999999999999999", "", 404, "not found"},
		{"alice", "GET", "/repos/acme/issues-lab/issues/abc", "", 404, "not found"},
		{"alice", "GET", "/repos/acme/paths-lab/contents/README.md?ref=nope", "", 404, "object does not exist [id: nope, rel_path: ]"},
		{"alice", "POST", "/orgs/acme/repos", `{"name":"paths-lab"}`, 409, "The repository with the same name already exists."},
		{"alice", "POST", "/repos/acme/paths-lab/branches", `{"new_branch_name":"plain"}`, 409, "The branch already exists."},
		{"alice", "POST", "/repos/acme/releases-lab/releases", `{"tag_name":"v1.0"}`, 409, "Release is has no Tag"},
		{"alice", "PUT", "/repos/acme/paths-lab/contents/dir/sub/plain.txt", `{"content":"eA==","sha":"` + zero + `"}`, 422,
			"sha does not match [given: " + zero + ", expected: b9bca019c83a65e6d717d0b6da86215f45dde1b3]"},
		{"alice", "POST", "/repos/acme/paths-lab/contents/README.md", `{"content":"eA=="}`, 422, "repository file already exists [path: README.md]"},
		{"alice", "POST", "/repos/acme/issues-lab/issues", `{}`, 422, "[Title]: Required"},
		{"alice", "POST", "/repos/acme/issues-lab/issues", `{"title":5}`, 422, `[]: json: cannot unmarshal JSON number into Go string within "/title"`},
		{"alice", "POST", "/repos/acme/issues-lab/labels", `{"name":"x","color":"zzz"}`, 422, "invalid color: #zzz"},
		{"alice", "POST", "/repos/acme/archived-repo/issues", `{"title":"x"}`, 423, "repo is archived"},
		{"alice", "POST", "/orgs", `{"username":"acme"}`, 422, "user already exists [name: acme]"},
		{"alice", "GET", "/repos/acme/empty-repo/contents", "", 404, "object does not exist [id: main, rel_path: ]"},
		{"alice", "GET", "/repos/acme/empty-repo/contents/README.md", "", 404, "object does not exist [id: main, rel_path: ]"},
		{"alice", "GET", "/repos/acme/empty-repo/commits", "", 409, "Git Repository is empty."},
		{"alice", "GET", "/repos/acme/empty-repo/git/trees/main", "", 400, "sha not found [main]"},
		{"alice", "GET", "/repos/acme/empty-repo/git/refs", "", 404, "not found"},
		{"alice", "GET", "/repos/acme/empty-repo/raw/README.md", "", 404, "repository is empty"},
		{"alice", "GET", "/repos/acme/empty-repo/compare/main...x", "", 404, `ref "main" does not exist`},
		{"alice", "GET", "/repos/acme/empty-repo/archive/main.zip", "", 404, "unrecognized repository reference: main"},
		{"alice", "GET", "/repos/acme/empty-repo/git/commits/main", "", 404, "commit doesn't exist: main"},
		{"alice", "GET", "/repos/acme/empty-repo/commits/main/status", "", 404, "object does not exist [id: main, rel_path: ]"},
		{"alice", "GET", "/repos/acme/empty-repo/pulls", "", 404, "not found"},
		{"alice", "GET", "/repos/acme/empty-repo/wiki/pages", "", 404, "no such file or directory"},
		{"alice", "GET", "/repos/acme/empty-repo/releases/latest", "", 404, "not found"},
		{"alice", "GET", "/repos/acme/empty-repo/branches/main", "", 404, "not found"},
		{"alice", "POST", "/repos/acme/paths-lab/statuses/nope", `{"state":"success"}`, 500, ""},
		{"admin", "POST", "/repos/acme/paths-lab/statuses/nope", `{"state":"success"}`, 500, "GetCommit[nope]: object does not exist [id: nope, rel_path: ]"},
		{"alice", "GET", "/repos/acme/issues-lab/labels/no-such", "", 404, "label does not exist [label_id: 0, repo_id: 1]"},
		{"alice", "GET", "/repos/search?mode=bogus", "", 422, "invalid search mode"},
		{"alice", "GET", "/repos/search?sort=bogus", "", 422, `Invalid sort mode: "bogus"`},
		{"alice", "GET", "/repos/issues/search?since=garbage", "", 422, `parsing time "garbage" as "2006-01-02T15:04:05Z07:00": cannot parse "garbage" as "2006"`},
		{"alice", "POST", "/repos/acme/paths-lab/contents/%2e%2e%2fx.txt", `{"content":"eA==","branch":"plain"}`, 500, ""},
		{"alice", "POST", "/repos/acme/paths-lab/contents/.git/hooks/x", `{"content":"eA==","branch":"plain"}`, 422, "path contains a malformed path component [path: .git/hooks/x]"},
		{"alice", "POST", "/user/repos", `{"name":"bad name!"}`, 422, "[Name]: AlphaDashDot"},
	} {
		res := send(s, tokens[tt.as], tt.method, tt.target, tt.body)
		if res.Code != tt.status || message(res) != tt.message {
			t.Errorf("%s %s: %d %q, want %d %q", tt.method, tt.target, res.Code, message(res), tt.status, tt.message)
		}
		if tt.status == 401 && res.Header().Get("WWW-Authenticate") != "" {
			t.Errorf("%s: has WWW-Authenticate", tt.target)
		}
		if want := `"url":"http://gitea.test/api/swagger"}`; !strings.HasSuffix(res.Body.String(), want) {
			t.Errorf("%s: body %s", tt.target, res.Body)
		}
	}
}

// TestBodies refuses bodies that cannot be read, in the server's words.
func TestBodies(t *testing.T) {
	t.Parallel()
	s, alice := newLab(t)
	const p = "/api/v1/repos/acme/issues-lab/issues"
	for _, tt := range []struct{ kind, body, message string }{
		{"application/json", "{bad", "[]: jsontext: invalid character 'b' at start of value after offset 1"},
		{"application/json; charset=utf-8", "", "[Title]: Required"},
		{"", `{"title":"x"}`, "[]: Empty Content-Type"},
		{"text/plain", `{"title":"x"}`, "[]: Unsupported Content-Type"},
	} {
		h := http.Header{"Content-Type": {tt.kind}}
		res := call(s, request{method: "POST", target: p, token: alice, body: tt.body, header: h})
		if res.Code != 422 || message(res) != tt.message {
			t.Errorf("%q %s: %d %q", tt.kind, tt.body, res.Code, message(res))
		}
	}
}

// TestHiddenIsMissing checks that a hidden repository and a missing one cannot
// be told apart.
func TestHiddenIsMissing(t *testing.T) {
	t.Parallel()
	s, alice := newLab(t)
	bob := s.Token("bob")
	want := get(s, alice, "/repos/acme/nope").Body.String()
	for _, res := range []*httptest.ResponseRecorder{get(s, bob, "/repos/alice/private-notes"), get(s, "", "/repos/alice/private-notes"), get(s, bob, "/repos/no/no")} {
		if res.Body.String() != want {
			t.Errorf("%s, want %s", res.Body, want)
		}
	}
}

// TestOddAnswers checks single facts that surprise.
func TestOddAnswers(t *testing.T) {
	t.Parallel()
	s, alice := newLab(t)
	bob := s.Token("bob")
	// An empty repository lists null, not [].
	if res := get(s, alice, "/repos/acme/empty-repo/branches"); res.Body.String() != "null" || res.Code != 200 {
		t.Errorf("branches: %d %s", res.Code, res.Body)
	}
	// Deleting any label is 204, a name deletes nothing.
	if res := send(s, alice, "DELETE", "/repos/acme/issues-lab/labels/kind%2Fbug", ""); res.Code != 204 {
		t.Errorf("delete label by name: %d", res.Code)
	}
	if res := get(s, alice, "/repos/acme/issues-lab/labels/kind%2Fbug"); res.Code != 200 {
		t.Errorf("label by name: %d", res.Code)
	}
	// POST cleans a path and writes another file.
	body := `{"content":"eA==","message":"x","branch":"plain"}`
	if res := send(s, alice, "POST", "/repos/acme/paths-lab/contents/a/../b.txt", body); res.Code != 201 || !strings.Contains(res.Body.String(), `"path":"b.txt"`) {
		t.Errorf("POST a/../b.txt: %d %s", res.Code, res.Body)
	}
	// A name that is not UTF-8 is 404 without a body.
	if res := get(s, alice, "/repos/acme/paths-lab/contents/%FF%FE"); res.Code != 404 || res.Body.Len() != 0 {
		t.Errorf("not UTF-8: %d %q", res.Code, res.Body)
	}
	// GET statuses does not resolve names, POST does.
	if res := get(s, alice, "/repos/acme/paths-lab/statuses/main"); items(t, res, "") != 0 {
		t.Errorf("statuses/main: %s", res.Body)
	}
	if res := send(s, alice, "POST", "/repos/acme/paths-lab/statuses/main", `{"state":"any word"}`); res.Code != 201 {
		t.Errorf("POST statuses/main: %d", res.Code)
	}
	// Somebody without write access has her labels and assignees dropped.
	res := send(s, bob, "POST", "/repos/acme/paths-lab/issues", `{"title":"t","labels":[1],"assignees":["alice"]}`)
	if res.Code != 201 || !strings.Contains(res.Body.String(), `"assignees":null`) {
		t.Errorf("issue of a reader: %d %s", res.Code, res.Body)
	}
	// HEAD is GET without a body, on the wire; wrong methods list what is allowed.
	res = send(s, alice, "PATCH", "/version", "{}")
	if res.Code != 405 || res.Body.Len() != 0 || len(res.Header()["Allow"]) != 1 || res.Header().Get("Cache-Control") != "" {
		t.Errorf("PATCH /version: %d %v", res.Code, res.Header())
	}
	if res := send(s, alice, "OPTIONS", "/repos/acme/issues-lab/issues", ""); res.Code != 405 || len(res.Header()["Allow"]) != 2 {
		t.Errorf("OPTIONS: %d %v", res.Code, res.Header())
	}
	// No ETag on JSON.
	if h := get(s, alice, "/repos/acme/paths-lab").Header(); h.Get("Etag") != "" || h.Get("Cache-Control") != "max-age=0, private, must-revalidate" {
		t.Errorf("headers of JSON: %v", h)
	}
}

// TestRaw checks the caching headers, conditional requests and ranges of files.
func TestRaw(t *testing.T) {
	t.Parallel()
	s, alice := newLab(t)
	const p = "/api/v1/repos/acme/paths-lab/raw/"
	res := call(s, request{method: "GET", target: p + "README.md", token: alice})
	tag := res.Header().Get("Etag")
	if tag != `"1c59dfedb8ae4e33df8fe690c64ac759e5e46d68"` || res.Header().Get("Cache-Control") != "public, max-age=21600" {
		t.Errorf("headers %v", res.Header())
	}
	if res := call(s, request{method: "GET", target: p + "README.md", token: alice, header: http.Header{"If-None-Match": {tag}}}); res.Code != 304 {
		t.Errorf("If-None-Match: %d", res.Code)
	}
	res = call(s, request{method: "GET", target: p + "big/3mib.txt", token: alice, header: http.Header{"Range": {"bytes=0-99"}}})
	if res.Code != 206 || res.Body.Len() != 100 || res.Header().Get("Content-Range") != "bytes 0-99/3145728" {
		t.Errorf("Range: %d %v", res.Code, res.Header())
	}
	if h := get(s, alice, "/repos/alice/private-notes/raw/README.md").Header(); h.Get("Cache-Control") != "private, max-age=21600" {
		t.Errorf("private: %v", h)
	}
}

// TestBigFiles checks that a file over 10 MiB comes without content.
func TestBigFiles(t *testing.T) {
	t.Parallel()
	s, alice := newLab(t)
	big := base64.StdEncoding.EncodeToString(make([]byte, 11<<20))
	if res := send(s, alice, "POST", "/repos/alice/personal/contents/big.bin", `{"content":"`+big+`"}`); res.Code != 201 {
		t.Fatalf("create: %d", res.Code)
	}
	var out struct {
		Content, Encoding *string
		Size              int
		SHA               string
	}
	res := get(s, alice, "/repos/alice/personal/contents/big.bin")
	if err := json.Unmarshal(res.Body.Bytes(), &out); err != nil || out.Content != nil || out.Encoding != nil || out.Size != 11<<20 {
		t.Errorf("contents: %v %.300s", err, res.Body)
	}
}
