package catalog_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/catalog"

	"github.com/google/go-cmp/cmp"
)

func names(tools []*proxy.Tool) []string {
	var out []string
	for _, t := range tools {
		out = append(out, t.Name)
	}
	return out
}

func TestEveryToolOnce(t *testing.T) {
	t.Parallel()
	got := names(everything(t).Tools())
	if len(got) != 538 || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != 538 {
		t.Errorf("%d tools, sorted %v", len(got), slices.IsSorted(got))
	}
}

// TestFilters states what each filter leaves, as a property of the tools.
func TestFilters(t *testing.T) {
	t.Parallel()
	set := builtin(t)
	domain := func(d ...string) func(*proxy.Tool) bool {
		return func(t *proxy.Tool) bool { return slices.Contains(d, t.Domain) }
	}
	for name, c := range map[string]struct {
		cfg  config.Tools
		want func(*proxy.Tool) bool
	}{
		"nothing":       {config.Tools{}, func(*proxy.Tool) bool { return true }},
		"domains":       {config.Tools{Toolsets: []string{"issue", "pull"}}, domain("issue", "pull")},
		"read only":     {config.Tools{ReadOnly: true}, func(t *proxy.Tool) bool { return t.ReadOnly }},
		"max risk":      {config.Tools{MaxRisk: "R2"}, func(t *proxy.Tool) bool { return t.Risk <= proxy.R2 }},
		"enable alone":  {config.Tools{Enable: []string{"gitea_issue_get", "gitea.issue.list"}}, func(t *proxy.Tool) bool { return t.Name == "gitea_issue_get" || t.Name == "gitea_issue_list" }},
		"enable adds":   {config.Tools{Toolsets: []string{"pull"}, Enable: []string{"gitea_issue_get"}}, func(t *proxy.Tool) bool { return t.Domain == "pull" || t.Name == "gitea_issue_get" }},
		"disable alone": {config.Tools{Disable: []string{"gitea_admin_*"}}, func(t *proxy.Tool) bool { return t.Domain != "admin" }},
		"disable wins": {config.Tools{Toolsets: []string{"user"}, Enable: []string{"gitea_user_*"}, Disable: []string{"gitea.user.delete_*"}}, func(t *proxy.Tool) bool {
			return t.Domain == "user" && !strings.HasPrefix(t.Name, "gitea_user_delete_")
		}},
		"read only wins": {config.Tools{Enable: []string{"*"}, ReadOnly: true}, func(t *proxy.Tool) bool { return t.ReadOnly }},
		"max risk wins":  {config.Tools{Enable: []string{"gitea_user_*"}, MaxRisk: "R1"}, func(t *proxy.Tool) bool { return t.Domain == "user" && t.Risk <= proxy.R1 }},
	} {
		sel, _ := set.Select(c.cfg)
		var want []string
		for _, tool := range set.Tools() {
			if c.want(tool) {
				want = append(want, tool.Name)
			}
		}
		if diff := cmp.Diff(want, names(sel.Tools())); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestOneDecision takes selections of many kinds and asks for each tool of the
// set in every way there is: all ways agree, and a hidden tool is answered as
// one that never existed.
func TestOneDecision(t *testing.T) {
	t.Parallel()
	set, whole := builtin(t), os.Getenv("AEGIS_TEST_WHOLE") == "1"
	for _, cfg := range []config.Tools{
		{Mode: "search", Raw: true, ReadOnly: true},
		{Mode: "search", Raw: true, Toolsets: []string{"reviewer"}},
		{Mode: "search", Raw: true, Disable: []string{"gitea_*_delete*", "gitea_issue_*"}},
		{Mode: "search", Raw: true, MaxRisk: "R0"},
	} {
		sel, _ := set.Select(cfg)
		enabled := map[string]bool{}
		for _, tool := range sel.Enabled() {
			enabled[tool.Name] = true
		}
		_, _, never := run(sel, "gitea_call_tool", `{"name":"`+strings.Repeat("z", 60)+`"}`, false)
		for i, tool := range set.Tools() {
			if _, err := sel.Lookup(tool.Name); (err == nil) != enabled[tool.Name] {
				t.Errorf("lookup of %s: %v", tool.Name, err)
			}
			ask := i%40 == 0 || whole && (i%10 == 0 || strings.HasSuffix(tool.Name, "_delete"))
			if enabled[tool.Name] || !ask {
				continue
			}
			for _, spelling := range []string{
				tool.Name, strings.ToUpper(tool.Name), " " + tool.Name, tool.Name + " ", tool.CanonicalName, strings.ReplaceAll(tool.Name, "_", "-"),
				strings.TrimPrefix(tool.Name, "gitea_"), tool.OperationID,
			} {
				for _, way := range [][2]string{
					{spelling, `{}`}, {"gitea_call_tool", `{"name":"` + spelling + `","arguments":{}}`}, {"gitea_describe_tool", `{"name":"` + spelling + `"}`},
				} {
					call, res, err := run(sel, way[0], way[1], false)
					if kind, text := kindOf(err); kind != proxy.KindUnknownTool || call != nil || res != nil {
						t.Errorf("%s %s: %v", way[0], way[1], err)
					} else if slices.Contains(strings.FieldsFunc(text,
						func(r rune) bool { return strings.ContainsRune(" ?;", r) }), tool.Name) {
						t.Errorf("%s %s: the answer tells the name: %s", way[0], way[1], text)
					}
				}
			}
			for _, hit := range sel.Search(tool.Title+" "+tool.Name, nil, false) {
				if hit == tool {
					t.Errorf("search finds %s", tool.Name)
				}
			}
		}
		if kind, _ := kindOf(never); kind != proxy.KindUnknownTool {
			t.Errorf("a name that never existed: %v", never)
		}
	}
}

// TestHiddenLooksLikeMissing compares the answers for a hidden tool and for a
// made-up name that is as far from the enabled ones.
func TestHiddenLooksLikeMissing(t *testing.T) {
	t.Parallel()
	sel, _ := builtin(t).Select(config.Tools{Toolsets: []string{"settings"}})
	_, hidden := sel.Lookup("gitea_repository_delete")
	_, missing := sel.Lookup("gitea_zzzzzzzzzz_zzzzzz")
	if diff := cmp.Diff(missing.Error(), hidden.Error()); diff != "" {
		t.Error(diff)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	set := builtin(t)
	for name, c := range map[string]struct {
		cfg  config.Tools
		want []catalog.Problem
	}{
		"toolset": {config.Tools{Toolsets: []string{"issue", "repositories"}}, []catalog.Problem{
			{Path: "toolsets[1]", Message: `unknown toolset "repositories"; did you mean "repository"?`}}},
		"tool": {config.Tools{Enable: []string{"gitea_isue_get"}, Toolsets: []string{"pull"}}, []catalog.Problem{
			{Path: "enable[0]", Message: `unknown tool "gitea_isue_get"; did you mean "gitea_issue_get"?`}}},
		"canonical": {config.Tools{Disable: []string{"gitea.issue.gett"}}, []catalog.Problem{
			{Path: "disable[0]", Message: `unknown tool "gitea.issue.gett"; did you mean "gitea_issue_get"?`}}},
		"glob without a match": {config.Tools{Disable: []string{"gitea_wiki_*"}}, []catalog.Problem{
			{Path: "disable[0]", Message: `unknown tool "gitea_wiki_*"; "aegis tools" lists them`}}},
		"bad glob": {config.Tools{Disable: []string{"gitea_[a"}}, []catalog.Problem{
			{Path: "disable[0]", Message: `"gitea_[a" is no glob; * stands for any characters, ? for one`}}},
		"max risk": {config.Tools{MaxRisk: "R9"}, []catalog.Problem{
			{Path: "max_risk", Message: "unknown risk class; use R0, R1, R2, R3 or R4"}}},
		"shadowed": {config.Tools{Toolsets: []string{"issue"}, Enable: []string{"gitea_pull_merge"}, Disable: []string{"gitea_pull_*"}}, []catalog.Problem{
			{Path: "enable[0]", Message: "disable, read_only or max_risk wins over it", Warning: true}}},
		"partly shadowed": {config.Tools{Enable: []string{"gitea_settings_*"}, Disable: []string{"gitea_settings_get_ui"}}, []catalog.Problem{
			{Path: "enable[0]", Message: "1 of its 4 tools stay off: disable, read_only or max_risk wins over it", Warning: true}}},
		"nothing left": {config.Tools{Enable: []string{"gitea_issue_delete"}, MaxRisk: "R0"}, []catalog.Problem{
			{Path: "enable[0]", Message: "disable, read_only or max_risk wins over it", Warning: true},
			{Path: "toolsets", Message: "no tool is left with these filters; widen toolsets, enable, max_risk or read_only"}}},
		"pin unknown": {config.Tools{Mode: "search", Pinned: []string{"gitea_issue_gat"}}, []catalog.Problem{
			{Path: "pinned[0]", Message: `unknown tool "gitea_issue_gat"; did you mean "gitea_issue_get"?`}}},
		"pin disabled": {config.Tools{Mode: "search", Toolsets: []string{"pull"}, Pinned: []string{"gitea_issue_get"}}, []catalog.Problem{
			{Path: "pinned[0]", Message: "the tool is not enabled, so it cannot be pinned; enable it or remove the pin"}}},
		"fine": {config.Tools{Mode: "search", Raw: true, Toolsets: []string{"reader", "issue"}, Pinned: []string{"gitea.issue.get", "gitea_api_request"}}, nil},
	} {
		_, got := set.Select(c.cfg)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestPresets states what each preset must and must not have.
func TestPresets(t *testing.T) {
	t.Parallel()
	set := builtin(t)
	for name, c := range map[string]struct {
		max       int
		has, lack []string
	}{
		"reader": {280, []string{"gitea_issue_list", "gitea_contents_get_raw", "gitea_pull_get_diff", "gitea_actions_get_job_log", "gitea_miscellaneous_render_markdown"},
			[]string{"gitea_issue_create", "gitea_actions_list_secrets", "gitea_repository_list_hooks", "gitea_admin_list_emails", "gitea_user_list_tokens"}},
		"contributor": {128, []string{"gitea_issue_create", "gitea_pull_create", "gitea_contents_create_file", "gitea_repository_create_branch", "gitea_repository_fork", "gitea_pull_create_review"},
			[]string{"gitea_pull_merge", "gitea_repository_delete_branch", "gitea_issue_delete", "gitea_repository_edit", "gitea_issue_edit_comment_old"}},
		"reviewer": {128, []string{"gitea_pull_create_review", "gitea_pull_submit_review", "gitea_pull_get_diff", "gitea_issue_create_comment", "gitea_pull_add_reviewers"},
			[]string{"gitea_pull_merge", "gitea_contents_create_file", "gitea_pull_delete_review", "gitea_issue_create"}},
		"maintainer": {480, []string{"gitea_pull_merge", "gitea_release_create", "gitea_repository_edit", "gitea_repository_create_branch_protection", "gitea_issue_delete"},
			[]string{"gitea_repository_delete", "gitea_organization_delete", "gitea_admin_create_user", "gitea_repository_create_deploy_key", "gitea_user_create_my_key"}},
		"release": {64, []string{"gitea_release_create", "gitea_repository_create_tag", "gitea_contents_compare", "gitea_release_create_attachment"},
			[]string{"gitea_repository_delete", "gitea_issue_create", "gitea_pull_merge"}},
		"ci": {90, []string{"gitea_actions_list_runs", "gitea_actions_dispatch_workflow", "gitea_actions_rerun_failed_jobs", "gitea_repository_create_status", "gitea_actions_get_job_log"},
			[]string{"gitea_actions_create_registration_token", "gitea_actions_set_secret", "gitea_actions_delete_run", "gitea_actions_list_admin_runs"}},
		"admin": {128, []string{"gitea_admin_create_user", "gitea_actions_create_admin_registration_token", "gitea_organization_create"},
			[]string{"gitea_issue_list", "gitea_contents_get", "gitea_user_create_token"}},
	} {
		sel, problems := set.Select(config.Tools{Toolsets: []string{name}})
		if len(problems) != 0 {
			t.Errorf("%s: %v", name, problems)
		}
		got := names(sel.Tools())
		t.Logf("%s: %d tools", name, len(got))
		if len(got) > c.max {
			t.Errorf("%s has %d tools, more than %d", name, len(got), c.max)
		}
		for _, n := range c.has {
			if !slices.Contains(got, n) {
				t.Errorf("%s lacks %s", name, n)
			}
		}
		for _, n := range c.lack {
			if slices.Contains(got, n) {
				t.Errorf("%s has %s", name, n)
			}
		}
		beyond := []string{"gitea_contents_delete_file",
			"gitea_contents_change_files"} // of contributor, see docs/toolsets.md
		for _, tool := range sel.Tools() {
			switch {
			case name == "maintainer" || name == "release":
				if tool.Risk > proxy.R3 {
					t.Errorf("%s has %s", name, tool.Name)
				}
			case name == "reader" && !tool.ReadOnly, name != "admin" && tool.Risk > proxy.R2 &&
				(name != "contributor" || !slices.Contains(beyond, tool.Name)):
				t.Errorf("%s has %s", name, tool.Name)
			}
			if tool.Deprecated || tool.BasicAuthOnly {
				t.Errorf("%s has %s, which nobody should use", name, tool.Name)
			}
		}
	}
}

// TestPresetGlobsMatch fails for a glob of a preset that names nothing: a
// renamed tool would silently leave its presets.
func TestPresetGlobsMatch(t *testing.T) {
	t.Parallel()
	set := builtin(t)
	for _, g := range catalog.PresetGlobs() {
		if _, problems := set.Select(config.Tools{Enable: []string{g}}); len(problems) != 0 {
			t.Error(problems)
		}
	}
}

func TestSearchModeLists(t *testing.T) {
	t.Parallel()
	sel, _ := builtin(t).Select(config.Tools{Mode: "search", Raw: true,
		Pinned: []string{"gitea_issue_list", "gitea_user_get_me"}})
	want := []string{"gitea_api_request", "gitea_call_tool", "gitea_describe_tool", "gitea_issue_list",
		"gitea_search_tools", "gitea_user_get_me"}
	if diff := cmp.Diff(want, names(sel.Tools())); diff != "" {
		t.Error(diff)
	}
	if _, err := sel.Lookup("gitea_issue_get"); err != nil {
		t.Error("an enabled tool cannot be called directly:", err)
	}
}

func TestFullModeHasNoSearchTools(t *testing.T) {
	t.Parallel()
	sel := everything(t)
	for _, n := range []string{"gitea_search_tools", "gitea_describe_tool", "gitea_call_tool"} {
		if _, err := sel.Lookup(n); err == nil {
			t.Errorf("%s exists", n)
		}
		if _, _, err := run(sel, n, `{"name":"gitea_user_get_me","query":"x"}`, false); err == nil {
			t.Errorf("%s can be called", n)
		}
	}
}

func TestBasicAuthOnly(t *testing.T) {
	t.Parallel()
	sel := everything(t)
	for _, c := range [][2]string{
		{"gitea_user_list_tokens", `{"username":"alice"}`},
		{"gitea_user_create_token", `{"username":"alice","name":"x","scopes":["all"]}`},
		{"gitea_api_request", `{"method":"GET","path":"/users/alice/tokens"}`},
	} {
		call, _, err := run(sel, c[0], c[1], false)
		if kind, _ := kindOf(err); kind != proxy.KindBasicAuthOnly || call != nil {
			t.Errorf("%s: %v", c[0], err)
		}
	}
}

func TestHas(t *testing.T) {
	t.Parallel()
	set := builtin(t)
	for name, want := range map[string]string{"gitea_issue_get": "", "gitea_isue_get": "gitea_issue_get",
		"qqqqqqqqqq": ""} {
		if near, ok := set.Has(name); near != want || ok != (name == "gitea_issue_get") {
			t.Errorf("%s: %q %v", name, near, ok)
		}
	}
}

// TestToolsetsDocument compares the numbers in docs/toolsets.md with the
// presets and domains.
func TestToolsetsDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/toolsets.md")
	if err != nil {
		t.Fatal(err)
	}
	set := builtin(t)
	for _, name := range catalog.Toolsets() {
		sel, _ := set.Select(config.Tools{Toolsets: []string{name}})
		if row := fmt.Sprintf("| `%s` | %d |", name, len(sel.Tools())); !strings.Contains(string(text), row) {
			t.Errorf("docs/toolsets.md lacks %q", row)
		}
	}
	for _, p := range set.PresetCosts() {
		row := fmt.Sprintf("| `%s` | %d | %.0fk |", p.Name, p.Tools-1, float64(p.Tokens)/1000) // without the raw tool
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/toolsets.md lacks %q", row)
		}
	}
}
