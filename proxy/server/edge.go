package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"aegis/config"
	"aegis/proxy/edge"
	"aegis/proxy/gitea"
	"aegis/proxy/gitea/passthrough"
	"aegis/proxy/limit"
	"aegis/proxy/telemetry"
)

// measure makes the metrics and the limits, or takes over old's: counters go on,
// and limits that did not change keep their buckets.
func (s *Server) measure(old *Server) {
	o := s.limitOptions()
	if old == nil {
		s.stopping, s.stop = context.WithCancel(context.Background())
		if s.cfg.Metrics.Listen != "" {
			s.metrics = telemetry.NewMetrics(telemetry.Build{Version: s.version, Catalog: s.catalog.Version})
		}
	} else {
		s.stopping, s.stop = old.stopping, old.stop
		s.metrics = old.metrics
		o.From = old.limits
	}
	s.limits = limit.New(s.cfg.Limits, o)
}

// limitOptions returns what every limiter of the server has in common.
func (s *Server) limitOptions() limit.Options {
	o := limit.Options{Refused: func(b limit.Bucket) { s.metrics.Refused(string(b)) }}
	o.Shared = s.sharedLimits()
	return o
}

// unknownLimitTools reports the keys of limits.tools that name no tool of the
// catalog.
func (s *Server) unknownLimitTools(t *team) (problems config.Problems) {
	for name := range t.rules.Limits.Tools {
		if near, ok := s.set.Has(name); !ok {
			do := "use a name that \"aegis tools\" lists"
			if near != "" {
				do = "did you mean " + near + "?"
			}
			key := t.key("limits.tools." + name)
			if strings.Contains(name, ".") { // as config writes keys with dots
				key = t.key(`limits.tools["` + name + `"]`)
			}
			problems = append(problems, s.cfg.Problem(key, "unknown tool", do))
		}
	}
	return problems
}

// clients tells where requests come from.
func (s *Server) clients() *edge.Clients {
	return edge.NewClients(s.cfg.Server.TrustedProxies, s.cfg.Server.ClientHeader)
}

// wrap returns the server's own handlers behind the edge, with Gitea beside them
// when passthrough is on. Probes are not held to limits: they must not fail
// because somebody else asks too much.
func (s *Server) wrap(probes, own *http.ServeMux) http.Handler {
	probes.Handle("/", s.limits.Address(own))
	cfg := s.cfg.Server
	pace := edge.Pace{MinRate: int64(cfg.MinBodyRate), Timeout: time.Duration(cfg.ReadTimeout)}
	e := &edge.Edge{
		Hosts:   edge.NewHosts(s.base, cfg.AllowedHosts, cfg.AllowedOrigins),
		Clients: s.clients(),
		Heads:   edge.HeadLimits{Bytes: int(cfg.MaxHeaderBytes), Lines: cfg.MaxHeaders},
		Limit:   s.limits.Address,
		Log:     s.log,
	}
	if s.signIn != nil {
		e.Open = s.signIn.server.ChecksOrigin
	}
	if s.pass != nil {
		e.Foreign = s.logged(s.pass)
		e.Own = s.owns(probes, own)
	}
	return e.Wrap(pace.Wrap(s.logged(probes)))
}

// owns reports whether a request is for Aegis itself: whatever one of its own
// patterns matches, and all below the MCP path, where teams are.
func (s *Server) owns(muxes ...*http.ServeMux) func(*http.Request) bool {
	below := s.base.Path + MCPPath + "/"
	return func(r *http.Request) bool {
		return strings.HasPrefix(r.URL.Path, below) || slices.ContainsFunc(muxes, func(m *http.ServeMux) bool {
			_, pattern := m.Handler(r)
			return pattern != "/"
		})
	}
}

// connectPassthrough makes the way to Gitea for what is not Aegis's own.
func (s *Server) connectPassthrough() error {
	if !s.cfg.Gitea.Passthrough {
		return nil
	}
	t, err := gitea.PassTransport(s.cfg.Gitea)
	if err != nil {
		return fmt.Errorf("gitea: %w", err)
	}
	s.passPool = t
	var public *url.URL
	if s.cfg.PublicURL != nil {
		public = s.base
	}
	s.pass = passthrough.New(passthrough.Options{
		Gitea: &s.cfg.Gitea.URL.URL, Public: public, Strip: s.cfg.Gitea.StripHeaders, Ours: s.ours,
		Transport: t, Stopping: s.stopping, Log: s.log,
	})
	return nil
}

// guard returns ln with the caps on connections and, when it is on, the PROXY
// protocol. TLS belongs on top.
func (s *Server) guard(ln net.Listener) (net.Listener, func() int) {
	cfg, clients := s.cfg.Server, s.clients()
	capped := edge.NewListener(ln, edge.ConnLimits{
		Total: cfg.MaxConnections, PerAddress: cfg.MaxConnectionsPerAddress, Trusted: clients, Refused: s.metrics.Refused,
	})
	if cfg.ProxyProtocol {
		return edge.ProxyProtocol(capped, clients), capped.Open
	}
	return capped, capped.Open
}

// serveMetrics opens the metrics listener, if there is to be one, and returns
// what closes it.
func (s *Server) serveMetrics(ctx context.Context, connections func() int) (stop func(), err error) {
	cfg := s.cfg.Metrics
	if s.metrics == nil {
		return func() {}, nil
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another address with metrics.listen", cfg.Listen, err)
	}
	state := telemetry.State{Connections: connections, Certificates: s.certificateStates, Reload: s.reloadMetrics}
	if s.audit.log != nil {
		state.Audit = s.auditLag
	}
	if s.cfg.Store.Shared() {
		state.Store = s.storeMetrics
	}
	s.metrics.Show(state)
	srv := &http.Server{
		Handler: s.metricsHandler(), ReadTimeout: plainTimeout, WriteTimeout: 2 * plainTimeout, IdleTimeout: time.Minute,
		MaxHeaderBytes: 8 << 10, ErrorLog: serverLog(s.log),
	}
	go func() { _ = srv.Serve(ln) }() // its error is ErrServerClosed; it closes ln
	s.log.Info().Str("listen", ln.Addr().String()).Msg("serving metrics")
	return func() { _ = srv.Close() }, nil
}

// metricsHandler keeps web pages from reading a loopback listener by DNS
// rebinding.
func (s *Server) metricsHandler() http.Handler {
	next := s.metrics.Handler()
	if s.cfg.Metrics.AllowRemote {
		return next
	}
	hosts := edge.NewHosts(nil, nil, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hosts.AllowsHost(r.Host) {
			http.Error(w, "metrics answer to loopback hosts only, unless metrics.allow_remote is set", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) certificateStates() map[string]telemetry.Certificate {
	states := map[string]telemetry.Certificate{}
	for _, c := range s.Certificates() {
		states[c.Host] = telemetry.Certificate{Ends: c.NotAfter, OK: c.Problem == ""}
	}
	return states
}

func (s *Server) reloadMetrics() telemetry.Reload {
	r := s.reload.status()
	return telemetry.Reload{OK: r.Problem == "", Loaded: r.Changed, Reloads: r.Reloads, Failures: r.Failures}
}
