package mask

import (
	"context"
	"errors"

	"aegis/proxy"
)

// Stage returns the stage that masks everything that comes back from next:
// results and errors, the exact layer first. The successful results of tools
// that issue credentials pass the exact layer only, as handing the credential
// to the caller is what they are for. When the configuration masks input, the
// arguments of writing tools are masked on the way down.
//
// Whatever goes wrong in masking withholds the result.
func (e *Engine) Stage() proxy.Stage {
	return func(next proxy.Handler) proxy.Handler {
		return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
			// Before the arguments are masked: secrets that are submitted come back in answers.
			r := e.ForCall(c)
			addNeeds(c)
			if err := e.input(ctx, c); err != nil {
				return nil, err
			}
			res, err := next.Handle(ctx, c)
			if err != nil {
				return nil, e.failure(ctx, c, r, err)
			}
			return e.result(ctx, c, r, res)
		})
	}
}

// ForCall returns the redactor of c: the caller's token and the secrets among
// the arguments besides the configured ones.
func (e *Engine) ForCall(c *proxy.Call) *Redactor {
	long, any := submitted(c)
	return e.call(append(long, callerToken(c)), any)
}

// callerToken returns the caller's token, "" without one, which no redactor looks for.
func callerToken(c *proxy.Call) string {
	if c.Identity == nil {
		return ""
	}
	return c.Identity.Credential.Secret()
}

// input masks the arguments with the caller's token alone as a known secret of the
// call: what the call submits as a secret is meant to be sent.
func (e *Engine) input(ctx context.Context, c *proxy.Call) error {
	if e.mode[forInput] == actOff || c.Tool == nil || c.Tool.ReadOnly {
		return nil
	}
	p := inputPass{e: e, ctx: ctx, r: e.Call(callerToken(c)), writesSecret: writesSecret(c)}
	err := p.arguments(c)
	c.Stats.MaskHits = Hits(c.Stats.MaskHits).Add(p.hits)
	if err == nil {
		return nil
	}
	// The name of the argument goes into the public text only, where it is masked: names of
	// properties are the caller's.
	return withheld(err, "the argument "+e.public(p.where)+" holds what the rule ",
		" takes for a secret, so nothing was sent; remove it and call again",
		"the arguments could not be checked for secrets, so nothing was sent")
}

// public makes the path of an argument fit to be shown: property names come
// from the caller.
func (e *Engine) public(path string) string {
	if len(path) > 100 {
		path = path[:100] + "…"
	}
	out, _ := e.Bytes([]byte(path))
	return string(out)
}

// withheld is the error of a text that a rule blocks, whose name goes between before and
// after, or that could not be masked, which is what public says.
func withheld(err error, before, after, public string) error {
	var blocked *BlockedError
	switch {
	case errors.As(err, &blocked):
		return proxy.NewError(proxy.KindSecretBlocked, before+blocked.Rule+after, err)
	case errors.Is(err, context.DeadlineExceeded):
		return proxy.NewError(proxy.KindTimeout,
			"the call's time was up while the result was checked for secrets; ask for less at once", err)
	case errors.Is(err, context.Canceled):
		return proxy.NewError(proxy.KindCancelled, "the call was cancelled", err)
	}
	return proxy.NewError(proxy.KindInternal, public, err)
}

// result masks a copy of res.
func (e *Engine) result(ctx context.Context, c *proxy.Call, r *Redactor, res *proxy.Result) (*proxy.Result, error) {
	out := *res
	p := resultPass{e: e, ctx: ctx, r: r, o: Options{ExactOnly: c.Tool != nil && c.Tool.CredentialIssuing}}
	if res.Reply != nil { // a wiring mistake must not let anything pass unseen
		p.err = errors.New("it was rendered before it was masked")
	}
	out.Body = p.body(res)
	out.Text = p.run(res.Text, true)
	out.TextBlock = p.run(res.TextBlock, false)
	out.Structured = p.run(res.Structured, true)
	// Parts that seem harmless are masked, too: each is text that Gitea or the caller wrote.
	out.Method, out.Path = p.text(res.Method), p.text(res.Path)
	out.ContentType, out.Source = p.text(res.ContentType), p.text(res.Source)
	out.Warnings = p.texts(res.Warnings)
	if t := res.Truncation; t != nil {
		cut := *t
		cut.At, cut.Omitted, cut.UnknownFields = p.text(t.At), p.texts(t.Omitted), p.texts(t.UnknownFields)
		out.Truncation = &cut
	}
	c.Stats.MaskHits = Hits(c.Stats.MaskHits).Add(p.hits)
	if p.err == nil {
		return &out, nil
	}
	return nil, withheld(p.err, "the answer holds what the rule ", " takes for a secret and is withheld as a whole;"+
		" ask for something narrower, or ask the operator about the rule",
		"the result could not be checked for secrets and is withheld")
}

// resultPass masks the parts of a result and keeps the first error.
type resultPass struct {
	e    *Engine
	ctx  context.Context
	r    *Redactor
	o    Options
	hits Hits
	err  error
}

// body masks the body. In a binary one that is not mostly text only known
// secrets are looked for.
func (p *resultPass) body(res *proxy.Result) []byte {
	q := p
	if res.Kind == proxy.BodyBinary && !mostlyText(res.Body) {
		// Shapes in random bytes mean nothing, and replacing them would break an image.
		q = &resultPass{e: p.e, ctx: p.ctx, r: p.r, o: Options{ExactOnly: true}, hits: p.hits, err: p.err}
	}
	out := q.run(res.Body, res.Kind == proxy.BodyJSON)
	p.hits, p.err = q.hits, q.err
	return out
}

func (p *resultPass) text(s string) string { return string(p.run([]byte(s), false)) }

func (p *resultPass) texts(l []string) []string {
	var out []string
	for _, s := range l {
		out = append(out, p.text(s))
	}
	return out
}

// run does nothing after an error: the result is withheld anyway.
func (p *resultPass) run(b []byte, json bool) []byte {
	if len(b) == 0 || p.err != nil {
		return b
	}
	o := p.o
	o.json = json
	out, hits, err := p.e.mask(p.ctx, nil, b, p.r, o)
	p.hits, p.err = p.hits.Add(hits), err
	return out
}
