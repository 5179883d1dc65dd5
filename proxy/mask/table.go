package mask

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// The filter looks at every second byte pair of the text. A table entry says
// for which buckets of anchors the pair may be the first, the second and the
// third of three neighbouring ones; where the bits of three neighbours meet is
// a candidate. An anchor shows in one way at even places and in another at odd
// ones, so it is entered twice, in the buckets where it does the least harm.
// Only at candidates anything else is looked at.
const (
	buckets   = 21
	roles     = 3
	shift     = buckets // from the bits of one role to the next
	allBits   = 1<<buckets - 1
	anchorMax = 4096 // combinations of the first four bytes of an anchor
)

// place is where a rule may be noticed: the classes of the neighbouring bytes
// at fixed places of its text. Behind the last anything may follow. The filter
// takes a part of it, the anchor.
type place struct {
	name string // of the rule, for the plan
	cls  [][]byte
	ref  ref // with the offset of cls[0]
	// bare places have no refs: the scan recognises them by their bytes. They
	// may be shorter than four bytes.
	bare bool
}

// anchor is a part of a place: four bytes at least, and at most as many as the
// filter can use.
type anchor struct {
	cls [][]byte
	ref ref
}

// anchorLen is how many bytes of an anchor three pairs can show: six, from its first
// byte on at an even place and from its second at an odd one.
const anchorLen = 7

// ref leads from an anchor to what must be verified: the variant of a rule,
// whose text begins off bytes before the anchor.
type ref struct {
	rule, variant, off int32
}

// table is the compiled filter. It is immutable.
type table struct {
	pairs [1 << 16]uint64
	// known has a bit for the hash of each key in slots: nearly all
	// candidates are sorted out by it.
	known [1 << knownBits / 64]uint64
	// slots is an open hash table from four bytes to a list of refs.
	slots []slot
	shift uint
	refs  []ref
	// starts holds the first four bytes of rules with a literal prefix.
	starts map[uint32]struct{}
}

// knownBits makes 32 kB of table.known, which stays in the caches beside the core. The
// built-in rules set one bit in thirty.
const knownBits = 18

// slot is an entry of the hash table.
type slot struct {
	key         uint32
	first, last int32 // refs[first:last]; empty slots have last == 0
}

// newTable compiles places.
func newTable(places []place) (*table, error) {
	t := &table{starts: map[uint32]struct{}{}}
	// By the first four bytes of the anchor: what the scan has in a register.
	lists := map[uint32][]ref{}
	for i := range places {
		p := &places[i]
		a, err := t.assign(p, planned)
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", p.name, err)
		}
		if p.bare {
			continue
		}
		a.eachKey(func(key uint32) {
			// Classes that overlap lead to a variant by one key several times.
			if !slices.Contains(lists[key], a.ref) {
				lists[key] = append(lists[key], a.ref)
			}
		})
	}
	t.hash(lists)
	return t, nil
}

// combinations is how many different first four bytes the anchor has; each is a key.
func (a *anchor) combinations() int {
	return len(a.cls[0]) * len(a.cls[1]) * len(a.cls[2]) * len(a.cls[3])
}

// eachKey yields the first four bytes as the scan reads them, in little-endian order.
func (a *anchor) eachKey(yield func(uint32)) {
	for _, c0 := range a.cls[0] {
		for _, c1 := range a.cls[1] {
			for _, c2 := range a.cls[2] {
				for _, c3 := range a.cls[3] {
					yield(uint32(c0) | uint32(c1)<<8 | uint32(c2)<<16 | uint32(c3)<<24)
				}
			}
		}
	}
}

// golden is a prime near 2^32 divided by the golden ratio: multiplying by it spreads
// keys over the upper bits (Fibonacci hashing).
const golden = 0x9E3779B1

// hash fills slots, at most half of them. Keys are taken in order, so that the table is
// the same in every process.
func (t *table) hash(lists map[uint32][]ref) {
	size := 64
	t.shift = 26
	for size < 2*len(lists) {
		size *= 2
		t.shift--
	}
	t.slots = make([]slot, size)
	for _, k := range slices.Sorted(maps.Keys(lists)) {
		h := k * golden
		t.known[h>>(32-knownBits)/64] |= 1 << (h >> (32 - knownBits) % 64)
		first := int32(len(t.refs))
		t.refs = append(t.refs, lists[k]...)
		i := h >> t.shift
		for t.slots[i].last != 0 {
			i = (i + 1) & uint32(size-1)
		}
		t.slots[i] = slot{key: k, first: first, last: int32(len(t.refs))}
	}
}

// knows reports whether an anchor may begin with these four bytes.
func (t *table) knows(key uint32) bool {
	h := key * golden >> (32 - knownBits)
	return t.known[h/64]>>(h%64)&1 != 0
}

// find returns the refs whose anchors b begins with; b has 4 bytes or more.
func (t *table) find(b []byte) []ref {
	key := binary.LittleEndian.Uint32(b)
	for i := key * golden >> t.shift; ; i = (i + 1) & uint32(len(t.slots)-1) {
		s := &t.slots[i]
		if s.last == 0 {
			return nil
		}
		if s.key == key {
			return t.refs[s.first:s.last]
		}
	}
}

// startsToken reports whether b begins with the prefix of some rule.
func (t *table) startsToken(b []byte) bool {
	if len(b) < 4 {
		return false
	}
	_, ok := t.starts[binary.LittleEndian.Uint32(b)]
	return ok
}

// guardPlaces are the beginnings of the escapes that may hide a character of
// a secret: \/ and \u0021 to \u007e. The three that Go writes in any text (<, >
// and &) are let through.
func guardPlaces() []place {
	uni := func(hi, lo string) place {
		return place{name: "guard", bare: true, cls: [][]byte{{'\\'}, {'u'}, {'0'}, {'0'}, []byte(hi), []byte(lo)}}
	}
	all := []place{
		uni("2", "012345789abcdefABCDEF"),
		uni("3", "0123456789abdfABDF"),
		uni("4567", "0123456789abcdefABCDEF"),
		{name: "guard", bare: true, cls: [][]byte{{'\\'}, {'/'}}},
	}
	for i := range all {
		all[i].ref.variant = int32(i)
	}
	return all
}

// anyByte is the class of a place that a short anchor does not reach.
var anyByte = newClass("\x00-\xff").list()

// triple is how an anchor shows at even or at odd places: the two bytes of
// each of three pairs.
type triple [roles][2][]byte

func (a *anchor) triple(parity int) triple {
	var t triple
	for r := range roles {
		for k := range 2 {
			t[r][k] = anyByte
			if i := parity + 2*r + k; i < len(a.cls) {
				t[r][k] = a.cls[i]
			}
		}
	}
	if parity == 1 && len(a.cls) < 3 {
		// Too short to show whole at an odd place without its first byte.
		t = triple{{anyByte, a.cls[0]}, {a.cls[1], anyByte}, {anyByte, anyByte}}
	}
	return t
}
