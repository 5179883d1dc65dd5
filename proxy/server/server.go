package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/catalog"
)

// MCPPath is where the default team's MCP endpoint is.
const MCPPath = "/mcp"

// Server is one generation of Aegis: everything that was built of one configuration.
// It does not change. Build one with [New].
type Server struct {
	parts
	process *Process
	log     zerolog.Logger
	base    *url.URL // public address, without a trailing slash
	library *library
	teams   []*team      // the default team first
	missing *missing     // nil: tools are served whatever the live server has
	signIn  *signIn      // nil: people do not sign in
	pass    http.Handler // nil: nothing is passed through to Gitea

	started chan struct{} // closed when Start has asked Gitea what it wants to know
	begun   sync.Once
	retired atomic.Bool // another generation has taken this one's place
}

// New builds the generation of the server that a configuration describes. It opens no
// port, asks Gitea nothing, and changes nothing of the process: a generation that fails,
// or is not used, is forgotten. Parts of the generation in force whose settings did not
// change serve on in the new one. The error is [config.Problems] when the configuration
// names something that does not exist.
func New(p *Process, cfg *config.Config, log Log) (*Server, error) {
	s := &Server{
		process: p, log: log.Logger, base: publicURL(cfg), teams: newTeams(cfg), missing: newMissing(cfg),
		started: make(chan struct{}),
	}
	var err error
	if s.library, err = p.libraryOf(cfg); err != nil {
		return nil, err
	}
	warnings, err := s.library.choose(cfg, s.teams)
	for _, w := range warnings {
		log.Warn().Msg(w.String())
	}
	if err != nil {
		return nil, err
	}
	before := p.inForce.Load()
	if s.parts, err = p.newParts(cfg, log, before); err != nil {
		return nil, err
	}
	for _, t := range s.teams {
		s.warnOfCost(t)
		if err := s.buildTeam(t, log); err != nil {
			return nil, err
		}
	}
	if s.signIn, err = s.newSignIn(); err != nil {
		return nil, err
	}
	s.pass = s.newPassthrough()
	s.tracing = p.newTracing(cfg, log, before)
	if err := s.buildEndpoints(); err != nil {
		if before == nil || s.tracing != before.tracing {
			s.endTraces(context.Background()) // it has sent nothing; only its goroutine ends
		}
		return nil, err
	}
	return s, nil
}

// Tools returns what clients of the default team see.
func (s *Server) Tools() []*proxy.Tool { return s.Selection().Tools() }

// Selection returns the tools of the default team and what they cost.
func (s *Server) Selection() *catalog.Selection { return s.teams[0].tools() }

// Endpoint returns the absolute URL of the default team's MCP endpoint.
func (s *Server) Endpoint() string { return s.base.String() + MCPPath }

// Start prepares for traffic: it asks Gitea whose tokens are configured and
// which version it is, and logs what an operator must know. A Gitea that is not
// there yet is no failure; identities are then made when they are first needed.
func (s *Server) Start(ctx context.Context) {
	defer s.begun.Do(func() { close(s.started) })
	for name, err := range s.tokens.Resolve(ctx) {
		s.log.Error().Str("token", name).Err(err).Msg("this token does not work yet")
	}
	live, err := s.gitea.client.Version(ctx)
	if err != nil {
		s.log.Warn().Err(err).Msg("Gitea does not answer yet")
	} else {
		s.log.Info().Str("gitea", live).Str("catalog", s.library.catalog.GiteaVersion).Msg("connected to Gitea")
	}
	s.checkSignIn(ctx)
	s.compareAPI(ctx, live)
}

// Close sends the last spans, closes the connections to Gitea, and ends the process that
// the generation was built on.
func (s *Server) Close() {
	s.endTraces(context.Background())
	s.closeSignIn()
	s.process.Close()
	s.gitea.close()
}

// ErrStopped is returned by Serve when calls were still running at the end of
// the shutdown timeout.
var ErrStopped = errors.New("some calls were still running when the shutdown timeout ended")

// readHeaderTimeout bounds reading a request's head, whatever the body's bound.
const readHeaderTimeout = 10 * time.Second
