package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/telemetry"
)

// direct shares no connection with another request: httptest closes the idle ones of
// http.DefaultTransport whenever a test's server is closed, and a test beside it fails.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// collector is an OTLP receiver on loopback.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	status  []int // of the next answers; 200 when there is none
	spans   []*tracepb.Span
	service string
	heads   []http.Header
	paths   []string
}

func newCollector(t *testing.T, status ...int) *collector {
	t.Helper()
	c := &collector{status: status}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var data tracepb.TracesData
		if err == nil {
			err = proto.Unmarshal(body, &data)
		}
		if err != nil {
			t.Errorf("the collector cannot read what it gets: %v", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.heads, c.paths = append(c.heads, r.Header.Clone()), append(c.paths, r.URL.Path)
		if len(c.status) > 0 {
			next := c.status[0]
			c.status = c.status[1:]
			if next != http.StatusOK {
				w.WriteHeader(next)
				return
			}
		}
		for _, rs := range data.ResourceSpans {
			c.service = attributes(rs.Resource.Attributes)["service.name"]
			for _, ss := range rs.ScopeSpans {
				c.spans = append(c.spans, ss.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// span returns the span of a name; there must be just one.
func (c *collector) span(t *testing.T, name string) *tracepb.Span {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []*tracepb.Span
	var names []string
	for _, s := range c.spans {
		names = append(names, s.Name)
		if s.Name == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans are called %q; there are %q", len(found), name, names)
	}
	return found[0]
}

func attributes(list []*commonpb.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range list {
		switch v := kv.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			out[kv.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			out[kv.Key] = "int"
		}
	}
	return out
}

func settings(t *testing.T, endpoint string) config.Tracing {
	t.Helper()
	cfg := config.Default().Tracing
	cfg.Endpoint = new(config.URL)
	if err := cfg.Endpoint.UnmarshalText([]byte(endpoint)); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// through carries one call through all three kinds of spans, as the server does.
type through struct {
	tr     *telemetry.Tracing
	call   *proxy.Call
	header http.Header // of the HTTP request
	gitea  http.Header // what Gitea saw
	fail   error
}

func (x *through) run(t *testing.T) {
	t.Helper()
	gitea := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { x.gitea = r.Header.Clone() }))
	defer gitea.Close()
	last := proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
		c.Tool = &proxy.Tool{Name: "gitea_issue_get", Method: http.MethodGet}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, gitea.URL+"/api/v1/repos/secret-owner/secret-repo", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := telemetry.Upstream(direct.Transport).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if x.fail != nil {
			return nil, x.fail
		}
		return &proxy.Result{Status: 200}, nil
	})
	h := x.tr.Requests("/mcp", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := proxy.Chain(last, x.tr.Stage()).Handle(r.Context(), x.call); !errors.Is(err, x.fail) {
			t.Errorf("the call's error is %v, want %v", err, x.fail)
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	r := httptest.NewRequest(http.MethodPost, "/mcp?secret=query", nil)
	maps.Copy(r.Header, x.header)
	r = r.WithContext(proxy.WithRequestInfo(r.Context(), &proxy.RequestInfo{RequestID: "req-1"}))
	h.ServeHTTP(httptest.NewRecorder(), r)
}

func newThrough(tr *telemetry.Tracing) *through {
	return &through{tr: tr, header: http.Header{}, call: &proxy.Call{RequestID: "req-1", Name: "secret-name", RawArgs: []byte(`{"owner":"secret-owner"}`), Identity: &proxy.Identity{Login: "alice"}}}
}

func closeTracing(t *testing.T, tr *telemetry.Tracing) {
	t.Helper()
	if err := tr.Close(context.Background()); err != nil {
		t.Errorf("close: %v", err)
	}
}

// TestSpansOfACall: one trace from the client's request to Gitea, which says
// what was done and with what outcome, and no argument.
func TestSpansOfACall(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	cfg := settings(t, c.URL)
	cfg.Headers = []config.TracingHeader{{Name: "X-Api-Key", Value: config.NewSecret("collector-key")}}
	x := newThrough(telemetry.NewPatient(cfg, telemetry.TracingOptions{Version: "test", Log: zerolog.Nop()}))
	x.header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	x.header.Set("Tracestate", "vendor=client-text")
	x.run(t)
	closeTracing(t, x.tr)

	request, call, upstream := c.span(t, "POST /mcp"), c.span(t, "tools/call gitea_issue_get"), c.span(t, "GET")
	if x.call.TraceID != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Errorf("the call's trace is %q, not the client's", x.call.TraceID)
	}
	if !bytes.Equal(request.ParentSpanId, []byte("\x00\xf0\x67\xaa\x0b\xa9\x02\xb7")) || !bytes.Equal(call.ParentSpanId, request.SpanId) || !bytes.Equal(upstream.ParentSpanId, call.SpanId) {
		t.Errorf("the spans do not hang together: %v", c.spans)
	}
	if parent := x.gitea.Get("Traceparent"); !strings.HasPrefix(parent, "00-4bf92f3577b34da6a3ce929d0e0e4736-") || strings.Contains(parent, "00f067aa0ba902b7") || x.gitea.Get("Tracestate") != "" {
		t.Errorf("Gitea got %v", x.gitea)
	}
	got := attributes(call.Attributes)
	for key, want := range map[string]string{"gen_ai.tool.name": "gitea_issue_get", "aegis.outcome": "ok", "aegis.team": "default", "aegis.request_id": "req-1", "user.name": ""} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	for _, s := range c.spans {
		if text := s.String(); strings.Contains(text, "secret") || strings.Contains(text, "alice") {
			t.Errorf("a span tells too much: %s", text)
		}
	}
	if c.service != "aegis" || !slices.Equal(c.paths, []string{"/v1/traces"}) || c.heads[0].Get("X-Api-Key") != "collector-key" || c.heads[0].Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("service %q, paths %v, headers %v", c.service, c.paths, c.heads)
	}
}

// TestContextInMeta: what a client writes into a call's _meta is the parent
// (SEP-414), and the HTTP request is linked.
func TestContextInMeta(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	cfg := settings(t, c.URL+"/v1/traces")
	cfg.Logins = true
	x := newThrough(telemetry.NewPatient(cfg, telemetry.TracingOptions{Log: zerolog.Nop()}))
	x.call.Trace = proxy.TraceContext{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b"}
	x.fail = proxy.NewError(proxy.KindNotFound, "secret message", nil)
	x.run(t)
	closeTracing(t, x.tr)
	request, call := c.span(t, "POST /mcp"), c.span(t, "tools/call gitea_issue_get")
	if x.call.TraceID != "0af7651916cd43dd8448eb211c80319c" || len(call.Links) != 1 || !bytes.Equal(call.Links[0].SpanId, request.SpanId) {
		t.Errorf("trace %s, links %v", x.call.TraceID, call.Links)
	}
	got := attributes(call.Attributes)
	if got["error.type"] != "not_found" || got["aegis.outcome"] != "not_found" || got["user.name"] != "alice" || call.Status.Code != tracepb.Status_STATUS_CODE_ERROR || strings.Contains(call.String(), "secret") {
		t.Errorf("the failed call's span: %s", call)
	}
	if !slices.Equal(c.paths, []string{"/v1/traces"}) {
		t.Errorf("paths %v", c.paths)
	}
}

// TestForeignContext: what is no trace context begins a trace of its own, and an
// unsampled one is not recorded but passed on.
func TestForeignContext(t *testing.T) {
	t.Parallel()
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	for _, tc := range []struct {
		name, header, meta string
		kept               bool
		spans              int
	}{
		{"none", "", "", false, 3},
		{"garbage", "hello", "world", false, 3},
		{"zero trace", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "", false, 3},
		{"upper case", "00-" + strings.ToUpper(trace) + "-00f067aa0ba902b7-01", "", false, 3},
		{"garbage in meta", "00-" + trace + "-00f067aa0ba902b7-01", "00-\x00", true, 3},
		{"unsampled", "00-" + trace + "-00f067aa0ba902b7-00", "", true, 0},
	} {
		c := newCollector(t)
		x := newThrough(telemetry.NewPatient(settings(t, c.URL), telemetry.TracingOptions{Log: zerolog.Nop()}))
		x.header.Set("Traceparent", tc.header)
		x.call.Trace.Parent = tc.meta
		x.run(t)
		closeTracing(t, x.tr)
		if kept := x.call.TraceID == trace; kept != tc.kept || len(x.call.TraceID) != 32 || len(c.spans) != tc.spans {
			t.Errorf("%s: trace %q, %d spans", tc.name, x.call.TraceID, len(c.spans))
		}
		if !strings.Contains(x.gitea.Get("Traceparent"), x.call.TraceID) {
			t.Errorf("%s: Gitea got %q", tc.name, x.gitea.Get("Traceparent"))
		}
	}
	c := newCollector(t)
	x := newThrough(telemetry.NewPatient(settings(t, c.URL), telemetry.TracingOptions{Log: zerolog.Nop()}))
	x.header["Traceparent"] = []string{"00-" + trace + "-00f067aa0ba902b7-01", "00-" + trace + "-00f067aa0ba902b7-01"}
	x.run(t)
	closeTracing(t, x.tr)
	if x.call.TraceID == trace {
		t.Error("two traceparent headers are believed")
	}
}

func TestOff(t *testing.T) {
	t.Parallel()
	tr := telemetry.NewTracing(config.Default().Tracing, telemetry.TracingOptions{})
	if tr != nil {
		t.Fatal("tracing is on by default")
	}
	x := newThrough(tr)
	x.header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	x.call.Trace.Parent = x.header.Get("Traceparent")
	x.run(t)
	closeTracing(t, tr)
	if x.gitea.Get("Traceparent") != "" || x.call.TraceID != "" {
		t.Errorf("Gitea got %q, the trace is %q", x.gitea.Get("Traceparent"), x.call.TraceID)
	}
}

// TestSampling of traces that begin here.
func TestSampling(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	cfg := settings(t, c.URL)
	cfg.Sample = 0
	x := newThrough(telemetry.NewPatient(cfg, telemetry.TracingOptions{Log: zerolog.Nop()}))
	x.run(t)
	closeTracing(t, x.tr)
	if len(c.spans) != 0 {
		t.Errorf("%d spans with sample 0", len(c.spans))
	}
}

// TestCollectorThatIsBusy is asked again.
func TestCollectorThatIsBusy(t *testing.T) {
	t.Parallel()
	c := newCollector(t, http.StatusServiceUnavailable, http.StatusOK)
	var log bytes.Buffer
	tr := telemetry.NewPatient(settings(t, c.URL), telemetry.TracingOptions{Log: zerolog.New(&log)})
	for range 200 { // more than one batch, which goes out before Close
		newThrough(tr).run(t)
	}
	waitFor(t, func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.spans) >= 512 })
	closeTracing(t, tr)
	if len(c.spans) != 600 || log.Len() != 0 {
		t.Errorf("%d spans of 600 arrived; log: %s", len(c.spans), &log)
	}
}

// TestCollectorThatRefuses: calls go on at once, the log says so once and holds
// no header's value, and nothing is kept beyond the queue.
func TestCollectorThatRefuses(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	cfg := settings(t, c.URL)
	cfg.Headers = []config.TracingHeader{{Name: "X-Api-Key", Value: config.NewSecret("collector-key")}}
	c.status = slices.Repeat([]int{http.StatusUnauthorized}, 100)
	log := &syncLog{}
	tr := telemetry.NewPatient(cfg, telemetry.TracingOptions{Log: zerolog.New(log)})
	for range 1000 {
		newThrough(tr).run(t)
	}
	closeTracing(t, tr)
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "401") || strings.Contains(text, "collector-key") {
		t.Errorf("log: %s", text)
	}
}

// TestCollectorThatHangs holds up neither calls nor, beyond its bound, the end.
func TestCollectorThatHangs(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hold }))
	// It is not closed: what still waits at the end goes to it, and must not meet the
	// next server at the same port.
	defer close(hold)
	tr := telemetry.NewPatient(settings(t, hanging.URL), telemetry.TracingOptions{Log: zerolog.Nop()})
	last := proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) { return &proxy.Result{}, nil })
	for range 20_000 { // several times what the queue holds
		if _, err := proxy.Chain(last, tr.Stage()).Handle(context.Background(), &proxy.Call{}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := tr.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close: %v", err)
	}
}

type syncLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *syncLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *syncLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatal("it did not come to pass")
}
