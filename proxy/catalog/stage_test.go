package catalog_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/catalog"
)

// run sends a call through the stage and returns it as the next stage saw it;
// nil when the stage did not pass it on.
func run(sel *catalog.Selection, name, args string, sudo bool) (*proxy.Call, *proxy.Result, error) {
	var seen *proxy.Call
	next := proxy.HandlerFunc(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
		seen = c
		return &proxy.Result{Status: 200}, nil
	})
	c := &proxy.Call{Name: name, Identity: &proxy.Identity{Login: "alice", AllowSudo: sudo}}
	if args != "" {
		c.RawArgs = json.RawMessage(args)
	}
	res, err := sel.Stage()(next).Handle(context.Background(), c)
	return seen, res, err
}

// everything selects all tools in full mode.
func everything(tb testing.TB) *catalog.Selection {
	tb.Helper()
	sel, problems := builtin(tb).Select(config.Tools{Raw: true})
	if len(problems) != 0 {
		tb.Fatal(problems)
	}
	return sel
}

// kindOf returns the kind and the public text of an error.
func kindOf(err error) (proxy.Kind, string) {
	var e *proxy.Error
	if !errors.As(err, &e) {
		return "", ""
	}
	return e.Kind, e.Public
}
