package jsonscan

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// Two loops over every byte of an answer are worth code for one processor: they
// find the bytes of strings that need a look, and put backslashes before quotes.
// The build tag purego leaves that code out; tests hold both ways equal.

// block is how many bytes escapeVector takes at once, stretch how many blocks one
// call is for: what runs in assembler cannot be interrupted.
const (
	block   = 16
	stretch = 64
)

// spreads says, for each set of bytes among eight, where the eight go and where a
// backslash comes before them: it numbers the bytes of the source from 0, those of
// a row of backslashes from 8, and what shall be zero 0x80.
var spreads = func() (t [256][16]byte) {
	for set := range t {
		n := 0
		for i := range 8 {
			if set>>i&1 != 0 {
				t[set][n] = 8
				n++
			}
			t[set][n] = byte(i)
			n++
		}
		for ; n < 16; n++ {
			t[set][n] = 0x80
		}
	}
	return t
}()

// appendVector appends text, escaped once.
func appendVector(dst, text []byte) []byte {
	i := 0
	for len(text)-i >= block {
		blocks := min((len(text)-i)/block, stretch)
		// The worst case, in which every byte gets a backslash: the routine does not check.
		if cap(dst)-len(dst) < 2*block*blocks {
			dst = slices.Grow(dst, max(2*block*blocks, len(text)-i+len(text)/8))
		}
		read, written := escapeVector(&dst[:cap(dst)][len(dst)], &text[i], blocks, &spreads)
		dst, i = dst[:len(dst)+written], i+read
		if read < block*blocks {
			// Something else is here, and often more of it behind.
			// No character may be parted, or each half would become U+FFFD.
			end := boundary(text, i+oddStretch)
			dst, _ = appendBy(dst, text[i:end], &once)
			i = end
		}
	}
	dst, _ = appendBy(dst, text[i:], &once)
	return dst
}

// oddStretch is how many bytes go the other way when there is anything but printable
// ASCII: text with line ends is faster so than with the vectors in between.
const oddStretch = 256

// boundary returns an index from i on that parts no character.
func boundary(text []byte, i int) int {
	for range utf8.UTFMax - 1 {
		if i < len(text) && !utf8.RuneStart(text[i]) {
			i++
		}
	}
	return min(i, len(text))
}

// marks finds the bytes of a text that are special in a string of JSON: quotes,
// backslashes, control characters and all that is not ASCII. It has a bit for each
// byte in a window of the text.
type marks struct {
	data []byte
	base int // where the window begins, a multiple of 64
	// bits are those of the window, and one more word.
	bits [windowWords + 1]uint64
}

const windowWords = 64

// fill moves the window to the block of i, which is less than the text's length.
// What is behind the text is marked.
func (m *marks) fill(i int) {
	m.base = i &^ 63
	rest := m.data[m.base:]
	// Whole blocks only, as the routine must not read behind the text.
	n := min(len(rest)/64, len(m.bits))
	// The address of the first byte of an empty slice would panic.
	if vectors && n > 0 {
		markVector(&m.bits[0], &rest[0], n)
	} else {
		for k := range n {
			m.bits[k] = markBlock((*[64]byte)(rest[64*k:]))
		}
	}
	if n == len(m.bits) {
		return
	}
	var last [64]byte // zeros are control characters
	copy(last[:], rest[64*n:])
	m.bits[n] = markBlock(&last)
	for k := n + 1; k < len(m.bits); k++ {
		// Marked, so that a search ends here, and its caller sees the end of the text.
		m.bits[k] = ^uint64(0)
	}
}

// next returns where the first special byte from i on is, or the length of the
// text or more. i must not be before the window.
func (m *marks) next(i int) int {
	for i < len(m.data) {
		k, shift := uint(i-m.base)/64, uint(i)%64
		// The window moves forward only: strings are read once.
		if k >= windowWords {
			m.fill(i)
			k = 0
		}
		if w := m.bits[k]>>shift | m.bits[k+1]<<1<<(63-shift); w != 0 {
			return i + bits.TrailingZeros64(w)
		}
		// Nothing special in the 64 bytes from here on.
		i += 64
	}
	return i
}

// markBlock returns the bits of 64 bytes.
func markBlock(b *[64]byte) (set uint64) {
	const (
		ones = 0x0101010101010101
		low  = 0x7f * ones
		high = 0x80 * ones
	)
	for k := range 8 {
		x := binary.LittleEndian.Uint64(b[8*k:])
		y := x & low
		// The high bit of each byte says: no quote, no backslash, not below a blank.
		plain := (y ^ '"'*ones + low) & (y ^ '\\'*ones + low) & (y + 0x60*ones)
		special := (^plain | x) & high
		// One factor moves the eight high bits into the top byte.
		set |= special >> 7 * 0x0102040810204080 >> 56 << (8 * k)
	}
	return set
}
