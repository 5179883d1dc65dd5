package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"aegis/proxy/edge"
	"aegis/proxy/gitea/passthrough"
	"aegis/proxy/internal/http1"
	"aegis/proxy/limit"
	"aegis/proxy/telemetry"
)

// limitOptions returns what every limiter of the server has in common.
func (b *basis) limitOptions(endpoint string) limit.Options {
	metrics := b.process.metrics
	return limit.Options{
		Refused:  func(bucket limit.Bucket) { metrics.Refused(string(bucket)) },
		Counters: b.process.limits, Endpoint: endpoint, Shared: b.process.sharedLimits(b.cfg.Limits),
	}
}

// clients tells where requests come from. Headers of other proxies than the trusted ones
// are not believed, so that no client chooses the address that its limits go by.
func (s *Server) clients() *edge.Clients {
	return edge.NewClients(s.cfg.Server.TrustedProxies, s.cfg.Server.ClientHeader)
}

// edge returns the first hop of all requests, with Gitea beside what mux serves when
// passthrough is on.
func (s *Server) edge(mux *http.ServeMux) *edge.Edge {
	cfg := s.cfg.Server
	e := &edge.Edge{
		Hosts:   edge.NewHosts(s.base, cfg.AllowedHosts, cfg.AllowedOrigins),
		Clients: s.clients(),
		Heads:   edge.HeadLimits{Bytes: int(cfg.MaxHeaderBytes), Lines: cfg.MaxHeaders},
		Pace:    edge.Pace{MinRate: int64(cfg.MinBodyRate), Timeout: time.Duration(cfg.ReadTimeout)},
		Limit:   s.teams[0].limits.Address,
		Linger:  1 + cfg.MaxConnections/32,
		Log:     s.log,
	}
	if s.signIn != nil {
		e.Open = s.signIn.server.ChecksOrigin
	}
	if s.pass != nil {
		e.Foreign, e.Own = s.pass, s.owns(mux)
	}
	return e
}

// owns reports whether a request is for Aegis itself: whatever one of the patterns of mux
// matches but the last, and all below the MCP path, where teams are.
func (s *Server) owns(mux *http.ServeMux) func(*http.Request) bool {
	// A team that a reload has removed is answered 404 by Aegis: its tokens must not go to Gitea.
	below := s.base.Path + MCPPath + "/"
	return func(r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, below) {
			return true
		}
		_, pattern := mux.Handler(r)
		return pattern != "/"
	}
}

// newPassthrough returns the way to Gitea for what is not Aegis's own; nil when it is
// off.
func (s *core) newPassthrough() http.Handler {
	if !s.cfg.Gitea.Passthrough {
		return nil
	}
	var public *url.URL
	if s.cfg.PublicURL != nil { // else the address that clients use is not known, base is a guess
		public = s.base
	}
	return passthrough.New(passthrough.Options{
		Gitea: &s.cfg.Gitea.URL.URL, Public: public, Strip: s.cfg.Gitea.StripHeaders, Ours: s.ours,
		Transport: http1.NoUpgrade{Next: s.gitea.pass}, Stopping: s.process.stopping, Log: s.log,
	})
}

// guard returns ln with the caps on connections and, when it is on, the PROXY
// protocol. TLS belongs on top.
func (s *Server) guard(ln net.Listener) (net.Listener, func() int) {
	cfg, clients := s.cfg.Server, s.clients()
	capped := edge.NewListener(ln, edge.ConnLimits{
		Total: cfg.MaxConnections, PerAddress: cfg.MaxConnectionsPerAddress,
		Trusted: clients, Refused: s.process.metrics.Refused,
	})
	// The caps are below: they count connections whose header has not come yet, and bound them.
	if cfg.ProxyProtocol {
		return edge.ProxyProtocol(capped, clients), capped.Open
	}
	return capped, capped.Open
}

// serveMetrics opens the metrics listener, if there is to be one, and returns
// what closes it. An address in use ends the start: metrics that are silently not there
// are noticed when they are needed.
func (s *Server) serveMetrics(ctx context.Context, connections func() int) (stop func(), err error) {
	cfg := s.cfg.Metrics
	if s.process.metrics == nil {
		return func() {}, nil
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another address with metrics.listen", cfg.Listen, err)
	}
	state := telemetry.State{Connections: connections, Certificates: s.certificateStates, Reload: s.reloadMetrics}
	if s.process.audit.log != nil {
		state.Audit = s.process.audit.log.Lag
	}
	if s.cfg.Store.Shared() {
		state.Store = s.process.storeMetrics
	}
	s.process.metrics.Show(state)
	srv := &http.Server{
		Handler: s.metricsHandler(), MaxHeaderBytes: 8 << 10, ErrorLog: serverLog(s.log),
		ReadTimeout: plainTimeout, WriteTimeout: 2 * plainTimeout, IdleTimeout: time.Minute,
	}
	go func() { _ = srv.Serve(ln) }() // its error is ErrServerClosed; it closes ln
	s.log.Info().Str("listen", ln.Addr().String()).Msg("serving metrics")
	return func() { _ = srv.Close() }, nil
}

// metricsHandler keeps web pages from reading a loopback listener by DNS
// rebinding.
func (s *Server) metricsHandler() http.Handler {
	next := s.process.metrics.Handler()
	if s.cfg.Metrics.AllowRemote {
		return next
	}
	hosts := edge.NewHosts(nil, nil, nil) // loopback names alone
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hosts.AllowsHost(r.Host) {
			http.Error(w, "metrics answer to loopback hosts only, unless metrics.allow_remote is set",
				http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// certificateStates says when certificates end, so that an alert can come before clients
// are refused.
func (s *Server) certificateStates() map[string]telemetry.Certificate {
	states := map[string]telemetry.Certificate{}
	for _, c := range s.Certificates() {
		states[c.Host] = telemetry.Certificate{Ends: c.NotAfter, OK: c.Problem == ""}
	}
	return states
}

// reloadMetrics shows a file that was refused, which the one in force hides otherwise.
func (s *Server) reloadMetrics() telemetry.Reload {
	r := s.process.reload.status()
	return telemetry.Reload{OK: r.Problem == "", Loaded: r.Changed, Reloads: r.Reloads, Failures: r.Failures}
}
