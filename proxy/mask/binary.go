package mask

import (
	"encoding/binary"
	"unicode/utf16"
)

// isControl are the bytes that text has not: control characters besides white
// space and escape. NUL is not counted either way: one in a text does not
// make it something else.
var isControl = func() *class {
	c := newClass("\x01-\x1f\x7f-\x7f")
	for _, b := range []byte("\t\n\v\f\r\x1b") {
		c[b] = false
	}
	return c
}()

// mostlyText reports whether b is likely text, in whatever encoding: at most one
// byte in 16 that is not NUL is a control character. Of compressed or otherwise
// random bytes one in ten is. Of what is long it looks at parts from all over.
func mostlyText(b []byte) bool {
	if hasBOM(b) {
		return true
	}
	const part, parts = 1 << 10, 64
	step := max(len(b)/parts, part)
	some, control := 0, 0
	for from := 0; from < len(b); from += step {
		for _, c := range b[from:min(from+part, len(b))] {
			if c != 0 {
				some++
			}
			if isControl[c] {
				control++
			}
		}
	}
	return control*16 <= some
}

// hasBOM reports whether b begins with the byte order mark of UTF-16.
func hasBOM(b []byte) bool {
	return len(b) > 2 && (b[0] == 0xff && b[1] == 0xfe || b[0] == 0xfe && b[1] == 0xff)
}

// narrowed returns a byte for each unit of UTF-16 text behind its byte order mark:
// the character itself when it is ASCII, else wide.
func narrowed(b []byte) []byte {
	high := 1
	if b[0] == 0xfe {
		high = 0
	}
	b = b[2:]
	out := make([]byte, len(b)/2)
	for i := range out {
		c := b[2*i+1-high]
		if b[2*i+high] != 0 || c >= wide {
			c = wide
		}
		out[i] = c
	}
	return out
}

// appendUTF16 appends b in the byte order of the mark that dst begins with.
func appendUTF16(dst, b []byte) []byte {
	var order binary.AppendByteOrder = binary.LittleEndian
	if dst[0] == 0xfe {
		order = binary.BigEndian
	}
	for _, u := range utf16.Encode([]rune(string(b))) {
		dst = order.AppendUint16(dst, u)
	}
	return dst
}
