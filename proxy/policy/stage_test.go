package policy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/policy"
)

// arrived is what a stage lets through.
func arrived(t *testing.T, p *policy.Policy, c *proxy.Call) (*proxy.Identity, error) {
	t.Helper()
	var as *proxy.Identity
	_, err := p.Stage()(proxy.HandlerFunc(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
		as = c.Identity
		c.Stats.Attempts++
		return &proxy.Result{}, nil
	})).Handle(t.Context(), c)
	return as, err
}

// TestWriteToken: writes run with the team's token, reads with the identity's own,
// and nobody above the stage sees the difference.
func TestWriteToken(t *testing.T) {
	t.Parallel()
	tools := byID(t)
	p := compile(t, rules(t, func(p *config.Policy) { p.WriteToken = config.NewSecret("write-token") }), nil)
	own := &proxy.Identity{Login: "alice", AllowSudo: true,
		Credential: proxy.NewCredential(proxy.ModeOAuth, "own-token")}
	c := resolved(&proxy.Call{Tool: tools["issueCreateIssue"],
		Args: proxy.Arguments{"owner": "acme", "repo": "web", "title": "t"}, Identity: own})
	as, err := arrived(t, p, c)
	if err != nil || as.Credential.Secret() != "write-token" || as.Login != "alice" || as.AllowSudo {
		t.Errorf("%+v, %v", as, err)
	}
	if c.Identity != own || own.Credential.Secret() != "own-token" {
		t.Error("the call's identity has changed")
	}
	c.Tool = tools["issueGetIssue"]
	if as, err := arrived(t, p, resolved(c)); err != nil || as != own {
		t.Errorf("a read runs as %+v, %v", as, err)
	}
	p = compile(t, rules(t, func(p *config.Policy) {
		p.WriteToken, p.Repos.Allow = config.NewSecret("write-token"), []string{"alice/*"}
	}), nil)
	c = resolved(&proxy.Call{Tool: tools["createCurrentUserRepo"], Args: proxy.Arguments{"name": "x"}, Identity: own})
	if _, err := arrived(t, p, c); err == nil {
		t.Error("a repository is made in an account that nobody knows")
	}
	if text := fmt.Sprintf("%v %+v %#v", p, p, p); strings.Contains(text, "write-token") {
		t.Error("the policy prints its token")
	}
}

// TestWriteTokenDoesNotRead: a GET of a route that the catalog lacks, which counts
// as the strictest class, still reads with the identity's own token.
func TestWriteTokenDoesNotRead(t *testing.T) {
	t.Parallel()
	set := builtin(t)
	sel, problems := set.Select(config.Default().Tools)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p := compile(t, rules(t, func(p *config.Policy) { p.WriteToken = config.NewSecret("write-token") }), nil)
	for method, want := range map[string]string{"GET": "own-token", "POST": "write-token"} {
		got := ""
		h := sel.Stage()(p.Stage()(proxy.HandlerFunc(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
			got = c.Identity.Credential.Secret()
			return &proxy.Result{}, nil
		})))
		_, err := h.Handle(t.Context(), &proxy.Call{
			Name: "gitea_api_request", RawArgs: json.RawMessage(`{"method":"` + method + `","path":"/route/of/a/newer/gitea"}`),
			Identity: &proxy.Identity{Login: "alice", Credential: proxy.NewCredential(proxy.ModeStatic, "own-token")},
		})
		if err != nil || got != want {
			t.Errorf("%s runs with %q, %v; want %q", method, got, err, want)
		}
	}
}

// TestRefusalSaysTheRule and nothing of what was asked for.
func TestRefusalSaysTheRule(t *testing.T) {
	t.Parallel()
	p := compile(t, rules(t, repos([]string{"acme/*"}, []string{"acme/zqsecret"})), nil)
	c := resolved(&proxy.Call{Tool: byID(t)["repoGet"], Args: proxy.Arguments{"owner": "acme", "repo": "zqsecret"},
		Identity: &proxy.Identity{}})
	_, err := arrived(t, p, c)
	e := proxy.AsError(err)
	if e.Kind != proxy.KindPolicyDenied || !strings.Contains(e.Public, "policy.repos.deny[0]") ||
		strings.Contains(e.Public, "zq") || c.Stats.Policy != "repos.deny[0]" {
		t.Errorf("%v, facts %q", err, c.Stats.Policy)
	}
}

// TestWritesPerHour: an identity has an hour's worth, gets it back evenly, and
// does not share it.
func TestWritesPerHour(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tools := byID(t)
	cfg := rules(t, func(p *config.Policy) { p.Budgets.WritesPerHour = 4 })
	options := policy.Options{Operations: builtin(t).Tools(), Now: func() time.Time { return now },
		Counters: policy.NewCounters()}
	p, err := policy.New(cfg, options)
	if err != nil {
		t.Fatal(err)
	}
	write := func(login string) *proxy.Error {
		c := resolved(&proxy.Call{Tool: tools["issueCreateIssue"],
			Args: proxy.Arguments{"owner": "o", "repo": "r", "title": "t"}, Identity: &proxy.Identity{Login: login}})
		if _, err := arrived(t, p, c); err != nil {
			return proxy.AsError(err)
		}
		return nil
	}
	for range 4 {
		if e := write("alice"); e != nil {
			t.Fatal(e)
		}
	}
	if e := write("alice"); e == nil || e.RetryAfter != 15*time.Minute || e.Kind != proxy.KindPolicyDenied {
		t.Errorf("the fifth write: %v", e)
	}
	if e := write("bob"); e != nil {
		t.Errorf("bob: %v", e)
	}
	if p, err = policy.New(cfg, options); err != nil { // a reload
		t.Fatal(err)
	}
	if e := write("alice"); e == nil {
		t.Error("a reload gives a new hour")
	}
	elsewhere := options
	elsewhere.Endpoint = "web"
	other, err := policy.New(cfg, elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	c := &proxy.Call{Tool: tools["issueCreateIssue"], Args: proxy.Arguments{"owner": "o", "repo": "r", "title": "t"},
		Identity: &proxy.Identity{Login: "alice"}}
	if _, err := arrived(t, other, c); err != nil {
		t.Errorf("another endpoint: %v", err)
	}
	now = now.Add(15 * time.Minute)
	if e := write("alice"); e != nil {
		t.Errorf("after a quarter: %v", e)
	}
	if e := write("alice"); e == nil {
		t.Error("a quarter gives back more than a quarter")
	}
	read := resolved(&proxy.Call{Tool: tools["issueGetIssue"],
		Args: proxy.Arguments{"owner": "o", "repo": "r", "index": "1"}, Identity: &proxy.Identity{Login: "alice"}})
	if _, err := arrived(t, p, read); err != nil {
		t.Errorf("a read: %v", err)
	}
	asked := p.Stage()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		return nil, proxy.NewError(proxy.KindPolicyDenied, "a person is asked first", nil)
	}))
	for range 9 {
		c := resolved(&proxy.Call{Tool: tools["issueCreateIssue"],
			Args: proxy.Arguments{"owner": "o", "repo": "r", "title": "t"}, Identity: &proxy.Identity{Login: "dora"}})
		if _, err := asked.Handle(t.Context(), c); err == nil || c.Stats.Policy != "" {
			t.Errorf("what never gets to Gitea is counted: %v", err)
		}
	}
	if e := write("dora"); e != nil {
		t.Errorf("dora: %v", e)
	}
	refused := rules(t, func(p *config.Policy) { p.Budgets.WritesPerHour, p.Repos.Deny = 1, []string{"o/*"} })
	if p, err = policy.New(refused, policy.Options{Operations: options.Operations, Now: options.Now}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if e := write("carol"); e == nil || !strings.Contains(e.Public, "repos.deny") {
			t.Errorf("%v", e)
		}
	}
}

// counting is a lookup that counts, and whose repositories change.
type counting struct {
	world
	n   int
	now policy.Repository
}

func (c *counting) Repository(context.Context, *proxy.Call, policy.Place) (policy.Repository, error) {
	c.n++
	return c.now, nil
}

// TestFactsAreFresh: each call is judged by what its repository is like now, and
// asks once. A repository may have got the name of another one, or deletes merged
// branches since the last call.
func TestFactsAreFresh(t *testing.T) {
	t.Parallel()
	look := &counting{}
	p := compile(t, rules(t, branches(nil, []string{"release/**"}, true)), look)
	call := func(op string, more proxy.Arguments) policy.Verdict {
		given := proxy.Arguments{"owner": "acme", "repo": "web"}
		maps.Copy(given, more)
		return p.Explain(t.Context(), resolved(&proxy.Call{Tool: byID(t)[op], Args: given,
			Identity: &proxy.Identity{Login: "alice"}}))
	}
	look.now = policy.Repository{DefaultBranch: "zzz"}
	rename := proxy.Arguments{"branch": "x", "name": "y"} // two names to judge, one question
	if v := call("repoRenameBranch", rename); !v.Allowed || look.n != 1 {
		t.Errorf("%v after %d questions", v, look.n)
	}
	if v := call("repoMergePullRequest", proxy.Arguments{"index": json.Number("6"), "do": "merge"}); !v.Allowed {
		t.Errorf("a merge that deletes nothing: %v", v)
	}
	look.now = policy.Repository{DefaultBranch: "main", DeletesMerged: true}
	if v := call("repoCreateFile", proxy.Arguments{"filepath": "a",
		"branch": "main"}); v.Rule != "branches.protect_default" {
		t.Errorf("the default branch of a repository with another one's name: %v", v)
	}
	if v := call("repoMergePullRequest", proxy.Arguments{"index": json.Number("6"),
		"do": "merge"}); v.Rule != "branches.deny[0]" {
		t.Errorf("a merge that deletes a closed branch: %v", v)
	}
}

// TestAskGitea: the lookup reads what it needs with the call's own credential.
func TestAskGitea(t *testing.T) {
	t.Parallel()
	in := newInstance(t)
	in.seedOwner("acme", "ours", 1)
	in.do("POST", "/repos/acme/ours-repo-0/forks", args{"organization": nil, "name": "copy"})
	in.do("POST", "/repos/acme/ours-repo-0/releases", args{"tag_name": "v1", "target_commitish": "main"})
	look := policy.Ask(in.client, builtin(t).Tools())
	c := call(t, "x", nil)
	c.Tool = byID(t)["repoMergePullRequest"]
	repo, err := look.Repository(t.Context(), c, policy.Place{Owner: "alice", Repo: "copy"})
	if err != nil || repo.DefaultBranch != "main" || repo.Parent != "acme/ours-repo-0" {
		t.Errorf("%+v, %v", repo, err)
	}
	pull, err := look.Pull(t.Context(), c, policy.Place{Owner: "acme", Repo: "ours-repo-0", Number: 3})
	if err != nil || pull != (policy.Pull{Base: "main", Head: "ours-branch", HeadRepo: "acme/ours-repo-0"}) {
		t.Errorf("%+v, %v", pull, err)
	}
	release, err := look.Release(t.Context(), c, policy.Place{Owner: "acme", Repo: "ours-repo-0", Number: 1})
	if err != nil || release.Tag != "v1" || release.Target != "main" {
		t.Errorf("%+v, %v", release, err)
	}
	if _, err := look.Repository(t.Context(), c, policy.Place{Owner: "acme", Repo: "none"}); err == nil {
		t.Error("a repository that is not there has a default branch")
	}
	if _, err := look.Pull(t.Context(), c, policy.Place{Owner: "acme", Repo: "ours-repo-0", Number: 99}); err == nil {
		t.Error("a pull request that is not there has a base")
	}
}

// TestWriteTokenIsNamed: whoever reads the answer or the log learns that the write
// ran as somebody else, and a token that Gitea refuses is not the caller's trouble.
func TestWriteTokenIsNamed(t *testing.T) {
	t.Parallel()
	p := compile(t, rules(t, func(p *config.Policy) { p.WriteToken = config.NewSecret("write-token") }), nil)
	call := func() *proxy.Call {
		return resolved(&proxy.Call{Tool: byID(t)["issueCreateIssue"],
			Args:     proxy.Arguments{"owner": "acme", "repo": "web", "title": "t"},
			Identity: &proxy.Identity{Login: "alice", Credential: proxy.NewCredential(proxy.ModeOAuth, "own-token")}})
	}
	c := call()
	res, err := p.Stage()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		return &proxy.Result{Status: 201}, nil
	})).Handle(t.Context(), c)
	if err != nil || len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0], "write_token") ||
		!c.Stats.WriteToken {
		t.Errorf("%+v, %v, facts %+v", res, err, c.Stats)
	}
	_, err = p.Stage()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		return nil, &proxy.Error{Kind: proxy.KindUnauthorized, Status: 401}
	})).Handle(t.Context(), call())
	if e := proxy.AsError(err); e.Kind != proxy.KindForbidden || !strings.Contains(e.Public, "policy.write_token") {
		t.Errorf("%+v", e)
	}
}
