package policy_test

import (
	"encoding/json"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/gitea/fakegitea"
)

// TestRulesThatAllowEverythingHideNothing reads all that there is in the worlds
// of the double, once without rules and once with a rule that everything fits:
// what comes back differs in the counts alone that rules always take away.
func TestRulesThatAllowEverythingHideNothing(t *testing.T) {
	t.Parallel()
	for name, seed := range map[string]fakegitea.Seed{"demo": fakegitea.SeedDemo, "lab": fakegitea.SeedLab} {
		double := fakegitea.New(fakegitea.Options{Seed: seed, SubPath: "/sub"})
		double.SetToken("alice", aliceToken)
		server := httptest.NewServer(double)
		t.Cleanup(server.Close)
		in := connect(t, server.URL+"/sub", "alice", aliceToken)
		set := builtin(t)
		plain, ruled := in.chain(set, config.Policy{}), in.chain(set,
			config.Policy{Repos: config.Patterns{Allow: []string{"*/*"}}})
		names := in.repositories()
		answers, repos := 0, 0
		for _, tool := range set.Tools() {
			if !tool.ReadOnly || tool.BasicAuthOnly {
				continue
			}
			for i, full := range names {
				owner, repo, _ := strings.Cut(full, "/")
				if i > 0 && !strings.Contains(tool.Path, "{repo}") {
					break
				}
				given := readings(tool, "alice", owner, repo)
				given["index"], given["id"] = 1, 1
				maps.DeleteFunc(given, func(name string, _ any) bool {
					return !slices.ContainsFunc(tool.Params, func(p proxy.Param) bool { return p.Name == name })
				})
				want, err := plain.Handle(t.Context(), in.call(tool.Name, given))
				if err != nil {
					continue
				}
				got, err := ruled.Handle(t.Context(), in.call(tool.Name, given))
				if err != nil {
					if proxy.AsError(err).Kind != proxy.KindPolicyDenied || strings.Contains(tool.Path, "{repo}") {
						t.Errorf("%s: %s %v: %v", name, tool.OperationID, given, err)
					}
					continue
				}
				answers++
				repos += strings.Count(string(got.Body), `"full_name"`)
				if got.Truncation != nil {
					t.Errorf("%s: %s %v: rows are removed: %+v", name, tool.OperationID, given, got.Truncation)
				}
				if diff := cmp.Diff(content(want), content(got)); diff != "" {
					t.Errorf("%s: %s %v (-plain +ruled): %.600s", name, tool.OperationID, given, diff)
				}
			}
		}
		if answers < 200 || repos < 200 {
			t.Errorf("%s: only %d answers, with %d repositories", name, answers, repos)
		}
		t.Logf("%s: %d answers, %d repositories", name, answers, repos)
	}
}

// repositories returns the names of all repositories that the user can see.
func (in *instance) repositories() (names []string) {
	data, _ := in.do("GET", "/repos/search?limit=50", nil)["data"].([]any)
	for _, v := range data {
		name, _ := v.(map[string]any)["full_name"].(string)
		names = append(names, name)
	}
	if len(names) == 0 {
		in.Fatal("the world has no repositories")
	}
	return names
}

// content is a result's data without the counts that rules take away.
func content(res *proxy.Result) any {
	var v any
	if res.Kind != proxy.BodyJSON || json.Unmarshal(res.Body, &v) != nil {
		return string(res.Body)
	}
	return uncounted(v)
}

func uncounted(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = uncounted(v[i])
		}
	case map[string]any:
		for _, name := range []string{"forks_count", "starred_repos_count", "repo_transfer", "num_issues",
			"num_open_issues", "num_closed_issues", "total_count", "repo_count", "original_url", "remote_address"} {
			delete(v, name)
		}
		if v["op_type"] == "rename_repo" || v["op_type"] == "transfer_repo" {
			delete(v, "content")
		}
		for name := range v {
			v[name] = uncounted(v[name])
		}
	}
	return v
}
