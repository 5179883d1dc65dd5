package gitea_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/gitea"
)

// names are legal names and their only correct form in one path segment.
var names = []struct{ name, segment string }{
	{"release/v1", "release%2Fv1"},
	{"a b", "a%20b"},
	{"kind/bug", "kind%2Fbug"},
	{"docs/a b#1?.md", "docs%2Fa%20b%231%3F.md"},
	{"100%.txt", "100%25.txt"},
	{"ü/ñ.txt", "%C3%BC%2F%C3%B1.txt"},
	{"semi/a;b.txt", "semi%2Fa%3Bb.txt"},
	{"amp/a&b=c.txt", "amp%2Fa%26b%3Dc.txt"},
	{"pct/a%2Fb.txt", "pct%2Fa%252Fb.txt"},
	{"plus/a+b.txt", "plus%2Fa%2Bb.txt"},
	{"acme:pr/05", "acme%3Apr%2F05"},
	{"@acme/widget", "%40acme%2Fwidget"},
	{"file..txt", "file..txt"},
	{"...", "..."},
	{"..a/.b", "..a%2F.b"},
	{"main...feature/x", "main...feature%2Fx"},
	{"日本語", "%E6%97%A5%E6%9C%AC%E8%AA%9E"},
	{"~tilde_-", "~tilde_-"},
	{"it's (a) [b] {c} \"d\" <e> |f| ^g `h` *", "it%27s%20%28a%29%20%5Bb%5D%20%7Bc%7D%20%22d%22%20%3Ce%3E%20%7Cf%7C%20%5Eg%20%60h%60%20%2A"},
	{"back\\slash", "back%5Cslash"},
	{"%", "%25"},
	{"%zz", "%25zz"},
}

func TestPathOnTheWire(t *testing.T) {
	t.Parallel()
	u := serve(t, nil)
	c := client(t, u.URL)
	single := get("/repos/{owner}/{repo}/releases/tags/{tag}")
	wild := get("/repos/{owner}/{repo}/branches/{*branch}/x")
	for _, n := range names {
		for _, tool := range []*proxy.Tool{single, wild} {
			args := proxy.Arguments{"owner": "acme", "repo": "lab", "tag": n.name, "branch": n.name}
			must(t, c, call(tool, args))
			got := u.requests()
			want := "/api/v1/repos/acme/lab/releases/tags/" + n.segment
			if tool == wild {
				want = "/api/v1/repos/acme/lab/branches/" + strings.ReplaceAll(n.segment, "%2F", "/") + "/x"
			}
			if last := got[len(got)-1].URI; last != want {
				t.Errorf("%q: sent %s, want %s", n.name, last, want)
			}
		}
	}
}

func TestPathOfTwoParametersInOneSegment(t *testing.T) {
	t.Parallel()
	u := serve(t, nil)
	tool := get("/repos/{owner}/{repo}/pulls/{index}.{diffType}")
	res := must(t, client(t, u.URL), call(tool, proxy.Arguments{
		"owner": "acme", "repo": "lab", "index": number("6"), "diffType": "diff",
	}))
	if got := u.requests()[0].URI; got != "/api/v1/repos/acme/lab/pulls/6.diff" {
		t.Errorf("sent %s", got)
	}
	if res.Path != "/repos/acme/lab/pulls/6.diff" || res.Method != "GET" {
		t.Errorf("result names %s %s", res.Method, res.Path)
	}
}

func TestSubPath(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"/git":    "/git/api/v1/repos/o/r/labels/a%2Fb",
		"/git/":   "/git/api/v1/repos/o/r/labels/a%2Fb",
		"/":       "/api/v1/repos/o/r/labels/a%2Fb",
		"/my%20x": "/my%20x/api/v1/repos/o/r/labels/a%2Fb",
	} {
		u := serve(t, nil)
		must(t, client(t, u.URL+base), call(get("/repos/{owner}/{repo}/labels/{id}"),
			proxy.Arguments{"owner": "o", "repo": "r", "id": "a/b"}))
		if got := u.requests()[0].URI; got != want {
			t.Errorf("%s: sent %s, want %s", base, got, want)
		}
	}
}

// An HTTP proxy gets the whole address; the path in it must be just as exact.
func TestPathThroughProxy(t *testing.T) {
	t.Parallel()
	p := serve(t, nil)
	address, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, "http://gitea.invalid:3000/git", func(cfg *config.Gitea, _ *gitea.Limits) {
		cfg.Proxy = &config.URL{URL: *address}
	})
	must(t, c, call(get("/repos/{owner}/{repo}/labels/{id}"),
		proxy.Arguments{"owner": "o", "repo": "r", "id": "a/b 100%"}))
	want := "http://gitea.invalid:3000/git/api/v1/repos/o/r/labels/a%2Fb%20100%25"
	if got := p.requests()[0].URI; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

// The environment of the process must not decide where credentials go.
func TestProxyOfEnvironmentIsIgnored(t *testing.T) {
	trap := serve(t, nil)
	t.Setenv("HTTP_PROXY", trap.URL)
	t.Setenv("ALL_PROXY", trap.URL)
	t.Setenv("NO_PROXY", "")
	c := client(t, "http://gitea.invalid:3000")
	fails(t, c, call(write("POST", "/x"), nil), proxy.KindUpstreamUnavailable)
	if n := len(trap.requests()); n != 0 {
		t.Errorf("%d requests went to the proxy of the environment", n)
	}
}

// hostile are values that must never reach Gitea in a path.
var hostile = []string{
	"", ".", "..", "/", "a/", "/a", "a//b", "a/../b.txt", "../x", "x/..", "a/./b", "%2e%2e%2fsecret",
	"%2e%2e/x", "a/%2E%2e/b", "%252e%252e%252fx", "a%2f..%2fb", "..%5cx", "..\\x", "a\\..\\b",
	"x\x00y", "x\ny", "x\ry", "x\x7fy", "x\u0085y", "\xff\xfe", strings.Repeat("a", 10_000),
	"%" + strings.Repeat("25", 1000) + "2e", "%2e", "x/%2e%2e",
}

func TestHostilePathValues(t *testing.T) {
	t.Parallel()
	u := serve(t, nil)
	c := client(t, u.URL)
	methods := []string{"GET", "POST", "PUT", "PATCH", "DELETE"}
	for _, path := range []string{
		"/repos/{owner}/{repo}/contents/{*filepath}", "/repos/{owner}/{repo}/git/trees/{sha}",
		"/repos/{owner}/{repo}/branches/{*branch}", "/packages/{owner}/{type}/{name}/{version}",
	} {
		for _, method := range methods {
			tool := write(method, path)
			for _, p := range tool.Params {
				for _, v := range hostile {
					args := proxy.Arguments{}
					for _, other := range tool.Params {
						args[other.Name] = "fine"
					}
					args[p.Name] = v
					e := fails(t, c, call(tool, args), proxy.KindInvalidArguments)
					if len(v) > 3 && strings.Contains(e.Public, v) {
						t.Errorf("the error repeats the value %q: %s", v, e.Public)
					}
					if !strings.Contains(e.Public, p.Name) {
						t.Errorf("the error does not name %s: %s", p.Name, e.Public)
					}
				}
			}
		}
	}
	if got := u.requests(); len(got) != 0 {
		t.Fatalf("%d requests were sent, the first %s %q", len(got), got[0].Method, got[0].URI)
	}
}

func TestHostileAccountAndRepositoryNames(t *testing.T) {
	t.Parallel()
	u := serve(t, nil)
	c := client(t, u.URL)
	for _, wire := range []string{"owner", "repo", "org", "username"} {
		tool := get("/x/{" + wire + "}")
		for _, v := range []string{"o/x/../../admin", "r?state=all&", "a/b", "a%2Fb", "a#b", "a&b", "a=b", "a;b",
			"a b", "a:b", "a\\b", "%61"} {
			fails(t, c, call(tool, proxy.Arguments{wire: v}), proxy.KindInvalidArguments)
		}
		for _, v := range []string{"acme", "ACME-2", "a.b", "x_y", "a..b"} {
			must(t, c, call(tool, proxy.Arguments{wire: v}))
		}
	}
	if n := len(u.requests()); n != 4*5 {
		t.Errorf("%d requests were sent, want the 20 legal ones", n)
	}
}

func TestGitDirectory(t *testing.T) {
	t.Parallel()
	u := serve(t, nil)
	c := client(t, u.URL)
	tool := write("POST", "/repos/{owner}/{repo}/contents/{*filepath}")
	args := func(v string) proxy.Arguments {
		return proxy.Arguments{"owner": "o", "repo": "r", "filepath": v}
	}
	for _, v := range []string{
		".git/config", "a/.git/hooks/x", ".GIT/config", ".git", "%2egit/config", ".git%2fconfig", "a\\.git\\x",
		".git./x", ".git /x", "git~1/x", ".g\u200cit/config",
	} {
		fails(t, c, call(tool, args(v)), proxy.KindInvalidArguments)
	}
	for _, v := range []string{".gitignore", ".gitea/workflows/ci.yml", "a.git/x", ".github/x", "git/x"} {
		must(t, c, call(tool, args(v)))
	}
}

// Bodies of the contents routes name paths too, and the server cleans them.
func TestHostilePathsInBodies(t *testing.T) {
	t.Parallel()
	u := serve(t, nil)
	c := client(t, u.URL)
	tool := write("POST", "/repos/{owner}/{repo}/contents", param(proxy.InBody, "files"),
		param(proxy.InBody, "from_path"))
	for _, v := range []string{"a/../b.txt", ".git/config", "/etc/passwd", "a//b", "%2e%2e/x"} {
		for _, body := range []any{
			[]any{map[string]any{"operation": "create", "path": v}},
			[]any{map[string]any{"operation": "rename", "path": "ok", "from_path": v}},
			[]any{"ok", v},
		} {
			fails(t, c, call(tool, proxy.Arguments{"owner": "o", "repo": "r", "files": body}),
				proxy.KindInvalidArguments)
		}
		fails(t, c, call(tool, proxy.Arguments{"owner": "o", "repo": "r", "from_path": v}), proxy.KindInvalidArguments)
	}
	if n := len(u.requests()); n != 0 {
		t.Fatalf("%d requests were sent", n)
	}
	must(t, c, call(tool, proxy.Arguments{"owner": "o", "repo": "r",
		"files": []any{map[string]any{"path": "docs/a b#1?.md"}}}))
}

func TestMissingPathArgument(t *testing.T) {
	t.Parallel()
	u := serve(t, nil)
	fails(t, client(t, u.URL), call(get("/repos/{owner}"), proxy.Arguments{}), proxy.KindInvalidArguments)
	fails(t, client(t, u.URL), call(get("/repos/{owner}"), proxy.Arguments{"owner": []any{"x"}}),
		proxy.KindInvalidArguments)
	if n := len(u.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// FuzzPath holds the path builder to its promise: what goes out has the
// segments of the template, nothing in it is cleaned away, and each value comes
// back when it is decoded once.
func FuzzPath(f *testing.F) {
	for _, n := range names {
		f.Add(n.name, true)
	}
	for _, v := range hostile {
		f.Add(v, false)
	}
	f.Fuzz(func(t *testing.T, v string, wildcard bool) {
		tool := get("/repos/{owner}/x/{name}/end")
		tool.Params[1].Wildcard = wildcard
		path, err := gitea.BuildPath(tool, proxy.Arguments{"owner": "acme", "name": v})
		if err != nil {
			return
		}
		middle, ok := strings.CutPrefix(path, "/repos/acme/x/")
		if !ok {
			t.Fatalf("%q: %s", v, path)
		}
		middle, ok = strings.CutSuffix(middle, "/end")
		if !ok {
			t.Fatalf("%q: %s", v, path)
		}
		if !wildcard && strings.Contains(middle, "/") {
			t.Fatalf("%q reaches over its segment: %s", v, path)
		}
		decoded, err := url.PathUnescape(middle)
		if err != nil || decoded != v {
			t.Fatalf("%q comes back as %q (%v)", v, decoded, err)
		}
		checkCleaned(t, "/repos/acme/x/"+v+"/end", path)
		r, err := http.NewRequest("GET", "http://h"+path, nil)
		if err != nil || r.URL.RequestURI() != path {
			t.Fatalf("net/http sends %s for %s (%v)", r.URL.RequestURI(), path, err)
		}
	})
}

// checkCleaned fails when any number of decodings of path holds a segment that a
// server cleans away.
func checkCleaned(t *testing.T, plain, path string) {
	t.Helper()
	for seg := range strings.SplitSeq(plain[1:], "/") {
		if seg == "" || seg == "." || seg == ".." {
			t.Fatalf("%q has a segment that is cleaned away", plain)
		}
	}
	for range 12 {
		for seg := range strings.SplitSeq(path, "/") {
			if seg == ".." || seg == "." {
				t.Fatalf("%q decodes to dots", path)
			}
		}
		next, err := url.PathUnescape(path)
		if err != nil || next == path {
			return
		}
		path = next
	}
}

func ExampleClient_Handle_path() {
	fmt.Println(gitea.Escape("release/v1 100%", false))
	fmt.Println(gitea.Escape("docs/a b#1?.md", true))
	// Output:
	// release%2Fv1%20100%25
	// docs/a%20b%231%3F.md
}
