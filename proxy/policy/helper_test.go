package policy_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/catalog"
	"aegis/proxy/policy"
	"aegis/spec"
)

// builtin returns the pinned catalog's set.
func builtin(t testing.TB) *catalog.Set {
	t.Helper()
	set, err := loadBuiltin()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// loadBuiltin loads the catalog once: no test changes it.
var loadBuiltin = sync.OnceValues(func() (*catalog.Set, error) {
	cat, err := spec.Builtin()
	if err != nil {
		return nil, err
	}
	return catalog.Load(cat)
})

// rules reads a policy block as a configuration would hold it.
func rules(t testing.TB, edit func(*config.Policy)) config.Policy {
	t.Helper()
	var cfg config.Policy
	edit(&cfg)
	return cfg
}

func repos(allow, deny []string) func(*config.Policy) {
	return func(p *config.Policy) { p.Repos = config.Patterns{Allow: allow, Deny: deny} }
}

// compile makes a policy over every operation of the built-in set.
func compile(t testing.TB, cfg config.Policy, look policy.Lookup) *policy.Policy {
	t.Helper()
	p, err := policy.New(cfg, policy.Options{Operations: builtin(t).Tools(), Lookup: look})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// byID returns the built-in tools by operation.
func byID(t testing.TB) map[string]*proxy.Tool {
	t.Helper()
	out := map[string]*proxy.Tool{}
	for _, tool := range builtin(t).Tools() {
		out[tool.OperationID] = tool
	}
	return out
}

// trial is an endpoint with a policy, for calls by operation and arguments.
type trial struct {
	testing.TB
	tools map[string]*proxy.Tool
	set   *catalog.Set
	ready *policy.Policy
	stage proxy.Stage
}

func newTrial(t testing.TB, cfg config.Policy, look policy.Lookup) *trial {
	t.Helper()
	set := builtin(t)
	tr := &trial{TB: t, tools: map[string]*proxy.Tool{}, set: set}
	for _, tool := range set.Tools() {
		tr.tools[tool.OperationID] = tool
	}
	sel, problems := set.Select(config.Default().Tools)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	tr.stage = sel.Stage()
	p, err := policy.New(cfg, policy.Options{Operations: set.Tools(), Lookup: look})
	if err != nil {
		t.Fatal(err)
	}
	tr.ready = p
	return tr
}

// try decides about an operation of the catalog, "raw" for the raw tool.
func (tr *trial) try(op string, args map[string]any) policy.Verdict {
	tr.Helper()
	name := "gitea_api_request"
	if op != "raw" {
		tool := tr.tools[op]
		if tool == nil {
			tr.Fatalf("the catalog has no %s", op)
		}
		name = tool.Name
	}
	text, err := json.Marshal(args)
	if err != nil {
		tr.Fatal(err)
	}
	var v policy.Verdict
	reached := false
	h := tr.stage(proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
		reached, v = true, tr.ready.Explain(ctx, c)
		return &proxy.Result{}, nil
	}))
	_, err = h.Handle(tr.Context(), &proxy.Call{Name: name, RawArgs: text,
		Identity: &proxy.Identity{Login: "alice", Mode: proxy.ModeStatic}})
	switch {
	case reached:
		return v
	case proxy.AsError(err).Kind == proxy.KindUnknownTool:
		return policy.Verdict{Rule: "tools", Text: proxy.AsError(err).Public}
	}
	return policy.Verdict{Rule: "arguments", Text: proxy.AsError(err).Public}
}

// resolved returns a call of an operation's own tool as the catalog hands it on.
func resolved(c *proxy.Call) *proxy.Call {
	c.Resolve(c.Tool)
	return c
}

type args = map[string]any

var errUnknown = errors.New("not known here")
