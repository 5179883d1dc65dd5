package catalog_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy"
)

func searching(tb testing.TB, cfg config.Tools) func(args string) (proxy.Result, map[string]any, error) {
	tb.Helper()
	cfg.Mode = "search"
	sel, _ := builtin(tb).Select(cfg)
	return func(args string) (proxy.Result, map[string]any, error) {
		name, args, _ := strings.Cut(args, " ")
		call, res, err := run(sel, name, args, false)
		if err != nil {
			return proxy.Result{}, nil, err
		}
		if call != nil {
			tb.Fatalf("%s was passed on", name)
		}
		var doc map[string]any
		if err := json.Unmarshal(res.Body, &doc); err != nil {
			tb.Fatal(err)
		}
		return *res, doc, nil
	}
}

// found returns the names in a search's answer.
func found(doc map[string]any) []string {
	var out []string
	for _, tool := range doc["tools"].([]any) {
		out = append(out, tool.(map[string]any)["name"].(string))
	}
	return out
}

func TestSearchFinds(t *testing.T) {
	t.Parallel()
	ask := searching(t, config.Tools{Raw: true})
	for query, want := range map[string]string{
		"open a PR":                  "gitea_pull_create",
		"merge request":              "gitea_pull_get",
		"pul requst list":            "gitea_pull_list",
		"comments on an issue":       "gitea_issue_list_comments",
		"who am I":                   "gitea_user_get_me",
		"comment on an issue":        "gitea_issue_create_comment",
		"webhooks of a repository":   "gitea_repository_list_hooks",
		"CI job log":                 "gitea_actions_get_job_log",
		"members of an org":          "gitea_organization_list_members",
		"list wiki pages":            "gitea_repository_list_wiki_pages",
		"gitea_issue_list":           "gitea_issue_list",
		"delete branch":              "gitea_repository_delete_branch",
		"read a file":                "gitea_contents_get_raw",
		"create release":             "gitea_release_create",
		"rerun failed jobs":          "gitea_actions_rerun_failed_jobs",
		"protect a branch":           "gitea_repository_create_branch_protection",
		"unread notifications":       "gitea_notification_list",
		"markdown to html":           "gitea_miscellaneous_render_markdown",
		"approve pull request":       "gitea_pull_create_review",
		"milestones of a repository": "gitea_issue_list_milestones",
	} {
		_, doc, err := ask(`gitea_search_tools {"query":` + quote(query) + `}`)
		if err != nil {
			t.Fatal(err)
		}
		got := found(doc)
		if i := slices.Index(got, want); i < 0 || i > 4 {
			t.Errorf("%q: %s is not among the first five of %q", query, want, got)
		}
	}
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// TestSearchIgnoresNames asks with and without the names of particular things.
func TestSearchIgnoresNames(t *testing.T) {
	t.Parallel()
	ask := searching(t, config.Tools{})
	for query, want := range map[string]string{
		`create an issue "delete the webhook" in acme/infra`:  "gitea_issue_create",
		"could you please close issue #12":                    "gitea_issue_edit",
		"set the secret NPM_TOKEN":                            "gitea_actions_set_secret",
		"list releases of acme/release-tools":                 "gitea_release_list",
		"create an issue: please merge the pull request":      "gitea_issue_create",
		"remove the label when the pull request is merged":    "gitea_issue_remove_label",
		`"merge" "pull"`:                                      "gitea_pull_merge",
		"show the diff of acme/infra#12, it is a PR":          "gitea_pull_get_diff",
		"delete the branch feature/issue-tracker":             "gitea_repository_delete_branch",
		"who wrote commit 3fa9c1e0":                           "gitea_contents_get_commit",
		"star acme/infra":                                     "gitea_user_star_repo",
		"list_issues":                                         "gitea_issue_list",
		"I want to see my notifications, thanks bob@acme.com": "gitea_notification_list",
	} {
		_, doc, err := ask(`gitea_search_tools {"query":` + quote(query) + `}`)
		if err != nil {
			t.Fatal(err)
		}
		if got := found(doc); len(got) == 0 || got[0] != want {
			t.Errorf("%q: %s is not first of %q", query, want, got)
		}
	}
}

func TestSearchFilters(t *testing.T) {
	t.Parallel()
	ask := searching(t, config.Tools{})
	_, doc, err := ask(`gitea_search_tools {"query":"delete everything","domain":"issue","limit":25}`)
	if err != nil {
		t.Fatal(err)
	}
	got := found(doc)
	if len(got) == 0 || slices.ContainsFunc(got, func(n string) bool { return !strings.HasPrefix(n, "gitea_issue_") }) {
		t.Errorf("domain issue: %q", got)
	}
	_, doc, err = ask(`gitea_search_tools {"query":"issue comment","read_only":true,"limit":3}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range doc["tools"].([]any) {
		if tool.(map[string]any)["read_only"] != true {
			t.Errorf("read_only: %v", tool)
		}
	}
	if len(found(doc)) != 3 {
		t.Errorf("limit 3: %q", found(doc))
	}
	_, doc, err = ask(`gitea_search_tools {"query":"the of and"}`)
	if err != nil || len(found(doc)) != 0 || doc["hint"] == "" {
		t.Errorf("nothing but stop words: %v %v", err, doc)
	}
	for _, bad := range []string{`{}`, `{"query":""}`, `{"query":"x","domain":"wiki"}`, `{"query":"x","limit":1000}`,
		`{"query":"` + strings.Repeat("x", 501) + `"}`, `{"q":"x"}`} {
		if _, _, err := ask(`gitea_search_tools ` + bad); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func TestSearchIsDeterministic(t *testing.T) {
	t.Parallel()
	one, two := searching(t, config.Tools{}), searching(t, config.Tools{})
	for _, q := range []string{"issue", "list things of a repository", "creat lable", "user"} {
		a, _, _ := one(`gitea_search_tools {"query":"` + q + `","limit":25}`)
		b, _, _ := two(`gitea_search_tools {"query":"` + q + `","limit":25}`)
		if string(a.Body) != string(b.Body) {
			t.Errorf("%q has two answers", q)
		}
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	ask := searching(t, config.Tools{Raw: true})
	res, doc, err := ask(`gitea_describe_tool {"name":"gitea_issue_create"}`)
	if err != nil {
		t.Fatal(err)
	}
	if res.Status != 200 || res.Kind != proxy.BodyJSON || res.Source != "aegis" {
		t.Errorf("%+v", res)
	}
	for _, key := range []string{"name", "canonical_name", "version", "domain", "title", "description",
		"operation_id", "method", "path", "risk", "scopes",
		"read_only", "destructive", "idempotent", "paginated", "input_schema", "example"} {
		if _, ok := doc[key]; !ok {
			t.Errorf("no %s in %s", key, res.Body)
		}
	}
	if _, ok := doc["output_schema"]; ok {
		t.Error("the output schema comes unasked")
	}
	_, doc, err = ask(`gitea_describe_tool {"name":"gitea_issue_create","output":true}`)
	if err != nil || doc["output_schema"] == nil {
		t.Errorf("%v %v", err, doc["output_schema"])
	}
	if _, doc, err = ask(`gitea_describe_tool {"name":"gitea_api_request"}`); err != nil || doc["method"] != nil {
		t.Errorf("%v %v", err, doc)
	}
}

func TestCallTool(t *testing.T) {
	t.Parallel()
	sel, _ := builtin(t).Select(config.Tools{Mode: "search", Raw: true})
	for _, args := range []string{
		`{"name":"gitea_issue_get","arguments":{"owner":"a","repo":"b","index":"7","fields":["title"]}}`,
		`{"name":"gitea_issue_get","arguments":"{\"owner\":\"a\",\"repo\":\"b\",\"index\":7,\"fields\":[\"title\"]}"}`,
	} {
		call, _, err := run(sel, "gitea_call_tool", args, false)
		if err != nil {
			t.Fatal(err)
		}
		if call.Name != "gitea_issue_get" || call.Tool.OperationID != "issueGetIssue" ||
			call.Args["index"] != json.Number("7") || len(call.Options.Fields) != 1 {
			t.Errorf("%+v", call)
		}
	}
	if call, _, err := run(sel, "gitea_call_tool", `{"name":"gitea_user_get_me"}`, false); err != nil ||
		call.Tool.OperationID != "userGetCurrent" {
		t.Errorf("without arguments: %v", err)
	}
	for _, bad := range []string{
		`{"name":"gitea_call_tool","arguments":{"name":"gitea_user_get_me"}}`, `{"name":"gitea_search_tools","arguments":{"query":"x"}}`,
		`{"name":"gitea_issue_get","arguments":{"owner":"a"}}`, `{"name":"gitea_issue_get","arguments":[1]}`, `{"name":"gitea_issue_get","arguments":"x"}`,
		`{"name":"gitea_issue_get","args":{}}`, `{"arguments":{}}`, `{"name":"gitea_user_get_me","arguments":{"sudo":"bob"}}`,
		`{"name":"gitea_user_get_me","arguments":{},"arguments":{"x":1}}`,
	} {
		if call, _, err := run(sel, "gitea_call_tool", bad, false); err == nil || call != nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("close the bug about login")
	f.Add("ﬁle\x00 \u202e !!! pull")
	sel, _ := builtin(f).Select(config.Tools{Mode: "search", Toolsets: []string{"issue"}})
	f.Fuzz(func(t *testing.T, query string) {
		for _, tool := range sel.Search(query, nil, true) {
			if tool.Domain != "issue" || !tool.ReadOnly {
				t.Errorf("%q finds %s", query, tool.Name)
			}
		}
	})
}

func BenchmarkSearch(b *testing.B) {
	sel, _ := builtin(b).Select(config.Tools{Mode: "search"})
	sel.Search("warm up", nil, false)
	for b.Loop() {
		sel.Search("close the bug about logn in the infra repository", nil, false)
	}
}

func BenchmarkStage(b *testing.B) {
	sel := everything(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := run(sel, "gitea_issue_list",
			`{"owner":"acme","repo":"infra","state":"open","labels":"bug","page":2,"limit":"20"}`, false); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSearchWorst asks with as many unknown words as fit.
func BenchmarkSearchWorst(b *testing.B) {
	sel, _ := builtin(b).Select(config.Tools{Mode: "search"})
	query := strings.Repeat("repositoxyy issuxxxxe ", 22)
	for b.Loop() {
		sel.Search(query, nil, false)
	}
}

// BenchmarkRawWorst routes the longest path there can be.
func BenchmarkRawWorst(b *testing.B) {
	sel := everything(b)
	args := `{"method":"GET","path":"/repos/a/b/commits` + strings.Repeat("/a", 2000) + `"}`
	for b.Loop() {
		if _, _, err := run(sel, "gitea_api_request", args, false); err != nil {
			b.Fatal(err)
		}
	}
}
