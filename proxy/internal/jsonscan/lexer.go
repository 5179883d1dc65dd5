package jsonscan

import "unicode/utf8"

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
		// After a zero as well: 0e1 is a number (RFC 8259, section 6).
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

// begin begins the number, the string or the word at i.
func (p *Projector) begin(i int, c byte) {
	switch {
	case c == '"':
		// Its quote is read, so that the string is read on from here in any piece.
		p.state = inString
	case c == '-' || c >= '0' && c <= '9':
		p.state, p.number = inNumber, beginNumber(c)
	case words[c] != "":
		p.state = inWord
	default:
		p.fail(i, "expected a value")
	}
}

// words are what is neither quoted nor a number, by first letter.
var words = map[byte]string{'t': "true", 'f': "false", 'n': "null"}

// digits reads on in a number. The byte that ends one is left. A number is read in states,
// unlike all else that a piece may end in: it has no length that bounds what to hold back.
func (p *Projector) digits(data []byte, i int) int {
	for ; i < len(data); i++ {
		n, ok := p.number.accept(data[i])
		switch {
		case ok:
			p.number = n
		case p.number.complete():
			p.ended(data, i)
			return i
		default:
			p.fail(i, "expected a digit")
			return i
		}
	}
	return i
}

// word reads true, false or null.
func (p *Projector) word(data []byte, i int) int {
	w := words[data[i]]
	n := min(len(w), len(data)-i)
	switch {
	case string(data[i:i+n]) != w[:n]:
		p.fail(i, "expected a value")
	case n < len(w):
		p.wait = true
	default:
		i += n
		p.ended(data, i)
	}
	return i
}

// text reads on in a string or a member name.
func (p *Projector) text(data []byte, i int) int {
	for i < len(data) {
		switch c := data[i]; {
		case plain[c]:
			// Most of a document is like this; the inner loop keeps its index in a register.
			for i++; i < len(data) && plain[data[i]]; {
				i++
			}
		case c == '"':
			p.quoted(data, i+1)
			return i + 1
		case c < 0x20:
			p.fail(i, "control character in a string")
			return i
		default:
			n, what := unit(data[i:])
			if what != "" {
				p.fail(i, what)
				return i
			}
			if n == 0 {
				p.wait = true
				return i
			}
			i += n
		}
	}
	return i
}

// unit returns the length of the escape or character that s begins with, 0 when s may be too
// short to hold it, or what is wrong with it.
func unit(s []byte) (n int, what string) {
	if s[0] == '\\' {
		// An escape takes six bytes at most, so of a shorter rest nothing can be said yet.
		if n = escapeLen(s); n == 0 && (len(s) >= 6 || len(s) >= 2 && s[1] != 'u') {
			what = "bad escape in a string"
		}
		return n, what
	}
	r, n := utf8.DecodeRune(s)
	switch {
	case r != utf8.RuneError || n > 1:
	// All bytes are there, and make no character.
	case utf8.FullRune(s):
		what = "invalid UTF-8 in a string"
	default:
		n = 0
	}
	return n, what
}

// quoted has read a string or a name whose end is before i.
func (p *Projector) quoted(data []byte, i int) {
	if p.state == inString {
		p.ended(data, i)
		return
	}
	p.state, p.member = wantColon, nil
	if p.nameFrom >= 0 {
		p.named(data[p.nameFrom:i])
		p.nameFrom = -1
	}
}
