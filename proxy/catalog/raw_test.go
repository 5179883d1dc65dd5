package catalog_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy"
)

// sample fills a path template with values that fit, and returns the path as
// the raw tool takes it.
func sample(tool *proxy.Tool) string {
	path := tool.Path
	for i := range tool.Params {
		p := &tool.Params[i]
		if p.In != proxy.InPath {
			continue
		}
		value := "zz" + p.Wire
		switch {
		case p.Schema.Type == "integer":
			value = "7"
		case len(p.Schema.Enum) != 0:
			value = p.Schema.Enum[0]
		case p.Wildcard:
			value = "zz/yy.x"
		}
		path = strings.ReplaceAll(path, "{"+p.Wire+"}", value)
	}
	return path
}

// TestEveryRouteIsFound routes a filled-in path of each operation back to it.
func TestEveryRouteIsFound(t *testing.T) {
	t.Parallel()
	set := builtin(t)
	for _, tool := range set.Tools() {
		if got := set.Route(tool.Method, sample(tool)); got != tool.Name {
			t.Errorf("%s %s is taken for %q, want %s", tool.Method, sample(tool), got, tool.Name)
		}
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	set := builtin(t)
	for request, want := range map[string]string{
		"GET /repos/a/b/issues/comments":                 "gitea_issue_list_repo_comments",
		"GET /repos/a/b/issues/7":                        "gitea_issue_get",
		"GET /repos/issues/search":                       "gitea_issue_search",
		"GET /repos/a/b":                                 "gitea_repository_get",
		"GET /repos/a/b/pulls/pinned":                    "gitea_pull_list_pinned",
		"GET /repos/a/b/pulls/7.diff":                    "gitea_pull_get_diff",
		"GET /repos/a/b/pulls/main/feature/x":            "gitea_pull_get_by_base_head",
		"GET /repos/a/b/git/commits/v1.0":                "gitea_contents_get_commit",
		"GET /repos/a/b/git/commits/abc.patch":           "gitea_contents_get_commit_diff",
		"GET /repos/a/b/contents/x/y/z.md":               "gitea_contents_get",
		"GET /repos/a/b/contents":                        "gitea_contents_list_root",
		"GET /repos/a/b/commits/feature/x/status":        "gitea_repository_get_combined_status",
		"GET /repos/a/b/commits/feature/status/statuses": "gitea_repository_list_ref_statuses",
		"GET /repos/a/b/hooks/git":                       "gitea_repository_list_git_hooks",
		"GET /repos/a/b/releases/latest":                 "gitea_release_get_latest",
		"POST /repos/a/b/issues":                         "gitea_issue_create",
		"GET /repos/a/b/branches/x/y":                    "gitea_repository_get_branch",
		"GET /nowhere":                                   "",
		"PATCH /version":                                 "",
		"GET /repos/a/b/releases/tags/x/y":               "",
	} {
		method, path, _ := strings.Cut(request, " ")
		if got := set.Route(method, path); got != want {
			t.Errorf("%s is %q, want %q", request, got, want)
		}
	}
}

func TestRawTarget(t *testing.T) {
	t.Parallel()
	call, _, err := run(everything(t), "gitea_api_request",
		`{"method":"DELETE","path":"/repos/acme/infra","query":{"a":[1,"x",true]}}`, false)
	if err != nil {
		t.Fatal(err)
	}
	tool := call.Tool
	if tool.Name != "gitea_api_request" || tool.Path != "" || tool.OperationID != "repoDelete" ||
		tool.Risk != proxy.R3 || !tool.Destructive || tool.ReadOnly {
		t.Errorf("%+v", tool)
	}
	if call.Args["path"] != "/repos/acme/infra" || call.Args["method"] != "DELETE" {
		t.Errorf("%v", call.Args)
	}
	call, _, err = run(everything(t), "gitea_api_request",
		`{"method":"GET","path":"/repos/acme/infra/issues","fields":["title"]}`, false)
	if err != nil || call.Tool.Paging != proxy.PagingPage || !call.Tool.ReadOnly || len(call.Options.Fields) != 1 {
		t.Errorf("%v %+v", err, call)
	}
	call, _, err = run(everything(t), "gitea_api_request", `{"method":"GET","path":"/nodeinfo"}`, false)
	if err != nil || call.Tool.Risk != proxy.R4 || call.Tool.ReadOnly || call.Tool.OperationID != "" {
		t.Errorf("an unknown route: %v %+v", err, call)
	}
}

// TestRawRefuses attacks the raw tool.
func TestRawRefuses(t *testing.T) {
	t.Parallel()
	sel := everything(t)
	for _, path := range []string{
		"", "repos/a/b", "/repos/a%2fb", "/repos/../admin", "/repos/./x", "/repos/.../x", "/repos//a", "//host/x", "/repos/a/", "/", "/a?sudo=bob", "/a#b", "/a\\b",
		"/a\x00b", "/a\nb", "/a\r\nX: y", "/a\u0085b", "https://evil.example/x", "/https://evil.example/x", "/api/v1/user", "/API/V1/user", "/a\x7f",
		"/" + strings.Repeat("a", 5000),
	} {
		raw, err := json.Marshal(map[string]string{"method": "GET", "path": path})
		if err != nil {
			t.Fatal(err)
		}
		call, _, err := run(sel, "gitea_api_request", string(raw), false)
		if kind, _ := kindOf(err); kind != proxy.KindInvalidArguments || call != nil {
			t.Errorf("path %.30q: %v", path, err)
		}
	}
	for _, query := range []string{
		`{"sudo":"bob"}`, `{"SUDO":"bob"}`, `{" sudo":"bob"}`, `{"Token":"x"}`, `{"access_token":"x"}`, `{"Access_Token":"x"}`, `{"":"x"}`, `{"a b":"x"}`,
		`{"a&sudo":"x"}`, `{"a":{"b":1}}`, `{"a":[[1]]}`, `{"sudo\u0000":"x"}`, `{"ſudo":"x"}`,
	} {
		call, _, err := run(sel, "gitea_api_request", `{"method":"GET","path":"/user","query":`+query+`}`, false)
		if kind, _ := kindOf(err); kind != proxy.KindInvalidArguments || call != nil {
			t.Errorf("query %s: %v", query, err)
		}
	}
	for _, args := range []string{
		`{"method":"get","path":"/user"}`, `{"method":"TRACE","path":"/user"}`, `{"method":"GET","path":"/user","body":{}}`, `{"method":"GET"}`,
		`{"method":"GET","path":"/user","headers":{"Sudo":"x"}}`, `{"method":"GET","path":"/user","sudo":"x"}`, `{"method":"POST","path":"/markdown","body":"x"}`,
		`{"method":"POST","path":"/repos/a/b/issues/1/assets","body":{}}`,
		// Gitea takes names in any case, and the last one; who is asked, and every rule,
		// reads the exact one.
		`{"method":"POST","path":"/repos/a/b/transfer","body":{"new_owner":"friend","New_owner":"attacker"}}`,
		`{"method":"POST","path":"/repos/a/b/transfer","body":{"New_owner":"attacker"}}`,
		`{"method":"PATCH","path":"/repos/a/b/issues/1","body":{"ſtate":"closed"}}`,
		`{"method":"POST","path":"/unknown/route","body":{"a":1,"A":2}}`,
	} {
		if call, _, err := run(sel, "gitea_api_request", args, false); err == nil || call != nil {
			t.Errorf("%s was accepted", args)
		}
	}
}

// TestRawObeysFilters asks for hidden operations by their path.
func TestRawObeysFilters(t *testing.T) {
	t.Parallel()
	set := builtin(t)
	for name, cfg := range map[string]config.Tools{
		"read only": {Raw: true, ReadOnly: true},
		"risk":      {Raw: true, MaxRisk: "R1"},
		"toolset":   {Raw: true, Toolsets: []string{"issue"}},
		"disable":   {Raw: true, Disable: []string{"gitea_repository_*"}},
		"enable":    {Raw: true, Enable: []string{"gitea_issue_get"}},
	} {
		sel, _ := set.Select(cfg)
		enabled := map[string]bool{}
		for _, tool := range sel.Enabled() {
			enabled[tool.Name] = true
		}
		for _, tool := range set.Tools() {
			args := fmt.Sprintf(`{"method":%q,"path":%q}`, tool.Method, sample(tool))
			call, _, err := run(sel, "gitea_api_request", args, false)
			if enabled[tool.Name] {
				continue // may fail for other reasons
			}
			if err == nil || call != nil {
				t.Errorf("%s: %s reaches %s", name, args, tool.Name)
			}
		}
		call, _, err := run(sel, "gitea_api_request", `{"method":"GET","path":"/made/up"}`, false)
		if name != "disable" && (err == nil || call != nil) {
			t.Errorf("%s: an unknown route is reached", name)
		}
	}
	sel, _ := set.Select(config.Tools{Raw: false})
	if _, _, err := run(sel, "gitea_api_request", `{"method":"GET","path":"/user"}`, false); err == nil {
		t.Error("the raw tool is switched off and answers")
	}
	sel, _ = set.Select(config.Tools{Raw: true, Disable: []string{"gitea_api_request"}})
	if _, err := sel.Lookup("gitea_api_request"); err == nil {
		t.Error("the raw tool is disabled by name and there")
	}
}

// TestRawReadOnlyOffersOnlyGet checks what a read-only team sees of it.
func TestRawReadOnlyOffersOnlyGet(t *testing.T) {
	t.Parallel()
	sel, _ := builtin(t).Select(config.Tools{Raw: true, ReadOnly: true})
	tool, err := sel.Lookup("gitea_api_request")
	if err != nil || !tool.ReadOnly || strings.Contains(string(tool.InputSchema), "POST") {
		t.Errorf("%v %s", err, tool.InputSchema)
	}
	if _, _, err := run(sel, "gitea_api_request", `{"method":"POST","path":"/markdown","body":{"Text":"x"}}`,
		false); err == nil {
		t.Error("POST was accepted")
	}
}

func FuzzRawPath(f *testing.F) {
	for _, p := range []string{"/repos/a/b", "/repos/a/../b", "/%2e", "/repos//x", "/a/b/c/d/e/status/statuses",
		"/user?x", "/\x00"} {
		f.Add("GET", p)
	}
	sel := everything(f)
	f.Fuzz(func(t *testing.T, method, path string) {
		raw, err := json.Marshal(map[string]string{"method": method, "path": path})
		if err != nil {
			t.Skip()
		}
		call, _, err := run(sel, "gitea_api_request", string(raw), false)
		if err != nil {
			return
		}
		got := call.Args["path"].(string)
		if !strings.HasPrefix(got, "/") || strings.ContainsAny(got, "%?#\\\x00\r\n\t") ||
			strings.Contains(got, "//") || strings.HasSuffix(got, "/") {
			t.Errorf("passed on %q", got)
		}
		for _, seg := range strings.Split(got, "/") {
			if seg == "." || seg == ".." {
				t.Errorf("passed on %q", got)
			}
		}
	})
}
