package telemetry

import (
	"time"

	"aegis/config"
)

// NewPatient is New for tests: a collector that works may take as long as a slow
// machine needs, and is asked again at once.
func NewPatient(cfg config.Tracing, o TracingOptions) *Tracing {
	return newTracing(cfg, o, waits{attempt: 10 * time.Minute, export: 10 * time.Minute, again: time.Millisecond})
}
