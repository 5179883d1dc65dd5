package server

import (
	"context"
	"net/http"
	"time"

	"aegis/proxy"
)

// traceFlush is how long the last spans may take to leave, so that a collector
// that is gone does not use up the time that calls have for finishing.
const traceFlush = 5 * time.Second

// traceRequests returns next with a span for each request to a team's endpoint.
func (s *Server) traceRequests(t *team, next http.Handler) http.Handler {
	return s.tracing.Requests(s.base.Path+t.path(), next)
}

// traceCalls returns the stage with a span for each call; nil without tracing.
func (s *Server) traceCalls() proxy.Stage {
	if s.tracing == nil {
		return nil
	}
	return func(next proxy.Handler) proxy.Handler {
		return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
			return s.tracing.Call(ctx, c, next)
		})
	}
}

// endTraces sends the spans that are left, for as long as ctx and traceFlush
// allow.
func (s *Server) endTraces(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, traceFlush)
	defer cancel()
	if err := s.tracing.Close(ctx); err != nil {
		s.log.Warn().Err(err).Msg("some spans could not be sent before the end")
	}
}
