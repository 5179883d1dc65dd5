package server

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/catalog"
)

// missing hides the tools whose operation the live server lacks
// (gitea.hide_missing). Until the server's description of its API has been read,
// the MCP endpoint answers 503 and /readyz says why: a list that was once shown
// never changes, so it is right from the start or not there.
type missing struct{ now atomic.Pointer[served] }

// served is what a server of gitea.hide_missing serves.
type served struct {
	problem string // why the description could not be read; "" when it was
	tools   map[*team]servedTools
}

// servedTools are the tools that are left, and the endpoint that serves them.
type servedTools struct {
	selection *catalog.Selection
	handler   http.Handler
}

// missingRetry is the time between attempts to read the description.
const missingRetry = 5 * time.Second

// newMissing returns what gitea.hide_missing needs; nil when it is off.
func newMissing(cfg *config.Config) *missing {
	if !cfg.Gitea.HideMissing {
		return nil
	}
	m := &missing{}
	m.now.Store(&served{problem: "Gitea's API description has not been read yet (gitea.hide_missing)"})
	return m
}

// serveOnly serves the tools whose operation is among routes.
func (s *core) serveOnly(routes catalog.Routes) error {
	tools := make(map[*team]servedTools, len(s.teams))
	for _, t := range s.teams {
		set := t.set.Keep(routes.Has)
		sel, problems := set.Select(t.rules.Tools)
		for _, p := range problems {
			// The configuration was right for the catalog, so this is news, no error.
			s.log.Warn().Str("key", t.key("tools."+p.Path)).Msg("the live server lacks what this names: " + p.Message)
		}
		// A whole endpoint: the list is encoded once, and a call must not reach a hidden tool.
		h, err := s.mcpHandler(t, sel)
		if err != nil {
			return err
		}
		tools[t] = servedTools{selection: sel, handler: h}
	}
	s.routes.known.Store(&routes)
	s.missing.now.Store(&served{tools: tools})
	return nil
}

// tools returns what a team's clients see.
func (s *core) tools(t *team) *catalog.Selection {
	if s.missing != nil {
		if left, ok := s.missing.now.Load().tools[t]; ok {
			return left.selection
		}
	}
	return t.selection
}

// hidden serves the tools of a team that are left.
func (s *core) hidden(t *team) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		now := s.missing.now.Load()
		if left, ok := now.tools[t]; ok {
			left.handler.ServeHTTP(w, r)
			return
		}
		// In seconds, the time between two attempts to read the description (RFC 9110 section 10.2.3).
		w.Header().Set("Retry-After", "5")
		proxy.WriteError(w, proxy.RequestInfoFrom(r.Context()), http.StatusServiceUnavailable,
			proxy.NewError(proxy.KindUpstreamUnavailable, now.problem, nil))
	}
}

// missingCheck returns why the tools are not served; "ok" when they are.
func (s *Server) missingCheck() string {
	if now := s.missing.now.Load(); now.tools == nil {
		return now.problem
	}
	return "ok"
}

// compareAPI compares the live server with the catalog: it warns of another
// version, with numbers, and hides what is missing when it is asked to. With
// gitea.hide_missing it tries until it succeeds or ctx ends.
func (s *Server) compareAPI(ctx context.Context, version string) {
	differs := version != "" && baseVersion(version) != baseVersion(s.library.catalog.GiteaVersion)
	if !differs && s.missing == nil {
		return
	}
	// There is no end but these: an endpoint that waits for the description is of no use, and
	// a Gitea may take its time, such as for a migration of its database.
	for {
		routes, err := s.liveRoutes(ctx)
		if err == nil && s.missing != nil {
			err = s.serveOnly(routes)
		}
		if err == nil {
			s.reportAPI(version, differs, routes)
			return
		}
		reason := proxy.AsError(err).Public
		if s.missing == nil {
			s.log.Warn().Str("gitea", version).Str("catalog", s.library.catalog.GiteaVersion).Str("reason", reason).
				Msg(`the catalog is of another version; "aegis catalog build" makes one of this server`)
			return
		}
		if tools := s.missing.now.Load().tools; tools == nil { // else those of the generation before go on
			s.missing.now.Store(&served{problem: "gitea.hide_missing: " + reason})
			s.log.Error().Str("reason", reason).
				Msg("no tool is served before Gitea's API description could be read (gitea.hide_missing)")
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.process.pace.learn):
		}
		if s.retired.Load() { // the next generation tries for itself
			return
		}
	}
}

// reportAPI logs how the live server differs from the catalog.
func (s *Server) reportAPI(version string, differs bool, routes catalog.Routes) {
	_, lacking, unknown := s.library.set.Compare(routes)
	if !differs && lacking == 0 && unknown == 0 {
		return
	}
	event := s.log.Warn().Str("gitea", version).Str("catalog", s.library.catalog.GiteaVersion).Int("missing", lacking).
		Int("without_tool", unknown)
	if s.missing != nil {
		event.Int("tools", len(s.Tools())).Msg("the live server differs from the catalog; " +
			"tools whose operation it lacks are hidden")
		return
	}
	event.Msg(`the live server differs from the catalog: "missing" tools will answer 404 or 405, ` +
		`"without_tool" operations have none; ` +
		`gitea.hide_missing hides the former, "aegis catalog build" makes a catalog of this server`)
}

// errDescription says that what was fetched is not the description of the API
// that the catalog is about.
var errDescription = proxy.NewError(proxy.KindUpstreamError,
	"what Gitea shows as /swagger.v1.json is not the description of its API; "+
		"check that gitea.url is the address of a Gitea server", nil)

// liveRoutes fetches the live server's description and returns its operations.
func (s *Server) liveRoutes(ctx context.Context) (catalog.Routes, error) {
	// A Gitea with REQUIRE_SIGNIN_VIEW shows its description to nobody without a token. Any
	// will do, as it is the same for all.
	var cred proxy.Credential
	if len(s.cfg.Auth.Tokens) > 0 {
		cred = proxy.NewCredential(proxy.ModeStatic, s.cfg.Auth.Tokens[0].GiteaToken.Reveal())
	}
	data, err := s.gitea.client.Description(ctx, cred)
	if err != nil {
		return nil, err
	}
	routes, err := catalog.DescribedRoutes(data)
	if err != nil {
		return nil, errDescription
	}
	if shared, _, _ := s.library.set.Compare(routes); shared == 0 {
		return nil, errDescription // else every tool would be hidden
	}
	return routes, nil
}

// baseVersion is a version without what builds append: "28.1.0+dev-12-gabc" and
// "v28.1.0" are 28.1.0.
func baseVersion(v string) string {
	v, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(v), "v"), "+")
	return v
}
