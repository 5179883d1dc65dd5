package telemetry

import (
	"io"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Upstream returns next with a span for each request that belongs to a traced
// call, and a traceparent header on it. Other requests go out as they are. The
// client's tracestate goes no further: it would be the one header of a client's
// that reaches Gitea.
func Upstream(next http.RoundTripper) http.RoundTripper { return upstream{next} }

type upstream struct{ next http.RoundTripper }

// RoundTrip sends a request. It owns r, as the client of Gitea makes one for
// each attempt, so the header may be set in place.
func (u upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	parent := trace.SpanFromContext(r.Context())
	if !parent.SpanContext().IsValid() {
		return u.next.RoundTrip(r)
	}
	ctx, span := parent.TracerProvider().Tracer(scope).Start(r.Context(), r.Method,
		trace.WithSpanKind(trace.SpanKindClient))
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	r.Header.Set("Traceparent", carrier.Get("traceparent"))
	span.SetAttributes(attribute.String("http.request.method", r.Method),
		attribute.String("server.address", r.URL.Hostname()))
	res, err := u.next.RoundTrip(r)
	if err != nil {
		// The cause may name addresses and is in the log.
		span.SetAttributes(attribute.String("error.type", "no_answer"))
		span.SetStatus(codes.Error, "no answer")
		span.End()
		return nil, err
	}
	span.SetAttributes(attribute.Int("http.response.status_code", res.StatusCode))
	if res.StatusCode >= http.StatusBadRequest {
		span.SetStatus(codes.Error, "")
	}
	res.Body = &body{res.Body, span}
	return res, nil
}

// body ends its span when it is closed, so that the span covers reading it.
type body struct {
	io.ReadCloser
	span trace.Span
}

// Close closes the body and ends the span.
func (b *body) Close() error {
	defer b.span.End()
	return b.ReadCloser.Close()
}
