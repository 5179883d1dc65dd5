package policy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/catalog"
)

// seedWorld makes two organizations of alice's, one for each team, and joins them
// wherever Gitea lets one see the other. Everything of the second one begins with
// mark; how much there is of it is up to n.
func seedWorld(in *instance, mark string, n int) {
	in.seedOwner("acme", "ours", 2)
	in.do("POST", "/repos/acme/ours-repo-0/issues/1/dependencies",
		args{"index": 2, "owner": "acme", "repo": "ours-repo-1"})
	in.seedOwner(mark, mark, n)
	other := "/repos/" + mark + "/" + mark + "-repo-0"
	for i := range n {
		in.do("POST", "/repos/acme/ours-repo-0/issues/1/dependencies",
			args{"index": 2, "owner": mark, "repo": fmt.Sprintf("%s-repo-%d", mark, i)})
		in.do("POST", other+"/issues", args{"title": mark, "body": "see acme/ours-repo-0#1"})
	}
	in.do("POST", "/repos/acme/ours-repo-0/forks", args{"organization": mark, "name": mark + "-fork"})
}

// readings are the arguments that reach what seedWorld made.
func readings(tool *proxy.Tool, login, owner, repo string) args {
	s := sampler{owner, repo, "main", "a.txt"}
	given := s.args(tool)
	for _, p := range tool.Params {
		switch {
		case p.Fixed != "":
			delete(given, p.Name)
		case p.In == proxy.InPath && p.Wire == "username":
			given[p.Name] = login
		case p.In == proxy.InPath && (p.Wire == "branch" || p.Wire == "ref" || p.Wire == "archive"):
			given[p.Name] = "main"
		case p.Wire == "limit":
			given[p.Name] = 50
		case p.Wire == "all" && p.In == proxy.InQuery:
			given[p.Name] = true
		}
	}
	if tool.OperationID == "repoCompareDiff" {
		given["basehead"] = "main...ours-branch"
	}
	return given
}

// observed is everything that a team gets to know from all reading operations.
func observed(t *testing.T, in *instance, org string, set *catalog.Set, cfg config.Policy) map[string]string {
	t.Helper()
	handler := in.chain(set, cfg)
	out := map[string]string{}
	for _, tool := range set.Tools() {
		if !tool.ReadOnly || tool.BasicAuthOnly {
			continue
		}
		prefix := org
		if org == "acme" {
			prefix = "ours"
		}
		for _, repo := range []string{prefix + "-repo-0", prefix + "-repo-1"} {
			for id := 1; id <= 4; id++ {
				given := readings(tool, in.login, org, repo)
				for _, name := range []string{"id", "index"} {
					if _, there := given[name]; there {
						given[name] = id
					}
				}
				c := in.call(tool.Name, given)
				res, err := handler.Handle(t.Context(), c)
				key := fmt.Sprintf("%s %s %d", tool.OperationID, repo, id)
				if err != nil {
					out[key] = proxy.AsError(err).Error()
					continue
				}
				page, err := json.Marshal(res.Page)
				if err != nil {
					t.Fatal(err)
				}
				out[key] = fmt.Sprintf("%d %s %s %v %s", res.Status, res.Path, page, res.Truncation, res.Body)
			}
		}
	}
	return out
}

// TestTeamsDoNotInterfere: what one team can read is the same whatever there is of
// the other, and holds no word of it.
func TestTeamsDoNotInterfere(t *testing.T) {
	t.Parallel()
	set := builtin(t)
	bound, err := set.Bind(config.Bind{Owner: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	narrow, err := set.Bind(config.Bind{Owner: "acme", Repo: "ours-repo-0"})
	if err != nil {
		t.Fatal(err)
	}
	worlds := map[string]*instance{"zqrival": newInstance(t), "zqenemy": newInstance(t)}
	seedWorld(worlds["zqrival"], "zqrival", 1)
	seedWorld(worlds["zqenemy"], "zqenemy", 4)
	for name, team := range map[string]struct {
		set   *catalog.Set
		rules config.Policy
	}{
		"bound to the owner":      {bound, config.Policy{Bind: config.Bind{Owner: "acme"}}},
		"bound to the repository": {narrow, config.Policy{Bind: config.Bind{Owner: "acme", Repo: "ours-repo-0"}}},
		"allowed, with all tools": {set, config.Policy{Repos: config.Patterns{Allow: []string{"acme/*"}}}},
		"denied, with all tools":  {set, config.Policy{Repos: config.Patterns{Deny: []string{"zq*/*"}}}},
	} {
		one, two := observed(t, worlds["zqrival"], "acme", team.set, team.rules), observed(t, worlds["zqenemy"],
			"acme", team.set, team.rules)
		answers, full := 0, 0
		for key, got := range one {
			if strings.HasPrefix(got, "200") {
				answers++
				if strings.Contains(got, "ours-") {
					full++
				}
			}
			for _, text := range []string{got, two[key]} {
				if i := strings.Index(text, "zq"); i >= 0 && !aboutAccounts(key) {
					t.Errorf("%s: %s tells of the other team: …%s…", name, key, text[max(0, i-80):min(len(text), i+60)])
				}
			}
			if !aboutAccounts(key) && !counted(got, two[key]) {
				t.Errorf("%s: %s depends on the other team: %s", name, key, differs(got, two[key]))
			}
		}
		if answers < 200 || full < 100 {
			t.Errorf("%s: only %d answers, %d with data; the test sees too little", name, answers, full)
		}
		t.Logf("%s: %d calls, %d answers, %d with data", name, len(one), answers, full)
	}
}

// aboutAccounts are operations about accounts: rules about repositories do not
// hide that an organization is there. Bindings hide these tools.
func aboutAccounts(key string) bool {
	op, _, _ := strings.Cut(key, " ")
	return slices.Contains([]string{"orgGetAll", "adminGetAllOrgs", "orgListCurrentUserOrgs", "orgListUserOrgs",
		"userSearch", "adminSearchUsers"}, op)
}

// counted compares two answers but for how many rows a policy says it removed,
// which rules on repositories tell and bindings do not.
func counted(a, b string) bool {
	return stripCount(a) == stripCount(b)
}

func stripCount(s string) string {
	if i := strings.Index(s, "&{policy "); i >= 0 {
		if j := strings.Index(s[i:], "}"); j >= 0 {
			return s[:i] + "<nil>" + s[i+j+1:]
		}
	}
	return s
}

// TestBoundPagesHaveNoGaps: neither a short page nor a page that leads nowhere
// tells a bound team how much there is of others.
func TestBoundPagesHaveNoGaps(t *testing.T) {
	t.Parallel()
	few, many := newInstance(t), newInstance(t)
	seedWorld(few, "zqrival", 1)
	seedWorld(many, "zqenemy", 4)
	cfg := config.Policy{Bind: config.Bind{Owner: "acme"}}
	set, err := builtin(t).Bind(cfg.Bind)
	if err != nil {
		t.Fatal(err)
	}
	page := func(in *instance, name string, given args) string {
		res, err := in.chain(set, cfg).Handle(t.Context(), call(t, name, given))
		if err != nil {
			return err.Error()
		}
		at, err := json.Marshal(res.Page)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s %s", at, res.Body)
	}
	seen := map[string]bool{}
	for _, limit := range []int{1, 2, 3} {
		for n := 1; n <= 4; n++ {
			for _, order := range []string{"asc", "desc"} {
				given := args{"limit": limit, "page": n, "sort": "alpha", "order": order}
				one, two := page(few, "gitea_repository_search", given), page(many, "gitea_repository_search", given)
				if one != two || strings.Contains(one, "zq") || (limit*n < 2) != strings.Contains(one, "next_page") {
					t.Errorf("%v:%s\n%s", given, differs(one, two), one)
				}
				for _, name := range []string{"ours-repo-0", "ours-repo-1"} {
					if strings.Contains(one, name) {
						seen[fmt.Sprint(name, limit, order)] = true
					}
				}
				raw := args{"method": "GET", "path": "/repos/search", "query": given}
				if got := page(few, "gitea_api_request", raw); got != one {
					t.Errorf("raw %v:%s", given, differs(got, one))
				}
			}
			given := args{"repo": "ours-repo-0", "limit": limit, "page": n}
			if one, two := page(few, "gitea_repository_list_forks", given), page(many, "gitea_repository_list_forks",
				given); one != two || strings.Contains(one, "next_page") {
				t.Errorf("forks %v:%s", given, differs(one, two))
			}
			given["index"] = 1
			if one, two := page(few, "gitea_issue_list_dependencies", given), page(many,
				"gitea_issue_list_dependencies", given); one != two {
				t.Errorf("dependencies %v:%s", given, differs(one, two))
			}
		}
	}
	if len(seen) != 12 {
		t.Errorf("only %d of 12 rows are shown: %v", len(seen), seen)
	}
	if text := page(few, "gitea_repository_search", args{"page": 41}); !strings.Contains(text,
		string(proxy.KindPolicyDenied)) {
		t.Errorf("a page far away: %s", text)
	}
}

// TestBoundPagesHideDeniedToo: what a pattern takes from a bound team, of its own
// owner, leaves no gap either.
func TestBoundPagesHideDeniedToo(t *testing.T) {
	t.Parallel()
	in := newInstance(t)
	in.seedOwner("acme", "ours", 4)
	cfg := config.Policy{Bind: config.Bind{Owner: "acme"},
		Repos: config.Patterns{Deny: []string{"acme/ours-repo-0", "acme/ours-repo-1", "acme/ours-repo-2"}}}
	set, err := builtin(t).Bind(cfg.Bind)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gitea_organization_list_repos", "gitea_repository_search"} {
		res, err := in.chain(set, cfg).Handle(t.Context(), call(t, name, args{"limit": 1}))
		if err != nil {
			t.Fatal(err)
		}
		if res.Page == nil || res.Page.NextPage != nil || !strings.Contains(string(res.Body), "ours-repo-3") {
			t.Errorf("%s: page %+v, %.200s", name, res.Page, res.Body)
		}
	}
}

// TestBoundTeamIsNotToldCounts: not even how many rows are hidden.
func TestBoundTeamIsNotToldCounts(t *testing.T) {
	t.Parallel()
	in := newInstance(t)
	seedWorld(in, "zqrival", 2)
	set, err := builtin(t).Bind(config.Bind{Owner: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	res, err := in.chain(set, config.Policy{Bind: config.Bind{Owner: "acme"}}).Handle(t.Context(),
		call(t, "gitea_repository_search", args{"limit": 50}))
	if err != nil {
		t.Fatal(err)
	}
	if res.Truncation != nil || res.Page != nil && (res.Page.TotalCount != nil || res.Page.LastPage != nil) ||
		bytes.Count(res.Body, []byte(`"full_name":"acme/`)) < 2 {
		t.Errorf("truncation %+v, page %+v, body %.200s", res.Truncation, res.Page, res.Body)
	}
	res, err = in.chain(builtin(t), config.Policy{Repos: config.Patterns{Allow: []string{"acme/*"}}}).Handle(t.Context(), call(t, "gitea_repository_search", args{"limit": 50}))
	if err != nil {
		t.Fatal(err)
	}
	if res.Truncation == nil || res.Truncation.Removed != 3 || res.Truncation.Reason != "policy" {
		t.Errorf("truncation %+v", res.Truncation)
	}
}

// differs shows where two texts part.
func differs(a, b string) string {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	cut := func(s string) string { return s[max(0, i-120):min(len(s), i+120)] }
	return "\n" + cut(a) + "\n" + cut(b)
}

// TestTwoBoundTeams runs two endpoints over one Gitea, each bound to one of the
// user's organizations: on the double always, and on a real Gitea when
// AEGIS_TEST_GITEA_URL and AEGIS_TEST_GITEA_TOKEN name one.
func TestTwoBoundTeams(t *testing.T) {
	t.Run("double", func(t *testing.T) {
		twoTeams(t, newInstance(t), "")
	})
	t.Run("live", func(t *testing.T) {
		base, token := os.Getenv("AEGIS_TEST_GITEA_URL"), os.Getenv("AEGIS_TEST_GITEA_TOKEN")
		if base == "" || token == "" {
			t.Skip("AEGIS_TEST_GITEA_URL and AEGIS_TEST_GITEA_TOKEN name no server")
		}
		in := connect(t, base, "", token)
		in.login, _ = in.do("GET", "/user", nil)["login"].(string)
		twoTeams(t, in, fmt.Sprintf("%x", time.Now().UnixNano()&0xffffff))
	})
}

// twoTeams seeds two organizations and reads all that each team can.
func twoTeams(t *testing.T, in *instance, suffix string) {
	t.Helper()
	marks := []string{"zqone" + suffix, "zqtwo" + suffix}
	for _, mark := range marks {
		in.seedOwner(mark, mark, 2)
		t.Cleanup(func() {
			for i := range 2 {
				in.do("DELETE", fmt.Sprintf("/repos/%s/%s-repo-%d", mark, mark, i), nil)
			}
			in.do("DELETE", "/orgs/"+mark, nil)
		})
	}
	for i, mark := range marks {
		other := marks[1-i]
		in.do("POST", "/repos/"+mark+"/"+mark+"-repo-0/issues/1/dependencies",
			args{"index": 2, "owner": other, "repo": other + "-repo-0"})
	}
	for i, mark := range marks {
		cfg := config.Policy{Bind: config.Bind{Owner: mark}}
		set, err := builtin(t).Bind(cfg.Bind)
		if err != nil {
			t.Fatal(err)
		}
		own := 0
		for key, text := range observed(t, in, mark, set, cfg) {
			if at := strings.Index(text, marks[1-i]); at >= 0 {
				t.Errorf("%s: %s tells of the other team: …%s…", mark, key, text[max(0, at-80):min(len(text), at+60)])
			}
			if strings.Contains(text, mark+"-repo-") {
				own++
			}
		}
		if own < 100 {
			t.Errorf("%s: only %d answers with data of its own", mark, own)
		}
	}
}
