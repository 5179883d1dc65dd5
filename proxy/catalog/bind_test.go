package catalog_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/catalog"
)

// bound returns the built-in set inside a binding.
func bound(t testing.TB, owner, repo string) *catalog.Set {
	t.Helper()
	set, err := builtin(t).Bind(config.Bind{Owner: owner, Repo: repo})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestBindKeeps compares the operations that stay in a binding with the list that
// was reviewed: testdata/bind_owner.txt and bind_repo.txt.
func TestBindKeeps(t *testing.T) {
	t.Parallel()
	for file, set := range map[string]*catalog.Set{"bind_owner.txt": bound(t, "acme", ""),
		"bind_repo.txt": bound(t, "acme", "web")} {
		var lines []string
		for _, tool := range set.Tools() {
			var fixed []string
			for _, p := range tool.Params {
				if p.Fixed != "" {
					fixed = append(fixed, p.Name+"="+p.Fixed)
				}
			}
			lines = append(lines, strings.TrimSpace(tool.Method+" "+tool.Path+" "+strings.Join(fixed, " ")))
		}
		slices.Sort(lines)
		want, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(strings.TrimSpace(string(want)), "\n"), lines); diff != "" {
			t.Errorf("%s (-reviewed +now):\n%s", file, diff)
		}
	}
}

// TestBindHidesArguments looks for the bound arguments everywhere that a client
// can read.
func TestBindHidesArguments(t *testing.T) {
	t.Parallel()
	for _, repo := range []string{"", "web"} {
		set := bound(t, "acme", repo)
		for _, tool := range set.Tools() {
			var input struct {
				Properties map[string]json.RawMessage
				Required   []string
			}
			for _, schema := range []json.RawMessage{tool.InputSchema, tool.ListSchema} {
				if schema == nil {
					continue
				}
				if err := json.Unmarshal(schema, &input); err != nil {
					t.Fatal(err)
				}
				if !strings.HasPrefix(string(schema), `{"type":"object","properties":{`) {
					t.Errorf("%s: the schema begins with %.40s", tool.Name, schema)
				}
				for _, p := range tool.Params {
					_, there := input.Properties[p.Name]
					if there == (p.Fixed != "") {
						t.Errorf("%s: argument %s is in the schema: %v", tool.Name, p.Name, there)
					}
					if slices.Contains(input.Required, p.Name) && p.Fixed != "" {
						t.Errorf("%s: %s is still required", tool.Name, p.Name)
					}
				}
			}
			for _, name := range []string{"owner", "template_owner", "org", "blocked_owner", "dependency_owner"} {
				if _, there := input.Properties[name]; there {
					t.Errorf("%s still takes %s", tool.Name, name)
				}
			}
			if _, there := input.Properties["repo"]; there && repo != "" {
				t.Errorf("%s still takes repo", tool.Name)
			}
			if strings.Contains(string(tool.Example), `"owner"`) {
				t.Errorf("%s: the example gives an owner: %s", tool.Name, tool.Example)
			}
		}
		text := set.Arguments()
		if strings.Contains(text, "owner is") || strings.Contains(text, "admin") || !strings.Contains(text, "acme") ||
			text == catalog.CommonArguments {
			t.Errorf("the words about common arguments do not fit: %s", text)
		}
	}
	if builtin(t).Arguments() != catalog.CommonArguments {
		t.Error("a set without a binding has words of its own")
	}
}

// TestBindFills calls tools of a binding and looks at what goes on.
func TestBindFills(t *testing.T) {
	t.Parallel()
	set := bound(t, "acme", "web")
	sel, problems := set.Select(config.Default().Tools)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var got *proxy.Call
	h := sel.Stage()(proxy.HandlerFunc(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
		got = c
		return &proxy.Result{}, nil
	}))
	try := func(name, args string) error {
		got = nil
		_, err := h.Handle(t.Context(), &proxy.Call{Name: name, RawArgs: json.RawMessage(args),
			Identity: &proxy.Identity{Login: "a"}})
		return err
	}
	if err := try("gitea_issue_get", `{"index":7}`); err != nil || got.Args["owner"] != "acme" ||
		got.Args["repo"] != "web" {
		t.Errorf("error %v, call %+v", err, got)
	}
	if err := try("gitea_issue_add_dependency", `{"index":7,"dependency_index":3}`); err != nil ||
		got.Args["dependency_owner"] != "acme" || got.Args["dependency_repo"] != "web" {
		t.Errorf("error %v, call %+v", err, got)
	}
	for name, args := range map[string]string{
		"gitea_issue_get":            `{"index":7,"owner":"acme"}`,
		"gitea_repository_get":       `{"repo":"web"}`,
		"gitea_issue_add_dependency": `{"index":7,"dependency_index":3,"dependency_owner":"other"}`,
	} {
		err := try(name, args)
		if e := proxy.AsError(err); e.Kind != proxy.KindInvalidArguments || !strings.Contains(e.Public, "is unknown") {
			t.Errorf("%s with %s: %v", name, args, err)
		}
	}
	for _, name := range []string{"gitea_repository_fork", "gitea_repository_transfer", "gitea_admin_list_users",
		"gitea_user_list_repos", "gitea_organization_get"} {
		if e := proxy.AsError(try(name, `{}`)); e.Kind != proxy.KindUnknownTool {
			t.Errorf("%s: %v", name, e)
		}
	}
	for path, ok := range map[string]bool{"/repos/acme/web": true, "/user/repos": false, "/nowhere": false,
		"/admin/users": false} {
		err := try("gitea_api_request", `{"method":"GET","path":"`+path+`"}`)
		if (err == nil) != ok {
			t.Errorf("raw tool, %s: %v", path, err)
		}
	}
}

// TestBindRefusesOddNames: a binding that names nothing binds to nothing.
func TestBindRefusesOddNames(t *testing.T) {
	t.Parallel()
	for _, b := range []config.Bind{{Repo: "web"}, {Owner: "a/b"}, {Owner: "acme", Repo: ".."}, {Owner: "аcme"},
		{Owner: "acme", Repo: "*"}} {
		if set, err := builtin(t).Bind(b); err == nil {
			t.Errorf("%+v is taken, with %d tools", b, len(set.Tools()))
		}
	}
}

// TestAllowRiskByTool: max_risk is raised for the named tools alone, and what
// wins over max_risk wins over this too.
func TestAllowRiskByTool(t *testing.T) {
	t.Parallel()
	set := builtin(t)
	cfg := config.Default().Tools
	cfg.MaxRisk = "R2"
	cfg.AllowRiskByTool = map[string]string{"gitea_issue_delete": "R3", "gitea.repository.delete": "R2",
		"gitea_release_delete": "R4"}
	cfg.Disable = []string{"gitea_release_delete"}
	sel, problems := set.Select(cfg)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	names := map[string]bool{}
	for _, tool := range sel.Enabled() {
		names[tool.Name] = true
		if tool.Risk > proxy.R2 && tool.Name != "gitea_issue_delete" {
			t.Errorf("%s has risk %s", tool.Name, tool.Risk)
		}
	}
	if !names["gitea_issue_delete"] || names["gitea_release_delete"] {
		t.Error("the raised tool is missing, or a disabled one is there")
	}
	cfg.AllowRiskByTool = map[string]string{"gitea_isue_delete": "R3"}
	if _, problems := set.Select(cfg); len(problems) != 1 ||
		!strings.Contains(problems[0].Message, "gitea_issue_delete") ||
		problems[0].Path != "allow_risk_by_tool.gitea_isue_delete" {
		t.Errorf("a misspelt name: %+v", problems)
	}
}

// TestBindInSearchMode: search and describe do not speak of what is fixed, and a
// tool outside is unknown there too.
func TestBindInSearchMode(t *testing.T) {
	t.Parallel()
	cfg := config.Default().Tools
	cfg.Mode = "search"
	cfg.Enable = []string{"gitea_*"}
	cfg.Disable = []string{"gitea_admin_*"} // outside the binding: no mistake of the file's
	sel, problems := bound(t, "acme", "web").Select(cfg)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	ask := func(name, args string) (string, error) {
		res, err := sel.Stage()(nil).Handle(t.Context(),
			&proxy.Call{Name: name, RawArgs: json.RawMessage(args), Identity: &proxy.Identity{}})
		if err != nil {
			return "", err
		}
		return string(res.Body), nil
	}
	found, err := ask("gitea_search_tools", `{"query":"get an issue"}`)
	if err != nil || !strings.Contains(found, `"gitea_issue_get"`) || strings.Contains(found, `"owner"`) ||
		strings.Contains(found, `"repo"`) {
		t.Errorf("%s, %v", found, err)
	}
	text, err := ask("gitea_describe_tool", `{"name":"gitea_issue_get"}`)
	if err != nil || strings.Contains(text, "owner") || !strings.Contains(text, "/repos/acme/web/issues/{index}") {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := ask("gitea_describe_tool",
		`{"name":"gitea_repository_fork"}`); proxy.AsError(err).Kind != proxy.KindUnknownTool {
		t.Errorf("a tool outside: %v", err)
	}
	if text, err = ask("gitea_describe_tool", `{"name":"gitea_repository_get"}`); err != nil ||
		strings.Contains(text, "gitea_repository_fork") {
		t.Errorf("a hint leads outside: %s, %v", text, err)
	}
}
