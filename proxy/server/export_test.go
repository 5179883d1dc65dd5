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

// ReadinessTTL is how long readiness is believed.
const ReadinessTTL = readinessTTL

// SetClock gives a server and those that take its place another clock for what they
// believe for a while. Call it before serving.
func SetClock(s *Server, now func() time.Time) { s.state.pace.now = now }

// Hasten sets the time between two signs of life of a replica, and between two of
// its looks at another's lock. Call it before serving.
func Hasten(s *Server, every time.Duration) { s.state.pace.beat, s.state.pace.poll = every, every }

// WaitForStore sets how long a server waits for a process that has the store's file.
// Call it before serving.
func WaitForStore(s *Server, d time.Duration) { s.state.pace.wait = d }

// HoldStream keeps back the second event of /healthz/stream until next has a value.
func HoldStream(e *Examined, next <-chan time.Time) {
	e.server.state.pace.after = func(time.Duration) <-chan time.Time { return next }
}

// Started is closed when [Server.Start] has ended.
func Started(s *Server) <-chan struct{} { return s.started }

// GrantEvents returns the audit log's names of what becomes of grants.
func GrantEvents() map[grant.Kind]audit.Event { return maps.Clone(grantEvents) }
