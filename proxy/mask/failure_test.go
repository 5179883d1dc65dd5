package mask_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"aegis/proxy"
)

// TestSecretAtTheErrorCut puts secrets over the place where an error's text is
// cut, for us and before us.
func TestSecretAtTheErrorCut(t *testing.T) {
	t.Parallel()
	const extra = "extra-Secret-0123456789-of-some-length"
	long := "Long-Secret-" + random(newRand(3), 400, alnum) // masking leaves little of a text full of it
	e := newEngine(t, nil, extra, long)
	gh := github(1)
	const hint = " (and this is what to do)"
	for _, secret := range []string{extra, long, callerToken, gh} {
		for before := 500 - len(secret) - 5; before <= 505; before++ {
			words := strings.Repeat("é", before) + " " + secret + strings.Repeat(" tail", 100)
			_, _, err := serve(e, call(&proxy.Tool{}, nil), nil,
				&proxy.Error{Kind: proxy.KindConflict, Public: words + hint, Quoted: len(words)})
			pe := proxy.AsError(err)
			if strings.Contains(pe.Public, secret[:6]) || pe.Quoted != 0 || !strings.HasSuffix(pe.Public, "…"+hint) ||
				utf8.RuneCountInString(pe.Public) != 500+len(hint) {
				t.Fatalf("%d before: %d characters, %q", before, utf8.RuneCountInString(pe.Public), pe.Public)
			}
		}
		// Cut at 4000 before masking, in a text that masking makes short.
		for lost := 1; lost < len(secret)-4; lost++ {
			words := strings.Repeat(secret+" ", 3900/(len(secret)+1))
			words = words[:len(words)-1-lost]
			words = strings.Repeat("x", max(3999-len(words)-1, 0)) + " " + words + "…"
			_, _, err := serve(e, call(&proxy.Tool{}, nil), nil,
				&proxy.Error{Kind: proxy.KindConflict, Public: words + hint, Quoted: len(words)})
			if pe := proxy.AsError(err); strings.Contains(pe.Public, secret[:6]) ||
				!strings.HasSuffix(pe.Public, hint) {
				t.Fatalf("%d lost: %q", lost, pe.Public)
			}
		}
	}
	// Over the border between their words and ours.
	_, _, err := serve(e, call(&proxy.Tool{}, nil), nil,
		&proxy.Error{Kind: proxy.KindConflict, Public: "no " + extra + hint, Quoted: 10})
	if pe := proxy.AsError(err); pe.Public != "no [REDACTED]"+hint {
		t.Errorf("across the border: %q", pe.Public)
	}
}

func TestErrorsStage(t *testing.T) {
	t.Parallel()
	const known = "configured-secret"
	e := newEngine(t, nil, known)
	gh := github(1)
	run := func(c *proxy.Call, err error) error {
		h := proxy.Chain(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) { return nil, err }), e.Errors())
		_, err = h.Handle(context.Background(), c)
		return err
	}
	c := call(nil, nil)
	cause := fmt.Errorf("read %s %s: %w", gh, callerToken, io.EOF)
	words := strings.Repeat("w ", 600)
	err := run(c, &proxy.Error{Kind: proxy.KindInvalidArguments, Status: 400,
		Public: words + known + " unknown argument " + callerToken + " " + gh, Quoted: len(words), Err: cause})
	pe := proxy.AsError(err)
	if !strings.HasSuffix(pe.Public, "…[REDACTED] unknown argument [REDACTED] ghp_***") ||
		pe.Kind != proxy.KindInvalidArguments || pe.Status != 400 || pe.Quoted != 0 {
		t.Errorf("got %+v", pe)
	}
	if s := err.Error(); strings.Contains(s, gh) || strings.Contains(s, callerToken) || !errors.Is(err, io.EOF) {
		t.Errorf("the cause: %s", s)
	}
	hits := fmt.Sprint(c.Stats.MaskHits)
	again := run(c, err)
	if again.Error() != err.Error() || !errors.Is(again, io.EOF) || fmt.Sprint(c.Stats.MaskHits) != hits {
		t.Errorf("masking twice: %v, hits %v", again, c.Stats.MaskHits)
	}
	if err := run(&proxy.Call{}, errors.New("plain "+known)); proxy.AsError(err).Kind != proxy.KindInternal ||
		strings.Contains(err.Error(), known) {
		t.Errorf("an error of no kind, a call of nobody: %v", err)
	}
	h := proxy.Chain(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) { return jsonResult(known), nil }), e.Errors())
	if out, err := h.Handle(context.Background(), c); err != nil || string(out.Body) != known {
		t.Errorf("a result: %v, %v", out, err)
	}
}
