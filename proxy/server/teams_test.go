package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy/server"
)

const twoTeams = `members: {tokens: [root]}
teams:
  web:
    members: {logins: [ALICE]}
    tools: {enable: [gitea_user_get_me, gitea_issue_list, gitea_issue_create]}
    limits: {tools: {gitea_user_get_me: {rate: 1/h}}}
    masking: {mode: off}
  ops:
    members: {tokens: [bob, alice]}
    tools: {enable: [gitea_user_get_me, gitea_organization_list], mode: search}
`

// at returns the rig with another team's endpoint.
func (r *rig) at(team string) *rig {
	out := *r
	out.endpoint = r.base + "/mcp/" + team
	return &out
}

// knock asks an endpoint for its tools and returns the status and the body.
func (r *rig) knock(path, token string) (int, string, http.Header) {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodPost, r.base+path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	if err != nil {
		r.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	res, err := direct.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, string(body), res.Header
}

func TestWhoMayEnterWhere(t *testing.T) {
	r := newRig(t, twoTeams)
	for _, tc := range []struct {
		path, token string
		status      int
	}{
		{"/mcp", rootToken, 200}, {"/mcp", aliceToken, 403}, {"/mcp", bobToken, 403},
		{"/mcp/web", aliceToken, 200}, {"/mcp/web", bobToken, 403}, {"/mcp/web", rootToken, 403},
		{"/mcp/ops", bobToken, 200}, {"/mcp/ops", aliceToken, 200}, {"/mcp/ops", rootToken, 403},
		{"/mcp/", rootToken, 200}, {"/mcp/", aliceToken, 403}, {"/mcp/web/", aliceToken, 200}, {"/mcp/web/", bobToken, 403}, {"/mcp/web/x", aliceToken, 404},
		{"/mcp/web/", "", 401}, {"/mcp/", "", 401}, {"/mcp/none/", aliceToken, 404},
		{"/mcp/web", "", 401}, {"/mcp/ops", "no-such-token-0123456789", 401},
		{"/mcp/none", aliceToken, 404}, {"/mcp/WEB", aliceToken, 404}, {"/mcp/web%2f", aliceToken, 404},
	} {
		status, body, h := r.knock(tc.path, tc.token)
		if status != tc.status {
			t.Errorf("%s with %.5s: %d %s", tc.path, tc.token, status, body)
		}
		if status == 401 && !strings.Contains(h.Get("WWW-Authenticate"), "/.well-known/oauth-protected-resource"+strings.TrimSuffix(tc.path, "/")+`"`) {
			t.Errorf("%s: challenge %q", tc.path, h.Get("WWW-Authenticate"))
		}
		if status == 403 && (!strings.Contains(body, "members") || h.Get("WWW-Authenticate") != "") {
			t.Errorf("%s: %s", tc.path, body)
		}
	}
	for _, path := range []string{"/mcp", "/mcp/web", "/mcp/ops"} {
		res, err := direct.Get(r.base + "/.well-known/oauth-protected-resource" + path)
		if err != nil {
			t.Fatal(err)
		}
		var meta struct{ Resource string }
		if err := json.NewDecoder(res.Body).Decode(&meta); err != nil || meta.Resource != r.base+path {
			t.Errorf("metadata of %s names %q, %v", path, meta.Resource, err)
		}
		_ = res.Body.Close()
	}
}

func TestEachTeamHasItsOwnToolsAndLimits(t *testing.T) {
	r := newRig(t, twoTeams)
	names := func(token, team string) (out []string) {
		s := r.at(team).connect(token, "2025-11-25")
		list, err := s.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			out = append(out, tool.Name)
		}
		return out
	}
	if got := names(aliceToken, "web"); !slices.Contains(got, "gitea_issue_create") || slices.Contains(got, "gitea_organization_list") || len(got) > 4 {
		t.Errorf("web lists %v", got)
	}
	if got := names(aliceToken, "ops"); !slices.Contains(got, "gitea_search_tools") || slices.Contains(got, "gitea_issue_create") {
		t.Errorf("ops lists %v", got)
	}
	web, ops := r.at("web"), r.at("ops")
	sw, so := web.connect(aliceToken, "2025-11-25"), ops.connect(aliceToken, "2026-07-28")
	if a := web.call(sw, "gitea_user_get_me", nil); a.Status != 200 {
		t.Fatalf("%+v", a)
	}
	if a := web.call(sw, "gitea_user_get_me", nil); a.Error.Kind != "rate_limited" {
		t.Errorf("web's own limit: %+v", a)
	}
	for range 3 { // no bleed
		if a := ops.call(so, "gitea_call_tool", map[string]any{"name": "gitea_user_get_me", "arguments": map[string]any{}}); a.Status != 200 {
			t.Errorf("ops: %+v", a)
		}
	}
	if sel, ok := r.srv.Team("web"); !ok || len(sel.Tools()) > 4 {
		t.Error("Team does not give web's tools")
	}
	if _, ok := r.srv.Team("none"); ok {
		t.Error("there is a team none")
	}
}

func TestEachTeamMasksItsOwnWay(t *testing.T) {
	r := newRig(t, twoTeams+`  strict:
    members: {logins: [alice]}
    masking: {mode: block}
`)
	body := "before AKIA" + "Q3EGRZ7TQYB2NMLK after"
	web := r.at("web")
	s := web.connect(aliceToken, "2025-11-25")
	args := map[string]any{"owner": "acme", "repo": "issues-lab", "title": "t", "body": body}
	a := web.call(s, "gitea_issue_create", args)
	if a.Status != 201 || !strings.Contains(string(a.Data), "AKIAQ3EGRZ7TQYB2NMLK") {
		t.Fatalf("web masks nothing: %d %s %+v", a.Status, a.Data, a.Error)
	}
	strict := r.at("strict")
	if a := strict.call(strict.connect(aliceToken, "2025-11-25"), "gitea_issue_create", args); a.Error.Kind != "secret_blocked" {
		t.Errorf("strict: %+v %s", a.Error, a.Data)
	}
}

// TestCursorsStayInTheirTeam: what one endpoint cut, another does not go on with.
func TestCursorsStayInTheirTeam(t *testing.T) {
	r := newRig(t, `members: {everyone: true}
results: {max_items: 1}
teams: {web: {members: {everyone: true}}}
`)
	args := map[string]any{"owner": "acme", "repo": "issues-lab"}
	s := r.connect(aliceToken, "2025-11-25")
	cursor := r.call(s, "gitea_issue_list", args).Truncation.Cursor
	if cursor == "" {
		t.Fatal("nothing was cut")
	}
	args["cursor"] = cursor
	if a := r.call(s, "gitea_issue_list", args); a.Status != 200 {
		t.Errorf("%+v", a.Error)
	}
	web := r.at("web")
	if a := web.call(web.connect(aliceToken, "2025-11-25"), "gitea_issue_list", args); a.Error.Kind != "invalid_arguments" {
		t.Errorf("a cursor of /mcp was taken at /mcp/web: %+v", a)
	}
}

func TestMembersByOrganizationAndTeam(t *testing.T) {
	r := newRig(t, `members: {everyone: true}
teams:
  org: {members: {organizations: [ACME]}}
  team: {members: {teams: ["acme/no-such-team"]}}
`)
	for path, want := range map[string]int{"/mcp/org": 200, "/mcp/team": 403} {
		if status, body, _ := r.knock(path, aliceToken); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	// Gitea away: nobody is let in, and told to come back.
	r.double.AnswerAll(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	if status, body, h := r.knock("/mcp/org", bobToken); status != http.StatusServiceUnavailable || h.Get("Retry-After") == "" {
		t.Errorf("while Gitea is away: %d %s", status, body)
	}
}

func TestProblemsOfTeamsHaveTheirPlace(t *testing.T) {
	_, err := newConfigured(t, `members: {everyone: true}
teams:
  web:
    members: {everyone: true}
    tools: {enable: [gitea_isue_list], toolsets: [reader, nonsense]}
    results: {fields_default: {gitea_issue_lst: [number]}}
    limits: {tools: {gitea_nothing: {rate: 1/s}}}
    policy: {confirm: {tools: [R3, gitea.issue.create, "gitea_*_delete*", gitea_api_request, gitea_pull_mrge], fallback: token}}
  same:
    members: {everyone: true}
`)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`teams.web.tools.enable[0]: unknown tool "gitea_isue_list"; did you mean "gitea_issue_list"?`, "teams.web.tools.toolsets[1]: unknown toolset",
		"teams.web.results.fields_default.gitea_issue_lst: unknown tool; did you mean gitea_issue_list?", "teams.web.limits.tools.gitea_nothing: unknown tool",
		"teams.web.policy.confirm.tools[4]: matches no tool; did you mean gitea_pull_merge?",
		"teams.web.policy.confirm.fallback: token needs the page",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in\n%v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 6 {
		t.Errorf("%d problems:\n%v", n, err)
	}
}

// newConfigured builds a server without serving it.
func newConfigured(t *testing.T, yaml string) (*server.Server, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "aegis.yaml")
	text := fmt.Sprintf("gitea: {url: \"http://127.0.0.1:1\"}\nauth: {tokens: [{name: alice, token: %s, gitea_token: x}]}\n%s", aliceToken, yaml)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return server.Look(cfg)
}

const boundTeams = `members: {everyone: true}
data_dir: %q
teams:
  bound:
    members: {everyone: true}
    policy: {bind: {owner: acme}, branches: {allow: ["ai/**"]}}
  some:
    members: {everyone: true}
    policy: {repos: {allow: ["acme/issues-lab"]}}
`

func TestPoliciesHoldAtTheEndpoint(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, fmt.Sprintf(boundTeams, dir))
	bound, some := r.at("bound"), r.at("some")
	b, s := bound.connect(aliceToken, "2025-11-25"), some.connect(aliceToken, "2026-07-28")

	if a := bound.call(b, "gitea_issue_list", map[string]any{"repo": "issues-lab", "limit": 2}); a.Status != 200 || a.Request.Path != "/repos/acme/issues-lab/issues" {
		t.Errorf("filled in: %+v", a)
	}
	if a := bound.call(b, "gitea_issue_list", map[string]any{"owner": "alice", "repo": "x"}); a.Error.Kind != "invalid_arguments" {
		t.Errorf("owner given: %+v", a)
	}
	if text := b.InitializeResult().Instructions; strings.Contains(text, "owner is the user") {
		t.Error("the instructions explain an argument that is not there")
	}
	a := bound.call(b, "gitea_contents_create_file", map[string]any{"repo": "issues-lab", "filepath": "x.txt", "content_text": "x"})
	if a.Error.Kind != "policy_denied" || !strings.Contains(a.Error.Message, "branches.allow") {
		t.Errorf("a write to the default branch: %+v", a)
	}
	if a := bound.call(b, "gitea_api_request", map[string]any{"method": "GET", "path": "/repos/alice/dotfiles"}); a.Error.Kind == "" {
		t.Errorf("the raw tool left the binding: %+v", a)
	}

	if a := some.call(s, "gitea_repository_search", map[string]any{}); a.Status != 200 || strings.Contains(string(a.Data), `"full_name":"alice/`) || a.Truncation.Removed == 0 {
		t.Errorf("search: removed %d, %.300s", a.Truncation.Removed, a.Data)
	}
	if a := some.call(s, "gitea_repository_get", map[string]any{"owner": "ACME", "repo": "Other"}); a.Error.Kind != "policy_denied" {
		t.Errorf("another repository: %+v", a)
	}
	_ = r.stop()
	r.srv.Close()
	rules := map[string]bool{}
	for _, l := range auditLines(t, dir, "tool_invocation") {
		if l.Result != nil {
			rules[l.Result.Policy] = true
		}
	}
	if !rules["branches.allow"] || !rules["repos.allow"] {
		t.Errorf("the audit log names the rules %v", rules)
	}
}
