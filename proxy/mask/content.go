package mask

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// deepest is the nesting that content and paths are followed into. Deeper
// documents fail closed where either is needed.
const deepest = 512

// member is what is known of an object that is being read.
type member struct {
	array          bool
	index          int
	key            [2]int // raw bytes of the current key, without quotes
	content        [2]int // of the value of "content"
	base64, isFile bool
}

// walk reads the structure of a JSON document: it calls value for each string
// value with the open containers, and close when a container ends.
func (t *text) walk(value func(open []member, start, end int), close func(m *member)) error {
	var open []member
	b := t.b
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			if len(open) == deepest {
				return ErrDepth
			}
			open = append(open, member{array: b[i] == '['})
		case '}', ']':
			if n := len(open); n > 0 {
				close(&open[n-1])
				open = open[:n-1]
			}
		case ',':
			if n := len(open); n > 0 {
				open[n-1].index++
			}
		case '"':
			end := t.end(i + 1)
			if n := len(open); n > 0 && !open[n-1].array && t.isKey(end) {
				open[n-1].key = [2]int{i + 1, end}
			} else {
				value(open, i+1, end)
			}
			i = end
		}
	}
	for n := len(open); n > 0; n-- { // a document that was cut off
		close(&open[n-1])
	}
	return nil
}

// contentNames are the members that hold base64 wherever they stand: wiki
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
	i, kept := 0, s.spans[:0]
	var fresh []span
	for _, f := range files {
		if s.stopped() {
			return nil // the caller says so
		}
		for i < len(s.spans) && s.spans[i].start < f[0] {
			kept = append(kept, s.spans[i])
			i++
		}
		from := i
		for i < len(s.spans) && s.spans[i].start < f[1] {
			i++
		}
		p, keep := s.content(f[0], f[1], s.spans[from:i])
		switch {
		case p.end > 0:
			fresh = append(fresh, p)
		case keep == keepAll:
			kept = append(kept, s.spans[from:i]...)
		default:
			for _, q := range s.spans[from:i] {
				if q.rule == exactRule {
					kept = append(kept, q)
				}
			}
		}
	}
	s.spans = append(append(kept, s.spans[i:]...), fresh...)
	return nil
}

// files returns where the base64 of a document stands, in ascending order.
func (s *scan) files() ([][2]int, error) {
	if !s.encoded {
		return s.peeks, nil
	}
	t, files := &s.t, slices.Clone(s.peeks)
	err := t.walk(func(open []member, start, end int) {
		if len(open) == 0 || open[len(open)-1].array {
			return
		}
		m := &open[len(open)-1]
		switch key := t.b[m.key[0]:m.key[1]]; {
		case string(key) == "encoding":
			m.base64 = string(t.b[start:end]) == "base64"
		case string(key) == "content":
			m.content, m.isFile = [2]int{start, end}, true
		case slices.Contains(contentNames, string(key)):
			files = append(files, [2]int{start, end})
		}
	}, func(m *member) {
		if m.base64 && m.isFile {
			files = append(files, m.content)
		}
	})
	slices.SortFunc(files, func(a, b [2]int) int { return a[0] - b[0] })
	return slices.CompactFunc(files, func(a, b [2]int) bool { return a[0] == b[0] }), err
}

// What stays of the spans that were found in the encoded form of a content.
const (
	keepAll   = iota
	keepExact // the decoded form tells better than a pattern in the encoded one
)

// content scans the base64 string at start, in which the spans inner were found
// as it stands. It returns the span that replaces the whole, which has an end,
// or what to keep of inner.
func (s *scan) content(start, end int, inner []span) (p span, keep int) {
	var ok bool
	if s.plain, ok = decodeContent(s.plain[:0], s.t.b[start:end]); !ok {
		return span{}, keepAll
	}
	readable := utf8.Valid(s.plain) && mostlyText(s.plain)
	masked, changed := s.within(s.plain, s.patterns && (readable || mostlyText(s.plain)))
	if !changed {
		if readable {
			return span{}, keepExact
		}
		return span{}, keepAll
	}
	encoded := base64.StdEncoding.AppendEncode(nil, masked)
	if len(inner) > 0 && s.matches(encoded, s.patterns && !readable) {
		// The encoded form is a secret itself: nothing of it stays.
		return span{start: start, end: end, rule: exactRule}, keepAll
	}
	s.encodings = append(s.encodings, encoded)
	return span{start: start, end: end, keep: int32(len(s.encodings) - 1), rule: contentRule}, keepAll
}

// within masks a text that stands inside the scanned one, in UTF-16 too, and
// adds what was found to the outcome of s.
func (s *scan) within(b []byte, patterns bool) (out []byte, changed bool) {
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
	sub := s.e.get(b, false, s.r)
	defer s.e.put(sub)
	sub.purpose, sub.done, sub.patterns, sub.wide = s.purpose, s.done, patterns, wide
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

// matches reports whether something is found in b as it stands.
func (s *scan) matches(b []byte, patterns bool) bool {
	sub := s.e.get(b, false, s.r)
	defer s.e.put(sub)
	sub.purpose, sub.done, sub.patterns = s.purpose, s.done, patterns
	sub.all()
	return len(sub.spans) > 0
}

// decodeContent decodes the inside of a JSON string that holds base64, with or
// without line ends and padding, and appends it to dst.
func decodeContent(dst, raw []byte) ([]byte, bool) {
	if bytes.IndexByte(raw, '\\') >= 0 {
		raw = appendDecoded(nil, raw)
	}
	raw = bytes.TrimRight(raw, "=\r\n \t")
	// The decoder skips line ends; other blanks are no base64.
	plain, err := base64.RawStdEncoding.AppendDecode(dst, raw)
	return plain, err == nil && len(plain) > len(dst)
}

// mentionsContent reports whether a document may hold base64; the pattern
// layer notices that on its way, see marker.
func mentionsContent(b []byte) bool {
	return slices.ContainsFunc(markers, func(m string) bool { return bytes.Contains(b, []byte(m)) })
}

// looksJSON reports whether b is a JSON document with strings in it, or lines
// of such documents.
func looksJSON(b []byte) bool {
	b = bytes.TrimSpace(b)
	if len(b) == 0 || b[0] != '{' && b[0] != '[' && b[0] != '"' {
		return false
	}
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

// choose drops the spans of patterns in strings that sel declines.
func (s *scan) choose(sel func(pointer string) bool) error {
	s.sort()
	i, out := 0, s.spans[:0]
	err := s.t.walk(func(open []member, start, end int) {
		asked, chosen := false, false
		for i < len(s.spans) && s.spans[i].start < end {
			p := s.spans[i]
			i++
			if p.rule >= 0 && !asked && p.start >= start {
				asked, chosen = true, sel(s.t.pointer(open))
			}
			if p.rule < 0 || chosen {
				out = append(out, p)
			}
		}
	}, func(*member) {})
	// What stands behind the last string is in an object key.
	s.spans = append(out, s.spans[i:]...)
	return err
}

func (t *text) pointer(open []member) string {
	var p strings.Builder
	for i := range open {
		p.WriteByte('/')
		if open[i].array {
			p.WriteString(strconv.Itoa(open[i].index))
			continue
		}
		key := string(appendDecoded(nil, t.b[open[i].key[0]:open[i].key[1]]))
		p.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(key))
	}
	return p.String()
}
