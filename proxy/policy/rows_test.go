package policy_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/policy"
)

// shown returns what the team sees of an answer of Gitea's.
func shown(t testing.TB, p *policy.Policy, tool *proxy.Tool, kind proxy.BodyKind, body string) (*proxy.Result, error) {
	t.Helper()
	total, last, next := int64(50), 5, 2
	h := p.Rows()(proxy.HandlerFunc(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
		if c.Options.Fields != nil {
			t.Error("Gitea's answer is cut to fields before it is judged")
		}
		return &proxy.Result{Status: 200, Kind: kind, Body: []byte(body),
			Page: &proxy.Pagination{Page: 1, Limit: 10, TotalCount: &total, LastPage: &last, NextPage: &next}}, nil
	}))
	c := resolved(&proxy.Call{Tool: tool, Args: proxy.Arguments{}, Identity: &proxy.Identity{Login: "alice"},
		Options: proxy.CallOptions{Fields: []string{"id"}}})
	res, err := h.Handle(t.Context(), c)
	if len(c.Options.Fields) != 1 {
		t.Error("the fields that the call wants are lost")
	}
	return res, err
}

const (
	ours   = `{"id":1,"name":"web","full_name":"acme/web","owner":{"login":"acme"}}`
	theirs = `{"id":2,"name":"zq","full_name":"acme/secret-zq","owner":{"login":"acme"}}`
)

// TestRows shows answers in each form in which Gitea names repositories.
func TestRows(t *testing.T) {
	t.Parallel()
	p := compile(t, rules(t, repos([]string{"acme/*"}, []string{"acme/secret-*"})), world{})
	tools := byID(t)
	for _, c := range []struct {
		op, body, want string
		removed        int
		total          bool // counts stay
	}{
		{op: "repoSearch", body: `{"ok":true,"data":[` + ours + `,` + theirs + `]}`, want: `{"ok":true,"data":[` + ours + `]}`, removed: 1},
		{op: "userCurrentListStarred", body: `[` + theirs + `, ` + ours + ` ,` + theirs + `]`, want: `[` + ours + `]`, removed: 2},
		{op: "userCurrentListStarred", body: `null`, want: `null`},
		{op: "userCurrentListRepos", body: `[{"id":3}]`, want: `[]`, removed: 1}, // nobody knows whose it is
		{op: "issueSearchIssues", body: `[{"number":1,"repository":{"id":1,"name":"web","owner":"acme","full_name":"acme/web"}},{"number":2,"repository":{"id":2,"name":"x","owner":"bob","full_name":"bob/x"}}]`,
			want: `[{"number":1,"repository":{"id":1,"name":"web","owner":"acme","full_name":"acme/web"}}]`, removed: 1},
		{op: "notifyGetList", body: `[{"id":1,"subject":{"title":"zq","url":"https://g/api/v1/repos/acme/secret-zq/issues/1"},"repository":` + theirs + `},{"id":2,"repository":` + ours + `}]`,
			want: `[{"id":2,"repository":` + ours + `}]`, removed: 1},
		{op: "userListActivityFeeds", body: `[{"id":1,"op_type":"commit_repo","repo":` + theirs + `,"content":"zq"},{"id":2,"op_type":"rename_repo","repo":` + ours + `,"content":"zq"},{"id":3,"op_type":"create_issue","repo":` + ours + `,"content":"1|t"}]`,
			want: `[{"id":2,"op_type":"rename_repo","repo":` + ours + `},{"id":3,"op_type":"create_issue","repo":` + ours + `,"content":"1|t"}]`, removed: 1},
		{op: "listPackages", body: `[{"id":1,"owner":{"login":"acme"},"repository":null,"name":"p","version":"1"},{"id":2,"owner":{"login":"acme"},"repository":` + theirs + `,"version":"1"},{"id":3,"owner":{"login":"bob"},"repository":null,"version":"1"}]`,
			want: `[{"id":1,"owner":{"login":"acme"},"repository":null,"name":"p","version":"1"}]`, removed: 2},
		{op: "userGetStopWatches", body: `[{"seconds":1,"repo_owner_name":"acme","repo_name":"secret-zq"},{"seconds":2,"repo_owner_name":"acme","repo_name":"web"}]`,
			want: `[{"seconds":2,"repo_owner_name":"acme","repo_name":"web"}]`, removed: 1},
		{op: "userCurrentTrackedTimes", body: `[{"id":1,"issue":{"title":"zq","repository":{"full_name":"bob/zq"}}},{"id":2,"issue":{"repository":{"full_name":"acme/web"}}}]`,
			want: `[{"id":2,"issue":{"repository":{"full_name":"acme/web"}}}]`, removed: 1},
		{op: "getUserWorkflowJobs", body: `{"jobs":[{"id":1,"url":"https://g/sub/api/v1/repos/acme/secret-zq/actions/jobs/1"},{"id":2,"url":"https://g/sub/api/v1/repos/acme/web/actions/jobs/2"}],"total_count":2}`,
			want: `{"jobs":[{"id":2,"url":"https://g/sub/api/v1/repos/acme/web/actions/jobs/2"}]}`, removed: 1},
		{op: "getOrgWorkflowRuns", body: `{"total_count":2,"workflow_runs":[{"id":1,"repository":` + theirs + `},{"id":2,"repository":` + ours + `,"head_repository":` + theirs + `,"head_repository_id":2}]}`,
			want: `{"workflow_runs":[{"id":2,"repository":` + ours + `}]}`, removed: 1},
		{op: "adminUnadoptedList", body: `["acme/web","acme/secret-zq","bob/x"]`, want: `["acme/web"]`, removed: 2},
		{op: "listForks", body: `[{"id":9,"name":"web","full_name":"bob/web","owner":{"login":"bob"},"parent":` + ours + `}]`, want: `[]`, removed: 1},
		{op: "userListTeams", body: `[{"id":1,"units":["repo.code"],"organization":{"username":"bob-org"}},{"id":2,"units":[],"organization":{"username":"acme"}}]`,
			want: `[{"id":2,"units":[],"organization":{"username":"acme"}}]`, removed: 1},
		{op: "issueGetCommentsAndTimeline", body: `[{"id":1,"type":"comment","html_url":"https://g/acme/web/issues/1#issuecomment-1"},{"id":2,"type":"issue_ref","ref_issue":{"title":"zq","repository":{"full_name":"acme/secret-zq"}}},` +
			`{"id":3,"type":"commit_ref","body":"<a href=\"/sub/acme/secret-zq/commit/abcdef\">zq</a>"},{"id":4,"type":"commit_ref","body":"<a href=\"/sub/acme/web/commit/abcdef\">x</a>"},{"id":5,"type":"commit_ref","body":"zq"}]`,
			want: `[{"id":1,"type":"comment","html_url":"https://g/acme/web/issues/1#issuecomment-1"},{"id":4,"type":"commit_ref","body":"<a href=\"/sub/acme/web/commit/abcdef\">x</a>"}]`, removed: 3},
		{op: "repoGet", body: `{"id":1,"name":"web","full_name":"acme/web","owner":{"login":"acme"},"fork":true,"forks_count":7,"parent":` + theirs + `,"original_url":"https://g/acme/secret-zq.git","repo_transfer":{"recipient":{"login":"zq"}}}`,
			want: `{"id":1,"name":"web","full_name":"acme/web","owner":{"login":"acme"},"fork":true}`, total: true},
		{op: "repoGetPullRequest", body: `{"number":1,"head":{"label":"zq:x","ref":"x","sha":"1","repo_id":2,"repo":` + theirs + `},"base":{"label":"main","ref":"main","repo_id":1,"repo":` + ours + `}}`,
			want: `{"number":1,"head":{"ref":"x","sha":"1"},"base":{"label":"main","ref":"main","repo_id":1,"repo":` + ours + `}}`, total: true},
		{op: "GetWorkflowRun", body: `{"id":1,"repository":` + ours + `,"pull_requests":[{"id":1,"head":{"ref":"x","repo":{"id":2,"name":"zq","url":"https://g/api/v1/repos/acme/secret-zq"}}}]}`,
			want: `{"id":1,"repository":` + ours + `,"pull_requests":[{"id":1,"head":{"ref":"x"}}]}`, total: true},
		{op: "repoListPushMirrors", body: `[{"remote_name":"a","remote_address":"https://g/acme/secret-zq.git"},{"remote_name":"b","remote_address":"https://g/acme/web2.git"}]`,
			want: `[{"remote_name":"a"},{"remote_name":"b","remote_address":"https://g/acme/web2.git"}]`, total: true},
		{op: "userGet", body: `{"login":"bob","full_name":"a/b","starred_repos_count":9}`, want: `{"login":"bob","full_name":"a/b"}`, total: true},
		{op: "orgListProjects", body: `[{"id":1,"num_issues":3,"num_open_issues":2,"num_closed_issues":1,"html_url":"https://g/acme/-/projects/1"}]`, want: `[{"id":1,"html_url":"https://g/acme/-/projects/1"}]`, total: true},
		{op: "repoListProjects", body: `[{"id":1,"num_issues":3,"html_url":"https://g/acme/web/projects/1"}]`, want: `[{"id":1,"num_issues":3,"html_url":"https://g/acme/web/projects/1"}]`, total: true},
		{op: "repoGetContents", body: `{"html_url":"https://g/acme/web/src/branch/main/a","content":"e30="}`, want: `{"html_url":"https://g/acme/web/src/branch/main/a","content":"e30="}`, total: true},
		{op: "repoGetContentsList", body: `[{"path":"src/wiki","url":"https://g/sub/api/v1/repos/acme/web/contents/src/wiki","html_url":"https://g/sub/acme/web/src/branch/main/src/wiki/issues/1"}]`,
			want: `[{"path":"src/wiki","url":"https://g/sub/api/v1/repos/acme/web/contents/src/wiki","html_url":"https://g/sub/acme/web/src/branch/main/src/wiki/issues/1"}]`, total: true},
		{op: "issueGetComments", body: `[{"id":1,"html_url":"https://g/sub/acme/web/issues/1#issuecomment-1"},{"id":2,"issue_url":"https://g/sub/bob/zq/issues/1"}]`,
			want: `[{"id":1,"html_url":"https://g/sub/acme/web/issues/1#issuecomment-1"}]`, removed: 1},
		{op: "repoListStatuses", body: `[{"id":1,"target_url":"https://ci/other/thing/commit/1"}]`, want: `[{"id":1,"target_url":"https://ci/other/thing/commit/1"}]`, total: true},
	} {
		res, err := shown(t, p, tools[c.op], proxy.BodyJSON, c.body)
		if err != nil {
			t.Errorf("%s: %v", c.op, err)
			continue
		}
		if !json.Valid(res.Body) {
			t.Errorf("%s: no JSON: %s", c.op, res.Body)
		}
		if diff := cmp.Diff(c.want, string(res.Body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.op, diff)
		}
		if got := res.Page.TotalCount != nil && res.Page.LastPage != nil; got != c.total {
			t.Errorf("%s: counts are there: %v", c.op, got)
		}
		if res.Page.NextPage == nil {
			t.Errorf("%s: there is no way on", c.op)
		}
		removed := 0
		if res.Truncation != nil {
			removed = res.Truncation.Removed
		}
		if removed != c.removed {
			t.Errorf("%s: %d rows counted, want %d", c.op, removed, c.removed)
		}
	}
}

// TestAnswersThatCannotBeJudged: what only its answer names is hidden like what
// is not there, and an answer that is no JSON is withheld.
func TestAnswersThatCannotBeJudged(t *testing.T) {
	t.Parallel()
	p := compile(t, rules(t, repos([]string{"acme/*"}, []string{"acme/secret-*"})), world{})
	tools := byID(t)
	var said string
	for op, body := range map[string]string{
		"repoGetByID": theirs, "notifyGetThread": `{"id":1,"repository":` + theirs + `}`, "getPackage": `{"id":1,"version":"1","repository":` + theirs + `}`,
		"orgGetTeam": `{"id":1,"units":[],"organization":{"username":"bob-org"}}`, "getLatestPackageVersion": `{"id":1}`,
	} {
		_, err := shown(t, p, tools[op], proxy.BodyJSON, body)
		e := proxy.AsError(err)
		if err == nil || e.Kind != proxy.KindNotFound || said != "" && e.Public != said {
			t.Errorf("%s: %v", op, err)
		}
		said = e.Public
	}
	gone := p.Rows()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		return nil, &proxy.Error{Kind: proxy.KindNotFound, Status: 404, Public: "repository does not exist [id: 7]"}
	}))
	if _, err := gone.Handle(t.Context(),
		resolved(&proxy.Call{Tool: tools["repoGetByID"]})); proxy.AsError(err).Public != said ||
		proxy.AsError(err).Status != 404 {
		t.Errorf("what is hidden and what is not there differ: %v", err)
	}
	for op, body := range map[string]string{"repoGetByID": ours,
		"orgGetTeam": `{"id":1,"units":[],"organization":{"username":"acme"}}`} {
		if _, err := shown(t, p, tools[op], proxy.BodyJSON, body); err != nil {
			t.Errorf("%s: %v", op, err)
		}
	}
	for _, op := range []string{"repoSearch", "repoGet", "repoGetByID"} {
		if _, err := shown(t, p, tools[op], proxy.BodyText, theirs); proxy.AsError(err).Kind != proxy.KindPolicyDenied {
			t.Errorf("%s answers with text: %v", op, err)
		}
	}
	if res, err := shown(t, p, tools["repoGetRawFile"], proxy.BodyJSON, theirs); err != nil ||
		string(res.Body) != theirs {
		t.Errorf("a file's content is changed: %v, %v", res, err)
	}
	res, err := shown(t, p, tools["repoTransfer"], proxy.BodyJSON, theirs)
	if err != nil || string(res.Body) != "null" || len(res.Warnings) != 1 {
		t.Errorf("the result of a write: %+v, %v", res, err)
	}
}

// TestErrorsNameNothingHidden: neither a redirect nor Gitea's own words say where
// something outside is.
func TestErrorsNameNothingHidden(t *testing.T) {
	t.Parallel()
	p := compile(t, rules(t, repos([]string{"acme/*"}, nil)), world{})
	tool := byID(t)["repoGetBranch"]
	for _, c := range []struct {
		kind         proxy.Kind
		public, want string
		args         proxy.Arguments
	}{
		{proxy.KindMoved, "the repository is now zq/zqvault; nothing was sent there, repeat the call with the new name", "elsewhere", nil},
		{proxy.KindMoved, "the repository is now acme/new; nothing was sent there, repeat the call with the new name", "acme/new", nil},
		{proxy.KindMoved, "the organisation is now zq; nothing was sent there", "elsewhere", nil},
		{proxy.KindMoved, "some other words about zq/zqvault", "elsewhere", nil},
		{proxy.KindConflict, "The repository is already forked by user [uname: zq, repo path: zq/zqvault, fork id: 12]", "withheld", nil},
		{proxy.KindNotFound, "branch feature/x does not exist", "branch feature/x", proxy.Arguments{"branch": "feature/x"}},
		{proxy.KindNotFound, "issue does not exist [id: 0]", "issue does not exist", nil},
	} {
		h := p.Rows()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
			return nil, &proxy.Error{Kind: c.kind, Status: 409, Public: c.public, Quoted: len(c.public)}
		}))
		_, err := h.Handle(t.Context(), resolved(&proxy.Call{Tool: tool, Args: c.args}))
		e := proxy.AsError(err)
		if e.Kind != c.kind || !strings.Contains(e.Public, c.want) || strings.Contains(e.Public, "zq") ||
			e.Quoted > len(e.Public) {
			t.Errorf("%s becomes %q, want %q in it", c.public, e.Public, c.want)
		}
	}
}

// TestNoRulesNoStages: an endpoint without rules pays nothing.
func TestNoRulesNoStages(t *testing.T) {
	t.Parallel()
	p := compile(t, config.Policy{}, nil)
	if p.Stage() != nil || p.Rows() != nil || !p.Empty() {
		t.Error("an empty policy has stages")
	}
	if p := compile(t, rules(t, branches([]string{"x"}, nil, false)), nil); p.Stage() == nil || p.Rows() != nil {
		t.Error("rules about branches change results")
	}
}
