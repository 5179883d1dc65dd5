package mask

import (
	"context"
	"errors"
	"unicode/utf8"

	"aegis/proxy"
)

// Errors returns the stage that masks the errors that arise above [Engine.Stage]
// or between: a name that a client made up, an argument that does not fit. It
// belongs outermost. Errors that are masked already pass as they are.
func (e *Engine) Errors() proxy.Stage {
	return func(next proxy.Handler) proxy.Handler {
		return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
			res, err := next.Handle(ctx, c)
			if err != nil {
				return nil, e.failure(ctx, c, e.ForCall(c), err)
			}
			return res, nil
		})
	}
}

// failure masks the texts of an error and then cuts the upstream's words in it
// to their length, so that no half of a secret is left at the cut. The cause
// stays reachable for [errors.Is], but no longer speaks for itself.
func (e *Engine) failure(ctx context.Context, c *proxy.Call, r *Redactor, err error) error {
	// The call's own time may be up; its error must be masked all the same.
	p := resultPass{e: e, ctx: context.WithoutCancel(ctx), r: r}
	// A copy: the stage that made the error may keep it.
	in := *proxy.AsError(err)
	p.public(&in)
	if in.Err != nil {
		if text := in.Err.Error(); text != "" {
			cause := in.Err
			if m, ok := cause.(*maskedError); ok { // of the inner stage; one is enough for errors.Is
				cause = m.err
			}
			in.Err = &maskedError{text: p.text(text), err: cause}
		}
	}
	c.Stats.MaskHits = Hits(c.Stats.MaskHits).Add(p.hits)
	if p.err == nil {
		return &in
	}
	return withheld(p.err, "the call failed, and its error message is withheld because the rule ",
		" found a secret in it", "the call failed, and its error message could not be checked for secrets")
}

// public masks the public text of an error: the upstream's words and ours apart,
// so that it is known where the former end, and then both together, in case
// that a secret spans the two.
func (p *resultPass) public(e *proxy.Error) {
	quoted := min(max(e.Quoted, 0), len(e.Public))
	words := whole(e.Public[:quoted], p.text(e.Public[:quoted]), p.r)
	joined := words + p.text(e.Public[quoted:])
	e.Public, e.Quoted = p.text(joined), len(words)
	// A secret spanned both, so where the words end is no longer known: all is taken for theirs.
	if e.Public != joined {
		e.Quoted = len(e.Public)
	}
	e.Shorten()
}

// mostWords is how many characters of the upstream's words may come: who sent
// more has been cut short, perhaps within a secret.
const mostWords = 4000

// whole returns the masked form of words, of words that were cut short without
// the end: that may be half of a secret, which nothing recognises, and masking
// may leave so little of the rest that it would be shown.
func whole(words, masked string, r *Redactor) string {
	if utf8.RuneCountInString(words) < mostWords {
		return masked
	}
	// A secret in base64 is a third longer.
	end := max(len(masked)-max(r.longest*3/2, 256), 0)
	for end > 0 && !utf8.RuneStart(masked[end]) {
		end--
	}
	return masked[:end] + "…"
}

// maskedError stands for an error whose text may hold a secret.
type maskedError struct {
	text string
	err  error
}

// Error returns the masked text.
func (e *maskedError) Error() string { return e.text }

// Is looks through to the cause.
func (e *maskedError) Is(target error) bool { return errors.Is(e.err, target) }
