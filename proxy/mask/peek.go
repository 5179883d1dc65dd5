package mask

import (
	"bytes"
	"encoding/base64"
)

// peek notices strings that are base64 of a text with a secret in it, wherever
// they are, by how the beginnings of the commonest secrets look in base64.
// The string is then decoded as a file's content is.
type peek struct{}

// peekLiterals are the beginnings that are looked for.
var peekLiterals = []string{
	"ghp_", "github_pat_", "glpat-", "AKIA", "xoxb-", "sk-ant-", "PRIVATE KEY-----",
}

// peekName names it in the plan of the filter.
const peekName = "base64"

// leastPeek is how long a string must be to be decoded, in bytes.
const leastPeek = 24

// peekForm is a literal in base64 at one alignment: the digits that it decides,
// and those that may be before and behind them, nil for any.
type peekForm struct {
	digits        string
	before, after []byte
}

// peekForms are the literals at each of the three alignments that three bytes of
// other text can give them.
var peekForms = func() (all []peekForm) {
	for _, lit := range peekLiterals {
		for align := range 3 {
			digits, edges := base64Form(lit, align)
			all = append(all, peekForm{digits: digits, before: edges[0].list(), after: edges[1].list()})
		}
	}
	return all
}()

// list returns the digits of the standard alphabet that fit, nil for all.
func (e edge) list() (l []byte) {
	if e.mask == 0 {
		return nil
	}
	for _, c := range []byte(stdDigits) {
		if e.fits(c) {
			l = append(l, c)
		}
	}
	return l
}

func (peek) places() []place {
	var all []place
	for _, f := range peekForms {
		p := literalPlace(f.digits, false)
		if f.before != nil {
			p.cls = append([][]byte{f.before}, p.cls...)
			p.ref.off = -1
		}
		if f.after != nil {
			p.cls = append(p.cls, f.after)
		}
		all = append(all, p)
	}
	return all
}

// find notes the string around pos; one that was noted is not read again.
func (peek) find(s *scan, variant, pos int) finding {
	// One look for each string, however many of the literals are in it.
	if !s.t.json || pos < s.peeked || !bytes.HasPrefix(s.t.b[pos:], []byte(peekForms[variant].digits)) {
		return finding{}
	}
	// The whole string is taken, whatever is before the literal: base64 has no word
	// boundaries that could be demanded.
	start, end := s.t.begin(pos), s.t.end(pos)
	s.peeked = end
	if end-start >= leastPeek && !s.t.isKey(end) && readableAround(s.t.b[start:end], pos-start) {
		s.peeks = append(s.peeks, [2]int{start, end})
	}
	return finding{}
}

// readableAround reports whether the base64 around i stands for text, so that an
// image need not be decoded for four digits that are there by chance. What is
// not plain digits there is left to the decoder.
func readableAround(b []byte, i int) bool {
	const before, after = 256, 512
	from := max(i/4*4-before, 0)
	var room [(before + after) / 4 * 3]byte
	b = b[from:min(from+before+after, len(b))]
	n, err := base64.RawStdEncoding.Decode(room[:], b[:len(b)/4*4])
	return err != nil || mostlyText(room[:n])
}
