package spec_test

import (
	"slices"
	"strings"
	"testing"

	"aegis/spec"

	"github.com/google/go-cmp/cmp"
)

func builtin(tb testing.TB) *spec.Catalog {
	tb.Helper()
	cat, err := spec.Builtin()
	if err != nil {
		tb.Fatal(err)
	}
	return cat
}

// ids returns the operations for which want holds, sorted.
func ids(cat *spec.Catalog, want func(*spec.Operation) bool) []string {
	var out []string
	for i := range cat.Operations {
		if want(&cat.Operations[i]) {
			out = append(out, cat.Operations[i].ID)
		}
	}
	slices.Sort(out)
	return out
}

func TestEveryOperation(t *testing.T) {
	t.Parallel()
	cat := builtin(t)
	if len(cat.Operations) != 537 {
		t.Errorf("%d operations, want 537", len(cat.Operations))
	}
	if cat.GiteaVersion != "28.1.0" {
		t.Errorf("Gitea version %q", cat.GiteaVersion)
	}
	domains, names, routes, idents := map[string]int{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, o := range cat.Operations {
		domains[o.Domain]++
		if len(o.Name) > 45 {
			t.Errorf("%s has %d characters", o.Name, len(o.Name))
		}
		for _, seen := range []struct {
			m   map[string]bool
			key string
		}{{names, o.Name}, {routes, o.Method + " " + o.Path}, {idents, o.ID}} {
			if seen.m[seen.key] {
				t.Errorf("%q occurs twice", seen.key)
			}
			seen.m[seen.key] = true
		}
	}
	if len(domains) != 14 || len(spec.Domains()) != 14 {
		t.Errorf("domains %v", domains)
	}
}

// The sets that other parts of Aegis rely on, spelled out: a change in the
// inputs that touches one must be meant.
func TestFlags(t *testing.T) {
	t.Parallel()
	cat := builtin(t)
	for _, c := range []struct {
		name string
		has  func(*spec.Operation) bool
		want []string
	}{
		{"credential issuing", func(o *spec.Operation) bool { return o.CredentialIssuing }, []string{
			"adminCreateRunnerRegistrationToken", "orgCreateRunnerRegistrationToken", "repoCreateDeployToken",
			"repoCreateRunnerRegistrationToken", "userCreateOAuth2Application", "userCreateRunnerRegistrationToken",
			"userCreateToken", "userUpdateOAuth2Application",
		}},
		{"basic auth only", func(o *spec.Operation) bool { return o.BasicAuthOnly }, []string{
			"userCreateToken", "userDeleteAccessToken", "userGetTokens",
		}},
		{"deprecated", func(o *spec.Operation) bool { return o.Deprecated && o.ReplacedBy != "" }, []string{
			"createOrgRepoDeprecated", "issueDeleteCommentDeprecated", "issueEditCommentDeprecated", "userTrackedTimes",
		}},
		{"deprecated in any way", func(o *spec.Operation) bool { return o.Deprecated || o.ReplacedBy != "" }, []string{
			"createOrgRepoDeprecated", "issueDeleteCommentDeprecated", "issueEditCommentDeprecated", "userTrackedTimes",
		}},
		{"reading without GET", func(o *spec.Operation) bool { return o.ReadOnly && o.Method != "GET" }, []string{
			"renderMarkdown", "renderMarkdownRaw", "renderMarkup", "repoGetFileContentsPost",
		}},
		{"changing by GET", func(o *spec.Operation) bool { return !o.ReadOnly && o.Method == "GET" }, nil},
		{"paged by per_page", func(o *spec.Operation) bool { return o.Paging == "per_page" }, []string{"GetTree"}},
		{"sent as a form", func(o *spec.Operation) bool { return strings.HasPrefix(o.Consumes, "multipart/") }, []string{
			"issueCreateIssueAttachment", "issueCreateIssueCommentAttachment", "repoCreateReleaseAttachment",
		}},
	} {
		if diff := cmp.Diff(c.want, ids(cat, c.has)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestRisksAndAnnotationsAgree(t *testing.T) {
	t.Parallel()
	for _, o := range builtin(t).Operations {
		reading := o.Risk == "R0" || o.Risk == "R1"
		if reading != o.ReadOnly {
			t.Errorf("%s: risk %s and read_only %v", o.Name, o.Risk, o.ReadOnly)
		}
		if o.ReadOnly && !o.Idempotent || o.ReadOnly && o.Destructive {
			t.Errorf("%s reads, so it is idempotent and not destructive", o.Name)
		}
		if strings.HasPrefix(o.Path, "/admin/") && !o.ReadOnly && o.Risk != "R4" {
			t.Errorf("%s administers the instance with risk %s", o.Name, o.Risk)
		}
		if o.CredentialIssuing && o.Risk != "R4" {
			t.Errorf("%s hands out a credential with risk %s", o.Name, o.Risk)
		}
		if o.Method == "DELETE" && o.Risk == "R3" && !o.Destructive {
			t.Errorf("%s deletes for good and is not destructive", o.Name)
		}
	}
}

func TestPagingOfRoutesThatIgnoreIt(t *testing.T) {
	t.Parallel()
	byID := map[string]string{}
	for _, o := range builtin(t).Operations {
		byID[o.ID] = o.Paging
	}
	for id, want := range map[string]string{
		"issueListIssues": "page", "issueGetComments": "ignored", "repoGetContentsList": "ignored", "repoListBranchProtection": "ignored",
		"repoListAllGitRefs": "ignored", "repoListGitRefs": "ignored", "issueGetCommentsAndTimeline": "page", "repoGet": "", "repoSearch": "page",
		"repoGetWikiPageRevisions": "page",
	} {
		if byID[id] != want {
			t.Errorf("%s: paging %q, want %q", id, byID[id], want)
		}
	}
}

func TestWildcards(t *testing.T) {
	t.Parallel()
	got := map[string]bool{}
	for _, o := range builtin(t).Operations {
		for _, p := range o.Params {
			if p.Wildcard {
				got[o.Path+" "+p.Name] = true
			}
		}
	}
	want := map[string]bool{}
	for _, w := range []string{
		"branches/{branch} branch", "branch_protections/{name} name", "tags/{tag} tag", "contents/{filepath} filepath",
		"contents-ext/{filepath} filepath", "raw/{filepath} filepath", "media/{filepath} filepath", "compare/{basehead} basehead",
		"git/refs/{ref} ref", "commits/{ref}/status ref", "commits/{ref}/statuses ref", "archive/{archive} archive", "pulls/{base}/{head} head",
	} {
		want["/repos/{owner}/{repo}/"+w] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestScopes compares with rows taken from the server's router, one for each
// kind of rule.
func TestScopes(t *testing.T) {
	t.Parallel()
	have := map[string][]string{}
	for _, o := range builtin(t).Operations {
		have[o.Method+" "+o.Path] = o.Scopes
	}
	for route, want := range map[string]string{
		"GET /version":                                          "",
		"POST /markdown":                                        "",
		"POST /markdown/raw":                                    "",
		"GET /token":                                            "",
		"GET /settings/api":                                     "",
		"GET /notifications":                                    "read:notification",
		"PUT /repos/{owner}/{repo}/notifications":               "write:notification",
		"GET /users/{username}":                                 "read:user",
		"GET /users/{username}/repos":                           "read:repository read:user",
		"GET /users/{username}/orgs/{org}/permissions":          "read:organization read:user",
		"GET /user":                                             "read:user",
		"POST /user/repos":                                      "write:repository write:user",
		"PUT /user/starred/{owner}/{repo}":                      "write:repository write:user",
		"GET /user/orgs":                                        "read:organization read:user",
		"POST /org/{org}/repos":                                 "write:organization write:repository",
		"POST /orgs/{org}/repos":                                "write:organization",
		"GET /orgs/{org}/repos":                                 "read:organization",
		"DELETE /orgs/{org}/repos":                              "write:organization write:repository",
		"GET /orgs":                                             "read:organization",
		"GET /teams/{id}":                                       "read:organization",
		"POST /admin/users":                                     "write:admin",
		"GET /topics/search":                                    "read:repository",
		"GET /repositories/{id}":                                "read:repository",
		"GET /packages/{owner}":                                 "read:package",
		"GET /repos/search":                                     "read:repository",
		"GET /repos/issues/search":                              "read:issue",
		"GET /repos/{owner}/{repo}":                             "read:repository",
		"GET /repos/{owner}/{repo}/issues":                      "read:issue",
		"POST /repos/{owner}/{repo}/issues/{index}/comments":    "write:issue",
		"GET /repos/{owner}/{repo}/labels":                      "read:issue",
		"DELETE /repos/{owner}/{repo}/milestones/{id}":          "write:issue",
		"GET /repos/{owner}/{repo}/issue_templates":             "read:repository",
		"POST /repos/{owner}/{repo}/file-contents":              "write:repository",
		"POST /repos/{owner}/{repo}/pulls/{index}/merge":        "write:repository",
		"GET /repos/{owner}/{repo}/actions/runs":                "read:repository",
		"POST /repos/{template_owner}/{template_repo}/generate": "write:repository",
	} {
		got, ok := have[route]
		if !ok {
			t.Errorf("no operation %s", route)
		} else if strings.Join(got, " ") != want {
			t.Errorf("%s needs %q, want %q", route, got, want)
		}
	}
}

func TestParamOrder(t *testing.T) {
	t.Parallel()
	for _, o := range builtin(t).Operations {
		stage := 0
		for _, p := range o.Params {
			s := 2
			if p.In == "path" {
				s = 0
			} else if p.Required {
				s = 1
			}
			if s < stage {
				t.Errorf("%s: %s comes too late", o.Name, p.Name)
			}
			stage = s
		}
	}
}
