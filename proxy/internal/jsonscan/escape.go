package jsonscan

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"
)

// escapes says how each byte is written: the text in the low four bytes, how many
// of them count in the fifth, and how long the text is when it is escaped once in
// the sixth. Bytes that need a closer look have rare set and nothing else.
type escapes [256]uint64

// rare is above what eight bytes add up to.
const rare = 1 << 48

// once escapes text into a JSON string, twice the result of that again.
var (
	once  = newEscapes(1)
	twice = newEscapes(2)
)

func newEscapes(times int) (t escapes) {
	for b := range t {
		c := byte(b)
		text := []byte{c}
		switch {
		case c == '\n', c == '\r', c == '\t', c == '"', c == '\\':
			text = appendEscape(nil, c)
		// Other control characters take six bytes, and bytes beyond ASCII must be checked: neither
		// fits an entry.
		case c < ' ' || c >= utf8.RuneSelf:
			t[b] = rare
			continue
		}
		length := len(text)
		// \n becomes \\n: the backslash is escaped, the letter is not; a quote has become \" and needs both.
		if times == 2 && length == 2 {
			text = append([]byte{'\\', '\\'}, text[1:]...)
			if c == '"' || c == '\\' {
				text = append(text[:2], '\\', c)
			}
		}
		for i, x := range text {
			t[b] |= uint64(x) << (8 * i)
		}
		t[b] |= uint64(len(text))<<32 | uint64(length)<<40
	}
	return t
}

// AppendEscapedTwice appends what AppendEscaped makes of its own result for text,
// in one pass, and returns how long that result is.
func AppendEscapedTwice(dst, text []byte) (_ []byte, length int) {
	return appendBy(dst, text, &twice)
}

// appendBy appends text as t says, and returns how long it is escaped once. What
// it does for each of eight bytes is the same whatever they are, as a processor
// cannot guess where the next quote is.
func appendBy(dst, text []byte, t *escapes) (_ []byte, length int) {
	dst = slices.Grow(dst, len(text)+len(text)/8+room)
	i := 0
	for i+8 <= len(text) {
		// Text with more quotes than the eighth that was foreseen.
		if cap(dst)-len(dst) < room {
			dst = slices.Grow(dst, len(text)-i+len(text)/8+room)
		}
		in, out := (*[8]byte)(text[i:]), (*[room]byte)(dst[len(dst):len(dst)+room])
		// How much was written, how long that is escaped once, and rare.
		sum := put(out, 0, t[in[0]])
		sum = put(out, sum, t[in[1]])
		sum = put(out, sum, t[in[2]])
		sum = put(out, sum, t[in[3]])
		sum = put(out, sum, t[in[4]])
		sum = put(out, sum, t[in[5]])
		sum = put(out, sum, t[in[6]])
		sum = put(out, sum, t[in[7]])
		if sum>>16 == 0 {
			dst, i, length = dst[:len(dst)+int(uint8(sum))], i+8, length+int(uint8(sum>>8))
			continue
		}
		// One of the eight is rare. The seven others go this way, too, as it may be any of them.
		for end := i + 8; i < end; {
			dst, i, length = appendOne(dst, text, i, length, t)
		}
	}
	for i < len(text) {
		dst, i, length = appendOne(dst, text, i, length, t)
	}
	return dst, length
}

// put writes what e says at the length in sum, and adds to sum.
func put(out *[room]byte, sum, e uint64) uint64 {
	binary.LittleEndian.PutUint32(out[uint8(sum):], uint32(e))
	return sum + e>>32
}

// room is what eight bytes are written into: an index of one byte stays inside.
const room = 256 + 4

// appendOne appends the character at i and returns the index after it.
func appendOne(dst, text []byte, i, length int, t *escapes) ([]byte, int, int) {
	if e := t[text[i]]; e>>32 < rare>>32 {
		for n := e >> 32 & 0xff; n > 0; n-- {
			dst = append(dst, byte(e))
			e >>= 8
		}
		return dst, i + 1, length + int(t[text[i]]>>40&0xff)
	}
	var buf [8]byte
	char, next := appendOdd(buf[:0], text, i)
	if t == &twice && char[0] == '\\' {
		dst = append(dst, '\\')
	}
	return append(dst, char...), next, length + len(char)
}

// appendOdd appends the character at i, a control character or none of ASCII, as
// it is escaped once, and returns the index after it.
func appendOdd(dst, text []byte, i int) ([]byte, int) {
	b := text[i]
	if b < utf8.RuneSelf {
		return appendEscape(dst, b), i + 1
	}
	r, n := utf8.DecodeRune(text[i:])
	switch {
	// What is no UTF-8 may be read as anything by whoever is lenient; U+FFFD is what it is read as here.
	case r == utf8.RuneError && n == 1:
		return append(dst, `\ufffd`...), i + n
	case r == '\u2028' || r == '\u2029':
		return append(append(dst, `\u202`...), hexDigits[r&0xf]), i + n
	}
	return append(dst, text[i:i+n]...), i + n
}
