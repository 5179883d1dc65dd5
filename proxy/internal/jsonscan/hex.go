package jsonscan

// hexValues has the value of each hexadecimal digit, -1 for every other byte.
var hexValues = hexTable()

func hexTable() (t [256]int8) {
	for i := range t {
		t[i] = -1
	}
	for i, c := range []byte("0123456789abcdef") {
		t[c] = int8(i)
	}
	for i, c := range []byte("ABCDEF") {
		t[c] = int8(10 + i)
	}
	return t
}

// Hex returns the value of a hexadecimal digit, -1 for every other byte.
func Hex(c byte) int { return int(hexValues[c]) }

// Hex4 reads the four hexadecimal digits that b begins with, those of an escape such as
// \u00e9; false when there are fewer.
func Hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		// Letters of either case: Go writes small ones, JavaScript and Java often capitals.
		d := hexValues[c]
		if d < 0 {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}
