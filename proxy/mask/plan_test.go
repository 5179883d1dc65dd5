package mask

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"flag"
	"fmt"
	"go/format"
	"math/bits"
	"os"
	"slices"
	"testing"
)

var update = flag.Bool("update-plan", false,
	"choose the anchors and buckets of the built-in rules anew and write plan_table.go")

// planner chooses the anchors of rules and their buckets so that the sample
// makes few candidates. It counts them, and adds a little of what the
// frequencies of the pairs would make of it, as a sample is finite.
type planner struct {
	table *table
	text  []byte
	p     *profile
	at    [1 << 16][]int32 // the places of each pair in the sample
	mass  [buckets][roles]float32
	// has says, by place in the sample, which roles the pairs there would get;
	// places lists those that get any.
	has    []uint8
	places []int32
	plan   map[planKey]assigned
}

// smoothing is the weight of the estimate beside the count.
const smoothing = 0.2

func newPlanner(text []byte) *planner {
	pl := &planner{table: &table{}, text: text, p: newProfile(text), plan: map[planKey]assigned{}}
	for i := range len(text) - 1 {
		k := pair(text[i], text[i+1])
		pl.at[k] = append(pl.at[k], int32(i))
	}
	pl.has = make([]uint8, len(text)-2*roles)
	return pl
}

// item is a place with what was chosen for it.
type item struct {
	p    *place
	offs []int
	cost float32
	assigned
}

func (it *item) triple(parity int) triple {
	a := it.p.anchor(it.off)
	return a.triple(parity)
}

// choose plans all places, the likely ones first, and then each again in the
// light of the others.
func (pl *planner) choose(t *testing.T, all []place) {
	items := make([]item, len(all))
	for i := range all {
		items[i] = item{p: &all[i]}
		if items[i].offs, items[i].cost = pl.windows(&all[i]); len(items[i].offs) == 0 {
			t.Fatalf("%s: %v", all[i].name, errCommon)
		}
	}
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(b.cost, a.cost) })
	for i := range items {
		if it := &items[i]; it.guard() {
			// The escapes that Go writes in any text must not be mixed with
			// anything: two buckets are theirs.
			it.even, it.odd = 0, []int{3, 1, 2}[it.p.ref.variant]
			pl.enter(it.even, it.triple(0))
			pl.enter(it.odd, it.triple(1))
		}
	}
	for i := range items {
		if !items[i].guard() {
			pl.put(&items[i])
		}
	}
	for range sweeps {
		t.Logf("%.3f%% of the pairs of the sample are candidates", 100*share(pl.table, pl.text))
		for i := range items {
			if !items[i].guard() {
				pl.take(items, i)
				pl.put(&items[i])
			}
		}
	}
	for _, it := range items {
		pl.plan[planKey{it.p.name, it.p.ref.variant}] = it.assigned
	}
}

// guard reports whether it is a guard against \u00xx.
func (it *item) guard() bool { return it.p.name == "guard" && it.p.ref.variant < 3 }

const sweeps = 3

// put chooses for it and enters it.
func (pl *planner) put(it *item) {
	best, bestCost := it.offs[0], float32(0)
	for i, off := range it.offs {
		a := it.p.anchor(off)
		_, even := pl.cheapest(a.triple(0))
		_, odd := pl.cheapest(a.triple(1))
		if i == 0 || even+odd < bestCost {
			best, bestCost = off, even+odd
		}
	}
	it.off = best
	// One after the other: they may not go together.
	it.even, _ = pl.cheapest(it.triple(0))
	pl.enter(it.even, it.triple(0))
	it.odd, _ = pl.cheapest(it.triple(1))
	pl.enter(it.odd, it.triple(1))
}

// take removes an item: its buckets are filled anew with the others.
func (pl *planner) take(items []item, i int) {
	for _, b := range []int{items[i].even, items[i].odd} {
		var bits uint64
		for r := range roles {
			bits |= bit(b, r)
			pl.mass[b][r] = 0
		}
		for k := range pl.table.pairs {
			pl.table.pairs[k] &^= bits
		}
		for j := range items {
			if it := &items[j]; j != i {
				if it.even == b {
					pl.enter(b, it.triple(0))
				}
				if it.odd == b {
					pl.enter(b, it.triple(1))
				}
			}
		}
	}
}

// windows returns the offsets of the least likely windows of a place.
func (pl *planner) windows(p *place) (offs []int, cost float32) {
	if p.bare {
		a := p.anchor(0)
		return []int{0}, pl.p.cost(a.triple(0)) + pl.p.cost(a.triple(1))
	}
	type window struct {
		off  int
		cost float32
	}
	var all []window
	for i := 0; i+4 <= len(p.cls); i++ {
		if a := p.anchor(i); a.combinations() <= anchorMax {
			all = append(all, window{i, pl.p.cost(a.triple(0)) + pl.p.cost(a.triple(1))})
		}
	}
	slices.SortStableFunc(all, func(a, b window) int { return cmp.Compare(a.cost, b.cost) })
	for _, w := range all[:min(len(all), 8)] {
		offs = append(offs, w.off)
	}
	if len(all) > 0 {
		cost = all[0].cost
	}
	return offs, cost
}

// cheapest returns the bucket in which t makes the fewest further candidates.
func (pl *planner) cheapest(t triple) (bucket int, cost float32) {
	for r, h := range t {
		pl.mark(r, h)
	}
	more := pl.fresh(t)
	counts := pl.count()
	for b := range buckets {
		m := pl.mass[b]
		for r := range t {
			m[r] += more[b][r]
		}
		c := float32(counts[b])/float32(len(pl.has)) + smoothing*(product(m)-product(pl.mass[b]))
		if b >= 2 && (b == 2 || c < cost) {
			bucket, cost = b, c
		}
	}
	return bucket, cost
}

// fresh returns, by bucket and role, the probability of the pairs that t would
// bring and the bucket does not have.
func (pl *planner) fresh(t triple) (more [buckets][roles]float32) {
	const all = 1<<buckets - 1
	for r, h := range t {
		for _, x := range h[0] {
			for _, y := range h[1] {
				k := pair(x, y)
				for lacks := ^(pl.table.pairs[k] >> (r * shift)) & all; lacks != 0; lacks &= lacks - 1 {
					more[bits.TrailingZeros64(lacks)][r] += pl.p[k]
				}
			}
		}
	}
	return more
}

// mark notes the places where a pair of h is at the distance of role.
func (pl *planner) mark(role int, h [2][]byte) {
	set := func(i int) {
		if i < 0 || i >= len(pl.has) {
			return
		}
		if pl.has[i] == 0 {
			pl.places = append(pl.places, int32(i))
		}
		pl.has[i] |= 1 << role
	}
	if len(h[0]) == 256 && len(h[1]) == 256 {
		for i := range pl.has {
			set(i)
		}
		return
	}
	for _, x := range h[0] {
		for _, y := range h[1] {
			for _, i := range pl.at[pair(x, y)] {
				set(int(i) - 2*role)
			}
		}
	}
}

// count returns, by bucket, how many candidates the marked pairs would add,
// and takes the marks back.
func (pl *planner) count() (counts [buckets]int) {
	const all = 1<<buckets - 1
	for _, i := range pl.places {
		var old, with uint64 = all, all
		for r := range roles {
			has := pl.table.pairs[pair(pl.text[int(i)+2*r], pl.text[int(i)+2*r+1])] >> (r * shift) & all
			old &= has
			if pl.has[i]>>r&1 != 0 {
				has = all
			}
			with &= has
		}
		for fresh := with &^ old; fresh != 0; fresh &= fresh - 1 {
			counts[bits.TrailingZeros64(fresh)]++
		}
		pl.has[i] = 0
	}
	pl.places = pl.places[:0]
	return counts
}

func (pl *planner) enter(b int, t triple) {
	for r, h := range t {
		for _, x := range h[0] {
			for _, y := range h[1] {
				if k := pair(x, y); pl.table.pairs[k]&bit(b, r) == 0 {
					pl.table.pairs[k] |= bit(b, r)
					pl.mass[b][r] += pl.p[k]
				}
			}
		}
	}
}

// write returns plan_table.go.
func (pl *planner) write(t *testing.T) []byte {
	keys := make([]planKey, 0, len(pl.plan))
	for k := range pl.plan {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b planKey) int { return cmp.Or(cmp.Compare(a.rule, b.rule), cmp.Compare(a.variant, b.variant)) })
	var b bytes.Buffer
	b.WriteString("// Code generated by go test -run TestPlan -update-plan; DO NOT EDIT.\n\npackage mask\n\n// planned are the anchors and buckets of the built-in rules.\nvar planned = map[planKey]assigned{\n")
	for i := 0; i < len(keys); {
		for rule := keys[i].rule; i < len(keys) && keys[i].rule == rule; i++ {
			w := pl.plan[keys[i]]
			fmt.Fprintf(&b, "{%q, %d}: {%d, %d, %d}, ", rule, keys[i].variant, w.off, w.even, w.odd)
		}
		b.WriteString("\n")
	}
	b.WriteString("}\n")
	src, err := format.Source(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// TestPlan holds the plan against the rules: each place has an entry, and on
// ordinary text few blocks have candidates.
func TestPlan(t *testing.T) {
	t.Parallel()
	e, err := New(Default(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		corpora, err := Corpora(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		var text []byte
		for _, c := range corpora[:5] {
			text = append(text, c.JSON[len(c.JSON)/2:][:96<<10]...)
		}
		pl := newPlanner(text)
		pl.choose(t, e.places())
		t.Logf("%.3f%% of the pairs of the sample are candidates", 100*share(pl.table, text))
		if err := os.WriteFile("plan_table.go", pl.write(t), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, p := range e.places() {
		if _, ok := planned[planKey{p.name, p.ref.variant}]; !ok {
			t.Errorf("%s, variant %d has no entry in plan_table.go: run go test -run TestPlan -update-plan", p.name,
				p.ref.variant)
		}
	}
	corpora, err := Corpora(1 << 20)
	if err != nil {
		t.Skip(err)
	}
	for _, c := range corpora[:5] {
		share := share(e.table, c.JSON)
		t.Logf("%s: %.3f%% of the pairs are candidates", c.Name, 100*share)
		if share > 0.02 {
			t.Errorf("%s: %.1f%% of the pairs are candidates", c.Name, 100*share)
		}
	}
}

// share returns which part of the pairs of b are candidates.
func share(t *table, b []byte) float64 {
	n := 0
	for i := 0; i+6 <= len(b); i += 2 {
		at := func(k int) uint64 { return t.pairs[binary.LittleEndian.Uint16(b[i+k:])] }
		if at(0)&(at(2)>>shift)&(at(4)>>(2*shift)) != 0 {
			n++
		}
	}
	return float64(n) / float64(len(b)/2)
}
