package server

import (
	"maps"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy/audit"
	"aegis/proxy/gitea"
	"aegis/proxy/oauth/client"
	"aegis/proxy/oauth/grant"
)

// Plain is the log of a server that writes its lines as they are.
func Plain(log zerolog.Logger) Log { return Log{Logger: log} }

// Build opens a process and builds the server of a configuration on it; prepare are
// called with the process before it opens anything.
func Build(cfg *config.Config, log zerolog.Logger, prepare ...func(*Process)) (*Server, error) {
	p, err := openProcess(cfg, "test", Plain(log), func(p *Process) {
		for _, f := range prepare {
			f(p)
		}
	})
	if err != nil {
		return nil, err
	}
	s, err := New(p, cfg, Plain(log))
	if err != nil {
		p.Close()
	}
	return s, err
}

// Look builds the server of a configuration, and touches nothing.
func Look(cfg *config.Config) (*Server, error) {
	p, err := Dry(cfg, "test", Plain(zerolog.Nop()))
	if err != nil {
		return nil, err
	}
	return New(p, cfg, Plain(zerolog.Nop()))
}

// Next builds the server that takes s's place, as a reload does, and puts it in force.
func Next(s *Server, cfg *config.Config) (*Server, error) {
	s.process.use(s)
	next, err := New(s.process, cfg, Plain(zerolog.Nop()))
	if err == nil {
		s.process.use(next)
	}
	return next, err
}

// RetryMissing sets the time between attempts to read the live API's
// description.
func RetryMissing(p *Process, every time.Duration) { p.pace.learn = every }

// ConfigOf returns the configuration that s was built from.
func ConfigOf(s *Server) *config.Config { return s.cfg }

// ReadinessTTL is how long readiness is believed.
const ReadinessTTL = gitea.ReadinessTTL

// SetClock gives a process another clock for what it believes for a while. Call it
// before serving.
func SetClock(p *Process, now func() time.Time) { p.pace.now = now }

// Hasten sets the time between two signs of life of a replica, and between two of
// its looks at another's lock. Call it before serving.
func Hasten(p *Process, every time.Duration) { p.pace.beat, p.pace.poll = every, every }

// WaitForStore sets how long a process waits for another that has the store's file.
// Call it before it opens anything.
func WaitForStore(p *Process, d time.Duration) { p.pace.wait = d }

// HoldStream keeps back the second event of /healthz/stream until next has a value.
func HoldStream(e *Examined, next <-chan time.Time) {
	e.server.process.pace.after = func(time.Duration) <-chan time.Time { return next }
}

// Watch has made told of each part that is built from now on.
func Watch(p *Process, made func(part string)) { p.pace.made = made }

// FetchDocumentsBy lets a test stand in for the internet that client documents
// are fetched from. Call it before a server is built.
func FetchDocumentsBy(p *Process, change func(*client.Options)) { p.documents = change }

// Started is closed when [Server.Start] has ended.
func Started(s *Server) <-chan struct{} { return s.started }

// GrantEvents returns the audit log's names of what becomes of grants.
func GrantEvents() map[grant.Kind]audit.Event { return maps.Clone(grantEvents) }

// SharesMasking reports whether a log masks with what the default endpoint's results
// are masked with.
func SharesMasking(s *Server, log Log) bool { return log.masks.engine == s.teams[0].masks }

// Way returns the names of all that a call of the default team passes: handlers from the listener on,
// and stages.
func Way(s *Server) (handlers, stages []string) {
	t := s.teams[0]
	handlers = append(handlers, "live")
	for _, h := range s.hops(http.NewServeMux()) {
		handlers = append(handlers, h.name)
	}
	handlers = append(handlers, "routes")
	for _, h := range s.teamHops(t) {
		handlers = append(handlers, h.name)
	}
	for _, st := range s.stages(t, t.selection) {
		stages = append(stages, st.name)
	}
	return append(handlers, "tools", "mcp"), stages
}
