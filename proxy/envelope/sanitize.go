package envelope

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
)

// Modes of results.sanitize.
const (
	modeOff  = "off"
	modeMark = "mark"
)

// Sanitize returns the stage that treats results as mode says: "remove", "mark" or
// "off" (nil). A write answers with what it changed, an issue with its text, and
// that is as little to be trusted as what a read returns; only results that hand out
// a credential stay as they are. It belongs below masking, as a secret with a
// zero-width character inside is whole again without it.
func Sanitize(mode string) proxy.Stage {
	if mode == modeOff {
		return nil
	}
	show := mode == modeMark
	return func(next proxy.Handler) proxy.Handler {
		return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
			res, err := next.Handle(ctx, c)
			if err != nil || c.Tool == nil || c.Tool.CredentialIssuing {
				return res, err
			}
			return treat(res, show), nil
		})
	}
}

// treat returns res, or a copy of it with a warning when anything was hidden. Bytes that are
// no text are left alone: a model gets them in base64.
func treat(res *proxy.Result, show bool) *proxy.Result {
	var body []byte
	n := 0
	switch res.Kind {
	case proxy.BodyJSON:
		if res.HidesNothing() && !bytes.Contains(res.Body, []byte("<!--")) {
			return res
		}
		body, n = SanitizeJSON(res.Body, show)
	case proxy.BodyText:
		body, n = SanitizeText(res.Body, show)
	}
	if n == 0 {
		return res
	}
	out := *res
	out.Body = body
	what := "removed from"
	if show {
		what = "made visible in"
	}
	// The list may be shared; clipped, an append to it copies.
	out.Warnings = append(slices.Clip(out.Warnings),
		fmt.Sprintf("passages that people do not see were %s the text, %d in all (hidden characters, comments "+
			"or terminal escapes); what is left may differ from what Gitea stores", what, n))
	return &out
}

// SanitizeText treats plain text: a file, a diff, a log. A byte order mark at its start
// stays. HTML comments stay, since here they are what a person reads. The number
// is that of hidden passages; text without any is returned as it is.
func SanitizeText(text []byte, show bool) ([]byte, int) {
	rest := bytes.TrimPrefix(text, []byte("\uFEFF"))
	if !suspicious(rest) && bytes.IndexByte(rest, 0x1b) < 0 {
		return text, 0
	}
	out, n := clean(string(rest), show, false)
	if n == 0 {
		return text, 0
	}
	return append(text[:len(text)-len(rest):len(text)-len(rest)], out...), n
}

// SanitizeJSON treats the string values of a valid JSON text. Keys, numbers and all
// between them stay byte for byte, and so do strings that hide nothing.
//
// Most answers hide nothing. Three searches of the whole text find that out, for bytes
// above ASCII, for comments and for escapes, before any string is looked at by itself.
func SanitizeJSON(data []byte, show bool) ([]byte, int) {
	if !suspicious(data) && !bytes.Contains(data, []byte("<!--")) && !hidingEscape(data) {
		return data, 0
	}
	var out []byte
	var key []byte
	done, found := 0, 0
	for at, name := range jsonscan.Strings(data) {
		span := data[at.From:at.To]
		if name {
			key = span
			continue
		}
		if !suspicious(span) && !hidingEscape(span) && !bytes.Contains(span, []byte("<!--")) {
			continue
		}
		quoted := data[at.From-1 : min(at.To+1, len(data))]
		text, n := clean(jsonscan.Unquote(quoted), show, markdownKey(key))
		if n == 0 {
			continue
		}
		found += n
		out = jsonscan.AppendEscaped(append(out, data[done:at.From]...), text)
		done = at.To
	}
	if found == 0 {
		return data, 0
	}
	return append(out, data[done:]...), found
}

// markdownKey reports whether Gitea shows the text of a member as Markdown. Elsewhere an HTML
// comment is text that people see, such as in a title.
func markdownKey(key []byte) bool {
	switch string(key) {
	case "body", "description", "note", "notes", "content", "message", "review_body", "commit_message":
		return true
	}
	return false
}

// leads are the first bytes of the hidden characters that [classOf] knows, in UTF-8. Looking
// for each of them in the whole text is faster than decoding it, as bytes.Index takes many
// bytes at a time; what is found is then decoded. A test holds the two equal.
var leads = [][]byte{
	// U+2000 to U+207F: joiners, marks, embeddings, isolates, zero-width space.
	{0xe2, 0x80}, {0xe2, 0x81},
	// U+E0000 to U+E0FFF: tags, and the variation selectors behind them.
	{0xf3, 0xa0},
	// U+FE00 to U+FE3F: variation selectors; the byte order mark; U+FFC0 to U+FFFF; U+FFA0.
	{0xef, 0xb8}, {0xef, 0xbb, 0xbf}, {0xef, 0xbf}, {0xef, 0xbe, 0xa0},
	// Mongolian and Khmer, which have selectors and vowels that show nothing.
	{0xe1, 0xa0}, {0xe1, 0x9e},
	// Controls of shorthand and of musical notation.
	{0xf0, 0x9b, 0xb2}, {0xf0, 0x9d, 0x85},
	// Arabic letter mark; combining grapheme joiner; the fillers of Hangul.
	{0xd8, 0x9c}, {0xcd, 0x8f}, {0xe1, 0x85}, {0xe3, 0x85, 0xa4},
	// The one-character form of ESC [.
	{0xc2, 0x9b},
}

// suspicious reports whether the text may hold a hidden character, not escaped.
func suspicious(b []byte) bool {
	if ascii(b) {
		return false
	}
	for _, lead := range leads {
		for rest := b; ; {
			at := bytes.Index(rest, lead)
			if at < 0 {
				break
			}
			rest = rest[at:]
			if hidden(rest) {
				return true
			}
			rest = rest[len(lead):]
		}
	}
	return false
}

// hidden reports whether b begins with a hidden character.
func hidden(b []byte) bool {
	r, _ := utf8.DecodeRune(b)
	return r == 0x9b || classOf(r) != visible
}

// hidingEscape reports whether a JSON text has an escape that may be, or
// begin, something hidden. Gitea escapes < as \u003c. An escaped backslash before a u
// looks like one too; then the string is decoded, and nothing is found in it.
func hidingEscape(b []byte) bool {
	for {
		at := bytes.Index(b, []byte(`\u`))
		if at < 0 || at+6 > len(b) {
			return false
		}
		code, _ := jsonscan.Hex4(b[at+2:])
		b = b[at+6:]
		switch {
		case code == '<':
			if bytes.HasPrefix(b, []byte("!--")) {
				return true
			}
		case code >= 0xdb40 && code <= 0xdb43, code == 0xd82f, code == 0xd834:
			return true // the first half of a pair: tags, selectors, controls of notation
		case code == 0x1b, code == 0x9b, classOf(code) != visible:
			return true
		}
	}
}
