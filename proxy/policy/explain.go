package policy

import (
	"context"
	"encoding/json"
	"fmt"

	"aegis/config"
	"aegis/proxy"
)

// Verdict is the decision about a call, and what makes it. It holds nothing of the call's
// arguments, so it can be printed and kept.
type Verdict struct {
	// Allowed says that the call may go to Gitea.
	Allowed bool
	// Confirm says that an allowed call waits for a person, by policy.confirm.
	Confirm bool
	// Rule is what refuses it: a key of the policy block such as "repos.deny[1]",
	// or "tools" and "arguments" when the call never gets to the policy; "" when it
	// is allowed.
	Rule string
	// Text is what the caller is told; "" when it is allowed.
	Text string
}

// Explain decides about a call, whose Tool and Args are set, as [Policy.Stage] would. It
// counts nothing and sends nothing but lookups. It takes the same decision as the stage and
// not a copy of it, so what "aegis policy" says is what happens.
func (p *Policy) Explain(ctx context.Context, c *proxy.Call) Verdict {
	if p.empty {
		return Verdict{Allowed: true}
	}
	if d := p.decide(ctx, c); d != nil {
		return Verdict{Rule: d.rule, Text: proxy.AsError(d.err()).Public}
	}
	return Verdict{Allowed: true}
}

// Endpoint is a team as [Try] and [Suite.Run] need it.
type Endpoint struct {
	// Catalog is the stage of the team's selection of tools: it finds the tool and
	// checks the arguments.
	Catalog proxy.Stage
	// Operations are the tools of the team's set; see [Options].
	Operations []*proxy.Tool
	// Rules are the team's.
	Rules config.Policy
	// Confirms reports whether a person must confirm a call; nil: never.
	Confirms func(*proxy.Call) bool
}

// Request is a call to try.
type Request struct {
	// Login is on whose behalf; "" for no particular account.
	Login string
	// Tool is the name as a client spells it, Args its arguments.
	Tool string
	Args json.RawMessage
}

// Try says what an endpoint would decide about a request. Nothing is sent anywhere: look
// answers what the request does not say; nil answers nothing. The error is one of the rules
// themselves. Without lookups a call that needs one comes out as refused, as it would with
// a Gitea that does not answer.
func Try(ctx context.Context, e Endpoint, look Lookup, r Request) (Verdict, error) {
	p, err := New(e.Rules, Options{Operations: e.Operations, Lookup: look})
	if err != nil {
		return Verdict{}, err
	}
	return p.try(ctx, e, r), nil
}

func (p *Policy) try(ctx context.Context, e Endpoint, r Request) Verdict {
	c := &proxy.Call{
		RequestID: "offline", Name: r.Tool, RawArgs: r.Args,
		Identity: &proxy.Identity{Login: r.Login, Mode: proxy.ModeStatic},
	}
	var v Verdict
	reached := false
	decide := proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
		reached, v = true, p.Explain(ctx, c)
		v.Confirm = v.Allowed && e.Confirms != nil && e.Confirms(c)
		return &proxy.Result{}, nil
	})
	_, err := e.Catalog(decide).Handle(ctx, c)
	switch {
	case reached:
		return v
	case err == nil: // the tools of search mode answer for themselves
		return Verdict{Allowed: true}
	}
	rule := "arguments"
	if kind := proxy.AsError(err).Kind; kind == proxy.KindUnknownTool || kind == proxy.KindBasicAuthOnly {
		rule = "tools"
	}
	return Verdict{Rule: rule, Text: proxy.AsError(err).Public}
}

// String is the verdict in one line.
func (v Verdict) String() string {
	switch {
	case v.Confirm:
		return "allow once a person has confirmed it, by confirm.tools"
	case v.Allowed:
		return "allow"
	}
	return fmt.Sprintf("deny by %s: %s", v.Rule, v.Text)
}
