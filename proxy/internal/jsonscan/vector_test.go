package jsonscan

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// texts yields texts with every kind of byte at every place of a block, and longer
// ones of all mixtures.
func texts(yield func([]byte)) {
	for b := range 256 {
		for length := 1; length <= 2*block+3; length++ {
			for at := range length {
				text := bytes.Repeat([]byte{'a'}, length)
				text[at] = byte(b)
				yield(text)
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	alphabets := []string{"abc", `ab"`, `"\`, "a\"\\\n", "aé", "日本語 \u2028x", "\x00\x1f\x7f\x80\xff\"a", "😀\u2029", "\xe2\x80\xa8\xe2\x80"}
	for range 4000 {
		alphabet := alphabets[rng.IntN(len(alphabets))]
		text := make([]byte, rng.IntN(5000)>>rng.IntN(8))
		for i := range text {
			text[i] = alphabet[rng.IntN(len(alphabet))]
		}
		yield(text)
		// The same of whole characters.
		runes := []rune(alphabet)
		var whole strings.Builder
		for whole.Len() < len(text) {
			whole.WriteRune(runes[rng.IntN(len(runes))])
		}
		yield([]byte(whole.String()))
	}
}

// needVectors ends a test where there is nothing to compare: there the other way is
// the only one, and all other tests are of it.
func needVectors(t *testing.T) {
	t.Helper()
	if !vectors {
		t.Skip("no code for this processor in this build")
	}
}

func TestEscapeVectorIsTheTable(t *testing.T) {
	t.Parallel()
	needVectors(t)
	texts(func(text []byte) {
		want, _ := appendBy(nil, text, &once)
		if got := appendVector(nil, text); !bytes.Equal(got, want) {
			t.Fatalf("%q became %q, want %q", text, got, want)
		}
	})
}

// TestEscapeVectorStaysInside: nothing is written behind the room that a slice has,
// nor before its end.
func TestEscapeVectorStaysInside(t *testing.T) {
	t.Parallel()
	needVectors(t)
	const guard = 0xa5
	text := []byte(strings.Repeat(`"\`, 300) + "é" + strings.Repeat(`x"`, 300))
	want, _ := appendBy(nil, text, &once)
	for spare := range 3 * block * 4 {
		memory := bytes.Repeat([]byte{guard}, 64+spare+64)
		got := appendVector(memory[:64:64+spare], text)
		if !bytes.Equal(got[64:], want) {
			t.Fatalf("room of %d: a wrong text", spare)
		}
		for i, b := range memory {
			if (i < 64 || i >= 64+spare) && b != guard {
				t.Fatalf("room of %d: byte %d was written", spare, i)
			}
		}
	}
}

func TestMarkBlock(t *testing.T) {
	t.Parallel()
	for b := range 256 {
		for at := range 64 {
			block := [64]byte(bytes.Repeat([]byte{'a'}, 64))
			block[at] = byte(b)
			special := b == '"' || b == '\\' || b < ' ' || b >= 0x80
			want := uint64(0)
			if special {
				want = 1 << at
			}
			if got := markBlock(&block); got != want {
				t.Fatalf("byte %#x at %d: %b", b, at, got)
			}
		}
	}
}

// TestCheckAcrossWindows has strings that end, and escapes and characters that stand,
// on either side of every border that the check knows.
func TestCheckAcrossWindows(t *testing.T) {
	t.Parallel()
	const window = 64 * windowWords
	borders := []int{60, 61, 62, 63, 64, 65, 66, 127, 128, 129, window - 66, window - 65, window - 64, window - 2, window - 1, window, window + 1, window + 63, window + 64, window + 65, 2*window - 1, 2 * window, 3*window + 5}
	for _, border := range borders {
		for _, tail := range []string{`"`, `\n"`, `é"`, `\u00e9"`, `\\"`, `\""`, `😀"`, "\x01\"", `\x"`, "\xff\"", `\u12"`, `"x`, ``, `\`, `"]`} {
			for lead := range 3 {
				doc := []byte("[" + strings.Repeat(" ", lead) + `"` + strings.Repeat("a", border) + tail + "]")
				err := Check(doc, 10)
				valid := json.Valid(doc) && !bytes.Contains(doc, []byte("\xff")) // encoding/json lets that pass
				if (err == nil) != valid {
					t.Fatalf("border %d, %d blanks, %q: %v, valid %v", border, lead, tail, err, valid)
				}
			}
		}
	}
}

func FuzzEscapeVector(f *testing.F) {
	for _, s := range []string{`a"b\c`, "é\u2028", strings.Repeat(`x"`, 40), "\xff\xfe", strings.Repeat("plain text ", 200) + "\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		want, _ := appendBy(nil, text, &once)
		got := AppendEscaped(nil, text)
		if !bytes.Equal(got, want) {
			t.Fatalf("%q became %q, want %q", text, got, want)
		}
		var back string
		if err := json.Unmarshal([]byte(`"`+string(got)+`"`), &back); err != nil {
			t.Fatalf("%q: %v", got, err)
		}
	})
}

func TestMarkVectorIsTheBlock(t *testing.T) {
	t.Parallel()
	needVectors(t)
	rng := rand.New(rand.NewPCG(3, 4))
	var b [64]byte
	for range 20000 {
		for i := range b {
			b[i] = byte(rng.Uint32())
			if rng.IntN(2) == 0 {
				b[i] = "\"\\\x1f\x20\x21\x23\x5b\x5d\x7f\x80a"[rng.IntN(11)]
			}
		}
		var got uint64
		markVector(&got, &b[0], 1)
		if want := markBlock(&b); got != want {
			t.Fatalf("%q: %b, want %b", b, got, want)
		}
	}
}
