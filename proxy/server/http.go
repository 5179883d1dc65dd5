package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"aegis/proxy"
	"aegis/proxy/catalog"
	"aegis/proxy/edge"
	"aegis/proxy/mcp"
	"aegis/proxy/oauth"
)

// mcpEndpoint is one team's endpoint and its resource metadata.
type mcpEndpoint struct {
	handler, metadata http.Handler
}

// mcpHandler returns the MCP side of a selection of tools.
func (s *Server) mcpHandler(sel *catalog.Selection) (http.Handler, error) {
	return mcp.New(mcp.Options{
		Name: "aegis", Title: "Aegis for Gitea", Version: s.version,
		Instructions:   instructions(),
		Tools:          sel.Tools(),
		SudoTools:      sel.SudoTools(),
		OutputSchemas:  s.cfg.Results.Structured,
		Handler:        s.chain(sel),
		PageSize:       s.cfg.Tools.PageSize,
		ListTTL:        time.Duration(s.cfg.Tools.ListTTL),
		MaxBodyBytes:   int64(s.cfg.Server.MaxBodyBytes),
		CatalogVersion: s.catalog.Version,
		Log:            s.log,
	})
}

func (s *Server) newMCP() (*mcpEndpoint, error) {
	var h http.Handler
	if h = s.missing; s.missing == nil {
		var err error
		if h, err = s.mcpHandler(s.selection); err != nil {
			return nil, err
		}
	}
	meta, err := oauth.Metadata(s.Endpoint())
	if err != nil {
		return nil, err
	}
	guard := &oauth.Guard{Verifier: s.tokens, MetadataURL: s.base.String() + metadataPath + MCPPath, Log: s.log, Refused: s.bearerRefused}
	return &mcpEndpoint{handler: guard.Wrap(s.traceRequests(h)), metadata: meta}, nil
}

// metadataPath is where RFC 9728 section 3 puts resource metadata; the path of
// the resource follows it.
const metadataPath = "/.well-known/oauth-protected-resource"

// Handler returns the whole HTTP handler, edge included.
func (s *Server) Handler() http.Handler {
	prefix := s.base.Path
	mux, probes := http.NewServeMux(), http.NewServeMux()
	mux.Handle(prefix+MCPPath, s.mcp.handler)
	mux.Handle(metadataPath+prefix+MCPPath, s.mcp.metadata)
	mux.Handle(metadataPath, s.mcp.metadata)
	if s.pass == nil || prefix != "" { // Gitea's own first page
		mux.HandleFunc("GET "+prefix+"/{$}", s.root)
	}
	mux.HandleFunc("/", notFound)
	probes.HandleFunc("GET /healthz", s.healthz)
	probes.HandleFunc("GET /readyz", s.readyz)
	return s.wrap(probes, mux)
}

// root says what this is; it is the page that a person opens first.
func (s *Server) root(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"name": "aegis", "version": s.version, "mcp": s.Endpoint()})
}

// healthz is liveness: the process answers. Gitea does not matter to it.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readyz is readiness: calls would work.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	checks, status, word := map[string]string{"gitea": "ok"}, http.StatusOK, "ready"
	if err := s.ready.do(r.Context()); err != nil {
		checks["gitea"] = proxy.AsError(err).Public
		status, word = http.StatusServiceUnavailable, "not ready"
	}
	if s.tls != nil {
		var ok bool
		if checks["certificate"], ok = s.certificateCheck(); !ok {
			status, word = http.StatusServiceUnavailable, "not ready"
		}
	}
	if checks["audit"] = s.auditCheck(); s.audit.log.Ready() != nil {
		status, word = http.StatusServiceUnavailable, "not ready"
	}
	if s.missing != nil {
		if checks["tools"] = s.missing.check(); checks["tools"] != "ok" {
			status, word = http.StatusServiceUnavailable, "not ready"
		}
	}
	// A configuration that could not be loaded anew stops no call.
	checks["config"] = "ok"
	if problem := s.reload.status().Problem; problem != "" {
		checks["config"] = problem
	}
	writeJSON(w, status, map[string]any{"status": word, "checks": checks})
}

func notFound(w http.ResponseWriter, r *http.Request) {
	id := ""
	if x := proxy.ExchangeFrom(r.Context()); x != nil {
		id = x.RequestID
	}
	writeJSON(w, http.StatusNotFound, map[string]any{"error": map[string]string{
		"kind": "not_found", "message": "nothing is served here; the MCP endpoint is " + MCPPath, "request_id": id}})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // maps of strings always marshal
		status, body = http.StatusInternalServerError, []byte(`{"error":{"kind":"internal"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client has gone when this fails
}

// readiness remembers the last answer for a moment, so that probes, which
// anybody may send, do not become traffic to Gitea.
type readiness struct {
	check func(context.Context) error
	mu    sync.Mutex
	asked time.Time
	err   error
}

const (
	readinessTTL     = 2 * time.Second
	readinessTimeout = 5 * time.Second
)

func (p *readiness) do(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.asked.IsZero() && time.Since(p.asked) < readinessTTL {
		return p.err
	}
	// The answer is for the next probes too, so this one's client does not
	// decide how long it may take.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readinessTimeout)
	defer cancel()
	p.err = p.check(ctx)
	p.asked = time.Now()
	return p.err
}

// logged writes one debug line per HTTP request; calls have their own line.
func (s *Server) logged(next http.Handler) http.Handler {
	if s.log.GetLevel() > zerolog.DebugLevel {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		rec := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			x := proxy.ExchangeFrom(r.Context())
			s.log.Debug().Str("request_id", x.RequestID).Str("addr", x.Addr).Str("method", r.Method).Str("path", clip(r.URL.Path, 200)).
				Int("status", rec.status).Dur("took", time.Since(began)).Msg("request")
		}()
		next.ServeHTTP(rec, r)
	})
}

type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (r *statusRecorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Serve answers requests on ln until ctx ends. Then it takes no new ones, lets
// those in flight finish within server.shutdown_timeout, and returns nil, or
// [ErrStopped] when it had to cut some off. It closes ln.
//
// With TLS that has a plain listener too, use [Live.Serve].
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	return NewLive(s).Serve(ctx, ln, nil)
}

func (s *Server) serve(ctx context.Context, ln net.Listener, live *Live) error {
	if err := s.OpenAudit(); err != nil {
		_ = ln.Close() // the error that counts is the other one
		return err
	}
	srv := &http.Server{
		Handler:           live,
		ReadHeaderTimeout: min(readHeaderTimeout, time.Duration(s.cfg.Server.ReadTimeout)),
		ReadTimeout:       time.Duration(s.cfg.Server.ReadTimeout),
		IdleTimeout:       time.Duration(s.cfg.Server.IdleTimeout),
		// What exceeds server.max_header_bytes by less gets an answer in JSON.
		MaxHeaderBytes: 2 * int(s.cfg.Server.MaxHeaderBytes),
		ConnState:      edge.LateHeads,
		HTTP2:          &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog:       serverLog(s.log),
	}
	guarded, connections := s.guard(ln)
	stopMetrics, err := s.serveMetrics(ctx, connections)
	if err != nil {
		_ = ln.Close() // the error that counts is the other one
		return err
	}
	defer stopMetrics()
	srv.RegisterOnShutdown(s.stop)
	done := make(chan error, 1)
	go func() { done <- s.accept(srv, guarded) }()
	select {
	case err := <-done:
		return fmt.Errorf("serving ended: %w", err)
	case <-ctx.Done():
	}
	s.log.Info().Msg("stopping: no new calls, waiting for those in flight")
	timeout, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(s.cfg.Server.ShutdownTimeout))
	defer cancel()
	defer func() { live.Server().endTraces(timeout) }()
	err = srv.Shutdown(timeout)
	if errors.Is(err, context.DeadlineExceeded) {
		_ = srv.Close() // nothing more can be done for the connections that are left
		return ErrStopped
	}
	return err
}

// maxStreams bounds the requests at a time of one HTTP/2 connection.
const maxStreams = 128

func stackOf() []byte { return debug.Stack() }

// isNoise reports whether a line of net/http's log is about a client that went
// away or speaks no HTTP, which anybody can cause at will.
func isNoise(line string) bool {
	return strings.Contains(line, "TLS handshake error") || strings.Contains(line, "EOF")
}
