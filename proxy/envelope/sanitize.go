package envelope

import (
	"bytes"
	"context"
	"fmt"

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
// that is as much anybody's word as what a read returns; only results that hand out
// a credential stay as they are. It must stand below masking, as a secret with a
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

// treat returns res, or a copy of it with a warning when anything was hidden.
func treat(res *proxy.Result, show bool) *proxy.Result {
	var body []byte
	n := 0
	switch res.Kind {
	case proxy.BodyJSON:
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
	out.Warnings = append(out.Warnings[:len(out.Warnings):len(out.Warnings)],
		fmt.Sprintf("passages that people do not see were %s the text, %d in all (hidden characters, comments or terminal escapes); what is left may differ from what Gitea stores", what, n))
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

// SanitizeJSON treats the string values of a valid JSON text. Keys, numbers and all that
// stands between stay byte for byte, and so do strings that hide nothing.
func SanitizeJSON(data []byte, show bool) ([]byte, int) {
	if !suspicious(data) && !bytes.Contains(data, []byte("<!--")) && !hidingEscape(data) {
		return data, 0
	}
	var out []byte
	var key []byte
	done, found := 0, 0
	for i := 0; i < len(data); {
		at := bytes.IndexByte(data[i:], '"')
		if at < 0 {
			break
		}
		start := i + at
		end := stringEnd(data, start)
		i = end
		if isKey(data, end) {
			key = data[start+1 : end-1]
			continue
		}
		span := data[start:end]
		if !suspicious(span) && !hidingEscape(span) && !bytes.Contains(span, []byte("<!--")) {
			continue
		}
		text, n := clean(jsonscan.Unquote(span), show, markdownKey(key))
		if n == 0 {
			continue
		}
		found += n
		out = append(out, data[done:start]...)
		out = append(out, '"')
		out = jsonscan.AppendEscaped(out, text)
		out = append(out, '"')
		done = end
	}
	if found == 0 {
		return data, 0
	}
	return append(out, data[done:]...), found
}

// stringEnd returns where the string that begins at i ends.
func stringEnd(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// isKey reports whether a colon follows.
func isKey(data []byte, i int) bool {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i < len(data) && data[i] == ':'
}

// markdownKey reports whether Gitea shows the text of a member as Markdown.
func markdownKey(key []byte) bool {
	switch string(key) {
	case "body", "description", "note", "notes", "content", "message", "review_body", "commit_message":
		return true
	}
	return false
}

// suspicious reports whether the text may hold a hidden character, not escaped.
func suspicious(b []byte) bool {
	if ascii(b) {
		return false
	}
	for _, lead := range [][]byte{{0xe2, 0x80}, {0xe2, 0x81}, {0xf3, 0xa0}, {0xef, 0xb8}, {0xef, 0xbb, 0xbf}, {0xef, 0xbf}, {0xef, 0xbe, 0xa0}, {0xe1, 0xa0}, {0xe1, 0x9e}, {0xf0, 0x9b, 0xb2}, {0xf0, 0x9d, 0x85}, {0xd8, 0x9c}, {0xcd, 0x8f}, {0xe1, 0x85}, {0xe3, 0x85, 0xa4}, {0xc2, 0x9b}} {
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
	r, _ := decode(b)
	return r == 0x9b || classOf(r) != visible
}

// hidingEscape reports whether a JSON text has an escape that may stand for, or
// begin, something hidden. Gitea escapes < as \u003c.
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
		case code == 0x1b || code == 0x9b || code >= 0xdb40 && code <= 0xdb43 || code == 0xd82f || code == 0xd834 || classOf(code) != visible:
			return true
		}
	}
}
