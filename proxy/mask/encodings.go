package mask

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
)

// stdDigits are the digits of base64 (RFC 4648, section 4) by value.
const stdDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// unbase64 gives the value of a digit in either alphabet of RFC 4648, -1 for
// other bytes.
var unbase64 = func() *[256]int8 {
	t := new([256]int8)
	for i := range t {
		t[i] = -1
	}
	for i := range len(stdDigits) {
		t[stdDigits[i]] = int8(i)
	}
	// Both alphabets: the digits beside a needle are compared by value, and may be of either.
	t['-'], t['_'] = 62, 63
	return t
}()

// encodings returns the forms in which a secret is looked for: as it is, with
// JSON's escapes in the manners of the common encoders, percent-encoded in the
// manners of queries, paths and RFC 3986 (section 2.1), both of these twice, and in
// base64 at each of the three alignments in both alphabets. A secret that JSON can write in
// more ways than these has a probe besides: the part of it that is the same in
// all of them.
func encodings(secret string) []needle {
	var all []needle
	add := func(s string, n needle) {
		if !slices.ContainsFunc(all, func(m needle) bool { return string(m.b) == s && m.edge == n.edge && !m.probe }) {
			n.b = []byte(s)
			all = append(all, n)
		}
	}
	forms := []string{secret}
	if !isPlain(secret) {
		forms = append(forms, percentForms(secret)...)
	}
	for _, s := range forms {
		if isPlain(s) {
			add(s, needle{})
			continue
		}
		for _, j := range jsonForms(s) {
			add(j, needle{})
		}
		// Last, so that what JSON writes the same way is not text only.
		add(s, needle{textOnly: true})
	}
	// A webhook or a log holds requests as text inside its own JSON.
	for _, s := range nestedForms(secret) {
		add(s, needle{})
	}
	if part := plainPart(secret); part != secret && len(part) >= 4 {
		all = append(all, needle{b: []byte(part), probe: true})
	}
	for align := range 3 {
		s, e := base64Form(secret, align)
		// Fewer digits would be found anywhere.
		if len(s) < 4 {
			continue
		}
		add(s, needle{edge: e})
		if strings.ContainsAny(s, "+/") {
			add(urlAlphabet.Replace(s), needle{edge: e})
		}
	}
	return all
}

// urlAlphabet turns base64 into the alphabet for URLs (RFC 4648, section 5).
var urlAlphabet = strings.NewReplacer("+", "-", "/", "_")

// jsonForms returns s inside a JSON string: as Go writes it with and without
// the escapes for HTML, with \u00xx for all control characters, with \/, and
// in ASCII only.
func jsonForms(s string) []string {
	html, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	forms := []string{string(html[1 : len(html)-1])}
	for _, style := range []jsonStyle{
		{}, {long: true}, {slash: true}, {ascii: true}, {ascii: true, upper: true}, {ascii: true, slash: true},
		{html: true, upper: true},
	} {
		forms = append(forms, style.quote(s))
	}
	return forms
}

// nestedForms returns the forms of s in a JSON text that is in a JSON
// string, and percent-encoded twice, each in the manners of the usual encoders.
func nestedForms(s string) []string {
	if isPlain(s) {
		return nil
	}
	var forms []string
	for _, in := range []jsonStyle{{}, {html: true}, {ascii: true}, {slash: true}} {
		text := in.quote(s)
		for _, out := range []jsonStyle{{}, {html: true}, {slash: true}} {
			forms = append(forms, out.quote(text))
		}
	}
	for _, f := range []string{url.QueryEscape(s), url.PathEscape(s), percent(s)} {
		twice := url.QueryEscape(f)
		forms = append(forms, twice, lowerPercent(twice), strings.ReplaceAll(f, "%", "%25"))
	}
	return slices.DeleteFunc(forms, func(f string) bool { return f == s })
}

// jsonStyle is a manner of writing JSON strings.
type jsonStyle struct{ long, slash, ascii, upper, html bool }

// quote returns s without the quotes. Invalid UTF-8 becomes U+FFFD, as encoders of
// JSON write it.
func (y jsonStyle) quote(s string) string {
	unit := `\u%04x`
	if y.upper {
		unit = `\u%04X`
	}
	var b strings.Builder
	const short = "\b\t\n\f\r"
	for _, r := range s {
		switch {
		case r == '"' || r == '\\' || r == '/' && y.slash:
			b.WriteByte('\\')
			b.WriteRune(r)
		case !y.long && strings.ContainsRune(short, r):
			b.WriteByte('\\')
			b.WriteByte("btnfr"[strings.IndexRune(short, r)])
		case r < ' ' || y.html && strings.ContainsRune("<>&", r):
			fmt.Fprintf(&b, unit, r)
		case y.ascii && r >= 0x7f:
			for _, u := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, unit, u)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// percentForms returns s percent-encoded; each manner with upper and lower
// case digits.
func percentForms(s string) []string {
	all := []string{url.QueryEscape(s), url.PathEscape(s), percent(s)}
	for _, f := range all[:3] {
		all = append(all, lowerPercent(f))
	}
	return all
}

// percent encodes all but the unreserved characters of RFC 3986.
func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; unreserved(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// isPlain reports whether neither JSON nor URLs have another way to write s.
func isPlain(s string) bool {
	for i := range len(s) {
		if !unreserved(s[i]) {
			return false
		}
	}
	return true
}

// plainPart returns the longest part of s that has no other way to be written.
func plainPart(s string) string { return longestRun(s, unreserved) }

// longestRun returns the longest part of s, the first of several, whose bytes are all in.
func longestRun(s string, in func(byte) bool) string {
	best, from := "", 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && in(s[i]) {
			continue
		}
		if i-from > len(best) {
			best = s[from:i]
		}
		from = i + 1
	}
	return best
}

// unreserved are the characters that no encoder of URLs may change (RFC 3986,
// section 2.3); JSON has no reason to escape them either.
func unreserved(c byte) bool { return isWord[c] || c == '-' || c == '.' || c == '~' }

// lowerPercent writes the digits of escapes in lower case, as some encoders do
// against the advice of RFC 3986, section 2.1.
func lowerPercent(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			b[i+1], b[i+2] = lower(b[i+1]), lower(b[i+2])
			i += 2
		}
	}
	return string(b)
}

// base64Form returns the base64 digits that s alone decides when align bytes
// of other text are before it, and what it decides of the digits around them.
func base64Form(s string, align int) (string, [2]edge) {
	full := base64.RawStdEncoding.EncodeToString(append(make([]byte, align), s...))
	// A digit has six bits: those before begin and from end on are shared with other text.
	bitsBefore := align * 8
	// Rounded up, as the first digit that the secret decides alone; the end is rounded down.
	begin := (bitsBefore + 5) / 6
	end := (bitsBefore + len(s)*8) / 6
	var e [2]edge
	if bitsBefore%6 != 0 {
		mask := byte(1)<<(6-bitsBefore%6) - 1
		e[0] = edge{mask: mask, value: byte(unbase64[full[begin-1]]) & mask}
	}
	if rest := (bitsBefore + len(s)*8) % 6; rest != 0 {
		mask := byte(0x3f) << (6 - rest) & 0x3f
		e[1] = edge{mask: mask, value: byte(unbase64[full[end]]) & mask}
	}
	if begin >= end {
		return "", e
	}
	return full[begin:end], e
}
