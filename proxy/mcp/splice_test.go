package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"aegis/proxy"
	"aegis/proxy/mcp"
)

// hostile are the pieces of which payloads are made.
var hostile = []string{
	"a", "word ", `"`, `\`, `\\"`, "/", "\n", "\r\n", "\t", "\b", "\f", "\x00", "\x01", "\x1f", "\x7f",
	"\u0080", "é", "\u2028", "\u2029", "\ufeff", "\ufffd", "\U0001F600", "\U0010FFFF",
	"\xff", "\xc3", "\xe2\x80", "\xf0\x9f", "\xed\xa0\x80", "\xc0\xaf", "\x80",
	"<script>", "&amp;", "\u00a0", `\u0041`, `\ud800`, "data: x\n\n", "event: message\n",
	`{"jsonrpc":"2.0","error":{"code":-1}}`, `"text":"`, "],}", "ABCDEFGHIJKLMNOPQRSTUVWXYZ000", "\u202e",
}

// hostilePayload returns a payload of about n pieces.
func hostilePayload(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(hostile[r.IntN(len(hostile))])
	}
	return b.String()
}

// answer runs one request through h without a network.
func answer(t testing.TB, h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// decode returns a JSON document as values, its result without what only
// Aegis adds.
func decode(t testing.TB, body []byte) any {
	t.Helper()
	var v struct {
		Version string         `json:"jsonrpc"`
		ID      any            `json:"id"`
		Result  map[string]any `json:"result"`
		Error   any            `json:"error"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("not JSON: %v\n%.300q", err, body)
	}
	if meta, ok := v.Result["_meta"].(map[string]any); ok {
		for key := range meta {
			if strings.HasPrefix(key, "aegis/") {
				delete(meta, key)
			}
		}
		if len(meta) == 0 {
			delete(v.Result, "_meta")
		}
	}
	return v
}

// TestSpliceEqualsSDK holds the answers that go past the SDK equal to those
// that it encodes itself.
func TestSpliceEqualsSDK(t *testing.T) {
	t.Parallel()
	var text, block string
	plain := plainSDK(toolSet(2), func() *sdk.CallToolResult {
		return &sdk.CallToolResult{
			Content:           []sdk.Content{&sdk.TextContent{Text: text}, &sdk.TextContent{Text: block}},
			StructuredContent: map[string]any{"text": text},
		}
	})
	ours := identified(newHandler(t, settings(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		structured, err := json.MarshalIndent(map[string]any{"text": text}, "", "\t")
		return &proxy.Result{Text: []byte(text), TextBlock: []byte(block), Structured: structured}, err
	})))
	compare := func(t *testing.T, versions ...string) {
		t.Helper()
		for _, v := range versions {
			req := func() *http.Request {
				return newRequest(t, "http://127.0.0.1/mcp", v, "tools/call", `{"name":"gitea_issue_action_001"}`)
			}
			want, got := decode(t, answer(t, plain, req()).Body.Bytes()), decode(t, answer(t, ours, req()).Body.Bytes())
			if !reflect.DeepEqual(want, got) {
				t.Fatalf("%s, payload %.200q: (-sdk +aegis):\n%.2000s", v, text, cmp.Diff(want, got))
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, piece := range append(hostile, "") {
		text, block = piece, "\x00"+piece
		compare(t, generations...)
	}
	n := 100
	if os.Getenv("AEGIS_TEST_WHOLE") == "1" {
		n = 300
	}
	for range n {
		text, block = hostilePayload(r, r.IntN(60)), hostilePayload(r, r.IntN(5))
		compare(t, legacy, current)
	}
	text, block = hostilePayload(r, 5<<18)[:5<<20], envelopeText(1<<10)
	compare(t, current)
}

// TestListEqualsSDK holds the encoded list equal to the SDK's, where both say
// the same.
func TestListEqualsSDK(t *testing.T) {
	t.Parallel()
	o := settings(textChain("{}"))
	o.Tools = toolSet(538)
	plain, ours := plainSDK(o.Tools, nil), identified(newHandler(t, o))
	for _, v := range []string{"2025-06-18", legacy, current} {
		read := func(h http.Handler) (tools []sdk.Tool) {
			w := answer(t, h, newRequest(t, "http://127.0.0.1/mcp", v, "tools/list", `{}`))
			var rep struct {
				Result struct{ Tools []sdk.Tool }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &rep); err != nil {
				t.Fatal(err)
			}
			return rep.Result.Tools
		}
		want, got := read(plain), read(ours)
		for i := range want {
			if want[i].Annotations.ReadOnlyHint { // then these mean nothing
				want[i].Annotations.DestructiveHint, want[i].Annotations.IdempotentHint = nil, false
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-sdk +aegis):\n%.2000s", v, diff)
		}
	}
}

func TestPayloadHoldsMarkers(t *testing.T) {
	t.Parallel()
	const token = "TOKEN"
	texts := [][]byte{[]byte(`TOKEN001 "TOKEN000"`), []byte("TOKEN000"), []byte("TOKEN")}
	got, err := mcp.Splice(token, []string{`{"a":`, `,"b":`, `,"c":`, `}`}, texts)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"a":"TOKEN001 \"TOKEN000\"","b":"TOKEN000","c":"TOKEN"}`; string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestMarkerAstray has markers where the SDK never writes them.
func TestMarkerAstray(t *testing.T) {
	t.Parallel()
	for name, parts := range map[string][]string{
		"twice":            {`{"a":"TOKEN000","b":`, `}`},
		"unknown":          {`{"a":"TOKEN007"}`},
		"no number":        {`{"a":"TOKENxyz"}`},
		"negative":         {`{"a":"TOKEN-01"}`},
		"cut":              {`{"a":"TOKEN00`},
		"end of a text":    {`{"a":"see TOKEN000"}`},
		"start of a text":  {`{"a":"TOKEN000 there"}`},
		"nothing before":   {`TOKEN000"`},
		"nothing after it": {`"TOKEN000`},
	} {
		if out, err := mcp.Splice("TOKEN", parts, [][]byte{[]byte("x")}); err == nil {
			t.Errorf("%s: no error, but %s", name, out)
		}
	}
}

func FuzzSplice(f *testing.F) {
	for _, p := range hostile {
		f.Add([]byte(p), p)
	}
	f.Fuzz(func(t *testing.T, text []byte, id string) {
		quoted, err := json.Marshal(id)
		if err != nil {
			t.Skip()
		}
		got, err := mcp.Splice("T0K3N-of-the-test", []string{`{"id":` + string(quoted) + `,"text":`, `}`}, [][]byte{text})
		if err != nil {
			if strings.Contains(id, "T0K3N-of-the-test") {
				t.Skip("the fuzzer guessed the token")
			}
			t.Fatal(err)
		}
		var out struct{ ID, Text string }
		if err := json.Unmarshal(got, &out); err != nil {
			t.Fatalf("not JSON: %v: %q", err, got)
		}
		if want := strings.ToValidUTF8(string(text), "\ufffd"); !sameRunes(out.Text, want) {
			t.Errorf("got %q, want %q", out.Text, want)
		}
		if bytes.ContainsAny(got, "\n\r") {
			t.Errorf("a line end would break an event: %q", got)
		}
	})
}

// sameRunes compares texts whose runs of U+FFFD may differ in length:
// ToValidUTF8 makes one of a run of bad bytes, encoders one of each.
func sameRunes(a, b string) bool {
	squeeze := func(s string) string {
		for strings.Contains(s, "\ufffd\ufffd") {
			s = strings.ReplaceAll(s, "\ufffd\ufffd", "\ufffd")
		}
		return s
	}
	return squeeze(a) == squeeze(b)
}

// TestLostClient has a connection that breaks while the answer is written.
func TestLostClient(t *testing.T) {
	t.Parallel()
	h := identified(newHandler(t, settings(textChain(strings.Repeat("x", 1<<20)))))
	for _, v := range generations {
		w := &brokenWriter{header: http.Header{}}
		h.ServeHTTP(w, newRequest(t, "http://127.0.0.1/mcp", v, "tools/call", `{"name":"a"}`))
		if w.writes == 0 {
			t.Error("nothing was written")
		}
	}
}

type brokenWriter struct {
	header http.Header
	writes int
}

func (b *brokenWriter) Header() http.Header { return b.header }
func (b *brokenWriter) WriteHeader(int)     {}
func (b *brokenWriter) Write([]byte) (int, error) {
	b.writes++
	return 0, fmt.Errorf("connection reset: %w", io.ErrClosedPipe)
}
