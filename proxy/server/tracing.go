package server

import (
	"context"
	"net/http"
	"time"

	"aegis/proxy"
	"aegis/proxy/telemetry"
)

// traceFlush is how long the last spans may take to leave, so that a collector
// that is gone does not use up the time that calls have for finishing.
const traceFlush = 5 * time.Second

// trace makes the tracing, or takes over old's when nothing of it changed. It
// cannot fail and comes last, so that a configuration that is not used leaves
// nothing running.
func (s *Server) trace(old *Server) {
	if old != nil && old.cfg.Tracing.Same(s.cfg.Tracing) && old.cfg.Log == s.cfg.Log {
		s.tracing = old.tracing
		return
	}
	s.tracing = telemetry.NewTracing(s.cfg.Tracing, telemetry.TracingOptions{Version: s.version, Log: s.log})
}

// traceRequests and traceCalls look at s.tracing when a request comes, as it is
// made after what they return.
func (s *Server) traceRequests(t *team, next http.Handler) http.Handler {
	if s.cfg.Tracing.Endpoint == nil {
		return next
	}
	route := s.base.Path + t.path()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.tracing.Requests(route, next).ServeHTTP(w, r)
	})
}

func (s *Server) traceCalls() proxy.Stage {
	if s.cfg.Tracing.Endpoint == nil {
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
