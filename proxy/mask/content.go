package mask

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// deepest is the nesting that content and paths are followed into. Deeper
// documents fail closed where either is needed.
const deepest = 512

// container is what is known of an object or array that is being read.
type container struct {
	array          bool
	key            []byte // the current one, raw and without quotes
	content        [2]int // of the value of "content"
	base64, isFile bool
}

// contentNames are the members that hold base64 wherever they are: wiki
// pages have them without an "encoding".
var contentNames = []string{"content_base64", "sidebar", "footer"}

// contents scans what a document holds in base64: the string "content" of an
// object whose "encoding" is "base64", and the members of contentNames. Each is
// decoded, masked and encoded again. The spans of the document are sorted once
// and gone through once.
func (s *scan) contents() error {
	files, err := s.files()
	if err != nil || len(files) == 0 {
		return err
	}
	s.sort()
	var out []span // not the memory of s.spans: a file may add one
	rest := s.spans
	for _, f := range files {
		if s.stopped() {
			return nil // the caller says so
		}
		var before, inner []span
		before, rest = split(rest, f[0], spanStart)
		inner, rest = split(rest, f[1], spanStart)
		out = append(append(out, before...), s.content(f[0], f[1], inner)...)
	}
	s.spans = append(out, rest...)
	return nil
}

// split returns the items of list, which are in the order of their places, before end and
// those from there on.
func split[T any](list []T, end int, place func(T) int) (before, rest []T) {
	n := 0
	for n < len(list) && place(list[n]) < end {
		n++
	}
	return list[:n], list[n:]
}

func spanStart(p span) int { return p.start }

// files returns where the base64 of a document is, in ascending order. Which
// strings are base64 is known only at the end of their object, as "encoding" may
// come after "content".
func (s *scan) files() ([][2]int, error) {
	if !s.encoded {
		return s.peeks, nil
	}
	t, files := &s.t, slices.Clone(s.peeks)
	var open []container
	leave := func() {
		c := open[len(open)-1]
		if open = open[:len(open)-1]; c.base64 && c.isFile {
			files = append(files, c.content)
		}
	}
	for i := 0; i < len(t.b); i++ {
		switch t.b[i] {
		case '{', '[':
			// Without a place for its container a string could not be recognised: fail closed.
			if len(open) == deepest {
				return nil, ErrDepth
			}
			open = append(open, container{array: t.b[i] == '['})
		case '}', ']':
			if len(open) > 0 {
				leave()
			}
		case '"':
			start := i + 1
			i = t.end(start)
			if n := len(open); n > 0 && !open[n-1].array && open[n-1].text(t, start, i) {
				files = append(files, [2]int{start, i})
			}
		}
	}
	for len(open) > 0 { // a document that was cut off
		leave()
	}
	// A content is noted when its object ends, so an outer one comes after those inside; and peek
	// may have noted the same string.
	slices.SortFunc(files, func(a, b [2]int) int { return a[0] - b[0] })
	return slices.CompactFunc(files, func(a, b [2]int) bool { return a[0] == b[0] }), nil
}

// text takes note of a string in the object, a name or a value. It reports whether
// that is the value of one of contentNames.
func (c *container) text(t *text, start, end int) bool {
	if t.isKey(end) {
		c.key = t.b[start:end]
		return false
	}
	switch string(c.key) {
	case "encoding":
		c.base64 = string(t.b[start:end]) == "base64"
	case "content":
		c.content, c.isFile = [2]int{start, end}, true
	}
	return slices.Contains(contentNames, string(c.key))
}

// content scans the base64 string at start, in which the spans inner were found
// as it is. It returns the span that replaces the whole, or what to keep of inner.
func (s *scan) content(start, end int, inner []span) []span {
	var ok bool
	if s.plain, ok = decodeContent(s.plain[:0], s.t.b[start:end]); !ok {
		return inner
	}
	// In what is no text, patterns would find nothing but chance and break an archive.
	readable := utf8.Valid(s.plain) && mostlyText(s.plain)
	masked, changed := s.within(s.plain, s.patterns && (readable || mostlyText(s.plain)))
	if !changed {
		if readable { // the decoded form is better evidence than a pattern in the encoded one
			return slices.DeleteFunc(inner, func(p span) bool { return p.rule != exactRule })
		}
		return inner
	}
	encoded := base64.StdEncoding.AppendEncode(nil, masked)
	if len(inner) > 0 && s.matches(encoded, s.patterns && !readable) {
		// The encoded form is a secret itself: nothing of it stays.
		return []span{{start: start, end: end, rule: exactRule}}
	}
	s.rewritten = append(s.rewritten, encoded)
	return []span{{start: start, end: end, keep: int32(len(s.rewritten) - 1), rule: contentRule}}
}

// within masks a text that is inside the scanned one, in UTF-16 too, and
// adds what was found to the outcome of s.
func (s *scan) within(b []byte, patterns bool) (out []byte, changed bool) {
	// As bytes first: a secret in ASCII may be between characters of two bytes.
	out, changed = s.inner(b, nil, patterns)
	if hasBOM(out) {
		if wide, more := s.inner(narrowed(out), out, patterns); more {
			return wide, true
		}
	}
	return out, changed
}

// inner masks b, which stands for wide when that is not nil.
func (s *scan) inner(b, wide []byte, patterns bool) (out []byte, changed bool) {
	sub := s.sub(b, patterns)
	defer s.e.put(sub)
	sub.wide = wide
	sub.all()
	if len(sub.spans) == 0 {
		return b, false
	}
	sub.settle()
	s.hits = s.hits.Add(sub.hits)
	if s.blocked == "" {
		s.blocked = sub.blocked
	}
	if len(sub.spans) == 0 {
		return b, false
	}
	out, err := sub.splice(nil)
	if err != nil {
		return nil, true // fail closed: no content rather than a secret
	}
	return out, true
}

// matches reports whether something is found in b as it is.
func (s *scan) matches(b []byte, patterns bool) bool {
	sub := s.sub(b, patterns)
	defer s.e.put(sub)
	sub.all()
	return len(sub.spans) > 0
}

// decodeContent decodes the inside of a JSON string that holds base64, with or
// without line ends and padding, and appends it to dst.
func decodeContent(dst, raw []byte) ([]byte, bool) {
	if bytes.IndexByte(raw, '\\') >= 0 {
		raw = appendDecoded(nil, raw)
	}
	// Padding is optional in what servers read, so nothing is made of a wrong one.
	raw = bytes.TrimRight(raw, "=\r\n \t")
	// The decoder skips line ends; other blanks are no base64.
	plain, err := base64.RawStdEncoding.AppendDecode(dst, raw)
	return plain, err == nil && len(plain) > len(dst)
}

// looksJSON reports whether b is a JSON document with strings in it, or lines
// of such documents.
func looksJSON(b []byte) bool {
	b = bytes.TrimSpace(b)
	if len(b) == 0 || b[0] != '{' && b[0] != '[' && b[0] != '"' {
		return false
	}
	// Names of members pass the exact layer only, so what is no document must not be taken for one.
	if json.Valid(b) {
		return true
	}
	for line := range bytes.Lines(b) {
		if line = bytes.TrimSpace(line); len(line) > 0 && !json.Valid(line) {
			return false
		}
	}
	return true
}
