package mask

import (
	"bytes"
	"strings"

	"aegis/proxy/internal/jsonscan"
)

// text is bytes under the scan. With json set they are the raw bytes of a JSON
// document: a character may be written as an escape, and an unescaped quote
// ends the string that is being read. Nothing is decoded ahead of time.
type text struct {
	b    []byte
	json bool
}

// wide stands for any character beyond ASCII: no rule tells those apart.
const wide = 0x80

// next returns the character at i and how many bytes it takes; 0 bytes mean
// the end of the string.
func (t *text) next(i int) (c byte, n int) {
	if i >= len(t.b) {
		return 0, 0
	}
	c = t.b[i]
	if !t.json || c != '\\' && c != '"' {
		return c, 1
	}
	if c == '"' {
		return 0, 0
	}
	return unescape(t.b[i:])
}

// skip skips characters of in from i on, at most so many, and returns the last one of them;
// 0 when there is none.
func (t *text) skip(i, most int, in *class) (after int, last byte) {
	for ; most > 0; most-- {
		c, n := t.next(i)
		if n == 0 || !in[c] {
			break
		}
		i, last = i+n, c
	}
	return i, last
}

// unescape reads the escape that b begins with. A broken one stands for itself.
func unescape(b []byte) (c byte, n int) {
	if len(b) < 2 {
		return '\\', 1
	}
	if i := strings.IndexByte("ntrbf", b[1]); i >= 0 {
		return "\n\t\r\b\f"[i], 2
	}
	if b[1] == 'u' {
		if r, ok := jsonscan.Hex4(b[2:]); ok {
			return narrow(r), 6
		}
	}
	return b[1], 2
}

// narrow returns a character as rules see it.
func narrow(r rune) byte {
	if r < wide {
		return byte(r)
	}
	return wide
}

// prev returns the character that ends before i and where it begins. At the
// beginning of the string it returns start == i.
func (t *text) prev(i int) (c byte, start int) {
	if i <= 0 {
		return 0, i
	}
	c = t.b[i-1]
	if !t.json {
		return c, i - 1
	}
	// The letter of a short escape is one character with its backslash.
	if i >= 2 && t.b[i-2] == '\\' && !t.escaped(i-2) {
		c, _ = unescape(t.b[i-2 : i])
		return c, i - 2
	}
	if c == '"' {
		return 0, i
	}
	if i >= 6 && t.b[i-6] == '\\' && t.b[i-5] == 'u' && !t.escaped(i-6) {
		if r, ok := jsonscan.Hex4(t.b[i-4 : i]); ok {
			return narrow(r), i - 6
		}
	}
	return c, i - 1
}

// escaped reports whether a backslash before i makes the byte at i a part of
// an escape. It reads the run of backslashes that ends at i and no more.
func (t *text) escaped(i int) bool {
	n := 0
	for i > n && t.b[i-n-1] == '\\' {
		n++
	}
	return n&1 == 1
}

// end returns where the string that contains i ends: its closing quote, or
// the end of the bytes.
func (t *text) end(i int) int {
	if !t.json {
		return len(t.b)
	}
	return jsonscan.StringEnd(t.b, i)
}

// begin returns where the string that contains i begins, after its quote.
func (t *text) begin(i int) int {
	if !t.json {
		return 0
	}
	for j := i; ; {
		q := bytes.LastIndexByte(t.b[:j], '"')
		if q < 0 {
			return 0
		}
		if !t.escaped(q) {
			return q + 1
		}
		j = q
	}
}

// isKey reports whether the string that ends at end is an object key.
func (t *text) isKey(end int) bool {
	i := min(end+1, len(t.b))
	i += run(t.b[i:], isSpace, unbounded)
	return i < len(t.b) && t.b[i] == ':'
}

// openBefore reports whether a token may begin at i: the character before it
// is not part of a word, or only looks like one because it belongs to an
// escape of some other notation (\n in quoted text, %3D in a URL, a colour
// sequence of a terminal).
func (t *text) openBefore(i int) bool {
	if t.json && i > 0 && t.b[i-1] == '\\' && t.escaped(i) {
		return false // the byte at i is the letter of an escape
	}
	c, j := t.prev(i)
	return j == i || !isWord[c] || t.foreignEscape(c, j)
}

// foreignEscape reports whether c, which begins at j, ends an escape of another
// notation: \n, ESC[1m, %3D, \u003d.
func (t *text) foreignEscape(c byte, j int) bool {
	c2, j2 := t.prev(j)
	switch {
	case j2 == j:
		return false
	case c2 == '\\':
		return c == 'n' || c == 't' || c == 'r'
	// The end of ESC[1m, or a letter of a word: [text.colour] looks further back.
	case c == 'm':
		return t.colour(j)
	case jsonscan.Hex(c) < 0 || jsonscan.Hex(c2) < 0:
		return false
	}
	c3, j3 := t.prev(j2)
	if c3 == '%' {
		return true
	}
	c4, j4 := t.prev(j3)
	c5, j5 := t.prev(j4)
	c6, _ := t.prev(j5)
	return jsonscan.Hex(c3) >= 0 && jsonscan.Hex(c4) >= 0 && c5 == 'u' && c6 == '\\'
}

// colour reports whether ESC [ digits and semicolons end at j.
func (t *text) colour(j int) bool {
	for range 16 {
		c, k := t.prev(j)
		if k == j {
			return false
		}
		if c == '[' {
			return true
		}
		if c != ';' && (c < '0' || c > '9') {
			return false
		}
		j = k
	}
	return false
}

// What takes the place of a known secret, and the beginning of a rule's mark. Both are
// recognised when a text is masked again.
var (
	markRedacted = []byte("[REDACTED]")
	markMasked   = []byte("[MASKED:")
)

// closedAfter reports whether a token may end at i. What a rule left in an
// earlier pass counts as part of a word, so that masking twice is masking once.
func (t *text) closedAfter(i int) bool {
	if i >= len(t.b) {
		return true
	}
	switch c := t.b[i]; c {
	case '[':
		return !bytes.HasPrefix(t.b[i:], markMasked)
	case '*':
		return !bytes.HasPrefix(t.b[i:], markShort)
	default:
		return c >= wide || !isWord[c]
	}
}
