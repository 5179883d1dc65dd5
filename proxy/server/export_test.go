package server

import (
	"maps"
	"time"

	"aegis/config"
	"aegis/proxy/audit"
	"aegis/proxy/oauth/grant"
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

// Started is closed when [Server.Start] has ended.
func Started(s *Server) <-chan struct{} { return s.started }

// GrantEvents returns the audit log's names of what becomes of grants.
func GrantEvents() map[grant.Kind]audit.Event { return maps.Clone(grantEvents) }
