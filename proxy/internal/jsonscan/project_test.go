package jsonscan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"aegis/proxy/internal/jsonscan"
)

func selection(t testing.TB, paths ...string) *jsonscan.Selection {
	t.Helper()
	s, err := jsonscan.NewSelection(paths...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestProject(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		doc, paths, want, unknown string
	}{
		{`{"a":1,"b":2}`, "a", `{"a":1}`, ""},
		{` { "b" : 2.50e+1 , "a" : "\u00e9\/" } `, "a,b", `{"b":2.50e+1,"a":"\u00e9\/"}`, ""},
		{`[{"a":{"x":[1, 2],"y":0}},{"a":null},{}]`, "a.x", `[{"a":{"x":[1, 2]}},{"a":null},{}]`, ""},
		{`[{"l":[{"n":"a","c":1},{"n":"b"}]}]`, "l[].n,l.q", `[{"l":[{"n":"a"},{"n":"b"}]}]`, "l.q"},
		{`{"\u0061":1,"b":2}`, "a", `{"\u0061":1}`, ""},
		{`{"a\"b":1,"\ud83d\ude00":2,"c":3}`, "a\"b,😀", `{"a\"b":1,"\ud83d\ude00":2}`, ""},
		{`{"a":1,"a":2}`, "a", `{"a":1,"a":2}`, ""},
		{`{"a":{"b":1,"c":[2]}}`, "a,a.b", `{"a":{"b":1,"c":[2]}}`, ""},
		{`{"a":[]}`, "a.b", `{"a":[]}`, ""},
		{`{"a":null}`, "a.b.c", `{"a":null}`, ""},
		{`{"a":"text"}`, "a.b", `{"a":"text"}`, "a.b"},
		{`["x","y"]`, "name,id", `["x","y"]`, "name,id"},
		{`[]`, "name", `[]`, ""},
		{`null`, "name", `null`, ""},
		{` "x" `, "name", `"x"`, "name"},
		{`-1.5`, "name", `-1.5`, "name"},
		{`[[{"a":1,"b":2}],[]]`, "a", `[[{"a":1}],[]]`, ""},
		{`{"a":{ "x" : [ {} , "}" ] } ,"z":"{\"a\":9}"}`, "a", `{"a":{ "x" : [ {} , "}" ] }}`, ""},
	} {
		paths := strings.Split(tc.paths, ",")
		kept, unknown, err := selection(t, paths...).Project([]byte(tc.doc), depth)
		if err != nil || string(kept) != tc.want || strings.Join(unknown, ",") != tc.unknown {
			t.Errorf("%s of %s:\n got %s, unknown %v, %v\nwant %s, unknown %s", tc.paths, tc.doc, kept, unknown, err, tc.want, tc.unknown)
		}
	}
	if kept, _, err := selection(t).Project([]byte(` {"a": 1} `), depth); err != nil || string(kept) != `{"a": 1}` {
		t.Errorf("without paths: %s, %v", kept, err)
	}
}

func TestSelectionRefusesBadPaths(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]error{
		"": jsonscan.ErrPathName, "a..b": jsonscan.ErrPathName, ".a": jsonscan.ErrPathName, "a.": jsonscan.ErrPathName, "[]": jsonscan.ErrPathName,
		"a.b.c.d.e.f.g.h": nil, "a.b.c.d.e.f.g.h.i": jsonscan.ErrPathDepth,
	} {
		if _, err := jsonscan.NewSelection("ok", path); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", path, err, want)
		}
	}
}

// reference is a second way to the same result: through whole values.
type reference struct{ looked, found map[string]bool }

func (r *reference) value(v []byte, at string, paths []string) []byte {
	below := map[string][]string{}
	for _, p := range paths {
		if p == "" {
			return v
		}
		name, rest, _ := strings.Cut(p, ".")
		below[name] = append(below[name], rest)
	}
	switch v[0] {
	case '[':
		var parts [][]byte
		for _, el := range jsonscan.Elements(v) {
			parts = append(parts, r.value(el, at, paths))
		}
		return slices.Concat([]byte("["), bytes.Join(parts, []byte(",")), []byte("]"))
	case '{':
		r.look(at, below)
		var parts [][]byte
		for k, el := range jsonscan.Members(v) {
			name := jsonscan.Unquote(k)
			if rest, ok := below[name]; ok {
				r.found[at+"."+name] = true
				parts = append(parts, slices.Concat(k, []byte(":"), r.value(el, at+"."+name, rest)))
			}
		}
		return slices.Concat([]byte("{"), bytes.Join(parts, []byte(",")), []byte("}"))
	case 'n':
		return v
	}
	r.look(at, below)
	return v
}

func (r *reference) look(at string, below map[string][]string) {
	for name := range below {
		r.looked[at+"."+name] = true
	}
}

func (r *reference) unknown(paths []string) (out []string) {
	for _, p := range paths {
		at := ""
		for name := range strings.SplitSeq(p, ".") {
			if at += "." + name; r.looked[at] && !r.found[at] {
				out = append(out, p)
				break
			}
		}
	}
	return out
}

// pieces projects doc in pieces of random sizes.
func pieces(s *jsonscan.Selection, doc []byte, rnd *rand.Rand) (*jsonscan.Projector, error) {
	p := s.Projector(depth)
	for len(doc) > 0 {
		n := 1 + rnd.IntN(min(len(doc), 1+rnd.IntN(40)))
		if _, err := p.Write(bytes.Clone(doc[:n])); err != nil {
			return p, err
		}
		doc = doc[n:]
	}
	return p, p.Close()
}

var names = []string{"a", "b", "number", "título", "a\"b", "😀", "\\", "x/y"}

// randomJSON writes a value with white space and escapes where they may stand.
func randomJSON(rnd *rand.Rand, level int) string {
	space := func() string { return []string{"", "", "", " ", "\n\t", "\r"}[rnd.IntN(6)] }
	switch n := rnd.IntN(9); {
	case level > 5 || n < 3:
		return []string{"0", "-0.0", "12e+3", "1E5", "-7.25", "true", "false", "null", `"x"`, `"\u00e9\ud83d\ude00\\"`, `"é😀\"{[,"`, `""`}[rnd.IntN(12)]
	case n < 5:
		var parts []string
		for range rnd.IntN(4) {
			parts = append(parts, space()+randomJSON(rnd, level+1)+space())
		}
		return "[" + space() + strings.Join(parts, ",") + "]"
	}
	var parts []string
	for range rnd.IntN(5) {
		parts = append(parts, space()+spell(rnd, names[rnd.IntN(len(names))])+space()+":"+space()+randomJSON(rnd, level+1)+space())
	}
	return "{" + space() + strings.Join(parts, ",") + "}"
}

// spell writes a string with some characters escaped.
func spell(rnd *rand.Rand, s string) string {
	var b strings.Builder
	for _, r := range s {
		q, _ := json.Marshal(string(r))
		if r < 0x10000 && rnd.IntN(4) == 0 {
			q = fmt.Appendf(nil, `"\u%04X"`, r)
		}
		b.Write(q[1 : len(q)-1])
	}
	return `"` + b.String() + `"`
}

func randomPaths(rnd *rand.Rand) (paths []string) {
	for range 1 + rnd.IntN(4) {
		var path []string
		for range 1 + rnd.IntN(4) {
			path = append(path, names[rnd.IntN(len(names))])
		}
		paths = append(paths, strings.Join(path, "."))
	}
	return paths
}

// TestPiecesAreTheWhole: whatever the document, the selection and the borders
// of the pieces, the result is that of the whole.
func TestPiecesAreTheWhole(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 14))
	some := 0
	for range 4000 {
		doc, paths := []byte(randomJSON(rnd, 0)), randomPaths(rnd)
		r := reference{map[string]bool{}, map[string]bool{}}
		want := r.value(jsonscan.Trim(doc), "", paths)
		s := selection(t, paths...)
		p, err := pieces(s, doc, rnd)
		if err != nil || !bytes.Equal(p.Kept(), want) || !slices.Equal(p.Unknown(), r.unknown(paths)) {
			t.Fatalf("%q of %s:\n got %s, unknown %q, %v\nwant %s, unknown %q", paths, doc, p.Kept(), p.Unknown(), err, want, r.unknown(paths))
		}
		again, unknown, err := s.Project(p.Kept(), depth)
		if err != nil || !bytes.Equal(again, want) || !slices.Equal(unknown, p.Unknown()) {
			t.Fatalf("%q of its own result %s: %s, unknown %q, %v", paths, want, again, unknown, err)
		}
		if len(want) > 2 && len(want) < len(doc) {
			some++
		}
	}
	if some < 500 {
		t.Errorf("only %d documents had something to keep and something to drop", some)
	}
}

// TestProjectorChecks: a projector refuses what Check refuses, for the same
// reason, wherever the fault is.
func TestProjectorChecks(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(2, 71))
	docs := []string{``, ` `, `{`, `[`, `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `[1,`, `[1`, `-`, `1.`, `1e`, `01`, `1 1`, `{} {}`, `"a`, "\"\xc3\"", "\"\xed\xa0\x80\"",
		"\"\xf4\x90\x80\x80\"", "\"\xe0\x80\x80\"", "\"\xc0\x80\"", "\"\xff\"", "\"\xc3\\n\"", `"\u12"`, `"\ud800"`, `"\x"`, "\"\n\"", `tru`, `truf`, `nulll`, `[1}`, `{"a":1]`, `{1:2}`, `{"a" 1}`, `[,1]`, `{,}`, `[1,]`, `{"a":1,}`,
		strings.Repeat("[", 100) + strings.Repeat("]", 100), strings.Repeat("[", 101), strings.Repeat(`{"a":`, 101)}
	for range 3000 {
		doc := []byte(randomJSON(rnd, 0))
		for range rnd.IntN(3) {
			at := rnd.IntN(len(doc))
			doc[at] = `{}[],:"\0-e.tnu x`[rnd.IntN(17)]
		}
		docs = append(docs, string(doc))
	}
	for _, doc := range docs {
		if s := selection(t, randomPaths(rnd)...); true {
			_, err := pieces(s, []byte(doc), rnd)
			sameVerdict(t, doc, err)
		}
	}
}

func sameVerdict(t *testing.T, doc string, got error) {
	t.Helper()
	want := jsonscan.Check([]byte(doc), depth)
	var a, b *jsonscan.SyntaxError
	if errors.As(got, &a) != errors.As(want, &b) || errors.Is(got, jsonscan.ErrDepth) != errors.Is(want, jsonscan.ErrDepth) || (got == nil) != (want == nil) {
		t.Errorf("%q: %v, Check says %v", doc, got, want)
	}
}

func FuzzProjector(f *testing.F) {
	f.Add(`{"a":[{"b":"\ud83d\ude00"}],"\u0061":-1.5e3}`, "a.b", uint64(1))
	f.Add(`[{"a":null},{"a":"x"}]`, "a,b", uint64(2))
	f.Add("{\"a\":\"\xe2\x82\xac\"}", "a", uint64(3))
	f.Fuzz(func(t *testing.T, doc, list string, seed uint64) {
		s, err := jsonscan.NewSelection(strings.Split(list, ",")...)
		if err != nil || len(list) > 1000 {
			t.Skip()
		}
		p, err := pieces(s, []byte(doc), rand.New(rand.NewPCG(seed, 0)))
		sameVerdict(t, doc, err)
		if err != nil {
			return
		}
		if err := jsonscan.Check(p.Kept(), depth); err != nil {
			t.Fatalf("%q of %q keeps %q: %v", list, doc, p.Kept(), err)
		}
		whole, unknown, err := s.Project([]byte(doc), depth)
		if err != nil || !bytes.Equal(whole, p.Kept()) || !slices.Equal(unknown, p.Unknown()) {
			t.Fatalf("%q of %q: %q in pieces, %q as a whole, %v", list, doc, p.Kept(), whole, err)
		}
	})
}

func TestProjectorCountsRows(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]int{
		`{"total":2,"data":[{"x":[1,2,3,4]},{}],"more":[1]}`: 2, `{"data":[]}`: 0, `{"total":0}`: -1, `[1,2]`: -1, `{"a":{"b":[1]}}`: -1,
	} {
		p := selection(t, "total").Projector(depth)
		if _, err := p.Write([]byte(doc)); err != nil || p.Close() != nil || p.Rows() != want {
			t.Errorf("%s: %d rows, want %d", doc, p.Rows(), want)
		}
	}
}

// TestProjectorIsSmall: what is dropped takes no memory, be it many members,
// one long text or one long name.
func TestProjectorIsSmall(t *testing.T) {
	for name, doc := range map[string][3]string{
		"rows":     {"[", `{"number":7,"body":"` + strings.Repeat("words ", 300) + `"},`, `{}]`},
		"one text": {`{"body":"`, strings.Repeat(`text \" `, 200), `"}`},
		"one name": {`{"`, strings.Repeat(`name `, 400), `":1}`},
	} {
		s := selection(t, "number")
		p := s.Projector(depth)
		var before, after runtime.MemStats
		piece := []byte(doc[1])
		runtime.ReadMemStats(&before)
		_, _ = p.Write([]byte(doc[0]))
		for range (20 << 20) / len(piece) {
			_, _ = p.Write(piece)
		}
		_, _ = p.Write([]byte(doc[2]))
		err := p.Close()
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; err != nil || used > 1<<20 {
			t.Errorf("%s: %d bytes for a document of 20 MB, %v", name, used, err)
		}
	}
}

func BenchmarkProjector(b *testing.B) {
	row := `{"id":12,"number":7,"title":"A title of usual length","body":"` + strings.Repeat("Some words about the matter. ", 60) +
		`","user":{"id":1,"login":"alice","email":"alice@example.org"},"labels":[{"id":1,"name":"bug","color":"ff0000"}]},`
	doc := []byte("[" + strings.Repeat(row, 50) + "{}]")
	s := selection(b, "number", "title", "user.login", "labels[].name")
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		p := s.Projector(depth)
		for from := 0; from < len(doc); from += 16 << 10 {
			if _, err := p.Write(doc[from:min(from+16<<10, len(doc))]); err != nil {
				b.Fatal(err)
			}
		}
		if err := p.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestProjectorTakesNothingAfterAnError: what comes after one is not kept.
func TestProjectorTakesNothingAfterAnError(t *testing.T) {
	sel, err := jsonscan.NewSelection("a")
	if err != nil {
		t.Fatal(err)
	}
	p := sel.Projector(10)
	_, _ = p.Write([]byte(`{"a`))
	if _, err := p.Write([]byte("\x00")); err == nil {
		t.Fatal("a control character in a name is taken")
	}
	piece := make([]byte, 1<<20)
	if n := testing.AllocsPerRun(10, func() { _, _ = p.Write(piece) }); n != 0 {
		t.Errorf("%v allocations for what is not taken", n)
	}
}
