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
	"aegis/proxy/edge/certs"
	"aegis/proxy/envelope"
	"aegis/proxy/gitea"
	"aegis/proxy/kv"
	"aegis/proxy/kv/open"
	"aegis/proxy/limit"
	"aegis/proxy/oauth"
	"aegis/proxy/policy/members"
	"aegis/proxy/telemetry"
	"aegis/spec"
)

// MCPPath is where the default team's MCP endpoint is.
const MCPPath = "/mcp"

// Server is Aegis, ready to serve. Build one with [New].
type Server struct {
	cfg     *config.Config
	log     zerolog.Logger
	version string

	base     *url.URL // public address, without a trailing slash
	gitea    *gitea.Client
	catalog  *spec.Catalog
	set      *catalog.Set
	teams    []*team // the default team first
	people   *members.Directory
	missing  *missing // nil: tools are served whatever the live server has
	tokens   *oauth.Static
	state    *state
	store    kv.Store                    // sealed; in memory until the state is open
	derive   func(label string) [][]byte // keys of a purpose, from the store's
	signIn   *signIn                     // nil: people do not sign in
	ready    *readiness
	cursors  envelope.Cursors
	tls      *certs.TLS // nil: plain HTTP
	reload   *reloadState
	audit    *auditing
	limits   *limit.Limiter
	metrics  *telemetry.Metrics // nil: none are served
	tracing  *telemetry.Tracing // nil: none; set last
	pass     http.Handler       // nil: nothing is passed through to Gitea
	passPool *http.Transport    // pass's connections
	stopping context.Context    // done when the process takes no more requests
	stop     context.CancelFunc
	serving  atomic.Bool   // the store may be opened
	started  chan struct{} // closed when Start has asked Gitea what it wants to know
	begun    sync.Once
}

// New builds a server from a loaded configuration. It opens no port and asks
// Gitea nothing. The error is [config.Problems] when the configuration names
// something that does not exist.
func New(cfg *config.Config, version string, log zerolog.Logger) (*Server, error) {
	return NewFrom(nil, cfg, version, log)
}

// NewFrom is [New] for a configuration that takes the place of old's: parts of
// old whose settings did not change, and what they have learned, serve on in the
// new server. Old stays usable; nil is no server. See [Live] for the swap.
func NewFrom(old *Server, cfg *config.Config, version string, log zerolog.Logger) (*Server, error) {
	s := &Server{cfg: cfg, log: log, version: version, base: publicURL(cfg), reload: newReloadState(), teams: newTeams(cfg), started: make(chan struct{})}
	if old != nil {
		s.reload = old.reload
	}
	if err := s.buildTools(); err != nil {
		return nil, err
	}
	var err error
	if err = s.connect(old); err != nil {
		return nil, err
	}
	if err = s.secure(old); err != nil {
		return nil, err
	}
	s.measure(old)
	if err = s.connectPassthrough(); err != nil {
		return nil, err
	}
	if old == nil {
		s.state, err = newState()
		if err != nil {
			return nil, err
		}
	} else {
		s.state = old.state
		if open.Needed(cfg) && old.serving.Load() { // it was switched on by a reload
			if err = s.state.start(s); err != nil {
				return nil, err
			}
		}
		s.serving.Store(old.serving.Load())
	}
	if s.audit = newAuditing(cfg, s); old != nil {
		s.audit = old.audit
	}
	if err = s.buildSignIn(); err != nil {
		return nil, err
	}
	if err = s.buildTeams(old); err != nil {
		return nil, err
	}
	if err = s.hideMissing(old); err != nil {
		return nil, err
	}
	if err = s.buildEndpoints(); err != nil {
		return nil, err
	}
	s.trace(old)
	s.audit.masks.Store(s.teams[0].masks) // last: what is shared with old changes only when all is well
	return s, nil
}

// OpenState opens the store, when the configuration keeps anything in it, and
// makes its folder, file and keys when they are missing. Serving does so too. The
// error says what to do.
func (s *Server) OpenState() error {
	s.serving.Store(true)
	if !open.Needed(s.cfg) || s.state.opened() {
		return nil
	}
	if err := s.state.start(s); err != nil {
		return err
	}
	if err := s.buildSignIn(); err != nil {
		return err
	}
	if err := s.buildTeams(nil); err != nil {
		return err
	}
	return s.buildEndpoints()
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
	live, err := s.gitea.Version(ctx)
	if err != nil {
		s.log.Warn().Err(err).Msg("Gitea does not answer yet")
	} else {
		s.log.Info().Str("gitea", live).Str("catalog", s.catalog.GiteaVersion).Msg("connected to Gitea")
	}
	s.checkSignIn(ctx)
	s.compareAPI(ctx, live)
}

// Close sends the last spans, ends the audit log and releases the connections to
// Gitea.
func (s *Server) Close() {
	s.endTraces(context.Background())
	s.closeSignIn()
	s.state.close()
	s.audit.log.Close()
	s.gitea.Close()
	s.closePassthrough()
}

func (s *Server) closePassthrough() {
	if s.passPool != nil {
		s.passPool.CloseIdleConnections()
	}
}

// ErrStopped is returned by Serve when calls were still running at the end of
// the shutdown timeout.
var ErrStopped = errors.New("some calls were still running when the shutdown timeout ended")

// readHeaderTimeout bounds reading a request's head, whatever the body's bound.
const readHeaderTimeout = 10 * time.Second
