package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"aegis/proxy"
	"aegis/proxy/audit"
	"aegis/proxy/edge"
	"aegis/proxy/oauth"
)

// endpoint is the HTTP side of a team.
type endpoint struct {
	team     *team
	handler  http.Handler // with the guard in front
	metadata http.Handler // RFC 9728
}

// newEndpoints makes the HTTP side of every team. With gitea.hide_missing it serves
// what the generation before has learned of the same Gitea, so that a reload makes no
// gap; else nothing until Gitea was asked.
func (s *core) newEndpoints() ([]endpoint, error) {
	if s.missing != nil {
		if known := s.routes.known.Load(); known != nil {
			if err := s.serveOnly(*known); err != nil {
				return nil, err
			}
		}
	}
	list := make([]endpoint, len(s.teams))
	for i, t := range s.teams {
		h := http.Handler(s.hidden(t))
		if s.missing == nil {
			var err error
			if h, err = s.mcpHandler(t, t.selection); err != nil {
				return nil, err
			}
		}
		list[i] = endpoint{t, through(s.teamHops(t), h), oauth.Metadata(s.base.String() + t.path())}
	}
	return list, nil
}

// admit decides who may use a team's endpoint.
func (s *core) admit(t *team) func(context.Context, *proxy.Identity) error {
	return func(ctx context.Context, id *proxy.Identity) error {
		err := t.gate.Enter(ctx, id)
		e := proxy.AsError(err)
		if err == nil || e.Kind != proxy.KindForbidden {
			return err
		}
		x := &proxy.RequestInfo{Team: t.name, Identity: id}
		if from := proxy.RequestInfoFrom(ctx); from != nil {
			x.RequestID, x.Addr = from.RequestID, from.Addr
		}
		s.process.audit.log.Event(audit.AccessRefused, x, audit.Detail{Reason: e.Public})
		return oauth.NotAdmitted(e.Public)
	}
}

// metadataPath is where RFC 9728 section 3 puts resource metadata; the path of
// the resource follows it.
const metadataPath = "/.well-known/oauth-protected-resource"

// metadataPath returns where the metadata of a team's endpoint is.
func (s *core) metadataPath(t *team) string { return metadataPath + s.base.Path + t.path() }

// Handler returns the whole HTTP handler, edge included.
func (s *Server) Handler() http.Handler {
	prefix, mux := s.base.Path, http.NewServeMux()
	// Patterns have no method where an endpoint answers wrong ones by itself (405 with Allow).
	for _, e := range s.endpoints {
		at := prefix + e.team.path()
		mux.Handle(at, e.handler)
		mux.Handle(at+"/{$}", e.handler) // people paste it so, and mean the same
		if s.signIn != nil {
			continue // has the metadata of all
		}
		mux.Handle(s.metadataPath(e.team), e.metadata)
		if e.team.name == "" { // for clients that leave the path out
			mux.Handle(metadataPath, e.metadata)
		}
	}
	if s.signIn != nil {
		s.signIn.server.Register(mux)
	}
	if s.pass == nil || prefix != "" { // Gitea's own first page
		mux.HandleFunc("GET "+prefix+"/{$}", s.root)
	}
	mux.HandleFunc("GET "+prefix+"/healthz/stream", s.stream)
	mux.HandleFunc("GET "+healthPath, s.healthz)
	mux.HandleFunc("GET "+readyPath, s.readyz)
	mux.HandleFunc("/", notFound) // by this pattern owns knows what is not Aegis's own
	return through(s.hops(mux), mux)
}

// The paths of the probes, which no prefix of public_url changes.
const (
	healthPath = "/healthz"
	readyPath  = "/readyz"
)

// isProbe reports whether a request is a probe. Probes are not held to limits: they must
// not fail because other clients ask too much.
func isProbe(r *http.Request) bool {
	return (r.URL.Path == healthPath || r.URL.Path == readyPath) &&
		(r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// root says what this is; it is the page that a person opens first.
func (s *Server) root(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"name": "aegis", "version": s.process.version, "mcp": s.Endpoint()})
}

// healthz is liveness: the process answers. Gitea does not matter to it.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readyz is readiness: calls would work.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	checks, ready := map[string]string{}, true
	check := func(name, text string) {
		checks[name], ready = text, ready && text == "ok"
	}
	gitea := "ok"
	if err := s.gitea.ready.Check(r.Context()); err != nil {
		gitea = proxy.AsError(err).Public
	}
	check("gitea", gitea)
	if s.missing != nil {
		check("tools", s.missingCheck())
	}
	// What follows may be other than "ok" and stop no call: a certificate that is still valid,
	// a log that is off, a configuration that could not be loaded anew.
	if s.process.tls != nil {
		var serves bool
		checks["certificate"], serves = s.certificateCheck()
		ready = ready && serves
	}
	checks["audit"], ready = s.auditCheck(), ready && s.process.audit.log.Ready() == nil
	checks["config"] = cmp.Or(s.process.reload.status().Problem, "ok")
	if ready {
		writeJSON(w, http.StatusOK, map[string]any{"status": "ready", "checks": checks})
		return
	}
	writeJSON(w, http.StatusServiceUnavailable, map[string]any{"status": "not ready", "checks": checks})
}

// notFound answers what no pattern matches. Most often a path was pasted wrongly into a
// client, so the answer names the endpoint.
func notFound(w http.ResponseWriter, r *http.Request) {
	proxy.WriteError(w, proxy.RequestInfoFrom(r.Context()), http.StatusNotFound,
		proxy.NewError(proxy.KindNotFound, "nothing is served here; the MCP endpoint is "+MCPPath, nil))
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // maps of strings always marshal; else the client has gone
}

// Serve answers requests on ln until ctx ends. Then it takes no new ones, lets
// those in flight finish within server.shutdown_timeout, and returns nil, or
// [ErrStopped] when it had to cut some off. It closes ln.
//
// With TLS that has a plain listener too, use [Live.Serve].
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	return NewLive(s).Serve(ctx, ln, nil)
}

// serve is Serve of what live makes of requests. Settings of the listener are those of s,
// the generation of the start, whichever one is in force later.
func (s *Server) serve(ctx context.Context, ln net.Listener, live *Live) error {
	srv := &http.Server{
		Handler: live,
		// For what has no pace of its own: heads, and bodies that edge.Pace never sees because
		// the request was refused before.
		ReadHeaderTimeout: min(readHeaderTimeout, time.Duration(s.cfg.Server.ReadTimeout)),
		ReadTimeout:       time.Duration(s.cfg.Server.ReadTimeout),
		IdleTimeout:       time.Duration(s.cfg.Server.IdleTimeout),
		// What exceeds server.max_header_bytes by less gets an answer in JSON.
		MaxHeaderBytes: 2 * int(s.cfg.Server.MaxHeaderBytes),
		ConnState:      edge.LateHeads,
		ConnContext:    edge.ConnContext,
		HTTP2:          &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog:       serverLog(s.log),
	}
	guarded, connections := s.guard(ln)
	stopMetrics, err := s.serveMetrics(ctx, connections)
	if err != nil {
		_ = ln.Close() // the error of the metrics listener is what is reported
		return err
	}
	defer stopMetrics()
	srv.RegisterOnShutdown(s.process.stop) // ends streams, which would last for the whole timeout
	done := make(chan error, 1)
	go func() { done <- s.accept(srv, guarded) }()
	select {
	case err := <-done:
		return fmt.Errorf("serving ended: %w", err)
	case <-ctx.Done():
	}
	s.log.Info().Msg("stopping: no new calls, waiting for those in flight")
	// ctx has ended; its values are still of use, its end is not.
	timeout, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(s.cfg.Server.ShutdownTimeout))
	defer cancel()
	defer func() { live.Server().endTraces(timeout) }()
	// Calls have their own timeout, so that one which hangs in Gitea ends this in time.
	err = srv.Shutdown(timeout)
	if errors.Is(err, context.DeadlineExceeded) {
		_ = srv.Close() // nothing more can be done for the connections that are left
		return ErrStopped
	}
	return err
}

// maxStreams bounds the requests at a time of one HTTP/2 connection, each of which may hold
// a body and a result. Clients use a few; RFC 9113 section 6.5.2 advises against less than 100.
const maxStreams = 128

// isNoise reports whether a line of net/http's log is about a client that went
// away or speaks no HTTP, which any client can cause at will.
func isNoise(line string) bool {
	return strings.Contains(line, "TLS handshake error") || strings.Contains(line, "EOF")
}
