package catalog_test

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy"
)

// TestValuesReachNoOtherRoute: a value that spells a word of another route would
// go round filters, since Gitea prefers literal routes.
func TestValuesReachNoOtherRoute(t *testing.T) {
	t.Parallel()
	sel, problems := builtin(t).Select(config.Tools{Raw: true})
	if len(problems) != 0 {
		t.Fatal(problems)
	}
	reached := false
	h := sel.Stage()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		reached = true
		return &proxy.Result{}, nil
	}))
	for _, tc := range []struct {
		tool, args string
		refused    bool
	}{
		{"gitea_user_get", `{"username":"search"}`, true},
		{"gitea_user_get", `{"username":"searcher"}`, false},
		{"gitea_repository_get", `{"owner":"issues","repo":"search"}`, true},
		{"gitea_repository_get", `{"owner":"issues","repo":"searching"}`, false},
		{"gitea_pull_get_by_base_head", `{"owner":"a","repo":"r","base":"1","head":"files"}`, true},
		{"gitea_pull_get_by_base_head", `{"owner":"a","repo":"r","base":"1","head":"reviews/2/comments"}`, true},
		{"gitea_pull_get_by_base_head", `{"owner":"a","repo":"r","base":"main","head":"feature/files"}`, false},
		{"gitea_contents_get", `{"owner":"a","repo":"r","filepath":"search"}`, false},
		{"gitea_repository_get_branch", `{"owner":"a","repo":"r","branch":"a/b/c"}`, false},
		{"gitea_organization_get_team", `{"id":"1"}`, false},
	} {
		reached = false
		_, err := h.Handle(context.Background(),
			&proxy.Call{Name: tc.tool, RawArgs: json.RawMessage(tc.args), Identity: &proxy.Identity{}})
		var e *proxy.Error
		if refused := errors.As(err, &e) && e.Kind == proxy.KindInvalidArguments; refused != tc.refused ||
			reached == tc.refused {
			t.Errorf("%s %s: %v", tc.tool, tc.args, err)
		}
	}
}

// TestDisablingClosesUnknownRoutes: undocumented aliases (zipball for archive)
// must not bring back what was switched off.
func TestDisablingClosesUnknownRoutes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		disable []string
		open    bool
	}{{nil, true}, {[]string{"gitea_contents_download_archive"}, false}} {
		sel, problems := builtin(t).Select(config.Tools{Raw: true, Disable: tc.disable})
		if len(problems) != 0 {
			t.Fatal(problems)
		}
		h := sel.Stage()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result,
			error) {
			return &proxy.Result{}, nil
		}))
		_, err := h.Handle(context.Background(), &proxy.Call{Name: "gitea_api_request", Identity: &proxy.Identity{},
			RawArgs: json.RawMessage(`{"method":"GET","path":"/repos/a/r/zipball/main"}`)})
		if (err == nil) != tc.open {
			t.Errorf("disable %v: %v", tc.disable, err)
		}
	}
}

// TestFloodsOfArguments: neither many values nor many unknown names cost more
// than the text is long.
func TestFloodsOfArguments(t *testing.T) {
	t.Parallel()
	sel, _ := builtin(t).Select(config.Tools{})
	h := sel.Stage()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		t.Error("let through")
		return &proxy.Result{}, nil
	}))
	for name, args := range map[string]string{
		"values": `{"owner":"a","repo":"r","labels":[` + strings.Repeat("0,", 300_000) + `0]}`,
		"names":  `{` + strings.Repeat(`"x":1,`, 150_000) + `"y":1}`,
	} {
		_, err := h.Handle(context.Background(),
			&proxy.Call{Name: "gitea_issue_create", RawArgs: json.RawMessage(args), Identity: &proxy.Identity{}})
		var e *proxy.Error
		if !errors.As(err, &e) || e.Kind != proxy.KindInvalidArguments || len(e.Public) > 4000 {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}

// TestDescriptionsNameOnlyEnabledTools: a model follows every hint it reads.
func TestDescriptionsNameOnlyEnabledTools(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`gitea_[a-z0-9_]+`)
	for _, cfg := range []config.Tools{
		{Toolsets: []string{"reader"}}, {Toolsets: []string{"contributor"}}, {Toolsets: []string{"reviewer"}}, {Toolsets: []string{"maintainer"}},
		{Toolsets: []string{"release"}}, {Toolsets: []string{"ci"}}, {Toolsets: []string{"admin"}}, {Toolsets: []string{"issue"}}, {ReadOnly: true},
		{Disable: []string{"gitea_repository_delete", "gitea_*_list_*"}},
	} {
		sel, _ := builtin(t).Select(cfg)
		enabled := map[string]bool{}
		for _, tool := range sel.Enabled() {
			enabled[tool.Name] = true
		}
		for _, tool := range sel.Enabled() {
			for _, other := range name.FindAllString(tool.Description, -1) {
				if !enabled[other] {
					t.Errorf("%+v: %s points to %s: %s", cfg, tool.Name, other, tool.Description)
				}
			}
			if len(tool.Description) < 15 || !strings.HasSuffix(tool.Description, ".") {
				t.Errorf("%+v: %s is left with %q", cfg, tool.Name, tool.Description)
			}
		}
	}
	sel, _ := builtin(t).Select(config.Tools{Enable: []string{"gitea_issue_check_pin_allowed"}})
	const want = "Tells whether one more issue (`issues`) and one more pull request (`pull_requests`) can be pinned in a repository."
	if got := sel.Enabled()[0].Description; got != want {
		t.Errorf("got %q", got)
	}
}
