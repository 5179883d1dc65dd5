package mask

import (
	"bytes"
	"slices"
)

// assignment recognises secrets without a shape of their own by the name they
// are assigned to: a keyword, whatever else the name has, an operator, and a
// value of the right alphabet and length.
type assignment struct {
	keywords []string
	// tail is how many more characters of a name may follow the keyword.
	tail int
	// values are the shapes of the value.
	values []seq
	// words may be between operator and value ("Bearer").
	words []string
	// bare are the keywords behind which blanks alone are enough of an operator.
	bare []string
	// quotedName demands that the name is the keyword alone, in double quotes.
	quotedName bool
	// ok judges the value; nil accepts all.
	ok func(v []byte, quoted bool) bool
}

func (a *assignment) places() []place {
	all := literalPlaces(true, a.keywords...)
	for i := range all {
		switch {
		case a.quotedName: // the backslash is that of JSON in a JSON string
			all[i].cls = append(all[i].cls, []byte(`"\`))
		case a.tail == 0: // the name ends here: only these can follow
			all[i].cls = append(all[i].cls, []byte("\"'`\\ \t=:,>)]}"))
		}
	}
	return all
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c &^ 0x20
	}
	return c
}

// find reads forwards from the keyword: the rest of the name, the operator, the
// value. What is before the keyword does not matter, as names have prefixes.
func (a *assignment) find(s *scan, variant, pos int) finding {
	t := &s.t
	if c, _ := t.prev(pos); a.quotedName && c != '"' {
		return finding{}
	}
	i, ok := a.keyword(t, variant, pos)
	if !ok {
		return finding{}
	}
	i, _ = t.skip(i, a.tail, inName)
	i, quoted, ok := a.operator(t, i, slices.Contains(a.bare, a.keywords[variant]))
	if !ok {
		return finding{}
	}
	return a.value(s, i, quoted)
}

// keyword verifies the keyword at pos and returns its end. The name of a rule
// in what an earlier pass left is none.
func (a *assignment) keyword(t *text, variant, pos int) (end int, ok bool) {
	k := a.keywords[variant]
	end = pos + len(k)
	// A letter behind a backslash is the escape's, so no keyword begins with it: \token is a tab and oken.
	if end > len(t.b) || !equalFold(t.b[pos:end], k) || t.json && pos > 0 && t.b[pos-1] == '\\' && t.escaped(pos) {
		return 0, false
	}
	// [MASKED: and the longest name of a rule, of 64 bytes, are within the 80.
	if end < len(t.b) && t.b[end] == ']' && bytes.Contains(t.b[max(pos-80, 0):pos], markMasked) {
		return 0, false
	}
	return end, true
}

// equalFold compares ASCII without case; k is in lower case.
func equalFold(b []byte, k string) bool {
	for i := range len(k) {
		if lower(b[i]) != k[i] {
			return false
		}
	}
	return true
}

// operator reads the quotes that may close the name, the operator, and the
// quotes that may open the value. With bare, blanks are enough of an operator.
func (a *assignment) operator(t *text, i int, bare bool) (after int, quoted, ok bool) {
	// A member of the JSON itself: its value begins behind the quote, whatever is in it.
	if j, ok := memberValue(t, i); ok {
		return a.word(t, j), true, true
	}
	i, _ = skipQuotes(t, i)
	i, blank := skipBlanks(t, i)
	c, n := t.next(i)
	switch {
	case n == 0:
		return i, false, false
	// A comma is one where the keyword is the name of a service, as in Setenv("DATADOG_KEY", "…"):
	// behind a word like token it would be one of prose.
	case c == ':' || c == '=' || c == '>' || c == ',' && a.tail > 0:
		i, _ = t.skip(i+n, 2, inOperator)
	case bare && blank:
	default:
		return i, false, false
	}
	i, _ = skipBlanks(t, i)
	i, quoted = skipQuotes(t, i)
	return a.word(t, i), quoted, true
}

// memberValue returns where the string begins that is the value of a member whose
// name ends at i.
func memberValue(t *text, i int) (after int, ok bool) {
	if !t.json || i >= len(t.b) || t.b[i] != '"' {
		return 0, false
	}
	i = skipWhite(t.b, i+1)
	if i >= len(t.b) || t.b[i] != ':' {
		return 0, false
	}
	i = skipWhite(t.b, i+1)
	return i + 1, i < len(t.b) && t.b[i] == '"'
}

// skipWhite skips some white space of JSON; no encoder writes more.
func skipWhite(b []byte, i int) int {
	return i + run(b[i:min(i+64, len(b))], isSpace, unbounded)
}

// word skips one of the words that may precede the value, with its blanks.
func (a *assignment) word(t *text, i int) int {
	// The words are few, and compared in place: nothing is allocated for a candidate.
	for _, w := range a.words {
		if i+len(w) < len(t.b) && equalFold(t.b[i:i+len(w)], w) {
			if j, blank := skipBlanks(t, i+len(w)); blank {
				return j
			}
		}
	}
	return i
}

// skipQuotes skips up to four quotes and brackets; quoted says that the last
// of them was a quote.
func skipQuotes(t *text, i int) (after int, quoted bool) {
	i, last := t.skip(i, 4, aroundName)
	return i, last != 0 && last != '\\' && last != ']'
}

// skipBlanks skips up to eight blanks and tabs: more is a table or an indent, and
// a bound keeps runs of blanks from costing time.
func skipBlanks(t *text, i int) (after int, some bool) {
	i, last := t.skip(i, 8, isBlank)
	return i, last != 0
}

// What is around the operator of an assignment: the rest of the name, the quotes and brackets
// at its end ("key"], \"key\"), blanks, and operators of two and three characters (:=, =>, ::).
var (
	inName     = newClass("0-9A-Za-z_.-")
	aroundName = newClass("\"'`\\]")
	isBlank    = newClass(" \t")
	inOperator = newClass("=>:")
)

// value verifies what is at i.
func (a *assignment) value(s *scan, i int, quoted bool) finding {
	for v := range a.values {
		start, end, _, ok := a.values[v].match(&s.t, i)
		// A longer run is something else, such as a digest where 32 digits are looked for.
		if !ok || !s.t.closedAfter(end) {
			continue
		}
		if a.ok == nil || a.ok(s.t.b[start:end], quoted) {
			return finding{start: start, end: end, skip: end, ok: true}
		}
	}
	return finding{}
}

// netrcLine is the password of "machine host login name password value".
type netrcLine struct{ assignment }

// find demands the rest of the line: "password" and a blank alone are in any prose.
func (n *netrcLine) find(s *scan, variant, pos int) finding {
	m := n.assignment.find(s, variant, pos)
	if !m.ok {
		return m
	}
	// Backwards over the line, decoded, as it may be in a JSON string. The bound keeps
	// long lines cheap.
	var room [128]byte
	i, at := pos, len(room)
	for at > 0 {
		c, j := s.t.prev(i)
		if j == i || c == '\n' {
			break
		}
		at--
		room[at] = c
		i = j
	}
	line := room[at:]
	m.ok = bytes.Contains(line, []byte("machine ")) && bytes.Contains(line, []byte(" login ")) &&
		!templated(s.t.b[m.start:m.end])
	return m
}
