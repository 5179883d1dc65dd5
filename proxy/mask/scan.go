package mask

import (
	"encoding/binary"
	"math/bits"

	"aegis/proxy/internal/jsonscan"
)

// scan is one pass over one text: what it reads, what it has found, and the
// buffers it needs. Scans are pooled; a scan belongs to one goroutine.
type scan struct {
	e *Engine
	t text
	r *Redactor
	// patterns is false when only the exact layer may act.
	patterns bool
	purpose  purpose
	// done is closed when the caller has given up.
	done <-chan struct{}

	spans []span
	// skip says, by rule, up to where trying the rule is known to be useless.
	skip []int
	// marks are the places of literals of custom rules.
	marks []mark
	// decodedFrom lists where the strings begin that were scanned decoded.
	decodedFrom []int
	// peeks are the strings that peek has noted, peeked the end of the last one.
	peeks  [][2]int
	peeked int
	// encoded says that a string "base64" is in the document.
	encoded bool
	// leafFrom, leafEnd and leafKey describe the string literal that was met last.
	leafFrom, leafEnd int
	leafKey           bool
	// bareRun and quotedRun are the runs that runEnd remembers.
	bareRun, quotedRun [2]int
	// decoded is the end of the last string that was scanned decoded.
	decoded int
	// pos is where the pass goes on after a candidate, lastEnd the end of the
	// last match.
	pos, lastEnd int

	buf []byte // a decoded string
	// plain is a decoded content.
	plain []byte
	// wide is the UTF-16 text that t stands for, nil for all others.
	wide []byte
	// rewritten are the new bytes of encoded contents.
	rewritten [][]byte
	// probes are the places of parts of secrets, see needle.
	probes []int
	// exact are the spans of the exact layer while the pattern layer runs on
	// redacted, the text without them.
	exact    []span
	redacted []byte
	// hits and blocked are the outcome; see settle.
	hits    Hits
	blocked string
}

// span is a part of the text to replace: b[start:end], of which the first keep
// bytes stay. rule is an index of Engine.rules, or one of the two below.
type span struct {
	start, end int
	keep       int32
	rule       int32
}

const (
	// exactRule marks spans of the exact layer.
	exactRule = -1
	// contentRule marks encoded content; keep is the index in scan.rewritten of
	// what replaces it.
	contentRule = -2
)

// finding is what a matcher found: the span b[start:end] and how many bytes of
// it to keep. Found or not, trying the same rule before skip is useless.
type finding struct {
	start, end, keep, skip int
	ok                     bool
}

// matcher is one way to recognise a kind of secret.
type matcher interface {
	// places returns where the matcher can be noticed, by variant.
	places() []place
	// find verifies the variant whose text begins at pos.
	find(s *scan, variant, pos int) finding
}

// run makes the pass of the pattern layer. It takes time in proportion to the
// text whatever that holds.
func (s *scan) run() {
	b := s.t.b
	var f filter
	for f.next(&s.e.table.pairs, b) {
		s.block(&f)
	}
	// The last pairs, and anchors that begin in the last block and end behind.
	s.tail(max(f.at-5, f.from))
}

// blockLen is how many bytes the filter takes at once.
const blockLen = 16

// filter is a place in the text: the block at at, which is a multiple of two
// bytes behind from, where the filter began.
type filter struct{ at, from int }

// before returns the entry of the last pair before the block, and what it has
// in common with the one before that.
func (f *filter) before(pairs *[1 << 16]uint64, b []byte) (last, both uint64) {
	if f.at-2 >= f.from {
		last = pairs[binary.LittleEndian.Uint16(b[f.at-2:])]
	}
	if f.at-4 >= f.from {
		both = pairs[binary.LittleEndian.Uint16(b[f.at-4:])] & (last >> shift)
	}
	return last, both
}

// next goes on to the next block with candidates; false means that less than a
// block is left. Each entry is shifted and compared with the one before it,
// and the outcome likewise: what is left has all three roles. The statements
// are in this order so that few values live at a time.
func (f *filter) next(pairs *[1 << 16]uint64, b []byte) bool {
	last, both := f.before(pairs, b)
	s := b[f.at:]
	for len(s) >= blockLen {
		p := (*[blockLen]byte)(s)
		w := binary.LittleEndian.Uint64(p[:8])
		e := pairs[uint16(w)]
		u := last & (e >> shift)
		hit := both & (u >> shift)
		last = pairs[uint16(w>>16)]
		both = e & (last >> shift)
		hit |= u & (both >> shift)
		e = pairs[uint16(w>>32)]
		u = last & (e >> shift)
		hit |= both & (u >> shift)
		last = pairs[uint16(w>>48)]
		both = e & (last >> shift)
		hit |= u & (both >> shift)
		w = binary.LittleEndian.Uint64(p[8:])
		e = pairs[uint16(w)]
		u = last & (e >> shift)
		hit |= both & (u >> shift)
		last = pairs[uint16(w>>16)]
		both = e & (last >> shift)
		hit |= u & (both >> shift)
		e = pairs[uint16(w>>32)]
		u = last & (e >> shift)
		hit |= both & (u >> shift)
		last = pairs[uint16(w>>48)]
		both = e & (last >> shift)
		if hit|u&(both>>shift) != 0 {
			f.at = len(b) - len(s)
			return true
		}
		s = s[blockLen:]
	}
	f.at = len(b) - len(s)
	return false
}

// block verifies the candidates whose third pair is in the block at f, and
// goes behind it.
func (s *scan) block(f *filter) {
	t, b := s.e.table, s.t.b
	i := f.at
	s.pos = i + blockLen
	last, both := f.before(&t.pairs, b)
	var hits uint
	for k := range blockLen / 2 {
		e := t.pairs[binary.LittleEndian.Uint16(b[i+2*k:])]
		u := last & (e >> shift)
		// One when bits are left, without a branch that would be guessed wrong.
		x := both & (u >> shift)
		hits |= uint((x|-x)>>63) << k
		last, both = e, u
	}
	for ; hits != 0; hits &= hits - 1 {
		at := i + 2*bits.TrailingZeros(hits) - 4
		if at < 0 {
			continue
		}
		// x has the bytes from at-1 on, taken from within the block's reach.
		var x uint64
		if at >= 2 {
			x = binary.LittleEndian.Uint64(b[at-2:]) >> 8
		} else {
			x = binary.LittleEndian.Uint64(b) << (8 * (1 - at))
		}
		if isSpecial[byte(x)] || isSpecial[byte(x>>8)] || isSpecial[byte(x>>16)] {
			if s.t.json && s.guard(at) || s.patterns && s.address(at) {
				*f = filter{at: s.pos, from: s.pos}
				return
			}
		}
		if s.patterns && (at > 0 && t.knows(uint32(x)) && s.candidate(at-1) ||
			t.knows(uint32(x>>8)) && s.candidate(at)) {
			*f = filter{at: s.pos, from: s.pos}
			return
		}
	}
	f.at += blockLen
}

// isSpecial are the bytes that the guard and the rule for addresses begin with.
var isSpecial = newClass("\\@")

// tail verifies every place from i to the end, which blocks do not reach.
func (s *scan) tail(i int) {
	s.pos = i
	for i+2 <= len(s.t.b) {
		if s.t.json && s.guard(i) {
			i = s.pos
			continue
		}
		s.pos = i + 1
		if s.patterns {
			s.candidate(i)
			s.address(i)
		}
		i = s.pos
	}
}

// candidate tries the rules whose anchor is at i. It reports whether the
// pass must go on behind a match.
func (s *scan) candidate(i int) bool {
	if i+4 > len(s.t.b) {
		return false
	}
	from, rule, at := s.pos, int32(-1), 0
	for _, ref := range s.e.table.find(s.t.b[i:]) {
		pos := i - int(ref.off)
		// The rest of a match may reach over either end of a text that was cut.
		if pos < 0 || pos > len(s.t.b) {
			continue
		}
		// Variants of a rule at one place do not rule each other out.
		if pos >= s.skip[ref.rule] || rule == ref.rule && at == pos {
			rule, at = ref.rule, pos
			s.try(ref, pos)
		}
	}
	return s.pos != from
}

// try verifies one variant and notes how far the rule need not be tried again: without
// that a run that many candidates lead to would be read for each of them.
func (s *scan) try(ref ref, pos int) {
	r := &s.e.rules[ref.rule]
	m := r.matcher.find(s, int(ref.variant), pos)
	if m.skip > s.skip[ref.rule] {
		s.skip[ref.rule] = m.skip
	}
	if m.ok && r.accepts(s.t.b[m.start:m.end], m.keep) {
		s.found(ref.rule, m)
	}
}

// address tries the rule for addresses at the @ at i or i+1. It reports what
// candidate does.
func (s *scan) address(i int) bool {
	if s.e.addresses < 0 {
		return false
	}
	from := s.pos
	for at := i; at <= i+1 && at < len(s.t.b); at++ {
		if s.t.b[at] == '@' && at >= s.skip[s.e.addresses] {
			s.try(ref{rule: s.e.addresses}, at)
			break
		}
	}
	return s.pos != from
}

// found notes a match, unless it is in an object key, and makes the pass
// go on behind it. The matches of rules that go by the context are no reason
// to stop looking: what they found may have a better name.
func (s *scan) found(rule int32, m finding) {
	if s.t.json {
		// Matches come in clusters, so the string of the last one is mostly that of this one.
		if m.start >= s.leafEnd || m.start < s.leafFrom {
			s.leafFrom, s.leafEnd = m.start, s.t.end(m.start)
			s.leafKey = s.t.isKey(s.leafEnd)
		}
		if s.leafKey {
			return
		}
	}
	s.lastEnd = max(s.lastEnd, m.end)
	s.spans = append(s.spans, span{start: m.start, end: m.end, keep: int32(m.keep), rule: rule})
	if s.e.rules[rule].prio >= prioToken && m.end > s.pos {
		s.pos = m.end
	}
}

// guard looks for an escape at i-1, i or i+1 that may hide a character of a
// secret. The string that contains one is decoded and scanned as text; the
// pass goes on behind it. It reports whether that happened.
func (s *scan) guard(i int) bool {
	for at := max(i-1, s.decoded, 0); at <= i+1 && at+1 < len(s.t.b); at++ {
		if s.t.b[at] == '\\' && s.hides(at) {
			s.decodeLeaf(at)
			return true
		}
	}
	return false
}

// hides reports whether the backslash at i begins an escape that Go's encoder does not
// write. Escapes of control characters and of what is beyond ASCII hide nothing:
// no rule has those in a secret.
func (s *scan) hides(i int) bool {
	b := s.t.b
	switch b[i+1] {
	case '/':
	case 'u':
		r, ok := jsonscan.Hex4(b[i+2:])
		if !ok || r <= ' ' || r >= 0x7f || r == '<' || r == '>' || r == '&' {
			return false
		}
	default:
		return false
	}
	return !s.t.escaped(i)
}
