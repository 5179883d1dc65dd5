package policy_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/gitea/fakegitea"
)

// spell returns a hostile spelling of a name: what somebody may try who wants to
// reach it although a rule forbids it.
func spell(rng *rand.Rand, name string) string {
	for range 1 + rng.IntN(3) {
		switch rng.IntN(13) {
		case 0:
			name = strings.ToUpper(name)
		case 1:
			name = strings.ToUpper(name[:1]) + name[1:]
		case 2:
			name += ".git"
		case 3:
			name += "/"
		case 4:
			name = strings.Replace(name, "e", "%65", 1)
		case 5:
			name = strings.Replace(name, "e", "е", 1) // Cyrillic
		case 6:
			name = "./" + name
		case 7:
			name = "x/../" + name
		case 8:
			name += "%2F.."
		case 9:
			name = strings.Replace(name, "s", "ſ", 1) // folds to s
		case 10:
			name += "\u200b"
		case 11:
			name = " " + name
		case 12:
			name = name + "%00"
		}
	}
	return name
}

// reach returns the repositories, owners and branches that Gitea takes a request
// for: decoded, cleaned, in lower case and without .git.
func reach(t *testing.T, r fakegitea.Request) (names []string) {
	t.Helper()
	u, err := url.Parse(r.RequestURI)
	if err != nil {
		t.Fatal(err)
	}
	segments := strings.Split(strings.Trim(strings.TrimPrefix(u.EscapedPath(), "/api/v1"), "/"), "/")
	for i, s := range segments {
		plain, err := url.PathUnescape(s)
		if err != nil {
			t.Fatal(err)
		}
		segments[i] = strings.ToLower(plain)
	}
	for len(segments) > 2 && strings.HasSuffix(segments[2], ".git") { // no repository can be called so
		segments[2] = strings.TrimSuffix(segments[2], ".git")
	}
	if len(segments) > 2 && segments[0] == "repos" {
		names = append(names, segments[1]+"/"+segments[2])
		if len(segments) > 4 && segments[3] == "contents" && r.Method != http.MethodGet {
			names = append(names, "file:"+path.Clean(strings.Join(segments[4:], "/")))
		}
		if len(segments) > 4 && segments[3] == "branches" && r.Method != http.MethodGet {
			names = append(names, "branch:"+strings.Join(segments[4:], "/"))
		}
	}
	if len(segments) > 1 && (segments[0] == "orgs" || segments[0] == "packages") {
		names = append(names, segments[1]+"/")
	}
	var body map[string]any
	if len(r.Body) == 0 || json.Unmarshal(r.Body, &body) != nil {
		return names
	}
	elsewhere := false // a commit goes to new_branch when there is one
	for key, v := range body {
		text, _ := v.(string)
		elsewhere = elsewhere || strings.EqualFold(key, "new_branch") && text != ""
	}
	for key, v := range body {
		text, _ := v.(string)
		text = strings.ToLower(text)
		switch key := strings.ToLower(key); {
		case text == "" || key == "branch" && elsewhere:
		case key == "organization" || key == "new_owner" || key == "owner":
			names = append(names, strings.Trim(text, "/ ")+"/")
		case key == "head" && strings.Contains(text, ":"):
			of, _, _ := strings.Cut(text, ":")
			owner, repo, _ := strings.Cut(of, "/")
			names = append(names, owner+"/"+repo)
		case key == "branch" || key == "new_branch" || key == "new_branch_name":
			names = append(names, "branch:"+strings.TrimPrefix(text, "refs/heads/"))
		}
	}
	return names
}

// TestHostileSpellingsNeverArrive sends calls of every operation, by name and
// through the raw tool, with names spelled in hostile ways, and looks at what
// arrives at Gitea: none of it is outside.
func TestHostileSpellingsNeverArrive(t *testing.T) {
	t.Parallel()
	in := newInstance(t)
	in.do("POST", "/orgs", args{"username": "acme"})
	in.do("POST", "/orgs/acme/repos", args{"name": "web", "auto_init": true})
	in.double.AnswerAll(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"default_branch":"main","base":{"ref":"main"}}`))
	})
	cfg := config.Policy{
		Branches: config.BranchRules{Allow: []string{"ai/**"}, Deny: []string{"ai/closed"}},
		Paths:    config.Patterns{Deny: []string{".gitea/workflows/**"}},
	}
	cfg.Repos = config.Patterns{Allow: []string{"acme/*"}, Deny: []string{"acme/secret-*"}}
	hostile(t, in, cfg, func(owner, repo string) bool { return owner == "acme" && !strings.HasPrefix(repo, "secret-") })
	cfg.Repos = config.Patterns{Deny: []string{"acme/secret-*", "Rival/*"}}
	hostile(t, in, cfg, func(owner, repo string) bool {
		return owner != "rival" && (owner != "acme" || !strings.HasPrefix(repo, "secret-"))
	})
	cfg.Repos, cfg.Bind = config.Patterns{}, config.Bind{Owner: "ACME", Repo: "Web"}
	hostile(t, in, cfg, func(owner, repo string) bool { return owner == "acme" && (repo == "web" || repo == "") })
}

// hostile makes calls under rules and compares what arrives with what may.
func hostile(t *testing.T, in *instance, cfg config.Policy, may func(owner, repo string) bool) {
	t.Helper()
	set := builtin(t)
	handler := in.chain(set, cfg)
	rng := rand.New(rand.NewPCG(1, 2))
	good := sampler{"acme", "web", "ai/x", "docs/a.md"}
	sent, passed := 0, 0
	for range 6 {
		for _, tool := range set.Tools() {
			if tool.BasicAuthOnly || strings.HasPrefix(tool.Consumes, "multipart/") {
				continue
			}
			base := good.args(tool)
			names := slices.Sorted(maps.Keys(base))
			if len(names) == 0 {
				continue
			}
			for range 3 {
				given := maps.Clone(base)
				evil := sampler{spell(rng, "rival"), spell(rng, "secret-plans"), spell(rng, "main"),
					spell(rng, ".gitea/workflows/ci.yml")}
				name := names[rng.IntN(len(names))]
				given[name] = evil.args(tool)[name]
				if rng.IntN(4) == 0 { // a harmless one, in a hostile spelling
					evil = sampler{spell(rng, "acme"), spell(rng, "web"), spell(rng, "ai/x"), spell(rng, "docs/a")}
					given[name] = evil.args(tool)[name]
				}
				c := call(t, tool.Name, given)
				if rng.IntN(2) == 0 && !strings.HasPrefix(tool.Consumes, "text/") {
					raw := asRaw(t, tool, given)
					if body, ok := raw["body"].(args); ok && rng.IntN(2) == 0 {
						for _, key := range slices.Sorted(maps.Keys(body)) {
							v := body[key]
							delete(body, key)
							body[strings.ToUpper(key)] = v
						}
					}
					c = call(t, "gitea_api_request", raw)
				}
				in.double.ResetRequests()
				_, err := handler.Handle(t.Context(), c)
				sent++
				if err == nil {
					passed++
				}
				for _, r := range in.double.Requests() {
					for _, n := range reach(t, r) {
						outside(t, n, c, r, may)
					}
				}
			}
		}
	}
	if sent < 5000 || passed < 300 {
		t.Errorf("%d calls, %d passed; the test sees too little", sent, passed)
	}
	t.Logf("%d calls, %d passed", sent, passed)
}

// outside fails the test for a name that the rules of the test forbid.
func outside(t *testing.T, name string, c *proxy.Call, r fakegitea.Request, may func(owner, repo string) bool) {
	t.Helper()
	branch, isBranch := strings.CutPrefix(name, "branch:")
	file, isFile := strings.CutPrefix(name, "file:")
	owner, repo, _ := strings.Cut(name, "/")
	bad := false
	switch {
	case isBranch:
		bad = !strings.HasPrefix(branch, "ai/") || branch == "ai/closed"
	case isFile:
		bad = strings.HasPrefix(file, ".gitea/workflows/")
	default:
		bad = !may(owner, repo)
	}
	if bad {
		t.Errorf("%s arrives by %s %s %s: %s %s", name, c.Name, c.RawArgs, r.Method, r.RequestURI, r.Body)
	}
}

// TestRenamedRepository: a name that is allowed leads nowhere when Gitea knows it
// for an old one, and where it leads is not told.
func TestRenamedRepository(t *testing.T) {
	t.Parallel()
	in := newInstance(t)
	in.do("POST", "/orgs", args{"username": "acme"})
	in.do("POST", "/orgs", args{"username": "zqrival"})
	in.do("POST", "/orgs/acme/repos", args{"name": "old", "auto_init": true})
	in.do("POST", "/orgs/acme/repos", args{"name": "old2", "auto_init": true})
	in.do("PATCH", "/repos/acme/old", args{"name": "secret-zq"})
	in.do("PATCH", "/repos/acme/old2", args{"name": "new2"})
	handler := in.chain(builtin(t), config.Policy{Repos: config.Patterns{Allow: []string{"acme/*"},
		Deny: []string{"acme/secret-*"}}})
	for _, c := range []*proxy.Call{
		call(t, "gitea_repository_get", args{"owner": "acme", "repo": "old"}),
		call(t, "gitea_issue_create", args{"owner": "acme", "repo": "OLD", "title": "t"}),
		call(t, "gitea_api_request", args{"method": "GET", "path": "/repos/acme/old/issues"}),
	} {
		_, err := handler.Handle(t.Context(), c)
		if e := proxy.AsError(err); err == nil || e.Kind != proxy.KindMoved || strings.Contains(e.Public, "zq") {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	_, err := handler.Handle(t.Context(), call(t, "gitea_repository_get", args{"owner": "acme", "repo": "old2"}))
	if e := proxy.AsError(err); err == nil || e.Kind != proxy.KindMoved || !strings.Contains(e.Public, "acme/new2") {
		t.Errorf("inside: %v", err)
	}
}
