package mask

import (
	"errors"
	"fmt"
	"math/bits"
)

// An assigned place has its anchor at off of its classes, and shows in bucket
// even at even places of the text and in bucket odd at odd ones. planned lists
// those of the built-in rules: choosing them well takes seconds and a sample
// of text, so it is done when the rules change (see TestPlan). Places that are
// not listed get a quick choice.
type assigned struct {
	off, even, odd int
}

// planKey names a place of a built-in rule.
type planKey struct {
	rule    string
	variant int32
}

var errCommon = errors.New("no four neighbouring bytes are distinctive enough")

// anchor returns the window of p that begins at off.
func (p *place) anchor(off int) anchor {
	a := anchor{cls: p.cls[off:min(off+anchorLen, len(p.cls))], ref: p.ref}
	a.ref.off += int32(off)
	return a
}

// assign chooses the anchor and the buckets of a place, by the plan or in
// short, and enters them into the table.
func (t *table) assign(p *place, plan map[planKey]assigned) (anchor, error) {
	// An entry that does not fit its rule any more is passed over, not trusted.
	if w, ok := plan[planKey{p.name, p.ref.variant}]; ok && (p.bare && w.off < len(p.cls) || w.off+4 <= len(p.cls)) {
		a := p.anchor(w.off)
		t.enter(w.even, a.triple(0))
		t.enter(w.odd, a.triple(1))
		return a, nil
	}
	f := frequencies()
	best, bestCost := -1, float32(0)
	for i := 0; i == 0 || i+4 <= len(p.cls); i++ {
		a := p.anchor(i)
		if !p.bare && (len(a.cls) < 4 || a.combinations() > anchorMax) {
			continue
		}
		if c := f.cost(a.triple(0)) + f.cost(a.triple(1)); best < 0 || c < bestCost {
			best, bestCost = i, c
		}
	}
	if best < 0 {
		return anchor{}, fmt.Errorf("variant %d: %w", p.ref.variant, errCommon)
	}
	a := p.anchor(best)
	for parity := range 2 {
		tr := a.triple(parity)
		t.enter(t.emptiest(f, tr), tr)
	}
	return a, nil
}

// emptiest returns the bucket in which tr adds least to the estimate of false
// candidates.
func (t *table) emptiest(f *profile, tr triple) int {
	var mass [buckets][roles]float32
	for i, set := range &t.pairs {
		for ; set != 0; set &= set - 1 {
			n := bits.TrailingZeros64(set)
			mass[n%buckets][n/buckets] += f[i]
		}
	}
	best, bestCost := 0, float32(0)
	for b := range buckets {
		m := mass[b]
		for r, h := range tr {
			m[r] = min(m[r]+f.of(h[0], h[1]), 1)
		}
		if c := product(m) - product(mass[b]); b == 0 || c < bestCost {
			best, bestCost = b, c
		}
	}
	return best
}

// enter sets the bits of an anchor that shows as tr in bucket b.
func (t *table) enter(b int, tr triple) {
	for r, h := range tr {
		for _, x := range h[0] {
			for _, y := range h[1] {
				t.pairs[pair(x, y)] |= bit(b, r)
			}
		}
	}
}

// cost estimates how often t shows by chance, as if its pairs were independent.
func (p *profile) cost(t triple) float32 {
	c := float32(1)
	for _, h := range t {
		c *= p.of(h[0], h[1])
	}
	return c
}

func product(m [roles]float32) float32 { return m[0] * m[1] * m[2] }

// bit is where a table entry has a bucket in a role.
func bit(bucket, role int) uint64 { return 1 << (role*buckets + bucket) }
