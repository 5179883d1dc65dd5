package server

import (
	"time"

	"aegis/config"
)

// RetryMissing sets the time between attempts to read the live API's
// description.
func RetryMissing(s *Server, every time.Duration) {
	if s.missing != nil {
		s.missing.interval = every
	}
}

// ConfigOf returns the configuration that s was built from.
func ConfigOf(s *Server) *config.Config { return s.cfg }
