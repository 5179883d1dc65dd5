package policy_test

import (
	"strings"
	"testing"

	"aegis/proxy"
	"aegis/proxy/policy"
)

// TestEveryNamingArgumentIsJudged: an argument that looks as if it named a
// repository, an owner, a branch or a file has its place in the table, or the
// reason why it names none.
func TestEveryNamingArgumentIsJudged(t *testing.T) {
	t.Parallel()
	for id, tool := range byID(t) {
		unknown, _, err := policy.Unjudged(tool)
		if err != nil {
			t.Fatal(err)
		}
		if unknown != "" {
			t.Errorf("%s (%s %s): %s has no entry in sites.yaml; say what it names, or none: why", id, tool.Method,
				tool.Path, unknown)
		}
	}
}

// TestTableFitsCatalog: an entry is about an operation that there is, and about
// arguments that it has.
func TestTableFitsCatalog(t *testing.T) {
	t.Parallel()
	tools := byID(t)
	ids, err := policy.Entries()
	if err != nil {
		t.Fatal(err)
	}
	if len(ids) < 100 {
		t.Fatalf("only %d entries", len(ids))
	}
	for _, id := range ids {
		tool := tools[id]
		if tool == nil {
			t.Errorf("%s: the catalog has no such operation", id)
			continue
		}
		_, places, err := policy.Unjudged(tool)
		if err != nil {
			t.Fatal(err)
		}
		for place := range places {
			if !hasPlace(tool, place) {
				t.Errorf("%s has no %s", id, place)
			}
		}
	}
}

// hasPlace reports whether a tool has an argument at a place.
func hasPlace(tool *proxy.Tool, place string) bool {
	in, rest, _ := strings.Cut(place, ".")
	top, nested, isList := strings.Cut(rest, "[].")
	for _, p := range tool.Params {
		if string(p.In) != in || p.Wire != top {
			continue
		}
		if !isList {
			return true
		}
		if p.Schema == nil || p.Schema.Items == nil {
			return false
		}
		for _, q := range p.Schema.Items.Properties {
			if q.Name == nested {
				return true
			}
		}
	}
	return false
}

// TestUnknownOperationsAreRefused: a catalog made from another server may have
// operations that the table does not know. What their names give away is judged,
// what they may hide is refused.
func TestUnknownOperationsAreRefused(t *testing.T) {
	t.Parallel()
	text := &proxy.Schema{Type: "string"}
	tools := []*proxy.Tool{
		{Name: "a", OperationID: "newInRepo", Method: "POST", Path: "/repos/{owner}/{repo}/new", Params: []proxy.Param{
			{Name: "owner", Wire: "owner", In: proxy.InPath, Schema: text}, {Name: "repo", Wire: "repo", In: proxy.InPath, Schema: text}}},
		{Name: "b", OperationID: "newMove", Method: "POST", Path: "/repos/{owner}/{repo}/move", Params: []proxy.Param{
			{Name: "owner", Wire: "owner", In: proxy.InPath, Schema: text}, {Name: "repo", Wire: "repo", In: proxy.InPath, Schema: text},
			{Name: "new_owner", Wire: "new_owner", In: proxy.InBody, Schema: text}}},
		{Name: "c", OperationID: "newWrite", Method: "PUT", Path: "/repos/{owner}/{repo}/write", Params: []proxy.Param{
			{Name: "owner", Wire: "owner", In: proxy.InPath, Schema: text}, {Name: "repo", Wire: "repo", In: proxy.InPath, Schema: text},
			{Name: "branch", Wire: "branch", In: proxy.InBody, Schema: text}}},
		{Name: "d", OperationID: "newThing", Method: "GET", Path: "/things/{id}", ReadOnly: true, Params: []proxy.Param{
			{Name: "id", Wire: "id", In: proxy.InPath, Schema: text}}},
	}
	for _, c := range []struct {
		cfg  string
		edit func() *policy.Policy
		want map[string]string // rule by operation
	}{
		{"repos", func() *policy.Policy { return over(t, tools, repos([]string{"acme/*"}, nil)) },
			map[string]string{"newInRepo": "", "newMove": "repos.allow", "newWrite": "", "newThing": "repos.allow"}},
		{"branches", func() *policy.Policy { return over(t, tools, branches([]string{"ai/**"}, nil, false)) },
			map[string]string{"newInRepo": "", "newMove": "", "newWrite": "branches.allow", "newThing": ""}},
	} {
		p := c.edit()
		for _, tool := range tools {
			args := proxy.Arguments{"owner": "acme", "repo": "web", "new_owner": "acme", "branch": "ai/x", "id": "7"}
			v := p.Explain(t.Context(), resolved(&proxy.Call{Tool: tool, Args: args,
				Identity: &proxy.Identity{Login: "a"}}))
			if v.Allowed != (c.want[tool.OperationID] == "") || v.Rule != c.want[tool.OperationID] {
				t.Errorf("%s, %s: %v", c.cfg, tool.OperationID, v)
			}
		}
	}
}

// TestEveryAnswerAcrossRepositoriesIsJudged reads the schemas of answers: whoever
// shows repositories, or counts over them, without the path saying which, is
// filtered or refused.
func TestEveryAnswerAcrossRepositoriesIsJudged(t *testing.T) {
	t.Parallel()
	shows := []string{`"repository":{`, `"repo":{`, `"repo_owner_name":`, `"run_url":`, `"clone_url":`,
		`"repo_count":`, `"remote_address":`}
	// Writes that answer with what they made: their arguments are judged.
	made := map[string]bool{"createCurrentUserRepo": true, "createOrgRepo": true, "createOrgRepoDeprecated": true,
		"adminCreateRepo": true,
		"repoMigrate":     true, "generateRepo": true}
	across := 0
	for id, tool := range byID(t) {
		if strings.Contains(tool.Path, "{owner}/{repo}") || strings.Contains(tool.Path, "{org}/{repo}") || made[id] {
			continue
		}
		schema := strings.ReplaceAll(string(tool.OutputSchema), " ", "")
		hit := ""
		for _, s := range shows {
			if strings.Contains(schema, s) {
				hit = s
			}
		}
		if hit == "" {
			continue
		}
		across++
		reach, rows, err := policy.Reach(tool)
		if err != nil {
			t.Fatal(err)
		}
		if rows != "cross" && reach != "result" && reach != "refuse" {
			t.Errorf("%s (%s %s) shows %s of any repository; say rows: cross, or reach", id, tool.Method, tool.Path,
				hit)
		}
	}
	if across < 30 {
		t.Errorf("only %d such operations; has the form of schemas changed?", across)
	}
}
