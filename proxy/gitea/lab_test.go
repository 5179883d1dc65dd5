package gitea_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"aegis/proxy"
	"aegis/proxy/gitea/fakegitea"
)

// lab returns a walker on the double's laboratory, the world that the behaviour
// was measured on.
func lab(t *testing.T, owner, repo string) *walker {
	t.Helper()
	double := fakegitea.New(fakegitea.Options{Seed: fakegitea.SeedLab})
	server := httptest.NewServer(double)
	t.Cleanup(server.Close)
	cred := proxy.NewCredential(proxy.ModeStatic, double.Token("alice"))
	return &walker{
		T: t, client: client(t, server.URL), tools: builtin(t), owner: owner, repo: repo,
		identity: &proxy.Identity{Login: "alice", Mode: proxy.ModeStatic, Credential: cred},
	}
}

// rows returns the numbers or names in a list.
func rows(w *walker, res *proxy.Result) []string {
	w.Helper()
	var out []string
	for _, row := range decode[[]map[string]json.RawMessage](w, res) {
		for _, key := range []string{"number", "sha", "name", "id"} {
			if v := row[key]; v != nil {
				out = append(out, string(v))
				break
			}
		}
	}
	return out
}

// Every list is walked to its end by what the pages say of themselves: nothing
// is seen twice, nothing is missed, and the last page promises no other.
func TestWalkingPages(t *testing.T) {
	for _, tc := range []struct {
		operation, repo string
		limit           int
		args            object
	}{
		{"issueListIssues", "issues-lab", 30, object{"state": "all"}},
		{"issueListIssues", "issues-lab", 50, object{"state": "all"}},
		{"issueListIssues", "issues-lab", 7, object{"labels": "kind/bug", "state": "all"}},
		{"repoGetAllCommits", "paths-lab", 5, nil},
		{"repoListBranches", "paths-lab", 4, nil},
		{"repoListTags", "paths-lab", 3, nil},
		{"issueListLabels", "issues-lab", 3, nil},
		{"repoListPullRequests", "pulls-lab", 5, object{"state": "all"}},
		{"repoListReleases", "releases-lab", 2, nil},
	} {
		t.Run(fmt.Sprintf("%s by %d", tc.operation, tc.limit), func(t *testing.T) {
			w := lab(t, "acme", tc.repo)
			seen := map[string]bool{}
			var total int64
			for page, pages := 1, 0; page > 0; pages++ {
				args := object{"page": page, "limit": tc.limit}
				for k, v := range tc.args {
					args[k] = v
				}
				res := w.step(tc.operation, 200, args)
				p := res.Page
				if p == nil || p.Page != page || p.Limit != tc.limit || p.TotalCount == nil || p.LastPage == nil {
					t.Fatalf("page %d: %+v", page, p)
				}
				for _, row := range rows(w, res) {
					if seen[row] {
						t.Errorf("%s comes twice", row)
					}
					seen[row] = true
				}
				total = *p.TotalCount
				if p.NextPage == nil && page != *p.LastPage {
					t.Errorf("ends on page %d of %d", page, *p.LastPage)
				}
				if page = 0; p.NextPage != nil {
					page = *p.NextPage
				}
				if pages > 100 {
					t.Fatal("does not end")
				}
			}
			if int64(len(seen)) != total || total == 0 {
				t.Errorf("%d items of %d", len(seen), total)
			}
		})
	}
}

func TestCappedLimitIsReported(t *testing.T) {
	w := lab(t, "acme", "issues-lab")
	res := w.step("issueListIssues", 200, object{"limit": 100, "state": "all"})
	if res.Page.Limit != 50 || res.Page.NextPage == nil || len(rows(w, res)) != 50 {
		t.Errorf("%d rows, page %+v", len(rows(w, res)), res.Page)
	}
	past := w.step("issueListIssues", 200, object{"limit": 50, "page": 99, "state": "all"})
	if string(past.Body) != "[]\n" && string(past.Body) != "[]" || past.Page.NextPage != nil {
		t.Errorf("past the end: %q, page %+v", past.Body, past.Page)
	}
}

// Routes that ignore paging and routes that miscount must not mislead.
func TestListsThatMislead(t *testing.T) {
	w := lab(t, "acme", "issues-lab")
	comments := w.step("issueGetComments", 200, object{"index": 11})
	if comments.Page != nil || len(comments.Warnings) != 1 || len(rows(w, comments)) != 60 {
		t.Errorf("%d comments, page %+v, warnings %q", len(rows(w, comments)), comments.Page, comments.Warnings)
	}
	timeline := w.step("issueGetCommentsAndTimeline", 200, object{"index": 11, "limit": 5})
	if timeline.Page == nil || timeline.Page.TotalCount != nil || timeline.Page.LastPage != nil ||
		len(timeline.Warnings) != 1 {
		t.Errorf("timeline: page %+v, warnings %q", timeline.Page, timeline.Warnings)
	}
	w.repo = "paths-lab"
	for _, operation := range []string{"repoGetContentsList", "repoListAllGitRefs", "repoListBranchProtection"} {
		if res := w.step(operation, 200, nil); res.Page != nil || len(res.Warnings) != 1 {
			t.Errorf("%s: page %+v, warnings %q", operation, res.Page, res.Warnings)
		}
	}
	if res := w.step("repoGetContents", 200, object{"filepath": "README.md"}); len(res.Warnings) != 0 {
		t.Errorf("one file is warned of: %q", res.Warnings)
	}
	w.repo = "empty-repo"
	if res := w.step("repoListBranches", 200, nil); strings.TrimSpace(string(res.Body)) != "null" ||
		res.Kind != proxy.BodyJSON {
		t.Errorf("no branches: %q of kind %d", res.Body, res.Kind)
	}
}

func TestBigFile(t *testing.T) {
	w := lab(t, "acme", "paths-lab")
	res := w.step("repoGetRawFile", 200, object{"filepath": "big/3mib.txt"})
	if res.Kind != proxy.BodyText || len(res.Body) != 3<<20 {
		t.Errorf("%d bytes of kind %d", len(res.Body), res.Kind)
	}
}
