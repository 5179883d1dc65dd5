package telemetry

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/internal/http1"
)

// waits are the times that sending takes at most, or pauses.
type waits struct {
	// attempt bounds one request to the collector.
	attempt time.Duration
	// export bounds sending one batch, repetitions included.
	export time.Duration
	// again is the time between two attempts when the collector names none.
	again time.Duration
}

// usualWaits are those outside of tests.
func usualWaits() waits {
	return waits{attempt: 5 * time.Second, export: 20 * time.Second, again: time.Second}
}

const (
	// maxAttempts is how often a batch is sent while the collector asks for it.
	maxAttempts = 3
	// maxPause bounds the time between two attempts.
	maxPause = 5 * time.Second
	// logEvery is the least time between two lines of the log about failures.
	logEvery = time.Minute
	// signalPath is where the OTLP specification puts traces.
	signalPath = "/v1/traces"
)

// exporter sends spans. Its failures end in the log here: the SDK would give
// them to a handler of the whole process.
type exporter struct {
	sdktrace.SpanExporter
	log zerolog.Logger

	mu     sync.Mutex
	logged time.Time
	lost   int // spans since then
}

// ExportSpans sends spans, and logs when that fails. It returns no error.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := e.SpanExporter.ExportSpans(ctx, spans); err != nil {
		e.note(len(spans), err)
	}
	return nil
}

// note logs a loss, at most one line a minute: a collector that is away loses spans all the time.
func (e *exporter) note(spans int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lost += spans
	if !e.logged.IsZero() && time.Since(e.logged) < logEvery {
		return
	}
	e.log.Warn().Int("spans", e.lost).Err(err).Msg("spans were lost: " +
		"the collector of tracing.endpoint does not take them")
	e.logged, e.lost = time.Now(), 0
}

// client is OTLP over HTTP with protobuf (OpenTelemetry Protocol 1.x, section
// OTLP/HTTP). The project's own client would bring gRPC into the binary and take
// settings from the environment.
type client struct {
	url    string
	header http.Header
	http   *http.Client
	again  time.Duration // between two attempts when the collector names no time
	// closing: there is no time left to repeat anything.
	closing atomic.Bool
}

// newClient makes the client without connecting.
func newClient(cfg config.Tracing, version string, w waits) *client {
	u := strings.TrimRight(cfg.Endpoint.String(), "/")
	if !strings.HasSuffix(u, signalPath) {
		u += signalPath
	}
	c := &client{url: u, header: http.Header{}, again: w.again, http: &http.Client{
		Timeout: w.attempt,
		Transport: http1.NoUpgrade{Next: &http.Transport{
			DialContext: (&net.Dialer{Timeout: w.attempt}).DialContext, ForceAttemptHTTP2: true,
			MaxIdleConns: 2, MaxConnsPerHost: 2, IdleConnTimeout: time.Minute,
		}},
		// The headers may hold a credential, which is for this host alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for _, h := range cfg.Headers {
		c.header.Set(h.Name, h.Value.Reveal())
	}
	c.header.Set("Content-Type", "application/x-protobuf")
	c.header.Set("User-Agent", "aegis/"+version)
	return c
}

// Start has nothing to do.
func (c *client) Start(context.Context) error { return nil }

// Stop closes idle connections.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces sends one batch, again when the collector asks for that.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// TracesData is ExportTraceServiceRequest on the wire, without the package
	// that needs gRPC.
	data, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("spans cannot be encoded: %w", err)
	}
	for attempt := 1; ; attempt++ {
		pause, err := c.post(ctx, data)
		if err == nil || pause == 0 || attempt == maxAttempts || c.closing.Load() {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// post makes one attempt. With an error it returns when to try again; 0 is never.
func (c *client) post(ctx context.Context, data []byte) (again time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(data))
	if err != nil {
		return 0, err
	}
	req.Header = c.header.Clone()
	res, err := c.http.Do(req)
	if err != nil {
		if bare, ok := errors.AsType[*url.Error](err); ok {
			err = bare.Err // without the method and the address
		}
		return c.again, err
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // lets the connection be used again
	if res.StatusCode >= 200 && res.StatusCode <= 299 {
		return 0, nil
	}
	err = fmt.Errorf("the collector answers %d %s", res.StatusCode, http.StatusText(res.StatusCode))
	switch res.StatusCode { // those that the specification calls retryable
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return cmp.Or(proxy.RetryAfter(res.Header, time.Now(), maxPause), c.again), err
	}
	return 0, err
}
