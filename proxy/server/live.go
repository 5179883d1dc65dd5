package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy/kv/open"
	"aegis/proxy/telemetry"
)

// Live serves one server after another on the same listeners: a reload builds a
// whole new [Server] and puts it in the place of the old one in one step.
// Requests that the old one has begun, it finishes.
type Live struct {
	current atomic.Pointer[generation]
	reload  *reloadState
	mu      sync.Mutex      // held by Reload and Close
	ctx     context.Context // of Serve; ends with it
	attends sync.Once       // what the store needs while it is open has been started
}

// generation is a server and the requests that it is answering.
type generation struct {
	server  *Server
	handler http.Handler
	// requests counts those in flight, plus retired once another server has
	// taken this one's place.
	requests atomic.Int64
	release  func()
	once     sync.Once
}

// retired makes the counter negative, whatever it was.
const retired = math.MinInt64 / 2

// enter counts a request in; false when the generation takes none any more.
func (g *generation) enter() bool {
	if g.requests.Add(1) > 0 {
		return true
	}
	g.leave()
	return false
}

func (g *generation) leave() {
	if g.requests.Add(-1) == retired {
		g.once.Do(g.release)
	}
}

// retire lets the generation go when its last request has left.
func (g *generation) retire(release func()) {
	g.release = release
	if g.requests.Add(retired) == retired {
		g.once.Do(release)
	}
}

// NewLive returns the Live that begins with s.
func NewLive(s *Server) *Live {
	l := &Live{reload: s.reload, ctx: context.Background()}
	l.current.Store(&generation{server: s, handler: s.Handler()})
	return l
}

// Server returns the server that takes new requests.
func (l *Live) Server() *Server { return l.current.Load().server }

// ServeHTTP answers a request with the current server.
func (l *Live) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g := l.current.Load()
	for !g.enter() { // it was replaced between the two steps
		g = l.current.Load()
	}
	defer g.leave()
	g.handler.ServeHTTP(w, r)
}

// Reload builds a server from a configuration that was loaded anew and lets it
// take over. On an error the current server goes on, and /readyz says so.
// Settings that only a start can change keep their value and are logged.
func (l *Live) Reload(cfg *config.Config, log zerolog.Logger) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.current.Load()
	cfg, ignored := keepStartOnly(old.server.cfg, cfg)
	next, err := NewFrom(old.server, cfg, old.server.version, log)
	if err != nil {
		l.failed(err)
		return err
	}
	l.current.Store(&generation{server: next, handler: next.Handler()})
	old.retire(func() { old.server.release(next) })
	l.attend(next)
	l.reload.note(nil)
	for _, key := range ignored {
		log.Warn().Str("key", key).Msg("this change takes effect at the next start")
	}
	next.reloaded(nil)
	log.Info().Int("tools", len(next.Tools())).Msg("the configuration was loaded anew")
	go next.Start(l.ctx)
	return nil
}

// Failed notes that the configuration could not be loaded anew, and logs every
// problem. The current server goes on.
func (l *Live) Failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed(err)
}

func (l *Live) failed(err error) {
	log := l.Server().log
	l.reload.note(err)
	l.Server().reloaded(err)
	for line := range strings.SplitSeq(err.Error(), "\n") {
		log.Error().Str("problem", telemetry.Clip(line, 500)).Msg("the changed configuration is not used; the one before it stays in force")
	}
}

// ReloadCertificates reads certificates again, or asks for missing ones at once.
func (l *Live) ReloadCertificates() {
	if t := l.Server().tls; t != nil {
		t.Reload()
	}
}

// Status returns the state of reloading.
func (l *Live) Status() ReloadStatus { return l.reload.status() }

// Serve answers requests on ln, and those to the plain listener beside it, which
// is nil when [Server.PlainListen] is "". It ends as [Server.Serve] does.
func (l *Live) Serve(ctx context.Context, ln, plain net.Listener) error {
	s, err := l.open(ctx)
	if err != nil {
		_ = ln.Close() // the error that counts is the other one
		if plain != nil {
			_ = plain.Close() // as above
		}
		return err
	}
	go s.Start(ctx)
	if s.tls == nil {
		return s.serve(ctx, ln, l)
	}
	defer s.tls.Close()
	if plain != nil {
		srv := s.plainServer()
		capped, _ := s.guard(plain)
		go func() { _ = srv.Serve(capped) }() // its error is ErrServerClosed; it closes plain
		defer func() { _ = srv.Close() }()    // nothing there is worth waiting for
	}
	if err := s.tls.Start(ctx); err != nil {
		_ = ln.Close() // the error that counts is the other one
		return fmt.Errorf("tls: %w", err)
	}
	return s.serve(ctx, ln, l)
}

// open opens the files of the current server and returns it. Until that is done
// no reload may take its place, and nothing may work on it: opening puts the store
// of the configuration in the place of the one in memory.
func (l *Live) open(ctx context.Context) (*Server, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx = ctx
	s := l.Server()
	if err := errors.Join(s.OpenAudit(), s.OpenState()); err != nil {
		return nil, err
	}
	l.current.Store(&generation{server: s, handler: s.Handler()})
	l.attend(s)
	return s, nil
}

// attend starts what goes on beside the requests of a server that keeps something
// in the store, at the start or at the reload that switches it on. l.mu is held.
func (l *Live) attend(s *Server) {
	if s.serving.Load() && open.Needed(s.cfg) {
		l.attends.Do(func() {
			go l.sweep(l.ctx)
			go l.control(l.ctx)
			if s.state.shared() != nil {
				go l.beat(l.ctx)
			}
		})
	}
}

// Close releases what the current server has open.
func (l *Live) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Server().Close()
}

// startOnly are the settings that a reload cannot change.
var startOnly = []struct {
	key  string
	same func(a, b *config.Config) bool
	keep func(from, to *config.Config)
}{
	{"listen", func(a, b *config.Config) bool { return a.Listen == b.Listen }, func(from, to *config.Config) { to.Listen = from.Listen }},
	{"data_dir", func(a, b *config.Config) bool { return a.DataDir == b.DataDir }, func(from, to *config.Config) { to.DataDir = from.DataDir }},
	{"tls", func(a, b *config.Config) bool { return reflect.DeepEqual(a.TLS, b.TLS) }, func(from, to *config.Config) { to.TLS = from.TLS }},
	{"server.read_timeout", func(a, b *config.Config) bool { return a.Server.ReadTimeout == b.Server.ReadTimeout }, func(from, to *config.Config) { to.Server.ReadTimeout = from.Server.ReadTimeout }},
	{"server.idle_timeout", func(a, b *config.Config) bool { return a.Server.IdleTimeout == b.Server.IdleTimeout }, func(from, to *config.Config) { to.Server.IdleTimeout = from.Server.IdleTimeout }},
	{"server.shutdown_timeout", func(a, b *config.Config) bool { return a.Server.ShutdownTimeout == b.Server.ShutdownTimeout }, func(from, to *config.Config) { to.Server.ShutdownTimeout = from.Server.ShutdownTimeout }},
	{"server (connections, max_header_bytes, trusted_proxies, proxy_protocol)", sameListener, keepListener},
	{"metrics", func(a, b *config.Config) bool { return a.Metrics == b.Metrics }, func(from, to *config.Config) { to.Metrics = from.Metrics }},
	{"audit", func(a, b *config.Config) bool { return reflect.DeepEqual(a.Audit, b.Audit) }, func(from, to *config.Config) { to.Audit = from.Audit }},
	{"store (all but keys, key_file and grace)", sameStore, keepStore},
	{"public_url", sameCertificates, func(from, to *config.Config) {}},
}

// sameCertificates reports whether both configurations need certificates for
// the same hosts.
func sameCertificates(a, b *config.Config) bool {
	return a.TLS.Mode != "auto" || reflect.DeepEqual(a.TLSHosts(), b.TLSHosts())
}

// sameListener reports whether both configurations want the same of connections.
func sameListener(a, b *config.Config) bool {
	x, y := a.Server, b.Server
	return x.MaxConnections == y.MaxConnections && x.MaxConnectionsPerAddress == y.MaxConnectionsPerAddress && x.ProxyProtocol == y.ProxyProtocol &&
		x.MaxHeaderBytes == y.MaxHeaderBytes && slices.Equal(x.TrustedProxies, y.TrustedProxies)
}

func keepListener(from, to *config.Config) {
	x, y := from.Server, &to.Server
	y.MaxConnections, y.MaxConnectionsPerAddress, y.ProxyProtocol = x.MaxConnections, x.MaxConnectionsPerAddress, x.ProxyProtocol
	y.MaxHeaderBytes, y.TrustedProxies = x.MaxHeaderBytes, x.TrustedProxies
}

// keepStartOnly returns cfg with the settings of running that only a start can
// change, and their keys where they differ.
func keepStartOnly(running, cfg *config.Config) (*config.Config, []string) {
	kept, ignored := *cfg, []string(nil)
	for _, s := range startOnly {
		if !s.same(running, &kept) {
			ignored = append(ignored, s.key)
			s.keep(running, &kept)
		}
	}
	return &kept, ignored
}

// ReloadStatus is what became of the attempts to load the configuration anew.
type ReloadStatus struct {
	// Problem says that the last attempt failed; "" when it did not, or when
	// there was none. It names nothing from the file.
	Problem string
	// Changed is when the configuration in force was loaded.
	Changed time.Time
	// Reloads and Failures count attempts since the start.
	Reloads, Failures int
}

// reloadState is a ReloadStatus that all servers of a process share.
type reloadState struct {
	mu sync.Mutex
	s  ReloadStatus
}

func newReloadState() *reloadState {
	return &reloadState{s: ReloadStatus{Changed: time.Now()}}
}

func (r *reloadState) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.s.Problem, r.s.Changed = "", time.Now()
		r.s.Reloads++
		return
	}
	r.s.Failures++
	r.s.Problem = "the changed file is not used, the log says why; the configuration of " +
		r.s.Changed.UTC().Format(time.RFC3339) + " stays in force"
}

func (r *reloadState) status() ReloadStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.s
}
