package confirm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/kv"
)

// Facts returns how much a repository holds, for the question; its answer goes into
// the message, such as "214 open issues and pull requests". An error leaves it out.
type Facts interface {
	RepoFacts(ctx context.Context, cred proxy.Credential, owner, repo string) (string, error)
}

// Options are what confirmation needs besides its rules.
type Options struct {
	// Store keeps what was used, and codes that wait. Required.
	Store kv.Store
	// Key authenticates questions, at least 32 bytes; all replicas need the same.
	Key []byte
	// AccountURL is the page where people read their codes; "" when there is none.
	AccountURL string
	// Facts may be nil.
	Facts Facts
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Confirm holds the calls of one endpoint to its rules.
type Confirm struct {
	rules config.Confirm
	o     Options
	risks map[proxy.Risk]bool
	globs []string
}

// New returns the Confirm of an endpoint, nil when its rules ask for nothing.
func New(rules config.Confirm, o Options) (*Confirm, error) {
	if len(rules.Tools) == 0 {
		return nil, nil
	}
	if o.Store == nil || len(o.Key) < 32 {
		return nil, errors.New("confirm: needs a store and a key of 32 bytes")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Confirm{rules: rules, o: o, risks: map[proxy.Risk]bool{}}
	for _, t := range rules.Tools {
		if r, ok := proxy.ParseRisk(t); ok {
			c.risks[r] = true
			continue
		}
		if strings.HasPrefix(t, "gitea.") {
			t = strings.ReplaceAll(t, ".", "_")
		}
		if _, err := path.Match(t, ""); err != nil {
			return nil, fmt.Errorf("confirm: %q is no glob", t)
		}
		c.globs = append(c.globs, t)
	}
	return c, nil
}

// Asks reports whether the call needs a person: by its risk, by the name of its tool
// or by that of the operation which it reaches, whatever tool was called. A nil
// Confirm never asks. A route that the catalog lacks may be any of those that the
// rules are about.
func (c *Confirm) Asks(call *proxy.Call) bool {
	switch {
	case c == nil || call.Tool == nil:
		return false
	case c.risks[call.Tool.Risk]:
		return true
	case call.Op == nil || call.Op.OperationID == "":
		return call.Wire.Method != http.MethodGet || c.named(call.Tool.Name)
	}
	return c.named(call.Tool.Name) || c.named(call.Op.Name)
}

// named reports whether a rule is about the tool of this name. A glob, so that a rule also
// covers tools that a later catalog adds to a family.
func (c *Confirm) named(name string) bool {
	return name != "" && slices.ContainsFunc(c.globs, func(g string) bool {
		ok, _ := path.Match(g, name) // checked in New
		return ok
	})
}

// TakesCode reports whether codes are accepted, so that the argument for them exists:
// see [proxy.Call].
func (c *Confirm) TakesCode() bool { return c != nil && c.rules.Fallback == "token" }

// Stage returns the stage that lets calls through once a person has permitted
// them. It belongs below the stages that refuse a call for other reasons.
func (c *Confirm) Stage() proxy.Stage {
	if c == nil {
		return nil
	}
	return func(next proxy.Handler) proxy.Handler {
		return proxy.HandlerFunc(func(ctx context.Context, call *proxy.Call) (*proxy.Result, error) {
			if c.Asks(call) {
				if err := c.permitted(ctx, call); err != nil {
					return nil, err
				}
			}
			return next.Handle(ctx, call)
		})
	}
}

// permitted returns nil when a person has permitted this very call.
func (c *Confirm) permitted(ctx context.Context, call *proxy.Call) error {
	digest := digestOf(call)
	switch {
	case call.Answer != nil:
		return c.answered(ctx, call, digest)
	case call.Options.Code != "":
		return c.redeem(ctx, call, digest)
	case call.CanAsk:
		return c.ask(ctx, call, digest)
	case c.rules.Fallback == "token":
		return c.wait(ctx, call, digest)
	}
	return proxy.NewError(proxy.KindPolicyDenied, "a person must confirm calls of "+call.Tool.Name+
		", and this client cannot ask its user; nothing was sent. "+
		"Ask your user to do it in Gitea, or in a client that supports MCP elicitation", nil)
}

// ask returns the question. The client carries the state, so any replica can take the
// answer and a question that is never answered costs nothing.
func (c *Confirm) ask(ctx context.Context, call *proxy.Call, digest []byte) error {
	s := c.subject(ctx, call)
	return &proxy.Error{
		Kind: proxy.KindConfirm, Public: "waiting for the user to confirm: " + s.text,
		Question: &proxy.Question{State: c.newState(digest, s.retype), Message: s.question(), Retype: s.retype},
	}
}

// answered judges the answer to a question.
func (c *Confirm) answered(ctx context.Context, call *proxy.Call, digest []byte) error {
	st, err := c.openState(call.Answer.State)
	switch {
	case err != nil:
		return refused("the confirmation is not one of this server's", err)
	case c.o.Now().After(st.expires):
		return refused("the confirmation came too late", nil)
	case !st.boundTo(digest):
		return refused("the confirmation is for another call", nil)
	case !call.Answer.Accepted:
		return proxy.NewError(proxy.KindPolicyDenied,
			"the user declined this call; nothing was sent. Do not try again unless the user asks for it", nil)
	// Last, so that a slip of the keyboard is told only to the person who was asked.
	case st.retype != "" && !sameName(call.Answer.Typed, st.retype):
		return refused("what the user typed is not the name of what the call is about", nil)
	}
	// The first to write this wins; a second use of the same answer is refused.
	// The mark outlives the answer, whatever the TTL has become since it was asked.
	left := max(st.expires.Sub(c.o.Now()), 0)
	_, err = c.o.Store.CompareAndSwap(ctx, "confirm-used/"+st.id, 0, []byte{1}, left+time.Minute)
	if errors.Is(err, kv.ErrConflict) {
		return refused("the confirmation was used already", nil)
	}
	if err != nil {
		return unavailable(err)
	}
	return nil
}

// refused is the error of an answer that permits nothing.
func refused(what string, cause error) error {
	return proxy.NewError(proxy.KindPolicyDenied,
		what+", so nothing was sent; call again without it to be asked anew", cause)
}

// unavailable is the error when the store fails. The call is refused, as it is not known
// whether a person has permitted it.
func unavailable(err error) error {
	return proxy.NewError(proxy.KindInternal, "the confirmation could not be checked, so nothing was sent; "+
		"the request id names the reason in the server's log", err)
}

// sameName compares names as Gitea does, without case, and forgives spaces around.
func sameName(a, b string) bool {
	return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b))
}
