package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
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
type missing struct {
	problem atomic.Pointer[string] // why nothing is served; "" when something is
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
	why := "Gitea's API description has not been read yet (gitea.hide_missing)"
	m.problem.Store(&why)
	return m
}

// serveOnly serves the tools whose operation is among routes.
func (s *Server) serveOnly(routes map[string]bool) error {
	served := make([]*servedTools, len(s.teams))
	for i, t := range s.teams {
		set := t.set.Keep(func(t *proxy.Tool) bool { return routes[routeKey(t.Method, t.Path)] })
		sel, problems := set.Select(t.rules.Tools)
		for _, p := range problems {
			// The configuration was right for the catalog, so this is news, no error.
			s.log.Warn().Str("key", t.key("tools."+p.Path)).Msg("the live server lacks what this names: " + p.Message)
		}
		h, err := s.mcpHandler(t, sel)
		if err != nil {
			return err
		}
		served[i] = &servedTools{selection: sel, handler: h}
	}
	for i, t := range s.teams {
		t.serving.Store(served[i])
	}
	s.routes.known.Store(&routes)
	s.missing.problem.Store(new(string))
	return nil
}

// hidden serves the tools of a team that are left.
func (s *Server) hidden(t *team) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if served := t.serving.Load(); served != nil {
			served.handler.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Retry-After", "5")
		proxy.WriteError(w, proxy.RequestInfoFrom(r.Context()), http.StatusServiceUnavailable,
			proxy.NewError(proxy.KindUpstreamUnavailable, *s.missing.problem.Load(), nil))
	}
}

// missingCheck returns why the tools are not served; "ok" when they are.
func (s *Server) missingCheck() string {
	if p := *s.missing.problem.Load(); p != "" && s.teams[0].serving.Load() == nil {
		return p
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
		why := "gitea.hide_missing: " + reason
		if s.missing.problem.Swap(&why); s.teams[0].serving.Load() == nil {
			s.log.Error().Str("reason", reason).Msg("no tool is served before Gitea's API description could be read (gitea.hide_missing)")
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.process.pace.learn):
		}
		if s.retired.Load() {
			return
		}
	}
}

// reportAPI logs how the live server differs from the catalog.
func (s *Server) reportAPI(version string, differs bool, routes map[string]bool) {
	known, lacking := map[string]bool{}, 0
	for _, t := range s.library.set.Tools() {
		key := routeKey(t.Method, t.Path)
		if known[key] = true; !routes[key] {
			lacking++
		}
	}
	unknown := 0
	for key := range routes {
		if !known[key] {
			unknown++
		}
	}
	if !differs && lacking == 0 && unknown == 0 {
		return
	}
	event := s.log.Warn().Str("gitea", version).Str("catalog", s.library.catalog.GiteaVersion).Int("missing", lacking).Int("without_tool", unknown)
	if s.missing != nil {
		event.Int("tools", len(s.Tools())).Msg("the live server differs from the catalog; tools whose operation it lacks are hidden")
		return
	}
	event.Msg(`the live server differs from the catalog: "missing" tools will answer 404 or 405, "without_tool" operations have none; ` +
		`gitea.hide_missing hides the former, "aegis catalog build" makes a catalog of this server`)
}

// errDescription says that what was fetched is not the description of the API
// that the catalog is about.
var errDescription = proxy.NewError(proxy.KindUpstreamError,
	"what Gitea shows as /swagger.v1.json is not the description of its API; check that gitea.url is the address of a Gitea server", nil)

// liveRoutes fetches the live server's description and returns its operations.
func (s *Server) liveRoutes(ctx context.Context) (map[string]bool, error) {
	var cred proxy.Credential
	if len(s.cfg.Auth.Tokens) > 0 {
		cred = proxy.NewCredential(proxy.ModeStatic, s.cfg.Auth.Tokens[0].GiteaToken.Reveal())
	}
	data, err := s.gitea.client.Description(ctx, cred)
	if err != nil {
		return nil, err
	}
	routes, err := describedRoutes(data)
	if err != nil {
		return nil, errDescription
	}
	for _, t := range s.library.set.Tools() {
		if routes[routeKey(t.Method, t.Path)] {
			return routes, nil
		}
	}
	return nil, errDescription // hiding everything is nobody's wish
}

// describedRoutes lists the operations of a Swagger 2.0 document.
func describedRoutes(data []byte) (map[string]bool, error) {
	var doc struct {
		Swagger string                                `json:"swagger"`
		Paths   map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if doc.Swagger != "2.0" || len(doc.Paths) == 0 {
		return nil, errors.New("not a Swagger 2.0 description")
	}
	routes := map[string]bool{}
	for path, methods := range doc.Paths {
		for method := range methods {
			switch m := strings.ToUpper(method); m {
			case "GET", "POST", "PUT", "PATCH", "DELETE":
				routes[routeKey(m, path)] = true
			}
		}
	}
	return routes, nil
}

var pathParameter = regexp.MustCompile(`\{[^{}/]*\}`)

// routeKey names an operation whatever its path parameters are called.
func routeKey(method, path string) string {
	return method + " " + pathParameter.ReplaceAllString(path, "{}")
}

// baseVersion is a version without what builds append: "28.1.0+dev-12-gabc" and
// "v28.1.0" are 28.1.0.
func baseVersion(v string) string {
	v, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(v), "v"), "+")
	return v
}
