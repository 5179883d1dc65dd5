package server

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/catalog"
	"aegis/proxy/envelope"
	"aegis/proxy/gitea"
	"aegis/proxy/oauth"
	"aegis/spec"
)

// MCPPath is where the default team's MCP endpoint is.
const MCPPath = "/mcp"

// Server is Aegis, ready to serve. Build one with [New].
type Server struct {
	cfg     *config.Config
	log     zerolog.Logger
	version string

	base      *url.URL // public address, without a trailing slash
	gitea     *gitea.Client
	catalog   *spec.Catalog
	selection *catalog.Selection
	tokens    *oauth.Static
	chain     proxy.Handler
	mcp       *mcpEndpoint
	ready     *readiness
}

// New builds a server from a loaded configuration. It opens no port and asks
// Gitea nothing. The error is [config.Problems] when the configuration names
// something that does not exist.
func New(cfg *config.Config, version string, log zerolog.Logger) (*Server, error) {
	s := &Server{cfg: cfg, log: log, version: version, base: publicURL(cfg)}
	if err := s.buildTools(); err != nil {
		return nil, err
	}
	var err error
	s.gitea, err = gitea.New(cfg.Gitea, gitea.Limits{MaxBinaryBytes: int64(cfg.Results.MaxBinaryBytes), Version: version}, log)
	if err != nil {
		return nil, fmt.Errorf("gitea: %w", err)
	}
	cursors, err := envelope.NewCursors(cfg.Server.CursorKey.Reveal())
	if err != nil {
		return nil, err
	}
	s.tokens = oauth.NewStatic(cfg.Auth.Tokens, s.gitea)
	s.ready = &readiness{check: s.gitea.Ready}
	masks, err := newMask(cfg)
	if err != nil {
		return nil, s.maskProblem(err)
	}
	env := envelope.New(cfg.Results, cursors)
	s.chain = proxy.Chain(s.gitea,
		observe(log),
		env.Own(),
		s.selection.Stage(),
		env.Stage(),
		masks.Stage(),
	)
	s.mcp, err = s.newMCP()
	return s, err
}

// Tools returns what clients of the default team see.
func (s *Server) Tools() []*proxy.Tool { return s.selection.Tools() }

// Selection returns the tools of the default team and what they cost.
func (s *Server) Selection() *catalog.Selection { return s.selection }

// Endpoint returns the absolute URL of the default team's MCP endpoint.
func (s *Server) Endpoint() string { return s.base.String() + MCPPath }

// Start prepares for traffic: it asks Gitea whose tokens are configured and
// which version it is, and logs what an operator must know. A Gitea that is not
// there yet is no failure; identities are then made when they are first needed.
func (s *Server) Start(ctx context.Context) {
	for name, err := range s.tokens.Resolve(ctx) {
		s.log.Error().Str("token", name).Err(err).Msg("this token does not work yet")
	}
	live, err := s.gitea.Version(ctx)
	if err != nil {
		s.log.Warn().Err(err).Msg("Gitea does not answer yet")
		return
	}
	s.log.Info().Str("gitea", live).Str("catalog", s.catalog.GiteaVersion).Msg("connected to Gitea")
}

// Close releases the connections to Gitea.
func (s *Server) Close() { s.gitea.Close() }

// publicURL is the configured public address, or the listener's.
func publicURL(cfg *config.Config) *url.URL {
	if cfg.PublicURL != nil {
		u := cfg.PublicURL.URL
		u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
		return &u
	}
	return &url.URL{Scheme: "http", Host: cfg.Listen}
}

// ErrStopped is returned by Serve when calls were still running at the end of
// the shutdown timeout.
var ErrStopped = errors.New("some calls were still running when the shutdown timeout ended")

// readHeaderTimeout bounds reading a request's head, whatever the body's bound.
const readHeaderTimeout = 10 * time.Second
