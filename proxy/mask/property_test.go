package mask_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"aegis/proxy/mask"
)

// escaping writes a JSON string with escapes that the encoder chooses freely.
func escaping(r *rand.Rand, s string, odd int) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n' && r.IntN(2) == 0:
			b.WriteString(`\n`)
		case c == '/' && odd > 0 && r.IntN(odd) == 0:
			b.WriteString(`\/`)
		case c < ' ' || odd > 0 && r.IntN(odd) == 0 || (c == '<' || c == '>' || c == '&') && r.IntN(2) == 0:
			for _, u := range utf16.Encode([]rune{c}) {
				fmt.Fprintf(&b, []string{`\u%04x`, `\u%04X`}[r.IntN(2)], u)
			}
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// randomText is ordinary text, odd characters, and now and then a secret.
func randomText(t testing.TB, r *rand.Rand, specs []mask.RuleSpec, known string) string {
	var b strings.Builder
	for range r.IntN(8) {
		switch r.IntN(12) {
		case 0, 1:
			s := specs[r.IntN(len(specs))]
			in, _ := example(t, r, s)
			b.WriteString(in)
		case 2:
			b.WriteString(known)
		case 3:
			b.WriteString(random(r, r.IntN(50), alnum+"+/=-_"))
		case 4:
			b.WriteString([]string{"日本語", "é", "\u2028", "😀", "\x00", "\t", "\r\n", "\\n", `\\\"`, "[REDACTED]", "***",
				"[MASKED:x]"}[r.IntN(12)])
		case 5:
			b.WriteString([]string{"token", "secret=", "password: ", "https://a:b@c", "Bearer ", "-----BEGIN ", "ghp_",
				"eyJ", "AKIA", "@", "%41", "%3D"}[r.IntN(12)])
		default:
			b.WriteString([]string{" ", "\n", "the quick brown fox", "<b>", "&amp;", "func main() {}", ",", "'", "\"",
				"/", ":"}[r.IntN(11)])
		}
	}
	return b.String()
}

// skeleton is a JSON document with the inside of all strings taken out, keys
// included.
var inside = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

func skeleton(b []byte) string { return inside.ReplaceAllString(string(b), `""`) }

// TestMaskingKeepsTheRest compares masked documents with their originals for
// many generated ones: outside the strings with hits nothing may change, JSON
// stays JSON, raw and decoded scans agree, and masking again changes nothing.
func TestMaskingKeepsTheRest(t *testing.T) {
	t.Parallel()
	n := 10_000
	switch {
	case testing.Short():
		n = 5_000
	case os.Getenv("AEGIS_TEST_WHOLE") == "1":
		n = 100_000
	}
	const known = "k8-Known.Secret/42"
	e := newEngine(t, nil, known)
	specs := mask.RuleSpecs()
	r := newRand(5)
	masked, hitCount := 0, 0
	for i := range n {
		odd := 0
		if i%3 == 0 {
			odd = 1 + r.IntN(20)
		}
		var texts, written []string
		for range 1 + r.IntN(3) {
			s := randomText(t, r, specs, known)
			texts = append(texts, s)
			written = append(written, escaping(r, s, odd))
		}
		in := fmt.Sprintf(`{"a" : 1e3,"b":[-0, 1.0,%s],"c":{"d":%s} , "a":null}`,
			strings.Join(written[1:], ", ")+strings.Repeat(",true", 0), written[0])
		in = strings.Replace(in, ",]", "]", 1)
		out, hits := doc(t, e, in)
		checkDocument(t, e, in, out, hits)
		checkStrings(t, e, in, out, texts)
		if hits != nil {
			masked++
			for _, k := range hits {
				hitCount += k
			}
		}
	}
	t.Logf("%d documents, %d masked, %d hits", n, masked, hitCount)
}

func checkDocument(t *testing.T, e *mask.Engine, in, out string, hits mask.Hits) {
	t.Helper()
	if !json.Valid([]byte(in)) {
		t.Fatalf("the generated document is not JSON: %s", in)
	}
	if !json.Valid([]byte(out)) || skeleton([]byte(in)) != skeleton([]byte(out)) {
		t.Fatalf("the structure changed:\n%s\n%s", in, out)
	}
	if (hits == nil) != (in == out) {
		t.Fatalf("hits %v, but changed is %v:\n%s\n%s", hits, in != out, in, out)
	}
	if again, more := doc(t, e, out); again != out || more != nil {
		t.Fatalf("masking twice: hits %v\n%s\n%s\n%s", more, in, out, again)
	}
}

// checkStrings decodes both documents and holds each string against what Text
// makes of it; strings without a hit keep their escapes.
func checkStrings(t *testing.T, e *mask.Engine, in, out string, texts []string) {
	t.Helper()
	before, after := inside.FindAllString(in, -1), inside.FindAllString(out, -1)
	for i := range before {
		if before[i] == after[i] {
			continue
		}
		want, hits := text(t, e, mask.Unescape(before[i][1:len(before[i])-1]))
		if got := mask.Unescape(after[i][1 : len(after[i])-1]); got != want {
			t.Fatalf("in %s\nJSON gives %q\ntext gives %q, hits %v", before[i], got, want, hits)
		}
	}
	for _, s := range texts {
		if want, hits := text(t, e, s); hits != nil && !strings.Contains(decodeAll(t, out), want) {
			t.Fatalf("text gives %q for %q, which is not in %s", want, s, out)
		}
	}
}

func decodeAll(t *testing.T, doc string) string {
	t.Helper()
	var b strings.Builder
	for _, s := range inside.FindAllString(doc, -1) {
		b.WriteString(mask.Unescape(s[1:len(s)-1]) + "\x01")
	}
	return b.String()
}

func FuzzJSON(f *testing.F) {
	const known = "k8-Known.Secret/42"
	cfg := mask.Default()
	e, err := mask.New(cfg, []string{known})
	if err != nil {
		f.Fatal(err)
	}
	r := newRand(1)
	for i, s := range mask.RuleSpecs() {
		if i%5 == 0 {
			in, _ := example(f, r, s)
			f.Add([]byte(`{"x":` + escaping(r, in, i%3) + `}`))
		}
	}
	f.Add([]byte(`{"encoding":"base64","content":"Z2hwXzAxMjM="}`))
	f.Add([]byte("\"\\u0041\\/\\\"\\\\"))
	f.Fuzz(func(t *testing.T, b []byte) {
		ctx := context.Background()
		orig := bytes.Clone(b)
		out, hits, err := e.JSON(ctx, nil, b, nil, mask.Options{})
		if err != nil {
			return
		}
		if !bytes.Equal(b, orig) {
			t.Fatal("the source was written to")
		}
		if hits == nil && !bytes.Equal(out, b) {
			t.Fatalf("changed without a hit: %q to %q", b, out)
		}
		if json.Valid(b) && (!json.Valid(out) || skeleton(b) != skeleton(out)) {
			t.Fatalf("structure changed: %q to %q", b, out)
		}
		if json.Valid(b) {
			if strings.Contains(decodeAll(t, string(out)), known) {
				t.Fatalf("a known secret is left in %q", out)
			}
			if again, more, err := e.JSON(ctx, nil, out, nil, mask.Options{}); err != nil || more != nil {
				t.Fatalf("masking twice: %v %v: %q to %q to %q", more, err, b, out, again)
			}
		}
	})
}

func FuzzText(f *testing.F) {
	e, err := mask.New(mask.Default(), []string{"k8-Known.Secret/42"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("token ghp_%41 k8%2DKnown.Secret/42"))
	f.Fuzz(func(t *testing.T, b []byte) {
		out, hits, err := e.Text(context.Background(), nil, b, nil, mask.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(out, []byte("k8-Known.Secret/42")) {
			t.Fatalf("a known secret is left in %q", out)
		}
		if hits == nil && !bytes.Equal(out, b) {
			t.Fatalf("changed without a hit: %q to %q", b, out)
		}
		if again, more, err := e.Text(context.Background(), nil, out, nil, mask.Options{}); err != nil || more != nil {
			t.Fatalf("masking twice: %v %v: %q to %q to %q", more, err, b, out, again)
		}
	})
}
