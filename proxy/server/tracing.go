package server

import (
	"context"
	"time"
)

// traceFlush is how long the last spans may take to leave, so that a collector
// that is gone does not use up the time that calls have for finishing.
const traceFlush = 5 * time.Second

// endTraces sends the spans that are left, for as long as ctx and traceFlush
// allow.
func (s *core) endTraces(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, traceFlush)
	defer cancel()
	if err := s.tracing.Close(ctx); err != nil {
		s.log.Warn().Err(err).Msg("some spans could not be sent before the end")
	}
}
