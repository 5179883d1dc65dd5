package policy_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy"
)

// FuzzRaw sends anything through the raw tool: what a rule allows names nothing
// outside, however it is written.
func FuzzRaw(f *testing.F) {
	f.Add("GET", "/repos/acme/web", `{}`, `{}`)
	f.Add("POST", "/repos/acme/web/forks", `{"organization":"other"}`, `{}`)
	f.Add("POST", "/repos/acme/web/contents/a/b", `{"content":"eA==","branch":"main","new_branch":"ai/x"}`,
		`{"ref":"x"}`)
	f.Add("POST", "/repos/acme/web/contents", `{"files":[{"path":".gitea/workflows/x"}],"branch":"ai/x"}`, `{}`)
	f.Add("POST", "/repos/acme/web/transfer", `{"new_owner":"acme"}`, `{}`)
	f.Add("GET", "/orgs/acme/repos", `null`, `{"page":2}`)
	f.Add("GET", "/repos/acme/web/compare/main...other:x", `null`, `{}`)
	tr := newTrial(f, config.Policy{
		Repos:    config.Patterns{Allow: []string{"acme/*"}},
		Branches: config.BranchRules{Allow: []string{"ai/**"}},
		Paths:    config.Patterns{Deny: []string{".gitea/workflows/**"}},
	}, world{})
	f.Fuzz(func(t *testing.T, method, path, body, query string) {
		given := args{"method": method, "path": path}
		for name, text := range map[string]string{"body": body, "query": query} {
			var v map[string]any
			if json.Unmarshal([]byte(text), &v) == nil && v != nil {
				given[name] = v
			}
		}
		text, err := json.Marshal(given)
		if err != nil {
			return
		}
		h := tr.stage(proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
			if tr.ready.Explain(ctx, c).Allowed {
				inside(t, c)
			}
			return &proxy.Result{}, nil
		}))
		_, _ = h.Handle(t.Context(), &proxy.Call{Name: "gitea_api_request", RawArgs: text,
			Identity: &proxy.Identity{Login: "alice"}})
	})
}

// inside fails for an allowed request that names something outside.
func inside(t *testing.T, c *proxy.Call) {
	t.Helper()
	path, _ := c.Args["path"].(string)
	seg := strings.Split(strings.Trim(strings.ToLower(path), "/"), "/")
	if len(seg) > 2 && seg[0] == "repos" && seg[1] != "acme" ||
		len(seg) > 1 && (seg[0] == "orgs" || seg[0] == "packages") && seg[1] != "acme" {
		t.Errorf("%v is allowed", c.Args)
	}
	body, _ := c.Args["body"].(map[string]any)
	for name, v := range body {
		text, _ := v.(string)
		plain := strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
		switch plain {
		case "organization", "newowner":
			if text != "" && !strings.EqualFold(text, "acme") {
				t.Errorf("%v is allowed", c.Args)
			}
		case "newbranch":
			if text != "" && len(seg) > 3 && seg[3] == "contents" && !strings.HasPrefix(text, "ai/") {
				t.Errorf("%v is allowed", c.Args)
			}
		case "branch":
			other, _ := body["new_branch"].(string)
			if text != "" && other == "" && len(seg) > 3 && seg[3] == "contents" && !c.Tool.ReadOnly &&
				!strings.HasPrefix(text, "ai/") {
				t.Errorf("%v is allowed", c.Args)
			}
		}
	}
	if len(seg) > 5 && seg[3] == "contents" && !c.Tool.ReadOnly && seg[4] == ".gitea" && seg[5] == "workflows" &&
		len(seg) > 6 {
		t.Errorf("%v is allowed", c.Args)
	}
}
