package envelope_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"aegis/proxy"
	"aegis/proxy/envelope"
	"aegis/proxy/internal/jsonscan"
)

// plainAndTreated returns whether a document counts as plain, and how many hidden
// passages it has; false when it is no JSON.
func plainAndTreated(doc []byte) (plain bool, hidden int, ok bool) {
	c, err := jsonscan.Inspect(doc, 100)
	if err != nil {
		return false, 0, false
	}
	_, hidden = envelope.SanitizeJSON(doc, false)
	return c.Plain, hidden, true
}

// TestPlainHidesNothing: what the reader of answers calls plain holds nothing that
// would be removed, whatever character stands in it, as such or escaped.
func TestPlainHidesNothing(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if r >= 0x4000 && r < 0xd800 || r >= 0x20000 && r < 0xe0000 || r >= 0xf0000 {
			continue // letters and private use, all alike
		}
		forms := []string{string(r)}
		if r < 0x10000 {
			forms = append(forms, fmt.Sprintf(`\u%04x`, r), fmt.Sprintf(`\u%04X`, r))
		} else {
			high, low := 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff
			forms = append(forms, fmt.Sprintf(`\u%04x\u%04x`, high, low))
		}
		for _, form := range forms {
			plain, hidden, ok := plainAndTreated([]byte(`{"body":"a` + form + `b ` + form + `"}`))
			if ok && plain && hidden > 0 {
				t.Errorf("%q counts as plain", form)
			}
		}
	}
	for _, text := range []string{`\u003c!-- x --\u003e`, `\u003C!-- x -->`, `a\u003c!--`, `\u001b[31m`, `\u009b31m`, `\udb40\udc41`, `\u003c!\u002d-x--\u003e`, `\u003c\u0021-- x -->`} {
		if plain, hidden, ok := plainAndTreated([]byte(`{"body":"` + text + `"}`)); !ok || plain && hidden > 0 {
			t.Errorf("%s: plain %v, %d hidden, JSON %v", text, plain, hidden, ok)
		}
	}
}

func FuzzPlainHidesNothing(f *testing.F) {
	f.Add([]byte(`{"body":"a\u200bb\u003c!-- x -->"}`))
	f.Add([]byte(`["\u003c\u0021--","\\u200b",{"k\u202e":"\ud83d\ude00"}]`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		plain, hidden, ok := plainAndTreated(doc)
		if ok && plain && hidden > 0 && !strings.Contains(string(doc), "<!--") {
			t.Fatalf("%q counts as plain and hides %d", doc, hidden)
		}
	})
}

// TestPlainIsOfOneBody: the mark is for the bytes that were looked at. A body that a
// stage put in their place is treated.
func TestPlainIsOfOneBody(t *testing.T) {
	t.Parallel()
	clean, dirty := []byte(`{"body":"abcd"}`), []byte(`{"body":"a`+"\u200b\u200b"+`b"}`)
	comment := []byte(`{"body":"a <!-- x --> b"}`)
	for name, c := range map[string]struct {
		body, plain []byte
		want        string
	}{
		"its own":         {clean, clean, string(clean)},
		"another":         {dirty, clean, `{"body":"ab"}`},
		"of equal length": {dirty, make([]byte, len(dirty)), `{"body":"ab"}`},
		"none":            {dirty, nil, `{"body":"ab"}`},
		"a part":          {dirty[:len(dirty):len(dirty)], dirty[:5], `{"body":"ab"}`},
		"with a comment":  {comment, comment, `{"body":"a  b"}`},
	} {
		h := proxy.Chain(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
			return &proxy.Result{Kind: proxy.BodyJSON, Body: c.body, Plain: c.plain}, nil
		}), envelope.Sanitize("remove"))
		res, err := h.Handle(t.Context(), &proxy.Call{Tool: &proxy.Tool{ReadOnly: true}})
		if err != nil || string(res.Body) != c.want {
			t.Errorf("%s: %q %v, want %q", name, res.Body, err, c.want)
		}
	}
}
