package mcp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
	"aegis/proxy/mcp"
)

// oddChain answers by the tool's name, in every way that a chain can. Its texts
// show all that a call holds.
func oddChain(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
	said := fmt.Sprintf("%s %q %q %v %v %v %s %s \u2028 \x01 <&> \xff", c.Name, c.RawArgs, c.Client, c.Trace, c.Identity.AllowSudo, c.CanAsk, c.Team, c.RequestID)
	if !c.Received.IsZero() {
		said += " received"
	}
	switch c.Name {
	case "nothing":
		return nil, nil
	case "empty":
		return &proxy.Result{Status: 204}, nil
	case "block":
		return &proxy.Result{Text: []byte(said), TextBlock: []byte("a\r\nb"), Source: `gitea "x"`}, nil
	case "structured":
		return &proxy.Result{Text: []byte(said), Structured: []byte("{\"data\":\n[1]}")}, nil
	case "broken":
		return &proxy.Result{Text: []byte(said), Structured: []byte("{")}, nil
	case "operation":
		c.Tool = &proxy.Tool{OperationID: `op<"1">`}
		return &proxy.Result{Text: []byte(said), Source: "gitea 28.1.0"}, nil
	case "gone":
		return nil, &proxy.Error{Kind: proxy.KindGone, Status: 410, Public: said, RetryAfter: 1500 * time.Millisecond}
	case "limited":
		c.Tool = &proxy.Tool{OperationID: "op"}
		return nil, proxy.NewError(proxy.KindRateLimited, "slower", errTest)
	case "secretly":
		return nil, errTest
	case "unknown":
		return nil, proxy.NewError(proxy.KindUnknownTool, "no such tool", nil)
	case "unknown long":
		return nil, proxy.NewError(proxy.KindUnknownTool, strings.Repeat("ü", 400), nil)
	case "asking":
		return nil, &proxy.Error{Kind: proxy.KindConfirm, Public: "ask", Question: &proxy.Question{Message: "really?"}}
	case "wire":
		if c.Reply == nil {
			return &proxy.Result{Text: []byte(said), Source: "gitea 28.1.0"}, nil
		}
		c.Reply.End(jsonscan.AppendQuote(c.Reply.Begin(len(said)), said), len(said))
		return &proxy.Result{Reply: c.Reply, Source: "gitea 28.1.0"}, nil
	case "wire and more":
		res := &proxy.Result{Text: []byte(said), Structured: []byte(`{"data":1}`)}
		if c.Reply != nil {
			c.Reply.End(jsonscan.AppendQuote(c.Reply.Begin(0), said), len(said))
			res.Text, res.Reply = nil, c.Reply
		}
		return res, nil
	case "panic":
		panic("a panic")
	}
	return &proxy.Result{Status: 200, Text: []byte(said), Source: "gitea 28.1.0"}, nil
}

// twin is one endpoint twice: as it is, and by the SDK alone.
type twin struct{ fast, sdk http.Handler }

func newTwin(t testing.TB) twin {
	o := settings(oddChain)
	o.PageSize = 3
	o.SudoTools = func() []*proxy.Tool { return toolSet(8) }
	h := newHandler(t, o)
	return twin{identified(h), identified(mcp.BySDK(h))}
}

// message is one request; the parts are as they go over the wire.
type message struct {
	header http.Header
	body   string
}

func (m message) send(h http.Handler) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(m.body))
	r.Header = m.header.Clone()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// compare fails when the two answers are not the same for a client.
func (tw twin) compare(t *testing.T, m message) {
	t.Helper()
	got, want := m.send(tw.fast), m.send(tw.sdk)
	if got.Code != want.Code {
		t.Fatalf("status %d, the SDK has %d\n%s\n%v", got.Code, want.Code, m.body, m.header)
	}
	if n := got.Header().Get("Content-Length"); n != "" && n != strconv.Itoa(got.Body.Len()) {
		t.Fatalf("Content-Length is %s, the body has %d bytes\n%s", n, got.Body.Len(), m.body)
	}
	a, b := said(t, got), said(t, want)
	if diff := cmp.Diff(b, a); diff != "" {
		t.Fatalf("%s\n%v\n(-SDK +fast):\n%s", m.body, m.header, diff)
	}
}

// said is what a client understands of an answer.
func said(t *testing.T, w *httptest.ResponseRecorder) any {
	t.Helper()
	h := w.Header().Clone()
	body := w.Body.Bytes()
	if h.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	// The length depends on how characters are escaped; compression is the fast
	// path's alone.
	for _, k := range []string{"Content-Length", "Content-Encoding", "Vary"} {
		h.Del(k)
	}
	body = moment.ReplaceAll(body, []byte(`"aegis/generated_at":"NOW"`))
	var v any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if d.Decode(&v) != nil {
		v = string(body)
	}
	return map[string]any{"header": h, "body": v}
}

// TestFastPathEqualsSDK holds the fast path to the SDK's answers: bodies, statuses,
// errors, header checks and what the chain is told.
func TestFastPathEqualsSDK(t *testing.T) {
	t.Parallel()
	tw := newTwin(t)
	n := 2_000
	if os.Getenv("AEGIS_TEST_WHOLE") == "1" && !testing.Short() {
		n = 8_000
	}
	fast := 0
	for seed := range n {
		m := author{rand.New(rand.NewPCG(uint64(seed), 14))}.message()
		if json.Valid([]byte(m.body)) && mcp.IsFast(m.header, []byte(m.body)) {
			fast++
		}
		tw.compare(t, m)
	}
	// Both paths must have been compared often.
	if fast < n/4 || fast > n*9/10 {
		t.Errorf("%d of %d requests took the fast path; the generator has lost its point", fast, n)
	}
	t.Logf("%d of %d requests took the fast path", fast, n)
}

// TestLargeMessagesAreEqualToo: what is large beside the arguments is refused or
// answered as the SDK's path does it; large arguments are no matter.
func TestLargeMessagesAreEqualToo(t *testing.T) {
	t.Parallel()
	tw := newTwin(t)
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}, "Mcp-Protocol-Version": {legacy}}
	for _, n := range []int{1 << 10, 20 << 10, 2 << 20} {
		long := strings.Repeat("n", n)
		for name, params := range map[string]string{
			"name":      `{"name":"` + long + `"}`,
			"arguments": `{"name":"wire","arguments":{"a":"` + long + `"}}`,
			"meta":      `{"name":"wire","_meta":{"vendor/x":"` + long + `"}}`,
			"space":     `{"name":"wire"` + strings.Repeat(" ", n) + `}`,
		} {
			m := message{h, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`}
			if got := mcp.IsFast(h, []byte(m.body)); got != (n < 16<<10 || name == "arguments") {
				t.Errorf("%s of %d bytes: fast is %v", name, n, got)
			}
			tw.compare(t, m)
		}
	}
}

// FuzzFastPath compares the two paths on bodies that no generator thought of.
func FuzzFastPath(f *testing.F) {
	tw := newTwin(f)
	for seed := range uint64(40) {
		m := author{rand.New(rand.NewPCG(seed, 41))}.message()
		f.Add(m.header.Get("MCP-Protocol-Version"), m.header.Get("Mcp-Method"), m.header.Get("Mcp-Name"), m.body)
	}
	f.Fuzz(func(t *testing.T, version, method, name, body string) {
		h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		for k, v := range map[string]string{"Mcp-Protocol-Version": version, "Mcp-Method": method, "Mcp-Name": name} {
			if v != "" {
				h.Set(k, v)
			}
		}
		tw.compare(t, message{h, body})
	})
}
