package jsonscan_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"aegis/proxy/internal/jsonscan"
)

const depth = 100

func TestCheckAgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	docs := []string{
		``, ` `, `{}`, `[]`, ` [ ] `, `{"a":1}`, `{"a":1,}`, `[1,]`, `[,1]`, `{,}`, `{"a"}`, `{"a":}`, `{1:2}`, `[1 2]`,
		`null`, `nul`, `nullx`, `true`, `false`, `tru`, `-`, `-0`, `-01`, `01`, `0.`, `.5`, `1e`, `1e+`, `1E-3`, `1.5e10`, `+1`,
		`"`, `"a`, `"a"`, `"\"`, `"\\"`, `"\u00e9"`, `"\u00e"`, `"\ud800"`, `"\x"`, "\"\n\"", "\"\x01\"", "\"\x7f\"", `"é"`,
		`{"a":[1,{"b":"c\\\""}],"d":null}`, `[[[[]]]]`, `]`, `}`, `{]`, `[}`, `[1}`, `{"a":1]`, `1 1`, `{} {}`, `[1],`, "\ufeff{}", "[\v1]",
	}
	for _, doc := range docs {
		err := jsonscan.Check([]byte(doc), depth)
		if want := json.Valid([]byte(doc)); (err == nil) != want {
			t.Errorf("Check(%q) = %v, encoding/json says valid = %v", doc, err, want)
		}
	}
}

func TestCheckRefusesInvalidUTF8(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{"\"\xff\"", "\"\xc3\"", "\"\xed\xa0\x80\"", "{\"\x80\":1}"} {
		var syntax *jsonscan.SyntaxError
		if err := jsonscan.Check([]byte(doc), depth); !errors.As(err, &syntax) {
			t.Errorf("Check(%q) = %v, want a SyntaxError", doc, err)
		}
	}
}

func TestCheckBoundsDepth(t *testing.T) {
	t.Parallel()
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if err := jsonscan.Check(nested(depth), depth); err != nil {
		t.Errorf("depth %d: %v", depth, err)
	}
	for _, doc := range [][]byte{nested(depth + 1), nested(5000), []byte(strings.Repeat(`{"a":`, 1<<20)), []byte(strings.Repeat("[", 16<<20))} {
		if err := jsonscan.Check(doc, depth); !errors.Is(err, jsonscan.ErrDepth) {
			t.Errorf("%d bytes: %v, want ErrDepth", len(doc), err)
		}
	}
}

func TestCheckBoundsValues(t *testing.T) {
	t.Parallel()
	doc := []byte(`{"a":[1,2,{"b":null}],"c":"d"}`) // the object, the array, 1, 2, {}, null, "d"
	if err := jsonscan.CheckValues(doc, depth, 7); err != nil {
		t.Errorf("7 values: %v", err)
	}
	if err := jsonscan.CheckValues(doc, depth, 6); !errors.Is(err, jsonscan.ErrValues) {
		t.Errorf("6 values: %v, want ErrValues", err)
	}
}

func TestElementsAndMembers(t *testing.T) {
	t.Parallel()
	doc := []byte(` { "a" : [1, "x]\"" ,{"b":[]} , null,-1.5e3 ] , "a":2, "\u0062" : "\\" } `)
	if err := jsonscan.Check(doc, depth); err != nil {
		t.Fatal(err)
	}
	var names, values []string
	for k, v := range jsonscan.Members(doc) {
		names, values = append(names, string(k)), append(values, string(v))
	}
	if got, want := strings.Join(names, "|"), `"a"|"a"|"\u0062"`; got != want {
		t.Errorf("names = %s, want %s", got, want)
	}
	var elems []string
	for _, e := range jsonscan.Elements([]byte(values[0])) {
		elems = append(elems, string(e))
	}
	if got, want := strings.Join(elems, "|"), `1|"x]\""|{"b":[]}|null|-1.5e3`; got != want {
		t.Errorf("elements = %s, want %s", got, want)
	}
	if got := string(jsonscan.Member(doc, "a")); got != "2" {
		t.Errorf("Member(a) = %s, want the last one", got)
	}
	if got := jsonscan.Unquote(jsonscan.Member(doc, "b")); got != `\` {
		t.Errorf("Member(b) = %s", got)
	}
	if jsonscan.Member(doc, "c") != nil || jsonscan.Member([]byte("[]"), "a") != nil {
		t.Error("Member of an absent name is not nil")
	}
}

func TestAppendQuoteRoundTrip(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for r := rune(0); r < 0x3000; r++ {
		all.WriteRune(r)
	}
	for _, s := range []string{"", "plain", "\x00\x1f\x7f\"\\/<>&", "\u2028\u2029", "😀", all.String()} {
		got := jsonscan.AppendQuote(nil, s)
		if !json.Valid(got) {
			t.Fatalf("not JSON: %q", got)
		}
		var back string
		if err := json.Unmarshal(got, &back); err != nil || back != s {
			t.Errorf("round trip of %q gave %q, %v", s, back, err)
		}
	}
	if got := string(jsonscan.AppendQuote(nil, "a\xffb\xc3")); got != `"a\ufffdb\ufffd"` {
		t.Errorf("invalid UTF-8 became %s", got)
	}
}

func FuzzCheckAndWalk(f *testing.F) {
	for _, s := range []string{`{"a":[1,"\"",{}]}`, `[`, `"\ud800"`, `[1,2`, `{"a":"b`, "\x00", `{"a" 1}`, `[}]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := jsonscan.Check(data, depth)
		if err == nil && !json.Valid(data) {
			t.Fatalf("accepted what encoding/json refuses: %q", data)
		}
		var syntax *jsonscan.SyntaxError
		if errors.As(err, &syntax) && utf8.Valid(data) && json.Valid(data) {
			t.Fatalf("refused valid JSON: %v: %q", err, data)
		}
		// The walkers must stay inside the slice on anything; on valid text they
		// must see what encoding/json sees.
		n := 0
		for _, e := range jsonscan.Elements(data) {
			n++
			if err == nil && jsonscan.Check(e, depth) != nil {
				t.Fatalf("element is not a value: %q", e)
			}
		}
		for k, v := range jsonscan.Members(data) {
			n++
			if err == nil && (jsonscan.Check(k, depth) != nil || jsonscan.Check(v, depth) != nil) {
				t.Fatalf("member is not a pair: %q: %q", k, v)
			}
		}
		if err != nil {
			return
		}
		var list []json.RawMessage
		if json.Unmarshal(data, &list) == nil && list != nil && n != len(list) {
			t.Fatalf("saw %d elements, encoding/json %d: %q", n, len(list), data)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	doc := []byte("[" + strings.Repeat(`{"id":12,"title":"A title of usual length","labels":[],"user":{"login":"alice","ok":true}},`, 1000) + "null]")
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if err := jsonscan.Check(doc, depth); err != nil {
			b.Fatal(err)
		}
	}
}

// TestEscapingLongTexts: the way that takes eight bytes at a time writes what the
// one for short strings does, whatever stands where, and so does the way that
// escapes twice.
func TestEscapingLongTexts(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "plain text of some length", "\"", "\\", "\n", "\t", "\r", "\x00", "\x1f", "\x7f", "é", "\u2028", "\u2029", "😀", "\xff", "\xe2\x80", "<&>"}
	for range 3000 {
		var text string
		for range rng.IntN(12) {
			text += parts[rng.IntN(len(parts))]
		}
		single := jsonscan.AppendEscaped([]byte("x"), text)
		if got := jsonscan.AppendEscaped([]byte("x"), []byte(text)); string(got) != string(single) {
			t.Fatalf("%q: %q, want %q", text, got, single)
		}
		double := jsonscan.AppendEscaped([]byte("y"), string(single[1:]))
		got, length := jsonscan.AppendEscapedTwice([]byte("y"), []byte(text))
		if string(got) != string(double) || length != len(single)-1 {
			t.Fatalf("%q twice: %q of %d, want %q of %d", text, got, length, double, len(single)-1)
		}
	}
}

func TestInspectCounts(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]int{
		`[]`: 0, ` [ ] `: 0, `[1]`: 1, `[[1,2],{"a":[1,2,3]},"x",null]`: 4, `{"a":[1]}`: -1, `7`: -1, `"[1]"`: -1, `[{},{},[]]`: 3, "[[[[[1]]]]]": 1,
	} {
		c, err := jsonscan.Inspect([]byte(doc), depth)
		n := c.Elements
		if n != want || err != nil {
			t.Errorf("%s: %d, %v; want %d", doc, n, err, want)
		}
		if want >= 0 {
			seen := 0
			for range jsonscan.Elements([]byte(doc)) {
				seen++
			}
			if seen != n {
				t.Errorf("%s: counted %d, walked over %d", doc, n, seen)
			}
		}
	}
	for _, doc := range []string{"[1,", "[1 2]", ""} {
		if c, err := jsonscan.Inspect([]byte(doc), depth); err == nil || c.Elements != -1 {
			t.Errorf("%q: %d, %v", doc, c.Elements, err)
		}
	}
}

func TestInspectSaysWhatIsPlain(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 5000)
	for doc, want := range map[string]bool{
		`{"a":"b"}`: true, `["\u0026\u003c\u003e\u003C\n\t\r\"\\\/\b\f"]`: true, `[1,null,true]`: true, `""`: true,
		`["é"]`: false, `{"é":1}`: false, `["\u00e9"]`: false, `["\u200b"]`: false, `["\u001b[0m"]`: false,
		`["\u003c!--"]`: false, `["\u003c!"]`: false, `["\ud83d\ude00"]`: false, `["\u0000"]`: false, `{"\u202e":1}`: false,
		`["` + long + `"]`: true, `["` + long + `\u200d"]`: false, `["` + long + "\u200d" + `"]`: false,
	} {
		c, err := jsonscan.Inspect([]byte(doc), 10)
		if err != nil || c.Plain != want {
			t.Errorf("%.60s: plain %v, %v; want %v", doc, c.Plain, err, want)
		}
	}
}
