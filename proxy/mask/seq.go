package mask

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
)

// seq is a pattern without choices: literals and runs of classes, one after
// another. A run takes all it can and gives nothing back, so a match costs one
// look at each byte. compileSeqs makes seqs of regular expressions for which
// that finds what RE2 would.
type seq struct {
	elems []elem
	// lead is the number of leading elements (0 or 1) that are read backwards
	// because what they match has no fixed length.
	lead int
}

// elem is a literal (lit) or a run of min to max bytes of a class.
type elem struct {
	lit      string
	cls      *class
	min, max int // max < 0 is unbounded
}

// unbounded is the limit of run and elem.max that is none.
const unbounded = -1

// most is how many seqs one expression may expand to.
const most = 64

var errShape = errors.New("the expression is outside the subset that compiles to sequences")

// compileSeqs returns seqs that together match what any of the expressions does. It
// takes concatenations of literals, ASCII classes, groups and repeated
// classes; alternatives and optional parts are multiplied out.
func compileSeqs(exprs ...string) (seqs []seq, err error) {
	for _, expr := range exprs {
		re, err := syntax.Parse(expr, syntax.Perl)
		if err != nil {
			return nil, fmt.Errorf("parse: %w", err)
		}
		lists, err := expand(re)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", expr, err)
		}
		for _, l := range lists {
			s := seq{elems: join(l)}
			if len(s.elems) > 0 && s.elems[0].cls != nil && s.elems[0].min != s.elems[0].max {
				s.lead = 1
			}
			if err := s.deterministic(); err != nil {
				return nil, fmt.Errorf("%s: %w", expr, err)
			}
			seqs = append(seqs, s)
		}
	}
	return seqs, nil
}

// expand returns the alternatives that re stands for, each as a list of elements.
func expand(re *syntax.Regexp) ([][]elem, error) {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return [][]elem{nil}, nil
	case syntax.OpLiteral:
		return expandLiteral(re)
	case syntax.OpCharClass:
		c, err := asciiClass(re.Rune)
		return [][]elem{{{cls: c, min: 1, max: 1}}}, err
	case syntax.OpCapture:
		return expand(re.Sub[0])
	case syntax.OpQuest:
		l, err := expand(re.Sub[0])
		return append(l, nil), err
	case syntax.OpPlus, syntax.OpStar, syntax.OpRepeat:
		return expandRepeat(re)
	case syntax.OpAlternate:
		return expandEach(re.Sub)
	case syntax.OpConcat:
		return expandConcat(re.Sub)
	}
	return nil, errShape
}

// expandLiteral refuses literals in any case and beyond ASCII; no token has them.
func expandLiteral(re *syntax.Regexp) ([][]elem, error) {
	var l []elem
	for _, r := range re.Rune {
		if r >= wide || re.Flags&syntax.FoldCase != 0 {
			return nil, errShape
		}
		l = append(l, elem{lit: string(r)})
	}
	return [][]elem{l}, nil
}

// expandRepeat makes a run of a repeated class, and copies of anything else that is
// repeated a fixed number of times.
func expandRepeat(re *syntax.Regexp) ([][]elem, error) {
	lo, hi := re.Min, re.Max
	switch re.Op {
	case syntax.OpPlus:
		lo, hi = 1, unbounded
	case syntax.OpStar:
		lo, hi = 0, unbounded
	}
	sub, err := expand(re.Sub[0])
	if err != nil {
		return nil, err
	}
	if len(sub) == 1 && len(sub[0]) == 1 && sub[0][0].cls != nil && sub[0][0].max == 1 {
		return [][]elem{{{cls: sub[0][0].cls, min: lo, max: hi}}}, nil
	}
	if lo != hi || len(sub) != 1 {
		return nil, errShape
	}
	var l []elem
	for range lo {
		l = append(l, sub[0]...)
	}
	return [][]elem{l}, nil
}

// expandEach returns the alternatives of all subs.
func expandEach(subs []*syntax.Regexp) ([][]elem, error) {
	var all [][]elem
	for _, s := range subs {
		l, err := expand(s)
		if err != nil {
			return nil, err
		}
		all = append(all, l...)
	}
	if len(all) > most {
		return nil, errShape
	}
	return all, nil
}

// expandConcat multiplies the alternatives of the parts. The bound holds for each
// step, so that no expression makes more than most times as many on the way.
func expandConcat(subs []*syntax.Regexp) ([][]elem, error) {
	all := [][]elem{nil}
	for _, s := range subs {
		l, err := expand(s)
		if err != nil {
			return nil, err
		}
		var next [][]elem
		for _, head := range all {
			for _, tail := range l {
				next = append(next, slices.Concat(head, tail))
			}
		}
		if all = next; len(all) > most {
			return nil, errShape
		}
	}
	return all, nil
}

// asciiClass refuses what JSON may write in more than one byte: the classes of
// seqs are compared with raw bytes.
func asciiClass(ranges []rune) (*class, error) {
	c := new(class)
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i] <= ' ' || ranges[i+1] >= wide {
			return nil, errShape
		}
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			c[r] = true
		}
	}
	// The characters that encoders of JSON escape, each in more than one way.
	for _, b := range []byte(`"\<>&`) {
		if c[b] {
			return nil, errShape
		}
	}
	return c, nil
}

// join merges neighbouring literals.
func join(l []elem) []elem {
	var out []elem
	for _, e := range l {
		if n := len(out); e.cls == nil && n > 0 && out[n-1].cls == nil {
			out[n-1].lit += e.lit
			continue
		}
		out = append(out, e)
	}
	return out
}

// deterministic reports an error when a run could have given bytes back to
// what follows it.
func (s *seq) deterministic() error {
	for i, e := range s.elems[:max(len(s.elems)-1, 0)] {
		if e.cls == nil || e.min == e.max {
			continue
		}
		if next := s.elems[i+1]; next.cls != nil && e.cls.overlaps(next.cls) || next.cls == nil && e.cls[next.lit[0]] {
			return fmt.Errorf("element %d may give back: %w", i, errShape)
		}
		// Otherwise the run would meet what comes after, which was not compared with it.
		if next := s.elems[i+1]; next.cls != nil && next.min == 0 {
			return fmt.Errorf("element %d is followed by an optional one: %w", i, errShape)
		}
	}
	return nil
}

// match matches at pos, where the first element after the lead begins. It
// returns the match and firstEnd, the end of the first run after the lead,
// which tells a failed caller how far trying again is useless (0: nothing).
func (s *seq) match(t *text, pos int) (start, end, firstEnd int, ok bool) {
	b := t.b
	start, end = pos, pos
	if s.lead == 1 {
		if start = t.leadStart(pos, &s.elems[0]); start < 0 {
			return 0, 0, 0, false
		}
	}
	for i := s.lead; i < len(s.elems); i++ {
		e := &s.elems[i]
		if e.cls == nil {
			if len(b)-end < len(e.lit) || string(b[end:end+len(e.lit)]) != e.lit {
				return 0, 0, firstEnd, false
			}
			end += len(e.lit)
			continue
		}
		n := run(b[end:], e.cls, e.max)
		// Bounded runs are short enough to be read again.
		if firstEnd == 0 && e.max < 0 {
			firstEnd = end + n
		}
		if n < e.min {
			return 0, 0, firstEnd, false
		}
		end += n
	}
	return start, end, firstEnd, true
}

// run returns how many bytes b begins with are in c, at most limit.
func run(b []byte, c *class, limit int) int {
	if limit >= 0 && len(b) > limit {
		b = b[:limit]
	}
	for i, x := range b {
		if !c[x] {
			return i
		}
	}
	return len(b)
}

// leadStart returns where the run of e that ends at pos begins, -1 when it is
// too short. The digits of an escape do not belong to it.
func (t *text) leadStart(pos int, e *elem) int {
	b := t.b
	start := pos
	// Four more, which may be the digits of an escape.
	for start > 0 && pos-start < e.max+4 && e.cls[b[start-1]] {
		start--
	}
	if t.json && start >= 2 && b[start-1] == 'u' && b[start-2] == '\\' && !t.escaped(start-2) {
		start = min(start+4, pos)
	}
	if start = max(start, pos-e.max); pos-start < e.min {
		return -1
	}
	return start
}

// fixed returns the classes of the bytes at fixed places: from the last byte
// of the lead, or the beginning, to the shortest form of the first run.
func (s *seq) fixed() place {
	var p place
	if s.lead == 1 {
		p.cls = append(p.cls, s.elems[0].cls.list())
		p.ref.off = -1
	}
	for _, e := range s.elems[s.lead:] {
		if e.cls == nil {
			for i := range len(e.lit) {
				p.cls = append(p.cls, []byte{e.lit[i]})
			}
			continue
		}
		l := e.cls.list()
		// An anchor takes seven bytes; long runs offer no better ones further on.
		for range min(e.min, 128) {
			p.cls = append(p.cls, l)
		}
		if e.min != e.max {
			break
		}
	}
	return p
}

// literalPlace is the place of a literal, in any case when fold is set.
func literalPlace(lit string, fold bool) place {
	var p place
	for i := range len(lit) {
		c := []byte{lit[i]}
		if up := upper(lit[i]); fold && up != lit[i] {
			c = append(c, up)
		}
		p.cls = append(p.cls, c)
	}
	return p
}

func literalPlaces(fold bool, lits ...string) []place {
	var all []place
	for _, l := range lits {
		all = append(all, literalPlace(l, fold))
	}
	return all
}
