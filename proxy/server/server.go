package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/catalog"
)

// MCPPath is where the default team's MCP endpoint is.
const MCPPath = "/mcp"

// Server is one generation of Aegis: everything that was built of one configuration.
// It does not change, but for what it learns of Gitea. Build one with [New].
type Server struct {
	*core
	endpoints []endpoint   // of teams, in their order
	pass      http.Handler // nil: nothing is passed through to Gitea

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
	before := p.inForce.Load()
	d, err := p.draftOf(cfg, log, before)
	if d != nil { // what tool lists cost is counted while they are made; both take their time
		var warning sync.WaitGroup
		warning.Go(d.warn)
		defer warning.Wait()
	}
	if err != nil {
		return nil, err
	}
	c, err := d.complete(before)
	if err != nil {
		return nil, err
	}
	s, err := newServer(c)
	if err != nil && (before == nil || c.tracing != before.tracing) {
		c.endTraces(context.Background()) // it has sent nothing; only its goroutine ends
	}
	return s, err
}

// newServer adds the HTTP side.
func newServer(c *core) (*Server, error) {
	endpoints, err := c.newEndpoints()
	if err != nil {
		return nil, err
	}
	return &Server{core: c, endpoints: endpoints, pass: c.newPassthrough(), started: make(chan struct{})}, nil
}

// Tools returns what clients of the default team see.
func (s *Server) Tools() []*proxy.Tool { return s.Selection().Tools() }

// Selection returns the tools of the default team and what they cost.
func (s *Server) Selection() *catalog.Selection { return s.tools(s.teams[0]) }

// Endpoint returns the absolute URL of the default team's MCP endpoint.
func (s *Server) Endpoint() string { return s.base.String() + MCPPath }

// Start prepares for traffic: it asks Gitea whose tokens are configured and
// which version it is, and logs what an operator must know. A Gitea that is not
// there yet is no failure; identities are then made when they are first needed.
func (s *Server) Start(ctx context.Context) {
	defer s.begun.Do(func() { close(s.started) })
	// No failure below ends the start: Gitea and Aegis are often started together.
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
	s.closeSignIn()   // before the store closes: a refresh under way still stores its answer
	s.process.Close() // before the connections: what ends may still ask Gitea
	s.gitea.close()
}

// release closes what next, which has taken s's place, does not use.
func (s *Server) release(next *Server) {
	if s.gitea != next.gitea {
		s.gitea.close()
	}
	if s.tracing != next.tracing {
		go s.endTraces(context.Background()) // a collector that is gone must not hold this up
	}
	go s.closeSignIn() // a Gitea that is gone must not hold this up
	s.retired.Store(true)
}

// ErrStopped is returned by Serve when calls were still running at the end of
// the shutdown timeout.
var ErrStopped = errors.New("some calls were still running when the shutdown timeout ended")

// readHeaderTimeout bounds reading a request's head, whatever the body's bound.
const readHeaderTimeout = 10 * time.Second
