package mask

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
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

// contents scans the file contents of a document: the string "content" of an
// object whose "encoding" is "base64". They are decoded, masked and encoded
// again.
func (s *scan) contents() error {
	t := &s.t
	var files [][2]int
	err := t.walk(func(open []member, start, end int) {
		if len(open) == 0 {
			return
		}
		m := &open[len(open)-1]
		switch string(t.b[m.key[0]:m.key[1]]) {
		case "encoding":
			m.base64 = !m.array && string(t.b[start:end]) == "base64"
		case "content":
			m.content, m.isFile = [2]int{start, end}, !m.array
		}
	}, func(m *member) {
		if m.base64 && m.isFile {
			files = append(files, m.content)
		}
	})
	if err != nil {
		return err
	}
	for _, f := range files {
		s.content(f[0], f[1])
	}
	return nil
}

// content scans the base64 string at start. What was found in its encoded
// form is dropped: the decoded form tells better.
func (s *scan) content(start, end int) {
	plain, ok := decodeContent(s.t.b[start:end])
	if !ok {
		return
	}
	s.spans = slices.DeleteFunc(s.spans, func(p span) bool { return p.start >= start && p.start < end })
	sub := s.e.get(plain, false, s.r)
	defer s.e.put(sub)
	sub.purpose, sub.done = s.purpose, s.done
	sub.patterns = s.patterns && isText(plain)
	sub.all()
	if len(sub.spans) == 0 {
		return
	}
	sub.settle()
	s.hits = s.hits.Add(sub.hits)
	if s.blocked == "" {
		s.blocked = sub.blocked
	}
	if len(sub.spans) == 0 {
		return
	}
	masked, err := sub.splice(nil)
	if err != nil {
		masked = nil // fail closed: no content rather than a secret
	}
	s.spans = append(s.spans, span{start: start, end: end, keep: int32(len(s.encodings)), rule: contentRule})
	s.encodings = append(s.encodings, base64.StdEncoding.AppendEncode(nil, masked))
}

// decodeContent decodes the inside of a JSON string that holds base64, with or
// without line ends and padding.
func decodeContent(raw []byte) ([]byte, bool) {
	if bytes.IndexByte(raw, '\\') >= 0 {
		raw = appendDecoded(nil, raw)
	}
	if bytes.ContainsAny(raw, "\r\n") {
		raw = bytes.Map(func(r rune) rune {
			if r == '\r' || r == '\n' {
				return -1
			}
			return r
		}, raw)
	}
	raw = bytes.TrimRight(raw, "=")
	plain, err := base64.RawStdEncoding.AppendDecode(nil, raw)
	return plain, err == nil && len(plain) > 0
}

// isText reports whether b is text by the rule that git has: no NUL among its
// first 8000 bytes.
func isText(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 8000)], 0) < 0 }

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
