package policy_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/policy"
)

func TestGlobs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"acme/*", "acme/web", true}, {"acme/*", "acme/", true}, {"acme/*", "acme/a/b", false}, {"acme/*", "acmex/web", false},
		{"ai/**", "ai/x", true}, {"ai/**", "ai/x/y", true}, {"ai/**", "ai", false}, {"ai/**", "xai/x", false},
		{"**/Makefile", "Makefile", true}, {"**/Makefile", "a/b/Makefile", true}, {"**/Makefile", "aMakefile", false},
		{"a/**/b", "a/b", true}, {"a/**/b", "a/x/y/b", true}, {"v?.*", "v1.2", true}, {"v?.*", "v/.2", false}, {"v?.*", "v10.2", false},
		{"a.b", "axb", false}, {"a[bc]", "ab", false}, {"a[bc]", "a[bc]", true}, {"(a|b)", "a", false}, {"^a$", "a", false},
		{"**", "any/thing", true}, {"*", "thing", true}, {"*", "any/thing", false}, {"a\nb", "a\nb", true}, {"*", "a\nb", true},
	} {
		got, err := policy.Match(c.pattern, c.text, false)
		if err != nil || got != c.want {
			t.Errorf("%q on %q: %v, %v", c.pattern, c.text, got, err)
		}
	}
	for _, text := range []string{"Web", "web", "WEB", "weB", "web/", "we", "webx", "ẃeb", "\u212aey",
		"key"} { // U+212A folds to k
		for _, pattern := range []string{"web", "web*", "web**", "KEY", "k*", "**", "w?b"} {
			quick, _ := policy.Match(pattern, text, true)
			slow, _ := policy.Match("?"+pattern, "x"+text, true)
			if quick != slow {
				t.Errorf("%q on %q: %v, by the expression %v", pattern, text, quick, slow)
			}
		}
	}
	if got, _ := policy.Match("ACME/*", "acme/Web", true); !got {
		t.Error("letters' case counts")
	}
	for _, bad := range []string{"", strings.Repeat("a", 301)} {
		if _, err := policy.Match(bad, "a", false); err == nil {
			t.Errorf("a pattern of %d bytes is taken", len(bad))
		}
	}
}

// TestNames: what Gitea would see, or nothing.
func TestNames(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"acme": "acme", "ACME": "acme", "a.b-c_d": "a.b-c_d", "acme/": "", "acme%2F": "", "аcme": "", "acme ": "", "": "", "..": "", ".": "", "ac\u200bme": "", "acme\x00": "", "ſ": "", strings.Repeat("a", 256): "",
	} {
		if got, ok := policy.OwnerName(in); got != want || ok != (want != "") {
			t.Errorf("owner %q is %q, %v", in, got, ok)
		}
	}
	for in, want := range map[string]string{"web": "web", "Web.git": "web", "web.GIT.git": "web", "web.wiki": "web",
		".git": "", "web/..": "", "web.gitx": "web.gitx"} {
		if got, ok := policy.RepoName(in); got != want || ok != (want != "") {
			t.Errorf("repository %q is %q, %v", in, got, ok)
		}
	}
	for in, want := range map[string][]string{
		"main": {"main"}, "refs/heads/main": {"refs/heads/main", "main"}, "heads/main": {"heads/main", "main"}, "refs/tags/refs/heads/v1": {"refs/tags/refs/heads/v1", "refs/heads/v1", "v1"},
		"": nil, "a b": nil, "a..b": nil, "/a": nil, "a/": nil, "a//b": nil, "a.lock": nil, "a/.b": nil, "@": nil, "a@{1}": nil, "a~1": nil, "a\u202eb": nil, "-a": nil, "refs/": nil, "ünï/ß": {"ünï/ß"},
	} {
		got, ok := policy.RefNames(in)
		if diff := cmp.Diff(want, got); diff != "" && (ok || want != nil) || ok != (want != nil) {
			t.Errorf("ref %q is %q, %v", in, got, ok)
		}
	}
	for in, want := range map[string]bool{"a": true, "a/b c#1.md": true, "": false, "/a": false, "a/": false,
		"a//b": false, "./a": false, "a/../b": false, `a\b`: false, "a\x00": false, "a\u200b": false, "100%": true} {
		if policy.FilePath(in) != want {
			t.Errorf("path %q: %v", in, !want)
		}
	}
	for in, want := range map[string]string{"/sub/acme/web/issues/3": "acme/web",
		"/acme/web/src/branch/main/src/wiki/x.go": "acme/web", "/acme/-/projects/1": "", "/acme/web": "",
		"/acme/issues/issues/3": "acme/issues", "/alice": ""} {
		if got := policy.NamedBy(in); got != want {
			t.Errorf("%s is about %q", in, got)
		}
	}
}

// FuzzNames: a name that is judged is one that Gitea reads in one way only.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"acme", "ACME.git", "refs/heads/main", "a/../b", "аcme", "%2e%2e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if name, ok := policy.RepoName(s); ok {
			if name != strings.ToLower(name) || strings.ContainsAny(name, "/%\\ \x00") || !utf8.ValidString(name) ||
				strings.HasSuffix(name, ".git") {
				t.Errorf("%q is judged as %q", s, name)
			}
			if again, ok := policy.RepoName(name); !ok || again != name {
				t.Errorf("%q is judged as %q, and that as %q", s, name, again)
			}
		}
		if names, ok := policy.RefNames(s); ok {
			for _, n := range names {
				if n == "" || strings.Contains(n, "..") || strings.HasPrefix(n, "/") {
					t.Errorf("%q is judged as %q", s, n)
				}
			}
		}
	})
}

// FuzzRows: whatever Gitea answers, what is shown is JSON and names nothing that
// is hidden where Gitea names repositories.
func FuzzRows(f *testing.F) {
	for _, s := range []string{`[` + ours + `,` + theirs + `]`, `{"data":[` + theirs + `],"ok":true}`,
		`{"a":{"b":[` + theirs + `]}}`, `[null,1,"x"]`, `{"repository":` + theirs + `}`, `[{"parent":` + theirs +
			`}]`} {
		f.Add(s)
	}
	p := compile(f, rules(f, repos([]string{"acme/*"}, []string{"acme/secret-*"})), nil)
	tools := byID(f)
	f.Fuzz(func(t *testing.T, body string) {
		if !json.Valid([]byte(body)) {
			return
		}
		for _, op := range []string{"repoSearch", "userCurrentListRepos", "repoGet", "issueGetCommentsAndTimeline",
			"repoGetByID"} {
			res, err := shown(t, p, tools[op], proxy.BodyJSON, body)
			if err != nil {
				continue
			}
			var v any
			if err := json.Unmarshal(res.Body, &v); err != nil {
				t.Fatalf("%s: %s becomes %s: %v", op, body, res.Body, err)
			}
			if showsSecret(v) {
				t.Errorf("%s: %s becomes %s", op, body, res.Body)
			}
		}
	})
}

// showsSecret looks for a repository object with a hidden name.
func showsSecret(v any) bool {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if showsSecret(item) {
				return true
			}
		}
	case map[string]any:
		name, _ := v["full_name"].(string)
		_, hasOwner := v["owner"].(map[string]any)
		_, hasName := v["name"]
		if hasOwner && hasName && strings.HasPrefix(name, "acme/secret-") {
			return true
		}
		for _, member := range v {
			if showsSecret(member) {
				return true
			}
		}
	}
	return false
}

func BenchmarkStage(b *testing.B) {
	cfg := config.Policy{
		Repos:    config.Patterns{Allow: []string{"acme/*", "acme-labs/*"}, Deny: []string{"acme/secret-*"}},
		Branches: config.BranchRules{Allow: []string{"ai/**"}},
		Paths:    config.Patterns{Deny: []string{".gitea/workflows/**"}},
	}
	p := compile(b, cfg, world{})
	tools := byID(b)
	for name, c := range map[string]*proxy.Call{
		"read":  {Tool: tools["issueGetIssue"], Args: proxy.Arguments{"owner": "acme", "repo": "web", "index": json.Number("7")}, Identity: &proxy.Identity{Login: "alice"}},
		"write": {Tool: tools["repoCreateFile"], Args: proxy.Arguments{"owner": "acme", "repo": "web", "filepath": "docs/a.md", "content_text": "x", "message": "m", "branch": "ai/x"}, Identity: &proxy.Identity{Login: "alice"}},
	} {
		b.Run(name, func(b *testing.B) {
			c := resolved(c)
			b.ReportAllocs()
			for b.Loop() {
				if v := p.Explain(b.Context(), c); !v.Allowed {
					b.Fatal(v)
				}
			}
		})
	}
}

func BenchmarkRows(b *testing.B) {
	p := compile(b, config.Policy{Repos: config.Patterns{Allow: []string{"acme/*"}}}, nil)
	tool := byID(b)["repoSearch"]
	body := []byte(`{"ok":true,"data":[` + strings.Repeat(ours+","+theirs+",", 24) + ours + `]}`)
	h := p.Rows()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		return &proxy.Result{Kind: proxy.BodyJSON, Body: body}, nil
	}))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Handle(b.Context(), resolved(&proxy.Call{Tool: tool})); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	tools := builtin(b).Tools()
	for b.Loop() {
		if _, err := policy.New(config.Policy{}, policy.Options{Operations: tools}); err != nil {
			b.Fatal(err)
		}
	}
}

// matches is what a pattern means, written as a definition: slow, but plain.
func matches(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case strings.HasPrefix(pattern, "**"):
		for i := 0; i <= len(text); i++ {
			if matches(pattern[2:], text[i:]) {
				return true
			}
		}
		return false
	case pattern[0] == '*':
		for i := 0; i <= len(text); i++ {
			if matches(pattern[1:], text[i:]) {
				return true
			}
			if i < len(text) && text[i] == '/' {
				return false
			}
		}
		return false
	case text == "":
		return false
	case pattern[0] == '?':
		return text[0] != '/' && matches(pattern[1:], text[1:])
	}
	return pattern[0] == text[0] && matches(pattern[1:], text[1:])
}

// FuzzGlob compares patterns with their definition.
func FuzzGlob(f *testing.F) {
	f.Add("acme/*", "acme/web")
	f.Add("a**b?c*", "a/x/byc")
	f.Add("docs/**", "docs/a/b")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 12 || len(text) > 24 || strings.Contains(pattern, "***") || !ascii(pattern) || !ascii(text) {
			return
		}
		got, err := policy.Match(pattern, text, false)
		if err != nil {
			return
		}
		want := matches(pattern, text)
		if strings.Contains("/"+pattern, "/**/") {
			return // stands for nothing too; TestGlobs has it
		}
		if got != want {
			t.Errorf("%q on %q: %v, want %v", pattern, text, got, want)
		}
	})
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}
