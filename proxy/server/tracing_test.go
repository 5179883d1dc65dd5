package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"aegis/config"
	"aegis/proxy/server"
)

// collector is an OTLP receiver that keeps the names of spans by trace.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans map[string][]string
	text  strings.Builder
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{spans: map[string][]string{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var data tracepb.TracesData
		if err != nil || proto.Unmarshal(body, &data) != nil {
			t.Error("the collector cannot read what it gets")
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, rs := range data.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				for _, s := range ss.Spans {
					id := fmt.Sprintf("%x", s.TraceId)
					c.spans[id] = append(c.spans[id], s.Name)
					c.text.WriteString(s.String())
				}
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

const (
	metaTrace   = "0af7651916cd43dd8448eb211c80319c"
	headerTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
)

// traced adds trace context to requests.
type traced struct{ bearer }

func (h traced) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Traceparent", "00-"+headerTrace+"-00f067aa0ba902b7-01")
	return h.bearer.RoundTrip(r)
}

// TestTracesEndToEnd: the contexts of a header and of _meta arrive, in every
// protocol, and what is left is sent before the end.
func TestTracesEndToEnd(t *testing.T) {
	c := newCollector(t)
	r := newRig(t, "tracing: {endpoint: "+c.URL+"}\n")
	for _, version := range generations {
		client := sdk.NewClient(&sdk.Implementation{Name: "probe", Version: "1"}, nil)
		s, err := client.Connect(t.Context(),
			&sdk.StreamableClientTransport{Endpoint: r.endpoint, DisableStandaloneSSE: true, HTTPClient: &http.Client{Transport: traced{bearer{aliceToken}}}},
			&sdk.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		r.call(s, "gitea_user_get_me", nil)
		params := &sdk.CallToolParams{Name: "gitea_repository_get", Arguments: map[string]any{"owner": "secret-owner", "repo": "secret-repo"},
			Meta: sdk.Meta{"traceparent": "00-" + metaTrace + "-b7ad6b7169203331-01", "tracestate": "a=b"}}
		if _, err := s.CallTool(t.Context(), params); err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
	}
	// A stranger makes no span.
	if res, err := direct.Post(r.endpoint, "application/json", strings.NewReader("{}")); err != nil || res.StatusCode != http.StatusUnauthorized {
		t.Errorf("a stranger: %v, %v", res, err)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	count := func(trace, name string) (n int) {
		for _, s := range c.spans[trace] {
			if s == name {
				n++
			}
		}
		return n
	}
	n := len(generations)
	if count(headerTrace, "tools/call gitea_user_get_me") != n || count(metaTrace, "tools/call gitea_repository_get") != n ||
		count(metaTrace, "GET") != n || count(headerTrace, "POST /mcp") < 2*n {
		t.Errorf("spans: %v", c.spans)
	}
	if len(c.spans) != 2 {
		t.Errorf("%d traces, want those of the header and of _meta: %v", len(c.spans), c.spans)
	}
	if text := c.text.String(); strings.Contains(text, "secret") || strings.Contains(text, "alice") || strings.Contains(text, aliceToken) {
		t.Errorf("spans tell too much: %s", text)
	}
	if log := r.log.String(); !strings.Contains(log, `"trace_id":"`+metaTrace+`"`) || !strings.Contains(log, `"trace_id":"`+headerTrace+`"`) {
		t.Errorf("the log names no trace: %s", log)
	}
}

// TestTracingOverReloads: a reload that changes the collector sends the rest to
// the old one and what is new to the new one; another one changes nothing.
func TestTracingOverReloads(t *testing.T) {
	old, next := newCollector(t), newCollector(t)
	upstream := giteaUser(t)
	load := func(lines string) *config.Config {
		file := filepath.Join(t.TempDir(), "aegis.yaml")
		text := fmt.Sprintf("gitea: {url: %q}\naudit: {path: \"off\"}\nauth: {tokens: [{name: alice, token: %s, gitea_token: t%040d}]}\n%s", upstream, aliceToken, 7, lines)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	s, err := server.Build(load("tracing: {endpoint: "+old.URL+"}\n"), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	live := server.NewLive(s)
	ask := func() {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "http://localhost/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		r.Header.Set("Authorization", "Bearer "+aliceToken)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		live.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	names := func(c *collector) (all []string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, list := range c.spans {
			all = append(all, list...)
		}
		return all
	}
	ask()
	for _, step := range []string{"tracing: {endpoint: " + old.URL + "}\ntools: {read_only: true}\n", "tracing: {endpoint: " + next.URL + "}\n"} {
		if err := live.Reload(load(step), server.Plain(zerolog.Nop())); err != nil {
			t.Fatal(err)
		}
		ask()
	}
	// A configuration that is not used changes nothing.
	if err := live.Reload(load("tracing: {endpoint: "+old.URL+"}\ntools: {enable: [nothing_like_it]}\n"), server.Plain(zerolog.Nop())); err == nil {
		t.Fatal("a tool that is not there was accepted")
	}
	ask()
	if err := live.Reload(load(""), server.Plain(zerolog.Nop())); err != nil {
		t.Fatal(err)
	}
	ask()
	live.Close()
	eventually(t, func() error {
		if a, b := names(old), names(next); len(a) < 2 || len(b) < 2 {
			return fmt.Errorf("the first collector has %q, the second %q", a, b)
		}
		return nil
	})
	want := []string{"POST /mcp", "POST /mcp"}
	if a, b := names(old), names(next); !slices.Equal(a, want) || !slices.Equal(b, want) {
		t.Errorf("the first collector got %q, the second %q", a, b)
	}
}
