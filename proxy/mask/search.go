package mask

import (
	"bytes"
	"regexp/syntax"
	"slices"

	"aegis/proxy/internal/jsonscan"
)

// mark is a place of a literal of a custom rule.
type mark struct {
	pos  int
	rule int32
}

func (m *custom) places() []place { return literalPlaces(true, m.literals...) }

// find only notes that the rule must be tried on this string.
func (m *custom) find(s *scan, _, pos int) finding {
	for _, i := range s.e.customs {
		if s.e.rules[i].custom == m {
			s.marks = append(s.marks, mark{pos, i})
		}
	}
	return finding{}
}

// anchoredText reports whether the expression depends on where text or lines begin or
// end. A window has ends of its own, which would match.
func anchoredText(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginText, syntax.OpEndText, syntax.OpBeginLine, syntax.OpEndLine:
		return true
	}
	return slices.ContainsFunc(re.Sub, anchoredText)
}

// customs runs the configuration's rules on the text, or on each string of the
// JSON document that holds a mark.
func (s *scan) customs() {
	if len(s.e.customs) == 0 || !s.patterns {
		return
	}
	// A text is one string, and its marks are all its own.
	if !s.t.json {
		s.customLeaf(s.t.b, s.marks, nil)
		return
	}
	marks := s.marks
	always := slices.ContainsFunc(s.e.customs, func(i int32) bool { return len(s.e.rules[i].custom.literals) == 0 })
	if len(marks) == 0 && !always {
		return
	}
	for at, name := range jsonscan.Strings(s.t.b) {
		if !always && len(marks) == 0 {
			return
		}
		var mine []mark
		mine, marks = split(marks, at.To, func(m mark) int { return m.pos })
		if name || at.From == at.To || len(mine) == 0 && !always {
			continue
		}
		leaf := s.t.b[at.From:at.To]
		// Without an escape the raw bytes are the characters.
		if bytes.IndexByte(leaf, '\\') < 0 {
			s.customLeaf(leaf, mine, func(spans []span) {
				for i := range spans {
					spans[i].start += at.From
					spans[i].end += at.From
				}
			})
		} else if !s.wasDecoded(at.From) {
			s.buf = appendDecoded(s.buf[:0], leaf)
			s.customLeaf(s.buf, mine, func(spans []span) { s.t.toRaw(spans, at.From) })
		}
	}
}

// customLeaf runs the rules on a decoded string; place translates the spans,
// which ascend, into the document's.
func (s *scan) customLeaf(b []byte, marks []mark, place func([]span)) {
	for _, i := range s.e.customs {
		r := &s.e.rules[i]
		announced := len(r.custom.literals) == 0 ||
			slices.ContainsFunc(marks, func(m mark) bool { return m.rule == i })
		if r.action[s.purpose] == actOff || !announced {
			continue
		}
		from := len(s.spans)
		r.custom.each(b, s.stopped, func(start, end, group, groupEnd int) {
			if group < groupEnd && r.custom.nearKeyword(b, start, end) && r.accepts(b[group:groupEnd], 0) {
				s.spans = append(s.spans, span{start: group, end: groupEnd, rule: i})
			}
		})
		if place != nil {
			place(s.spans[from:])
		}
	}
}

// each yields the matches in b and the span to replace: group 1, or the whole
// match when there is no group or it took no part.
func (m *custom) each(b []byte, stop func() bool, yield func(start, end, group, groupEnd int)) {
	if m.limit > 0 || m.anchored || len(b) <= 2*reach {
		m.eachIn(b, stretch{most: len(b)}, yield)
		return
	}
	// An expression without a longest match can make a search for all matches
	// quadratic (golang/go#11181): search in windows.
	for from, done := 0, 0; from < len(b) && !stop(); from += reach {
		// One byte earlier, for \b; matches overlap their window by reach at the most.
		w := stretch{from: max(from-1, done-1, 0), least: max(from, done), most: from + reach}
		done = m.eachIn(b[:min(from+2*reach, len(b))], w, yield)
	}
}

// stretch says where a search begins, and between which places a match must
// begin to count.
type stretch struct{ from, least, most int }

// eachIn yields the matches of a stretch and returns the end of the last one.
func (m *custom) eachIn(b []byte, w stretch, yield func(start, end, group, groupEnd int)) int {
	last := w.least
	for _, loc := range m.re.FindAllSubmatchIndex(b[w.from:], -1) {
		start, end := loc[0]+w.from, loc[1]+w.from
		if start < w.least || start >= w.most {
			continue
		}
		group, groupEnd := start, end
		if m.group > 0 && loc[2] >= 0 {
			group, groupEnd = loc[2]+w.from, loc[3]+w.from
		}
		yield(start, end, group, groupEnd)
		last = end
	}
	return last
}

// nearKeyword reports whether a keyword is in the match or near before it.
func (m *custom) nearKeyword(b []byte, start, end int) bool {
	if len(m.keywords) == 0 {
		return true
	}
	// Never more than the bound before the match and the match itself.
	l := bytes.ToLower(b[max(start-near, 0):end])
	return slices.ContainsFunc(m.keywords, func(k string) bool { return bytes.Contains(l, []byte(k)) })
}
