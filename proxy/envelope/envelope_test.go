package envelope_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/envelope"
)

// harness runs calls through an envelope around one fixed result.
type harness struct {
	t     *testing.T
	stage proxy.Handler
	call  proxy.Call
	body  []byte
	kind  proxy.BodyKind
	asked int // how often the handler below was reached
}

func newHarness(t *testing.T, cfg config.Results, kind proxy.BodyKind, body []byte) *harness {
	t.Helper()
	cursors, err := envelope.NewCursors("a key for tests")
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t, body: body, kind: kind}
	h.stage = envelope.New(cfg, cursors).Stage()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		h.asked++
		return &proxy.Result{Status: 200, Method: "GET", Path: "/x", Kind: h.kind, Body: bytes.Clone(h.body)}, nil
	}))
	h.call = proxy.Call{
		Identity: &proxy.Identity{Login: "alice", Mode: proxy.ModeStatic},
		Tool:     &proxy.Tool{Name: "gitea_issue_list"},
		Args:     proxy.Arguments{"owner": "acme", "page": json.Number("1")},
	}
	return h
}

// answer is an envelope as a client reads it.
type answer struct {
	Truncation *proxy.Truncation `json:"truncation"`
	Warnings   []string          `json:"warnings"`
	Data       json.RawMessage   `json:"data"`
}

func (h *harness) do(cursor string) answer {
	h.t.Helper()
	c := h.call
	c.Options.Cursor = cursor
	res, err := h.stage.Handle(context.Background(), &c)
	if err != nil {
		h.t.Fatalf("Handle: %v", err)
	}
	var a answer
	if err := json.Unmarshal(res.Text, &a); err != nil {
		h.t.Fatalf("the envelope is not JSON: %v\n%.300s", err, res.Text)
	}
	return a
}

// walk follows cursors to the end and returns every answer.
func (h *harness) walk() []answer {
	h.t.Helper()
	all := []answer{h.do("")}
	for {
		t := all[len(all)-1].Truncation
		if t == nil || t.Cursor == "" {
			return all
		}
		if len(all) > 20000 {
			h.t.Fatal("the cursor never ends")
		}
		all = append(all, h.do(t.Cursor))
	}
}

func limits(items, chars int) config.Results {
	return config.Results{MaxItems: items, MaxChars: chars}
}

func TestWholeEnvelope(t *testing.T) {
	t.Parallel()
	h := newHarness(t, limits(100, 60000), proxy.BodyJSON, []byte(` {"b":1e3,"a":"\u00e9\/","b":-0} `))
	total, next := int64(7), 2
	stage := func(next_ *int) proxy.Handler {
		cursors, _ := envelope.NewCursors("k")
		return envelope.New(limits(100, 60000), cursors).Stage()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
			return &proxy.Result{Status: 200, Method: "GET", Path: "/repos/o/r/issues", Kind: proxy.BodyJSON, Body: h.body,
				Page: &proxy.Pagination{Page: 1, Limit: 5, TotalCount: &total, NextPage: next_}, Warnings: []string{"w"}}, nil
		}))
	}
	c := h.call
	c.Options.Sudo = "bob"
	res, err := stage(&next).Handle(context.Background(), &c)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"identity":{"login":"alice","mode":"static","sudo":"bob"},"request":{"method":"GET","path":"/repos/o/r/issues"},` +
		`"status":200,"pagination":{"page":1,"limit":5,"total_count":7,"next_page":2},"warnings":["w"],` +
		`"untrusted_content":"` + envelope.Untrusted + `","data":{"b":1e3,"a":"\u00e9\/","b":-0}}`
	if diff := cmp.Diff(want, string(res.Text)); diff != "" {
		t.Error(diff)
	}
}

func TestEmptyAndBinary(t *testing.T) {
	t.Parallel()
	if got := newHarness(t, limits(10, 1000), proxy.BodyEmpty, nil).do(""); string(got.Data) != "null" || got.Truncation != nil {
		t.Errorf("empty: %+v", got)
	}
	raw := []byte{0, 1, 0xff, 0xfe}
	got := newHarness(t, limits(10, 1000), proxy.BodyBinary, raw).do("")
	var bin struct {
		Content string `json:"content_base64"`
		Size    int    `json:"size"`
	}
	if err := json.Unmarshal(got.Data, &bin); err != nil {
		t.Fatal(err)
	}
	if back, err := base64.StdEncoding.DecodeString(bin.Content); err != nil || !bytes.Equal(back, raw) || bin.Size != len(raw) {
		t.Errorf("binary: %s", got.Data)
	}
}

// TestArraysWalk: for random arrays and bounds, the pieces are whole elements,
// within the bounds, and together the array.
func TestArraysWalk(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := rnd.IntN(60)
		var elems []string
		for i := range n {
			elems = append(elems, fmt.Sprintf(`{"n":%d,"t":%q}`, i, strings.Repeat("é\"", rnd.IntN(80))))
		}
		body := "[" + strings.Join(elems, " , ") + "]"
		if rnd.IntN(2) == 0 {
			body = `{"ok":true,"data":` + body + `,"z":1}`
		}
		cfg := limits(1+rnd.IntN(20), 1000+rnd.IntN(1000))
		h := newHarness(t, cfg, proxy.BodyJSON, []byte(body))
		var got []string
		for _, a := range h.walk() {
			if c := utf8.RuneCount(a.Data); c > cfg.MaxChars {
				t.Fatalf("%d characters over a bound of %d", c, cfg.MaxChars)
			}
			data := a.Data
			if data[0] == '{' {
				var o struct{ Data json.RawMessage }
				if err := json.Unmarshal(data, &o); err != nil {
					t.Fatal(err)
				}
				data = o.Data
				if a.Truncation != nil && a.Truncation.At != "data" {
					t.Fatalf("truncation.at = %q", a.Truncation.At)
				}
			}
			var list []json.RawMessage
			if err := json.Unmarshal(data, &list); err != nil {
				t.Fatal(err)
			}
			if len(list) > cfg.MaxItems {
				t.Fatalf("%d items over a bound of %d", len(list), cfg.MaxItems)
			}
			if tr := a.Truncation; tr != nil && (tr.Returned != len(list) || tr.Available != n) {
				t.Fatalf("truncation says %+v for %d items of %d", tr, len(list), n)
			}
			if len(a.Warnings) > 0 {
				t.Fatalf("unexpected warnings %v", a.Warnings)
			}
			for _, e := range list {
				got = append(got, string(e))
			}
		}
		if diff := cmp.Diff(elems, got); n > 0 && diff != "" {
			t.Fatalf("the pieces are not the whole: %s", diff)
		}
	}
}

// rounds is how many of a number of random cases are tried: all of them, or some.
func rounds(n int) int {
	if os.Getenv("AEGIS_TEST_WHOLE") == "1" {
		return n
	}
	return n / 4
}

// TestStringsWalk: the parts of every cut string join to the whole, with escapes
// and surrogate pairs never split, in objects and in an array's long element.
func TestStringsWalk(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	units := []string{"a", "é", "日", "😀", `\n`, `\u00e9`, `\ud83d\ude00`, `\\`, `\"`, `\ud800`, "/"}
	long := func() string {
		var b strings.Builder
		for range rnd.IntN(3000) {
			b.WriteString(units[rnd.IntN(len(units))])
		}
		return b.String()
	}
	for i := range rounds(200) {
		want := map[string]string{"/title": long(), "/nested/body": long(), "/list/1/x~1y": long()}
		body := `{"title":"` + want["/title"] + `","id":5,"nested":{"body":"` + want["/nested/body"] + `"},"list":[1,{"x/y":"` + want["/list/1/x~1y"] + `"}]}`
		inArray := i%2 == 1
		if inArray {
			body = "[1," + body + ",2]"
		}
		cfg := limits(100, 1000+rnd.IntN(1500))
		h := newHarness(t, cfg, proxy.BodyJSON, []byte(body))
		got := map[string]string{}
		for _, a := range h.walk() {
			if c := utf8.RuneCount(a.Data); c > cfg.MaxChars {
				t.Fatalf("%d characters over a bound of %d", c, cfg.MaxChars)
			}
			if len(a.Warnings) > 0 {
				t.Fatalf("unexpected warnings %v", a.Warnings)
			}
			parts := []json.RawMessage{a.Data}
			if inArray {
				if err := json.Unmarshal(a.Data, &parts); err != nil {
					t.Fatal(err)
				}
			}
			for _, p := range parts {
				gather(t, got, p)
			}
		}
		for k, v := range want {
			if got[k] != v {
				t.Fatalf("%s: %d characters came back of %d", k, len(got[k]), len(v))
			}
		}
	}
}

// gather adds the raw strings of an object or a continuation to got by pointer.
func gather(t *testing.T, got map[string]string, part json.RawMessage) {
	t.Helper()
	raw := func(v json.RawMessage) string { return string(v[1 : len(v)-1]) }
	var flat map[string]json.RawMessage
	if part[0] != '{' {
		return
	}
	if err := json.Unmarshal(part, &flat); err != nil {
		t.Fatal(err)
	}
	if _, first := flat["id"]; !first {
		for k, v := range flat {
			got[k] += raw(v)
		}
		return
	}
	var o struct {
		Title  json.RawMessage
		Nested struct{ Body json.RawMessage }
		List   [2]json.RawMessage
	}
	var x struct {
		V json.RawMessage `json:"x/y"`
	}
	if err := errors.Join(json.Unmarshal(part, &o), json.Unmarshal(o.List[1], &x)); err != nil {
		t.Fatal(err)
	}
	got["/title"] += raw(o.Title)
	got["/nested/body"] += raw(o.Nested.Body)
	got["/list/1/x~1y"] += raw(x.V)
}

func TestTextWalk(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(5, 6))
	for range rounds(200) {
		var text strings.Builder
		for range rnd.IntN(60) {
			text.WriteString(strings.Repeat("añ日😀\t", rnd.IntN(120)))
			text.WriteString([]string{"\n", "\r\n", ""}[rnd.IntN(3)])
		}
		for _, blocks := range []bool{false, true} {
			cfg := limits(10, 1000)
			cfg.TextBlocks = blocks
			h := newHarness(t, cfg, proxy.BodyText, []byte(text.String()))
			var got strings.Builder
			cursor := ""
			for {
				c := h.call
				c.Options.Cursor = cursor
				res, err := h.stage.Handle(context.Background(), &c)
				if err != nil {
					t.Fatal(err)
				}
				var a answer
				if err := json.Unmarshal(res.Text, &a); err != nil {
					t.Fatal(err)
				}
				part := string(res.TextBlock)
				if !blocks {
					if err := json.Unmarshal(a.Data, &part); err != nil {
						t.Fatal(err)
					}
				}
				if utf8.RuneCountInString(part) > cfg.MaxChars || !utf8.ValidString(part) {
					t.Fatal("a part is too long or splits a character")
				}
				got.WriteString(part)
				if a.Truncation == nil || a.Truncation.Cursor == "" {
					break
				}
				cursor = a.Truncation.Cursor
			}
			if got.String() != text.String() {
				t.Fatal("the parts are not the text")
			}
		}
	}
}

func TestTextIsCutBehindALine(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("x", 98) + "\r\n"
	h := newHarness(t, limits(10, 1050), proxy.BodyText, []byte(strings.Repeat(line, 30)))
	var got string
	if err := json.Unmarshal(h.do("").Data, &got); err != nil {
		t.Fatal(err)
	}
	if got != strings.Repeat(line, 10) {
		t.Errorf("cut after %d characters, not at a line border", len(got))
	}
}

// TestCursorIsBound: whatever decides what the data is must be the same.
func TestCursorIsBound(t *testing.T) {
	t.Parallel()
	body := []byte("[" + strings.Repeat("1,", 50) + "1]")
	base := newHarness(t, limits(10, 1000), proxy.BodyJSON, body)
	cursor := base.do("").Truncation.Cursor
	if strings.Contains(cursor, "=") || len(cursor) > 80 {
		t.Errorf("cursor %q is not a short opaque word", cursor)
	}
	other := map[string]func(*proxy.Call){
		"login":    func(c *proxy.Call) { c.Identity = &proxy.Identity{Login: "bob", Mode: proxy.ModeStatic} },
		"mode":     func(c *proxy.Call) { c.Identity = &proxy.Identity{Login: "alice", Mode: proxy.ModeOAuth} },
		"team":     func(c *proxy.Call) { c.Team = "infra" },
		"tool":     func(c *proxy.Call) { c.Tool = &proxy.Tool{Name: "gitea_pull_list"} },
		"argument": func(c *proxy.Call) { c.Args = proxy.Arguments{"owner": "acme", "page": json.Number("2")} },
		"added":    func(c *proxy.Call) { c.Args = proxy.Arguments{"owner": "acme", "page": json.Number("1"), "q": ""} },
		"sudo":     func(c *proxy.Call) { c.Options.Sudo = "bob" },
		"fields":   func(c *proxy.Call) { c.Options.Fields = []string{"a"} },
		"forged":   func(c *proxy.Call) { c.Options.Cursor = c.Options.Cursor[:20] + "_" + c.Options.Cursor[21:] },
		"extended": func(c *proxy.Call) { c.Options.Cursor += "AA" },
		"garbage":  func(c *proxy.Call) { c.Options.Cursor = "\x00%%%" },
	}
	for name, change := range other {
		c := base.call
		c.Options.Cursor = cursor
		change(&c)
		asked := base.asked
		_, err := base.stage.Handle(context.Background(), &c)
		var e *proxy.Error
		if !errors.As(err, &e) || e.Kind != proxy.KindInvalidArguments {
			t.Errorf("%s: %v, want invalid_arguments", name, err)
		}
		if base.asked != asked {
			t.Errorf("%s: Gitea was asked", name)
		}
	}
}

func TestCursorNoticesChange(t *testing.T) {
	t.Parallel()
	for _, wrap := range []string{"%s", `{"ok":true,"data":%s}`} {
		body := func(first string) []byte {
			return fmt.Appendf(nil, wrap, "["+first+strings.Repeat(",1", 50)+"]")
		}
		h := newHarness(t, limits(10, 1000), proxy.BodyJSON, body("1"))
		cursor := h.do("").Truncation.Cursor
		if got := h.do(cursor); len(got.Warnings) != 0 {
			t.Errorf("warned without a change: %v", got.Warnings)
		}
		h.body = body("2")
		if got := h.do(cursor); len(got.Warnings) != 1 {
			t.Errorf("no warning about a change: %+v", got)
		}
		h.body = fmt.Appendf(nil, wrap, "[1]")
		if got := h.do(cursor); len(got.Warnings) != 1 {
			t.Errorf("no warning about a shrunk list: %+v", got)
		}
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	list := `[{"number":1,"title":"a","user":{"login":"x","id":9},"labels":[{"name":"bug","id":1},{"name":"p","id":2}],"m":null},` +
		`{"number":2,"title":"b\u0022","user":null,"labels":[],"m":{"t":1}}]`
	for _, tc := range []struct {
		body, fields, want, unknown string
	}{
		{list, "number,user.login,labels[].name", `[{"number":1,"user":{"login":"x"},"labels":[{"name":"bug"},{"name":"p"}]},{"number":2,"user":null,"labels":[]}]`, ""},
		{list, "labels.name", `[{"labels":[{"name":"bug"},{"name":"p"}]},{"labels":[]}]`, ""},
		{list, "title,nope,user.nope", `[{"title":"a","user":{}},{"title":"b\u0022","user":null}]`, "nope,user.nope"},
		{list, "m.t", `[{"m":null},{"m":{"t":1}}]`, ""},
		{list, "user,user.login", `[{"user":{"login":"x","id":9}},{"user":null}]`, ""},
		{`{"ok":true,"data":[{"id":1,"n":2}]}`, "data[].id", `{"data":[{"id":1}]}`, ""},
		{`[]`, "a", `[]`, ""},
		{`5`, "a", `5`, "a"},
		{`["x","y"]`, "a,b", `["x","y"]`, "a,b"},
		{`{"\u0061":1,"b":2}`, "a", `{"\u0061":1}`, ""},
	} {
		f, err := envelope.ParseFields(strings.Split(tc.fields, ","))
		if err != nil {
			t.Fatal(err)
		}
		got, unknown, err := f.Project([]byte(tc.body), 100)
		if string(got) != tc.want || err != nil {
			t.Errorf("%s:\n got %s\nwant %s", tc.fields, got, tc.want)
		}
		if strings.Join(unknown, ",") != tc.unknown {
			t.Errorf("%s: unknown = %v, want %s", tc.fields, unknown, tc.unknown)
		}
	}
	for _, bad := range []string{"", "a..b", ".a", strings.Repeat("a.", 9) + "a"} {
		if _, err := envelope.ParseFields([]string{bad}); err == nil {
			t.Errorf("accepted %q", bad)
		}
	}
}

// TestFieldsOfDataWithoutMembers: such data stays whole, and every path is named
// as unknown.
func TestFieldsOfDataWithoutMembers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind                proxy.BodyKind
		body, want, unknown string
	}{
		"nothing":      {proxy.BodyEmpty, "", `null`, `["size","title"]`},
		"text":         {proxy.BodyText, "a\nb", `"a\nb"`, `["size","title"]`},
		"strings":      {proxy.BodyJSON, `["a", "b"]`, `["a","b"]`, `["size","title"]`},
		"a number":     {proxy.BodyJSON, `7`, `7`, `["size","title"]`},
		"a file":       {proxy.BodyBinary, "\x00", `{"size":1}`, `["title"]`},
		"an empty one": {proxy.BodyJSON, `[]`, `[]`, ``},
	} {
		h := newHarness(t, limits(100, 1000), tc.kind, []byte(tc.body))
		h.call.Options.Fields = []string{"size", "title"}
		a := h.do("")
		var unknown []byte
		if a.Truncation != nil {
			unknown, _ = json.Marshal(a.Truncation.UnknownFields)
		}
		if string(a.Data) != tc.want || string(unknown) != tc.unknown {
			t.Errorf("%s: %s, unknown %s; want %s, unknown %s", name, a.Data, unknown, tc.want, tc.unknown)
		}
	}
}

// TestBadFieldsStopTheCall before Gitea is asked.
func TestBadFieldsStopTheCall(t *testing.T) {
	t.Parallel()
	for _, bad := range [][]string{{"a..b"}, {strings.Repeat("a.", 9) + "a"}, make([]string, 65)} {
		h := newHarness(t, limits(100, 1000), proxy.BodyJSON, []byte("{}"))
		h.call.Options.Fields = bad
		_, err := h.stage.Handle(context.Background(), &h.call)
		var e *proxy.Error
		if !errors.As(err, &e) || e.Kind != proxy.KindInvalidArguments || !strings.HasPrefix(e.Public, "fields: ") || h.asked != 0 {
			t.Errorf("%d paths: %v, asked %d times", len(bad), err, h.asked)
		}
	}
}

// TestManyLongStrings: even a thousand long strings stay within the bound, and
// the result says that something is missing.
func TestManyLongStrings(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"a":{`)
	for i := range 1000 {
		fmt.Fprintf(&b, `"k%d":%q,`, i, strings.Repeat("z", 400))
	}
	b.WriteString(`"end":1},"small":"kept"}`)
	h := newHarness(t, limits(10, 5000), proxy.BodyJSON, []byte(b.String()))
	got := h.do("")
	if utf8.RuneCount(got.Data) > 5000 || got.Truncation == nil || len(got.Truncation.Omitted) == 0 {
		t.Errorf("%d characters, truncation %+v", utf8.RuneCount(got.Data), got.Truncation)
	}
	if !strings.Contains(string(got.Data), `"small":"kept"`) {
		t.Errorf("the member that fits is gone: %.100s", got.Data)
	}
}

// TestHostileNames: what stands in a document's member names must not cost memory
// again and again, and must not fill the part of a result that is Aegis's own.
func TestHostileNames(t *testing.T) {
	long := strings.Repeat("k", 200_000)
	deep := `{"` + long + `":[` + strings.Repeat(`"b",`, 20_000) + `"` + strings.Repeat("x", 3000) + `"]}`
	many := `{"` + long + `":1,"\n\u202e` + long[:1000] + `":"` + strings.Repeat("y", 5000) + `"}`
	for _, body := range []string{deep, many, "[" + deep + "," + many + "]"} {
		h := newHarness(t, limits(1000, 20_000), proxy.BodyJSON, []byte(body))
		before := allocated()
		all := h.walk()
		// Each step asks the harness, which copies the body.
		if grown := allocated() - before; grown > uint64(len(all)*(8*len(body)+(1<<20))) {
			t.Errorf("%d bytes were allocated for a body of %d", grown, len(body))
		}
		for _, a := range all {
			tr, err := json.Marshal(a.Truncation)
			if err != nil {
				t.Fatal(err)
			}
			if len(a.Data) > 4*20_000 || len(tr) > 1500 {
				t.Errorf("%d bytes of data, %d of truncation", len(a.Data), len(tr))
			}
			if bytes.Contains(tr, []byte("\u202e")) {
				t.Error("a control character of a name stands outside the data")
			}
		}
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestBoundsHold: whatever the shape, data stays within max_chars.
func TestBoundsHold(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(7, 8))
	var value func(depth int) string
	value = func(depth int) string {
		switch n := rnd.IntN(7); {
		case n < 2 || depth > 4:
			return `"` + strings.Repeat("s", []int{3, 300, 900, 6000}[rnd.IntN(4)]) + `"`
		case n < 3:
			return "12345"
		case n < 5:
			var parts []string
			for range rnd.IntN(120) {
				parts = append(parts, value(depth+2))
				if len(parts) > 8 && rnd.IntN(4) > 0 {
					break
				}
			}
			return "[" + strings.Join(parts, ",") + "]"
		default:
			var parts []string
			for i := range rnd.IntN(8) {
				parts = append(parts, fmt.Sprintf("%q:%s", strings.Repeat("n", 1+rnd.IntN(2000))+fmt.Sprint(i), value(depth+1)))
			}
			return "{" + strings.Join(parts, ",") + "}"
		}
	}
	for range rounds(150) {
		cfg := limits(1+rnd.IntN(100), 1000+rnd.IntN(5000))
		h := newHarness(t, cfg, proxy.BodyJSON, []byte(value(0)))
		a, steps := h.do(""), 0
		for {
			if n := utf8.RuneCount(a.Data); n > cfg.MaxChars {
				t.Fatalf("%d characters over a bound of %d: %.100s", n, cfg.MaxChars, a.Data)
			}
			if a.Truncation == nil || a.Truncation.Cursor == "" || steps > 10 {
				break
			}
			a = h.do(a.Truncation.Cursor)
			steps++
		}
	}
}

// FuzzEnvelope: the pieces of any body are within the bounds, and end. Three bytes
// stand for something longer than the bounds, as the fuzzer takes a minute to make an
// input of that length smaller.
func FuzzEnvelope(f *testing.F) {
	for _, s := range []string{`[1,[2,"~"]]`, `{"a":"^"}`, `"x"`, `null`, `[[[]]]`, "{\"data\":[`1]}"} {
		f.Add([]byte(s), uint8(3))
	}
	long := strings.NewReplacer("~", strings.Repeat("x", 1200), "^", strings.Repeat(`\ud83d\ude00`, 200), "`", strings.Repeat("{},", 40))
	f.Fuzz(func(t *testing.T, short []byte, items uint8) {
		if len(short) > 200 {
			t.Skip()
		}
		body := []byte(long.Replace(string(short)))
		if !json.Valid(body) || !utf8.Valid(body) || bytes.Count(body, []byte("["))+bytes.Count(body, []byte("{")) > 100 {
			t.Skip()
		}
		h := newHarness(t, limits(int(items)+1, 1000), proxy.BodyJSON, body)
		for _, a := range h.walk() {
			if n := utf8.RuneCount(a.Data); n > 1000 {
				t.Fatalf("%d characters", n)
			}
		}
	})
}

func BenchmarkEnvelope120kB(b *testing.B) {
	body := []byte("[" + strings.Repeat(`{"id":12,"title":"A title of usual length","body":"Some longer words about the matter at hand, with\nlines.","user":{"login":"alice"}},`, 880) + `{}]`)
	cursors, _ := envelope.NewCursors("k")
	call := proxy.Call{Identity: &proxy.Identity{Login: "alice"}, Tool: &proxy.Tool{Name: "t"}}
	h := envelope.New(limits(1000, 200000), cursors).Stage()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		return &proxy.Result{Status: 200, Kind: proxy.BodyJSON, Body: body}, nil
	}))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Handle(context.Background(), &call); err != nil {
			b.Fatal(err)
		}
	}
}
