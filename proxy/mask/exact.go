package mask

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
)

// secrets is a set of exact values to find in one pass, in each of their
// encodings (see the function of that name). It is immutable.
type secrets struct {
	groups []group
	// longest is the length of the longest value.
	longest int
	// blind says that a value has no part that is the same in all encodings.
	blind bool
}

// group holds needles of similar length. Four bytes of the text are looked at
// in every stride bytes: a needle of at least stride+3 bytes has one of its
// first stride four-byte windows at such a place. A bit map says which windows
// there are.
type group struct {
	size   int // the stride of its class of lengths; see newSecrets
	stride int
	bits   []uint64
	shift  uint
	slots  []window // open hash table
	mask   uint32
	list   []needle
	naive  bool // needles shorter than four bytes, found one by one
}

// window is where a needle has four bytes.
type window struct {
	key    uint32
	needle int32
	off    int32 // -1 marks an empty slot
}

// needle is one encoding of a secret.
type needle struct {
	b []byte
	// probe marks a part of a secret: where it is in JSON, the string must
	// be decoded to see whether the rest does.
	probe bool
	// textOnly marks encodings that cannot be in raw JSON as they are.
	textOnly bool
	// edge holds the bits of the base64 digits before and behind b that
	// belong to the secret; zero masks mean that there are none.
	edge [2]edge
}

// edge constrains one base64 digit: its value and mask == value.
type edge struct{ mask, value byte }

// newSecrets compiles values. Those shorter than least are left out.
func newSecrets(values []string, least int) *secrets {
	s := &secrets{}
	var all []needle
	seen := map[string]bool{}
	for _, v := range values {
		if len(v) < least || v == "" || seen[v] {
			continue
		}
		seen[v] = true
		s.longest = max(s.longest, len(v))
		s.blind = s.blind || !isPlain(v) && len(plainPart(v)) < 4
		all = append(all, encodings(v)...)
	}
	// A needle of n bytes allows strides of n-3 at most. By classes, so that one short secret does not
	// make the pass for long ones slow. A stride of 0 is for those that have no four bytes.
	for _, size := range []struct{ least, stride int }{{19, 32}, {11, 8}, {7, 4}, {5, 2}, {4, 1}, {1, 0}} {
		var g group
		shortest := size.stride + 3
		all = slices.DeleteFunc(all, func(n needle) bool {
			in := len(n.b) >= size.least
			if in {
				g.list = append(g.list, n)
				shortest = min(shortest, len(n.b))
			}
			return in
		})
		if len(g.list) > 0 {
			g.size = size.stride
			g.stride, g.naive = max(min(size.stride, shortest-3), 0), size.stride == 0
			g.compile()
			s.groups = append(s.groups, g)
		}
	}
	return s
}

// usualBits is the logarithm of the size of the bit maps of up to 1024 windows.
// Those of one size can be laid over each other.
const usualBits = 15

// compile makes the bit map and the table of windows. A bit map that is nearly empty
// lets the pass sort out most places with one load.
func (g *group) compile() {
	if g.naive {
		return
	}
	n := len(g.list) * g.stride
	logBits := max(bits.Len(uint(n))+5, usualBits) // at most 1 bit in 32 set
	g.bits = make([]uint64, 1<<logBits/64)
	g.shift = uint(32 - logBits)
	size := 1 << (bits.Len(uint(n)) + 1)
	g.mask = uint32(size - 1)
	g.slots = make([]window, size)
	for i := range g.slots {
		g.slots[i].off = -1
	}
	for i, nd := range g.list {
		for off := range g.stride {
			key := binary.LittleEndian.Uint32(nd.b[off:])
			h := key * golden >> g.shift
			g.bits[h/64] |= 1 << (h % 64)
			// Another factor than the bit map's, or what collides there would collide here as well.
			at := key * 0x85EBCA6B >> 7 & g.mask
			for g.slots[at].off >= 0 {
				at = (at + 1) & g.mask
			}
			g.slots[at] = window{key: key, needle: int32(i), off: int32(off)}
		}
	}
}

// found is called with a place where a secret is, or with probe where a
// part of one does.
type found func(start, end int, probe bool)

// pass is one reading of a text for the groups of one class of lengths.
type pass struct {
	size   int
	stride int
	bits   []uint64
	shift  uint
	groups []*group
}

// passes returns what it takes to find all of some sets: groups of one class
// share a pass when their bit maps have one size.
func passes(sets ...*secrets) []pass {
	var all []pass
	for _, s := range sets {
		if s == nil {
			continue
		}
	next:
		for i := range s.groups {
			g := &s.groups[i]
			for j := range all {
				if p := &all[j]; p.size == g.size && p.shift == g.shift && !g.naive {
					p.stride = min(p.stride, g.stride)
					// The first group's own map is shared by all calls.
					p.bits = slices.Clone(p.bits)
					for k, w := range g.bits {
						p.bits[k] |= w
					}
					p.groups = append(p.groups, g)
					continue next
				}
			}
			all = append(all, pass{size: g.size, stride: g.stride, bits: g.bits, shift: g.shift, groups: []*group{g}})
		}
	}
	return all
}

// find calls yield with every place in b where a secret is. Places may
// overlap and come in no particular order.
func (p *pass) find(b []byte, json bool, yield found) {
	if p.stride == 0 {
		for _, g := range p.groups {
			g.findNaive(b, json, yield)
		}
		return
	}
	for at := p.next(b, 0); at >= 0; at = p.next(b, at+p.stride) {
		for _, g := range p.groups {
			g.verify(b, at, json, yield)
		}
	}
}

// next returns the next place from at on where a window may be.
func (p *pass) next(b []byte, at int) int {
	m, shift, stride := p.bits, p.shift, p.stride
	for ; at+4 <= len(b); at += stride {
		h := binary.LittleEndian.Uint32(b[at:]) * golden >> shift
		if m[h/64]>>(h%64)&1 != 0 {
			return at
		}
	}
	return -1
}

// verify looks up the window at at and checks each needle that has it.
func (g *group) verify(b []byte, at int, json bool, yield found) {
	key := binary.LittleEndian.Uint32(b[at:])
	for i := key * 0x85EBCA6B >> 7 & g.mask; g.slots[i].off >= 0; i = (i + 1) & g.mask {
		w := g.slots[i]
		if w.key == key {
			g.list[w.needle].check(b, at-int(w.off), json, yield)
		}
	}
}

// check verifies the needle at start.
func (n *needle) check(b []byte, start int, json bool, yield found) {
	end := start + len(n.b)
	if start < 0 || end > len(b) || json && n.textOnly || n.probe && !json || !bytes.Equal(b[start:end], n.b) {
		return
	}
	if e := n.edge[0]; e.mask != 0 {
		if start == 0 || !e.fits(b[start-1]) {
			return
		}
		start--
	}
	if e := n.edge[1]; e.mask != 0 {
		if end == len(b) || !e.fits(b[end]) {
			return
		}
		end++
	}
	yield(start, end, n.probe)
}

// fits reports whether the digit c agrees with the bits that the secret decides.
func (e edge) fits(c byte) bool {
	d := unbase64[c]
	return d >= 0 && byte(d)&e.mask == e.value
}

// findNaive is for the few secrets that are shorter than a window; the time is linear
// in the text for each.
func (g *group) findNaive(b []byte, json bool, yield found) {
	for i := range g.list {
		n := &g.list[i]
		for at := 0; ; {
			k := bytes.Index(b[at:], n.b)
			if k < 0 {
				break
			}
			n.check(b, at+k, json, yield)
			at += k + len(n.b)
		}
	}
}
