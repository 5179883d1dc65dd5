package mask

import "bytes"

// token recognises secrets by their own shape: a literal that only they have,
// and the length and alphabet of the rest.
type token struct {
	seqs []seq
}

// places returns the fixed part of each shape, as many bytes as there are: the longer
// it is, the better an anchor can be chosen.
func (k *token) places() []place {
	var all []place
	for i := range k.seqs {
		all = append(all, k.seqs[i].fixed())
	}
	return all
}

// find matches, and demands that neither side goes on as a word. A lead is read
// backwards first, as only then it is known where the token begins.
func (k *token) find(s *scan, variant, pos int) finding {
	q := &k.seqs[variant]
	t := &s.t
	if q.lead == 0 && !k.opens(s, pos) {
		return finding{}
	}
	start, end, firstEnd, ok := q.match(t, pos)
	if !ok {
		return finding{skip: firstEnd}
	}
	if q.lead == 1 && !k.opens(s, start) {
		return finding{}
	}
	last := &q.elems[len(q.elems)-1]
	// A run of no fixed length may have swallowed the beginning of the next token.
	if last.cls != nil && last.min != last.max {
		end = s.cut(start+1, end, last.min)
	}
	if !k.closes(s, end) {
		return finding{}
	}
	return finding{start: start, end: end, keep: q.keep(), skip: end, ok: true}
}

// keep returns how many bytes of a match are the format's and not the
// secret's: everything before the first run, if a literal is among it.
func (s *seq) keep() int {
	n, lit := 0, false
	for _, e := range s.elems {
		if e.cls != nil && e.max != 1 {
			break
		}
		n += max(len(e.lit), e.max)
		lit = lit || e.cls == nil
	}
	if !lit {
		return 0
	}
	return n
}

// prefixes adds the first four bytes of the shapes to starts.
func (k *token) prefixes(starts map[uint32]struct{}) {
	for i := range k.seqs {
		var cls [][]byte
		for _, e := range k.seqs[i].elems {
			for j := range len(e.lit) {
				cls = append(cls, []byte{e.lit[j]})
			}
			if e.cls != nil && (e.max == 1 || len(cls) == 3) {
				cls = append(cls, e.cls.list())
			}
			if e.cls != nil && e.max != 1 || len(cls) >= 4 {
				break
			}
		}
		// Fewer bytes would end words that have nothing to do with a token.
		if len(cls) < 4 || k.seqs[i].keep() < 3 {
			continue
		}
		a := anchor{cls: cls[:4]}
		a.eachKey(func(key uint32) { starts[key] = struct{}{} })
	}
}

// opens reports whether a token may begin at i: not inside a word, but back to
// back with something else that is masked.
func (k *token) opens(s *scan, i int) bool {
	return s.t.openBefore(i) || i > 0 && s.lastEnd == i
}

// closes reports whether a token may end at i.
func (k *token) closes(s *scan, i int) bool {
	return s.t.closedAfter(i) || s.e.table.startsToken(s.t.b[i:])
}

// cut returns where a run that ends at end ends if the beginning of another
// token that is back to back with it is not counted: "xoxb-…xoxb-…" has the
// class of the first run swallow "xoxb" of the second.
func (s *scan) cut(start, end, least int) int {
	b := s.t.b
	if end >= len(b) || b[end] != '_' && b[end] != '-' && b[end] != '.' {
		return end
	}
	for k := max(start+least, end-8); k < end; k++ {
		if s.e.table.startsToken(b[k:]) {
			return k
		}
	}
	return end
}

// marker notices the strings of JSON documents that say that they may hold
// base64.
type marker struct{}

// markers are the value of "encoding" beside an encoded content, and the names
// of members that are always encoded.
var markers = []string{`"base64"`, `"content_base64"`, `"sidebar"`, `"footer"`}

func (marker) places() []place { return literalPlaces(false, markers...) }

// find takes note only: nothing is masked for a marker.
func (marker) find(s *scan, variant, pos int) finding {
	if s.t.json && bytes.HasPrefix(s.t.b[pos:], []byte(markers[variant])) {
		s.encoded = true
	}
	return finding{}
}
