package policy_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy"
)

// state is everything that can be seen of an organization, read past Aegis.
func (in *instance) state(org string) string {
	in.Helper()
	var b strings.Builder
	get := func(path string) {
		req, err := http.NewRequest(http.MethodGet, in.url+"/api/v1"+path, nil)
		if err != nil {
			in.Fatal(err)
		}
		req.Header.Set("Authorization", "token "+in.token)
		res, err := direct.Do(req)
		if err != nil {
			in.Fatal(err)
		}
		data, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			in.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %d %s\n", path, res.StatusCode, data)
	}
	get("/orgs/" + org)
	get("/orgs/" + org + "/repos")
	get("/orgs/" + org + "/members")
	get("/orgs/" + org + "/labels")
	for i := range 2 {
		at := fmt.Sprintf("/repos/%s/%s-repo-%d", org, org, i)
		for _, part := range []string{"", "/issues?state=all", "/issues/comments", "/pulls?state=all", "/branches",
			"/contents", "/commits", "/tags", "/labels",
			"/milestones", "/releases", "/hooks", "/keys", "/collaborators", "/topics", "/forks", "/stargazers", "/subscribers", "/activities/feeds",
			"/issues/1/timeline", "/issues/2/timeline", "/issues/1/dependencies", "/issues/1/blocks", "/issues/1/times"} {
			get(at + part)
		}
	}
	return ownCounts.ReplaceAllString(b.String(), "")
}

// ownCounts are the caller's own: what a team does with them is the caller's.
var ownCounts = regexp.MustCompile(`"(?:starred_repos|followers|following)_count":[0-9]+`)

// TestBoundTeamChangesNothingElse lets a bound team run every writing operation,
// by name and through the raw tool, with the names, numbers and ids of another
// organization in its arguments, and compares that organization before and after.
func TestBoundTeamChangesNothingElse(t *testing.T) {
	t.Parallel()
	in := newInstance(t)
	in.seedOwner("zqrival", "zqrival", 2)
	in.seedOwner("acme", "ours", 2)
	before := in.state("zqrival")
	cfg := config.Policy{Bind: config.Bind{Owner: "acme"}}
	set := builtin(t)
	bound, err := set.Bind(cfg.Bind)
	if err != nil {
		t.Fatal(err)
	}
	evil := sampler{"zqrival", "zqrival-repo-0", "main", "a.txt"}
	good := sampler{"acme", "ours-repo-0", "main", "a.txt"}
	done := 0
	// With all tools the policy stands alone; in the bound set it has company.
	for _, handler := range []proxy.Handler{in.chain(set, cfg), in.chain(bound, cfg)} {
		for _, tool := range set.Tools() {
			if tool.ReadOnly || tool.BasicAuthOnly || account[tool.OperationID] ||
				strings.HasPrefix(tool.Path, "/user/keys") || strings.HasPrefix(tool.Consumes, "multipart/") {
				continue
			}
			for id := 1; id <= 8; id++ {
				given := good.args(tool)
				bad := evil.args(tool)
				for _, name := range slices.Sorted(maps.Keys(given)) {
					switch {
					case name == "id" || strings.HasSuffix(name, "_id") && given[name] == 1 || name == "index":
						given[name] = id
					case (name == "title" || name == "body" || name == "message") && given[name] == "x1":
						given[name] = "see zqrival/zqrival-repo-0#1 and https://git.example/sub/zqrival/zqrival-repo-1/issues/1"
					case id%4 == 1:
						given[name] = bad[name]
					}
				}
				if id%4 == 2 {
					given["owner"], given["repo"] = "zqrival", "zqrival-repo-0"
				}
				if id%2 == 0 {
					delete(given, "body")
				}
				for _, c := range []*proxy.Call{in.call(tool.Name, given),
					in.call("gitea_api_request", asRaw(t, tool, given))} {
					if strings.HasPrefix(tool.Consumes, "text/") {
						continue
					}
					if _, err := handler.Handle(t.Context(), c); err == nil {
						done++
					}
				}
			}
		}
	}
	if after := in.state("zqrival"); after != before {
		t.Errorf("another organization has changed: %s", differs(before, after))
	}
	if done < 100 {
		t.Errorf("only %d writes were carried out; the test proves too little", done)
	}
	t.Logf("%d writes", done)
}
