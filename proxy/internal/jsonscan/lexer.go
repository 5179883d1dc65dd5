package jsonscan

// lexer reads the strings, numbers and words of a document that comes in pieces:
// it keeps what must be known of one that the last piece began.
type lexer struct {
	esc    escape
	rune   runeTail
	number number
	word   string // what is left of a word

	kept  []byte // the name that is being read, as it is written
	from  int    // where in this piece it goes on; -1 for not kept
	bound int    // bytes of a name that can be selected
}

// escape is where in an escape sequence the reader is.
type escape uint8

const (
	noEscape escape = iota
	afterBackslash
	// The values from hexDigit on count the digits of \u that have been read.
	hexDigit
)

// runeTail is what must follow in a character of several bytes: how many bytes,
// and the bounds of the next one (Unicode 15, table 3-7).
type runeTail struct{ left, low, high byte }

// beginRune returns what must follow the byte b; left is 0 when nothing can.
func beginRune(b byte) runeTail {
	switch {
	case b >= 0xc2 && b <= 0xdf:
		return runeTail{1, 0x80, 0xbf}
	case b == 0xe0:
		return runeTail{2, 0xa0, 0xbf}
	case b == 0xed: // no surrogates
		return runeTail{2, 0x80, 0x9f}
	case b >= 0xe1 && b <= 0xef:
		return runeTail{2, 0x80, 0xbf}
	case b == 0xf0:
		return runeTail{3, 0x90, 0xbf}
	case b >= 0xf1 && b <= 0xf3:
		return runeTail{3, 0x80, 0xbf}
	case b == 0xf4: // up to U+10FFFF
		return runeTail{3, 0x80, 0x8f}
	}
	return runeTail{}
}

// number is what of a number has been read.
type number uint8

const (
	afterMinus number = iota
	afterZero
	inDigits
	afterPoint
	inFraction
	afterE
	afterSign
	inExponent
)

// complete reports whether a number may end here.
func (n number) complete() bool {
	return n == afterZero || n == inDigits || n == inFraction || n == inExponent
}

// accept returns the state after the byte c, and false when c does not belong to
// the number.
func (n number) accept(c byte) (number, bool) {
	digit := c >= '0' && c <= '9'
	switch n {
	case afterMinus:
		return beginNumber(c), digit
	case afterZero, inDigits, inFraction:
		switch {
		case digit:
			return n, n != afterZero
		case c == '.' && n != inFraction:
			return afterPoint, true
		}
		return afterE, c == 'e' || c == 'E'
	case afterPoint:
		return inFraction, digit
	case afterE:
		if c == '+' || c == '-' {
			return afterSign, true
		}
		return inExponent, digit
	}
	return inExponent, digit
}

func beginNumber(c byte) number {
	switch c {
	case '-':
		return afterMinus
	case '0':
		return afterZero
	}
	return inDigits
}

// beginName begins to keep the name whose quote is at i, if it has at most bound
// bytes.
func (l *lexer) beginName(i, bound int) {
	l.kept, l.bound, l.from = l.kept[:0], bound, -1
	if bound > 0 {
		l.from = i
	}
}

// suspend keeps what the piece that ends has of a name.
func (l *lexer) suspend(piece []byte) {
	if l.from >= 0 {
		l.keep(piece[l.from:])
		l.from = 0
	}
}

// keep adds to the name, up to one byte more than can be selected.
func (l *lexer) keep(part []byte) {
	room := l.bound + 1 - len(l.kept)
	l.kept = append(l.kept, part[:min(len(part), room)]...)
}

// name returns the name that has ended, and whether it can be selected.
func (l *lexer) name() ([]byte, bool) {
	return l.kept, len(l.kept) <= l.bound
}

// begin begins the number, the string or the word at i.
func (p *Projector) begin(i int, c byte) {
	switch {
	case c == '"':
		p.state = inString
	case c == '-' || c >= '0' && c <= '9':
		p.state, p.lex.number = inNumber, beginNumber(c)
	case c == 't':
		p.state, p.lex.word = inWord, "rue"
	case c == 'f':
		p.state, p.lex.word = inWord, "alse"
	case c == 'n':
		p.state, p.lex.word = inWord, "ull"
	default:
		p.fail(i, "expected a value")
	}
}

// digits reads on in a number. The byte that ends one is left.
func (p *Projector) digits(piece []byte, i int) int {
	for ; i < len(piece); i++ {
		n, ok := p.lex.number.accept(piece[i])
		switch {
		case ok:
			p.lex.number = n
		case p.lex.number.complete():
			p.ended(piece, i)
			return i
		default:
			p.fail(i, "expected a digit")
			return i
		}
	}
	return i
}

// word reads on in true, false or null.
func (p *Projector) word(piece []byte, i int) int {
	if piece[i] != p.lex.word[0] {
		p.fail(i, "expected a value")
		return i
	}
	if p.lex.word = p.lex.word[1:]; p.lex.word == "" {
		p.ended(piece, i+1)
	}
	return i + 1
}

// text reads on in a string or a member name.
func (p *Projector) text(piece []byte, i int) int {
	l := &p.lex
	for ; i < len(piece); i++ {
		c := piece[i]
		switch {
		case l.esc != noEscape:
			if !l.escaped(c) {
				p.fail(i, "bad escape in a string")
				return i
			}
		case l.rune.left > 0:
			if c < l.rune.low || c > l.rune.high {
				p.fail(i, "invalid UTF-8 in a string")
				return i
			}
			l.rune = runeTail{l.rune.left - 1, 0x80, 0xbf}
		case plain[c]:
			for i+1 < len(piece) && plain[piece[i+1]] {
				i++
			}
		case c == '"':
			p.quoted(piece, i+1)
			return i + 1
		case c == '\\':
			l.esc = afterBackslash
		case c < 0x20:
			p.fail(i, "control character in a string")
			return i
		default:
			if l.rune = beginRune(c); l.rune.left == 0 {
				p.fail(i, "invalid UTF-8 in a string")
				return i
			}
		}
	}
	return i
}

// escaped takes the next byte of an escape and reports whether it may be
// there.
func (l *lexer) escaped(c byte) bool {
	if l.esc == afterBackslash {
		switch c {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			l.esc = noEscape
		case 'u':
			l.esc = hexDigit
		default:
			return false
		}
		return true
	}
	if Hex(c) < 0 {
		return false
	}
	if l.esc++; l.esc == hexDigit+4 {
		l.esc = noEscape
	}
	return true
}

// quoted has read a string or a name whose end is before i.
func (p *Projector) quoted(piece []byte, i int) {
	if p.state == inString {
		p.ended(piece, i)
		return
	}
	if p.lex.from >= 0 {
		p.lex.keep(piece[p.lex.from:i])
		p.lex.from = -1
	}
	p.named()
}
