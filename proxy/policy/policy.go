package policy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"aegis/config"
	"aegis/proxy"
)

// Options are what a policy needs besides its rules. Everything that a policy asks of the
// world is in here, so that it can be tried without one.
type Options struct {
	// Operations are every tool that the team's set has, complete: those of the
	// bound set, not of a selection.
	Operations []*proxy.Tool
	// Lookup answers what a call does not say. Nil refuses calls that need it.
	Lookup Lookup
	// Hosts are the names, with ports, at which people and servers reach Gitea.
	// Links in texts to other hosts are not judged; empty: every link is.
	Hosts []string
	// Mounted says that Gitea is in a folder of one of its hosts.
	Mounted bool
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Counters are what was counted before; nil: nothing. Endpoint distinguishes the
	// policies that share them.
	Counters *Counters
	Endpoint string
}

// Policy are the rules of one team, ready to decide. It is safe for concurrent
// use.
type Policy struct {
	scope      *scope
	branches   branchRules
	paths      patterns
	budgets    config.Budgets
	credential *proxy.Credential            // nil: the identity's own
	ops        map[string]func() *operation // by operation id
	lookup     Lookup
	hosts      []string
	mounted    bool
	hour       *hour // nil: writes are not counted
	empty      bool
}

// New compiles a team's rules. The error names the key, relative to the policy
// block, that is wrong.
func New(cfg config.Policy, o Options) (*Policy, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &Policy{budgets: cfg.Budgets, ops: make(map[string]func() *operation, len(o.Operations))}
	var err error
	if p.scope, err = newScope(cfg); err != nil {
		return nil, err
	}
	if cfg.Bind.Repo != "" && cfg.Bind.Owner == "" {
		return nil, errors.New("bind.repo: needs bind.owner")
	}
	if p.branches, err = newBranchRules(cfg.Branches); err != nil {
		return nil, err
	}
	if p.paths, err = newPatterns("paths", cfg.Paths, false); err != nil {
		return nil, err
	}
	if token := cfg.WriteToken.Reveal(); token != "" {
		cred := proxy.NewCredential(proxy.ModeStatic, token)
		p.credential = &cred
	}
	if cfg.Budgets.WritesPerHour > 0 {
		p.hour = newHour(cfg.Budgets.WritesPerHour, o)
	}
	p.empty = !p.scope.restricts() && !p.branches.any() && !p.paths.any() &&
		cfg.Budgets == (config.Budgets{}) && p.credential == nil
	p.hosts, p.mounted = o.Hosts, o.Mounted
	if p.lookup = o.Lookup; p.lookup == nil {
		p.lookup = asker{}
	}
	if p.empty { // nothing will be judged, and reading the table takes a start milliseconds
		return p, nil
	}
	return p, p.learn(o.Operations)
}

// learn prepares the operations. What is known of one is put together at its first call:
// every team has all of them, and most are never called.
func (p *Policy) learn(tools []*proxy.Tool) error {
	table, err := loadSites()
	if err != nil {
		return err
	}
	for _, t := range tools {
		if t.OperationID == "" {
			continue
		}
		// Two tools of one operation would be judged by the table of one of them.
		if p.ops[t.OperationID] != nil {
			return fmt.Errorf("two operations are called %s", t.OperationID)
		}
		p.ops[t.OperationID] = sync.OnceValue(func() *operation { return newOperation(t, table[t.OperationID]) })
	}
	return nil
}

// Empty reports whether there is no rule: both stages are nil then.
func (p *Policy) Empty() bool { return p.empty }

// Stage returns the stage that decides about a call before Gitea is asked. It belongs
// behind the catalog's and the limiter's. A refusal is an error of kind policy_denied. With
// write_token, writes go on with that credential. It is nil when there is no rule. Behind
// the limiter, as a refusal may cost a lookup: a client that tries at random is slowed down
// first.
func (p *Policy) Stage() proxy.Stage {
	if p.empty {
		return nil
	}
	return func(next proxy.Handler) proxy.Handler {
		return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
			if d := p.decide(ctx, c); d != nil {
				c.Stats.Policy = d.rule
				return nil, d.err()
			}
			if reads(c) {
				return next.Handle(ctx, c)
			}
			return p.write(ctx, c, next)
		})
	}
}

// reads reports whether a call runs with the identity's own credential. So does a
// GET that belongs to no known operation: whatever it does, its
// answer is for the identity, who may not see all that the team's token can.
func reads(c *proxy.Call) bool { return c.Tool.ReadOnly || c.Wire.Method == http.MethodGet }

// write lets a write pass: counted, and with the team's credential. One that never
// gets to Gitea, because a person is asked first, is not counted.
func (p *Policy) write(ctx context.Context, c *proxy.Call, next proxy.Handler) (*proxy.Result, error) {
	// The audit, the limits and the log know the caller as before: the credential is
	// exchanged for the way down alone.
	own := c.Identity
	if p.hour != nil {
		who := own.Login
		if own.UserID != 0 { // which another login does not change
			who = "#" + strconv.FormatInt(own.UserID, 10)
		}
		key := string(own.Mode) + "\x00" + own.TokenName + "\x00" + who
		wait, ok := p.hour.take(key)
		if !ok {
			d := deny("budgets.writes_per_hour", fmt.Sprintf(
				"the policy allows this identity %d writes an hour; wait and try again", p.budgets.WritesPerHour))
			d.wait = wait
			c.Stats.Policy = d.rule
			return nil, d.err()
		}
		// Counted before it is sent, so that calls at the same time cannot exceed the
		// count together, and given back if nothing was.
		sent := c.Stats.Attempts
		defer func() {
			if c.Stats.Attempts == sent {
				p.hour.giveBack(key)
			}
		}()
	}
	if p.credential == nil {
		return next.Handle(ctx, c)
	}
	// AllowSudo goes: the rights of the endpoint's token are not the caller's to lend.
	as := *own
	as.Credential, as.AllowSudo = *p.credential, false
	c.Identity, c.Stats.WriteToken = &as, true
	defer func() { c.Identity = own }()
	res, err := next.Handle(ctx, c)
	if err != nil {
		return nil, writeTokenError(err)
	}
	out := *res
	out.Warnings = append(slices.Clip(out.Warnings),
		"this write ran with the endpoint's own write_token: Gitea shows that token's user as its author")
	return &out, nil
}

// writeTokenError keeps a write_token that Gitea refuses from looking like the end of
// the caller's own sign-in.
func writeTokenError(err error) error {
	if e := proxy.AsError(err); e.Kind == proxy.KindUnauthorized {
		return &proxy.Error{Kind: proxy.KindForbidden, Status: e.Status, Err: err,
			Public: "Gitea does not accept the write_token of this endpoint; " +
				"whoever runs this server must replace it (policy.write_token)"}
	}
	return err
}

// denial is a refusal. The text names the rule and what to do, never a value. It is no
// error yet, so that a check can hand on the rule to another text.
type denial struct {
	rule string
	text string
	wait time.Duration
	as   *proxy.Error // in place of policy_denied
}

// err is the refusal as callers get it.
func (d *denial) err() error {
	if d.as != nil {
		return d.as
	}
	e := proxy.NewError(proxy.KindPolicyDenied, d.text+" (rule policy."+d.rule+"). Nothing was sent to Gitea.", nil)
	e.RetryAfter = d.wait
	return e
}

// deny is the refusal of a rule.
func deny(rule, text string) *denial { return &denial{rule: rule, text: text} }
