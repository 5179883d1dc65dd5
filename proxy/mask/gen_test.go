package mask_test

import (
	"math/rand/v2"
	"regexp/syntax"
	"strings"
	"testing"
)

// generate returns a string that the expression matches. Repetitions without
// an upper bound, and long ones, get a few more than they must.
func generate(t testing.TB, r *rand.Rand, expr string) string {
	t.Helper()
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	generateTo(&b, r, re)
	return b.String()
}

func generateTo(b *strings.Builder, r *rand.Rand, re *syntax.Regexp) {
	times := func(lo, hi int) {
		if hi < 0 || hi > lo+8 {
			hi = lo + 8
		}
		for range lo + r.IntN(hi-lo+1) {
			generateTo(b, r, re.Sub[0])
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		n := 0
		for i := 0; i < len(re.Rune); i += 2 {
			n += int(re.Rune[i+1]-re.Rune[i]) + 1
		}
		n = r.IntN(n)
		for i := 0; i < len(re.Rune); i += 2 {
			size := int(re.Rune[i+1]-re.Rune[i]) + 1
			if n < size {
				b.WriteRune(re.Rune[i] + rune(n))
				return
			}
			n -= size
		}
	case syntax.OpCapture:
		generateTo(b, r, re.Sub[0])
	case syntax.OpConcat:
		for _, s := range re.Sub {
			generateTo(b, r, s)
		}
	case syntax.OpAlternate:
		generateTo(b, r, re.Sub[r.IntN(len(re.Sub))])
	case syntax.OpQuest:
		times(0, 1)
	case syntax.OpStar:
		times(0, -1)
	case syntax.OpPlus:
		times(1, -1)
	case syntax.OpRepeat:
		times(re.Min, re.Max)
	}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

const (
	alnum    = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	hexChars = "0123456789abcdef"
)

func random(r *rand.Rand, n int, from string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = from[r.IntN(len(from))]
	}
	return string(b)
}
