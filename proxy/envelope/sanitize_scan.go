package envelope

import (
	"encoding/binary"
	"unicode/utf8"
)

// ascii reports whether every byte is ASCII, eight at a time: most answers are,
// and need no closer look.
func ascii(b []byte) bool {
	const high = 0x8080808080808080
	for ; len(b) >= 32; b = b[32:] {
		x := binary.LittleEndian.Uint64(b) | binary.LittleEndian.Uint64(b[8:])
		x |= binary.LittleEndian.Uint64(b[16:]) | binary.LittleEndian.Uint64(b[24:])
		if x&high != 0 {
			return false
		}
	}
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
