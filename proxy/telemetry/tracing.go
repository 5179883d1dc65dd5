package telemetry

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"aegis/config"
	"aegis/proxy"
)

const (
	// maxQueue bounds the spans that wait to be sent; a span takes some 2 KiB.
	maxQueue = 4096
	// maxBatch is how many spans one request to the collector carries.
	maxBatch = 512
	// batchEvery is the longest time that a span waits for others.
	batchEvery = 5 * time.Second
	// scope names who made the spans.
	scope = "aegis"
)

// TracingOptions are what a [Tracing] needs besides its configuration.
type TracingOptions struct {
	// Version is Aegis's, for the resource of every span.
	Version string
	// Log receives failures to send.
	Log zerolog.Logger
}

// Tracing makes spans and sends them. It is safe for concurrent use. A nil
// *Tracing makes none.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	logins   bool
	client   *client
	close    sync.Once
}

// NewTracing returns the tracing of a configuration, nil when it is switched off. It
// must be closed.
func NewTracing(cfg config.Tracing, o TracingOptions) *Tracing {
	return newTracing(cfg, o, usualWaits())
}

func newTracing(cfg config.Tracing, o TracingOptions, w waits) *Tracing {
	if cfg.Endpoint == nil {
		return nil
	}
	client := newClient(cfg, o.Version, w)
	processor := sdktrace.NewBatchSpanProcessor(&exporter{SpanExporter: otlptrace.NewUnstarted(client), log: o.Log},
		sdktrace.WithMaxQueueSize(maxQueue), sdktrace.WithMaxExportBatchSize(maxBatch),
		sdktrace.WithBatchTimeout(batchEvery), sdktrace.WithExportTimeout(w.export))
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(processor),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(cfg.Sample))),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "aegis"),
			attribute.String("service.version", o.Version))),
		// Given here, so that no variable of the environment changes them.
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{
			AttributeValueLengthLimit: 256, AttributeCountLimit: 32, EventCountLimit: 8, LinkCountLimit: 4,
			AttributePerEventCountLimit: 4, AttributePerLinkCountLimit: 4,
		}),
	)
	return &Tracing{provider: provider, client: client, tracer: provider.Tracer(scope), logins: cfg.Logins}
}

// Close sends what waits, once and for as long as ctx allows, and keeps no spans
// afterwards. Further calls do nothing.
func (t *Tracing) Close(ctx context.Context) (err error) {
	if t == nil {
		return nil
	}
	t.close.Do(func() {
		t.client.closing.Store(true)
		err = t.provider.Shutdown(ctx)
	})
	return err
}

// Requests returns next with a span for each request; route names where it is
// mounted. It belongs behind authentication: strangers get no spans, and their
// trace context decides nothing. Requests must carry a [proxy.RequestInfo].
func (t *Tracing) Requests(route string, next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if len(r.Header.Values("Traceparent")) == 1 { // W3C Trace Context section 3.2: exactly one
			ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
		}
		method := methodName(r.Method)
		ctx, span := t.tracer.Start(ctx, method+" "+route, trace.WithSpanKind(trace.SpanKindServer))
		defer span.End()
		if !span.IsRecording() {
			next.ServeHTTP(w, r.WithContext(ctx))
			return
		}
		span.SetAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route))
		if x := proxy.RequestInfoFrom(ctx); x != nil {
			span.SetAttributes(attribute.String("aegis.request_id", x.RequestID))
		}
		rec := &recorder{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(rec, r.WithContext(ctx))
		span.SetAttributes(attribute.Int("http.response.status_code", rec.status))
		if rec.status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
	})
}

// methodName keeps what clients make up out of span names.
func methodName(method string) string {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodHead, http.MethodPut, http.MethodPatch,
		http.MethodOptions:
		return method
	}
	return "_OTHER"
}

// recorder notes the status of an answer, for its span.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the status.
func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Stage returns the stage that hands calls on inside a span; nil when t is.
func (t *Tracing) Stage() proxy.Stage {
	if t == nil {
		return nil
	}
	return func(next proxy.Handler) proxy.Handler {
		return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
			return t.call(ctx, c, next)
		})
	}
}

// call hands a call to next inside a span, and sets its TraceID. The parent is
// the context in the call's own _meta; the span then links to that of the HTTP
// request, which is the parent otherwise.
func (t *Tracing) call(ctx context.Context, c *proxy.Call, next proxy.Handler) (*proxy.Result, error) {
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer)}
	if parent, ok := metaParent(c.Trace); ok {
		options = append(options, trace.WithLinks(trace.LinkFromContext(ctx)))
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	ctx, span := t.tracer.Start(ctx, "tools/call", options...)
	defer span.End()
	c.TraceID = span.SpanContext().TraceID().String()
	res, err := next.Handle(ctx, c)
	if span.IsRecording() {
		t.describe(span, c, res, err)
	}
	return res, err
}

// metaParent returns the context that a client put into _meta.
func metaParent(tc proxy.TraceContext) (trace.SpanContext, bool) {
	if tc.Parent == "" {
		return trace.SpanContext{}, false
	}
	carrier := propagation.MapCarrier{"traceparent": tc.Parent, "tracestate": tc.State}
	ctx := propagation.TraceContext{}.Extract(context.Background(), carrier)
	parent := trace.SpanContextFromContext(ctx)
	return parent, parent.IsValid()
}

// describe says what became of a call, by names that are Aegis's own.
func (t *Tracing) describe(span trace.Span, c *proxy.Call, res *proxy.Result, err error) {
	o := outcomeOf(c, res, err)
	if err != nil {
		span.SetStatus(codes.Error, o.kind)
		span.SetAttributes(attribute.String("error.type", o.kind))
	}
	span.SetAttributes(
		attribute.String("mcp.method.name", "tools/call"), attribute.String("aegis.request_id", c.RequestID),
		attribute.String("aegis.team", o.team), attribute.String("aegis.outcome", o.kind),
		attribute.Int("aegis.attempts", c.Stats.Attempts),
	)
	if o.status != 0 {
		span.SetAttributes(attribute.Int("aegis.gitea_status", o.status))
	}
	if o.tool != "" {
		span.SetName("tools/call " + o.tool)
		span.SetAttributes(attribute.String("gen_ai.tool.name", o.tool), attribute.String("aegis.class", o.class))
	}
	if t.logins && c.Identity != nil {
		span.SetAttributes(attribute.String("user.name", c.Identity.Login))
	}
}
