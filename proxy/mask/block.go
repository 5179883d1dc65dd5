package mask

import "bytes"

// keyBlock recognises private keys in the textual encodings of RFC 7468 and
// RFC 4880: a BEGIN line, and the body up to the END line. A body that is cut
// short is masked as far as it looks like one.
type keyBlock struct{}

// dashes begin and end the lines around a body.
const dashes = "-----"

// keyLabels are where the filter notices a key: they end a BEGIN line, and unlike
// "-----BEGIN" no certificate has them.
var keyLabels = []string{"PRIVATE KEY-----", "PRIVATE KEY BLOCK-----"}

func (keyBlock) places() []place { return literalPlaces(false, keyLabels...) }

// find reads backwards to BEGIN, so that END lines do not match, and then the body.
func (keyBlock) find(s *scan, variant, pos int) finding {
	b := s.t.b
	if !bytes.HasPrefix(b[pos:], []byte(keyLabels[variant])) {
		return finding{}
	}
	// Backwards over the kind of key: "-----BEGIN RSA PRIVATE KEY-----".
	i := pos
	// No label in use comes near 32 bytes; the bound keeps a text of many labels linear.
	for i > max(pos-32, 0) && isLabel[b[i-1]] {
		i--
	}
	if !bytes.HasPrefix(b[i:], []byte("BEGIN ")) || !bytes.HasSuffix(b[:i], []byte(dashes)) {
		return finding{}
	}
	from := pos + len(keyLabels[variant])
	start, end := keyBody(&s.t, from)
	return finding{start: start, end: end, skip: end, ok: end > 0}
}

// leastLine is how long the first line of a key body is at least.
const leastLine = 16

// keyBody returns the body that begins at i or behind the header lines there:
// up to the END line, or to the last line that looks like base64. Without one
// end is 0.
func keyBody(t *text, i int) (start, end int) {
	for { // header lines (RFC 1421, RFC 4880): "Proc-Type: 4,ENCRYPTED"
		i = skipDecoration(t, i)
		j, isHeader := headerLine(t, i)
		if !isHeader {
			break
		}
		i = j
	}
	// Prose about keys quotes BEGIN lines, with a word or dots behind them.
	if j := skipRun(t, i); j-i < leastLine {
		return 0, 0
	}
	start = i
	for {
		j := skipRun(t, i)
		if j == i {
			break
		}
		end = j
		if i = skipDecoration(t, j); j == i {
			break
		}
		// A short line is the last one of a body, or the first word of what follows it.
		if n := skipRun(t, i) - i; n < leastLine && !endsBody(t, i+n) {
			break
		}
	}
	return start, end
}

// endsBody reports whether a body may end at i: the END line or the end of
// the text follows.
func endsBody(t *text, i int) bool {
	i = skipDecoration(t, i)
	_, n := t.next(i)
	return n == 0 || bytes.HasPrefix(t.b[i:], []byte(dashes))
}

// isKeyText are the digits of base64, isLabel what the kind of key is written in.
var (
	isKeyText = newClass("0-9A-Za-z+/=")
	isLabel   = newClass("0-9A-Z ")
)

func skipRun(t *text, i int) int { return i + run(t.b[i:], isKeyText, unbounded) }

// skipDecoration skips what may be between the lines of a body: line ends
// and indents, the \n of quoted text, quotes and commas of an array of lines,
// the marks of diffs, quotations and comments.
func skipDecoration(t *text, i int) int {
	for {
		c, n := t.next(i)
		switch {
		case n == 0:
			return i
		case c == '*' && bytes.HasPrefix(t.b[i:], markShort):
			return i // masked before
		case isSpace[c], c == '"', c == '\'', c == '`', c == ',', c == '>', c == '|', c == '#', c == '*', c == ';':
		case c == '+':
			// A plus sign is base64, but alone between blanks it joins strings.
			if c2, n2 := t.next(i + n); n2 == 0 || !isSpace[c2] && c2 != '"' {
				return i
			}
		case c == '-':
			if bytes.HasPrefix(t.b[i:], []byte("--")) {
				return i
			}
		case c == '\\':
			c2, n2 := t.next(i + n)
			if c2 == 'n' || c2 == 'r' || c2 == 't' {
				n += n2
			}
		default:
			return i
		}
		i += n
	}
}

// headerLine skips "Name: value" up to the end of the line.
func headerLine(t *text, i int) (after int, ok bool) {
	for n := 0; ; n++ {
		c, w := t.next(i)
		// Names of headers are short. Without a bound each of many labels would read all text behind it.
		if w == 0 || n > 32 {
			return 0, false
		}
		i += w
		if c == ':' && n > 0 {
			break
		}
		if !isAlnum[c] && c != '-' {
			return 0, false
		}
	}
	for range 256 {
		c, w := t.next(i)
		if w == 0 {
			return 0, false
		}
		// A key in source code or in JSON in JSON has \n where the line ends.
		if c2, _ := t.next(i + w); c == '\n' || c == '\\' && c2 == 'n' {
			return i, true
		}
		i += w
	}
	return 0, false
}

// puttyKey recognises the private part of a PuTTY key file.
type puttyKey struct{}

// puttyLines precedes the number of lines of the private part.
const puttyLines = "Private-Lines: "

func (puttyKey) places() []place { return literalPlaces(false, puttyLines) }

// find demands a number of lines and a line end. The public part, which looks the
// same, has another header.
func (puttyKey) find(s *scan, _, pos int) finding {
	t := &s.t
	if !bytes.HasPrefix(t.b[pos:], []byte(puttyLines)) {
		return finding{}
	}
	i := pos + len(puttyLines)
	// The number of lines itself is not trusted: a key that was cut has fewer.
	n := run(t.b[i:], isDigit, 4)
	i += n
	from := i
	if i = skipDecoration(t, i); n == 0 || i == from {
		return finding{}
	}
	start, end := keyBody(t, i)
	return finding{start: start, end: end, skip: end, ok: end > 0}
}

var isDigit = newClass("0-9")
