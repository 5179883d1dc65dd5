package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"aegis/proxy"
	"aegis/proxy/mcp"
)

// direct shares no connection with another request: httptest closes the idle ones of
// http.DefaultTransport whenever a test's server is closed, and a test beside it fails.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// The two generations of the protocol: with and without a handshake.
const (
	oldest  = "2025-03-26"
	legacy  = "2025-11-25"
	current = "2026-07-28"
)

// generations are the versions that the tests speak.
var generations = []string{oldest, "2025-06-18", legacy, current}

// toolSet returns n tools, in no particular order.
func toolSet(n int) []*proxy.Tool {
	tools := make([]*proxy.Tool, n)
	for i := range tools {
		k := (i*7 + 3) % n // n is never a multiple of 7
		tools[i] = &proxy.Tool{
			Name:        fmt.Sprintf("gitea_issue_action_%03d", k),
			Title:       fmt.Sprintf("Action %d", k),
			Description: "Does <one> thing & says \"so\": " + strings.Repeat("word ", 20),
			OperationID: fmt.Sprintf("issueAction%d", k),
			ReadOnly:    k%2 == 0, Destructive: k%3 == 0, Idempotent: k%5 == 0,
			InputSchema: json.RawMessage(`{"type":"object","properties":{` +
				`"owner":{"type":"string","maxLength":100,"pattern":"^[A-Za-z0-9_.-]+$","description":"The owner's name."},` +
				`"repo":{"type":"string","maxLength":100,"pattern":"^[A-Za-z0-9_.-]+$","description":"The repository's name."},` +
				`"index":{"type":"integer","minimum":1,"description":"The number that people see."},` +
				`"state":{"type":"string","enum":["open","closed"],"description":"Which ones."},` +
				`"page":{"type":"integer","minimum":1},"limit":{"type":"integer","minimum":1,"maximum":50}` +
				`},"required":["owner","repo"],"additionalProperties":false}`),
			OutputSchema: json.RawMessage(`{"type":"object"}`),
		}
	}
	return tools
}

// settings are options that work, with h for a chain.
func settings(h proxy.HandlerFunc) mcp.Options {
	return mcp.Options{
		Name: "aegis", Title: "Aegis", Version: "1.2.3", Instructions: "Use these tools.",
		Tools: toolSet(10), Handler: h, ListTTL: 5 * time.Minute,
		CatalogVersion: "28.1.0", Log: zerolog.Nop(),
	}
}

// textChain answers every call with the same text.
func textChain(text string) proxy.HandlerFunc {
	return func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
		c.Tool = &proxy.Tool{OperationID: "issueGet"}
		return &proxy.Result{Status: 200, Text: []byte(text), Source: "gitea 28.1.0"}, nil
	}
}

func newHandler(t testing.TB, o mcp.Options) http.Handler {
	t.Helper()
	h, err := mcp.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// identified does what edge and authentication do before the endpoint.
func identified(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &proxy.RequestInfo{
			RequestID: "req-1", Addr: "192.0.2.7", Team: "core",
			Identity: &proxy.Identity{
				Login: "alice", Mode: proxy.ModeStatic,
				AllowSudo: r.Header.Get("X-Test-Sudo") != "",
			},
		}
		h.ServeHTTP(w, r.WithContext(proxy.WithRequestInfo(r.Context(), x)))
	})
}

// serve runs the endpoint on loopback.
func serve(t testing.TB, o mcp.Options) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(identified(newHandler(t, o)))
	t.Cleanup(srv.Close)
	return srv
}

// newRequest returns a well-formed request of the given version.
func newRequest(t testing.TB, url, version, method, params string) *http.Request {
	t.Helper()
	if version == current {
		meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientCapabilities":{},` +
			`"io.modelcontextprotocol/clientInfo":{"name":"probe","version":"9.8"}}`
		params = strings.TrimSuffix(params, "}")
		if params != "{" {
			meta = "," + meta
		}
		params += meta + "}"
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", version)
	if version == current {
		r.Header.Set("Mcp-Method", method)
		var p struct{ Name string }
		if json.Unmarshal([]byte(params), &p) == nil && p.Name != "" {
			r.Header.Set("Mcp-Name", p.Name)
		}
	}
	return r
}

// reply is a response as a client reads it.
type reply struct {
	status int
	header http.Header
	body   []byte
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

func do(t testing.TB, r *http.Request) reply {
	t.Helper()
	res, err := direct.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := reply{status: res.StatusCode, header: res.Header, body: body}
	if strings.HasPrefix(string(body), "{") {
		if err := json.Unmarshal(body, &out); err != nil {
			t.Fatalf("the answer is not JSON: %v\n%.300s", err, body)
		}
	}
	return out
}

// toolResult is the result of a tools/call.
type toolResult struct {
	Content []struct{ Type, Text string } `json:"content"`
	IsError bool                          `json:"isError"`
	Struct  json.RawMessage               `json:"structuredContent"`
	Meta    map[string]any                `json:"_meta"`
}

func callTool(t testing.TB, url, version, params string) toolResult {
	t.Helper()
	rep := do(t, newRequest(t, url, version, "tools/call", params))
	if rep.Error != nil || rep.status != http.StatusOK {
		t.Fatalf("status %d: %s", rep.status, rep.body)
	}
	var res toolResult
	if err := json.Unmarshal(rep.Result, &res); err != nil {
		t.Fatal(err)
	}
	return res
}

// logBuffer is a log that a test may read while a server writes.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var errTest = errors.New("token=hunter2 of the test")
