package server

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/kv/open"
)

// Live serves one server after another on the same listeners: a reload builds a
// whole new [Server] and puts it in the place of the old one in one step.
// Requests that the old one has begun, it finishes.
type Live struct {
	process *Process
	current atomic.Pointer[generation]
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

// retired makes the counter negative, whatever it was, so that one atomic addition both
// counts a request and tells whether the generation still takes it.
const retired = math.MinInt64 / 2

// enter counts a request in; false when the generation takes none any more.
func (g *generation) enter() bool {
	if g.requests.Add(1) > 0 {
		return true
	}
	g.leave()
	return false
}

// leave counts a request out. The last one of a retired generation releases it.
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

// NewLive returns the Live that begins with s, and serves all that comes after it on
// the same [Process].
func NewLive(s *Server) *Live {
	l := &Live{process: s.process, ctx: context.Background()}
	l.put(s)
	return l
}

// put puts a generation in force. The process comes first: what the new generation audits
// is masked by its own rules.
func (l *Live) put(s *Server) {
	l.process.use(s)
	l.current.Store(&generation{server: s, handler: s.Handler()})
}

// Server returns the server that takes new requests.
func (l *Live) Server() *Server { return l.current.Load().server }

// ServeHTTP answers a request with the current server.
func (l *Live) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g := l.current.Load()
	// It ends: the next generation is in place before the one in front of it is retired.
	for !g.enter() { // it was replaced between the two steps
		g = l.current.Load()
	}
	defer g.leave()
	g.handler.ServeHTTP(w, r)
}

// Reload builds a server from a configuration that was loaded anew and lets it
// take over. On an error the current server goes on, and /readyz says so.
// Settings that only a start can change keep their value and are logged.
func (l *Live) Reload(cfg *config.Config, log Log) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.current.Load()
	cfg, ignored := keepStartOnly(old.server.cfg, cfg)
	next, err := l.build(cfg, log)
	if err != nil {
		l.failed(err)
		return err
	}
	l.put(next)
	old.retire(func() { old.server.release(next) })
	l.attend(next)
	l.process.reload.note(nil)
	for _, key := range ignored {
		log.Warn().Str("key", key).Msg("this change takes effect at the next start")
	}
	l.process.reloaded(nil)
	log.Info().Int("tools", len(next.Tools())).Msg("the configuration was loaded anew")
	go next.Start(l.ctx) // it asks Gitea, for which a reload does not wait
	return nil
}

// build opens the store, if this is the first configuration that needs it, and builds
// the generation that uses it.
func (l *Live) build(cfg *config.Config, log Log) (*Server, error) {
	if !l.process.dry && open.Needed(cfg) {
		if err := l.process.openStore(cfg); err != nil {
			return nil, err
		}
	}
	return New(l.process, cfg, log)
}

// Failed notes that the configuration could not be loaded anew, and logs every
// problem. The current server goes on.
func (l *Live) Failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed(err)
}

// failed is Failed with l.mu held.
func (l *Live) failed(err error) {
	log := l.Server().log
	l.process.reload.note(err)
	l.process.reloaded(err)
	for line := range strings.SplitSeq(err.Error(), "\n") {
		log.Error().Str("problem", proxy.Clip(line, 500)).
			Msg("the changed configuration is not used; the one before it stays in force")
	}
}

// ReloadCertificates reads certificates again, or asks for missing ones at once.
func (l *Live) ReloadCertificates() {
	if t := l.process.tls; t != nil {
		t.Reload()
	}
}

// Status returns the state of reloading.
func (l *Live) Status() ReloadStatus { return l.process.reload.status() }

// Serve answers requests on ln, and those to the plain listener beside it, which
// is nil when [Server.PlainListen] is "". It ends as [Server.Serve] does.
func (l *Live) Serve(ctx context.Context, ln, plain net.Listener) error {
	if l.process.dry {
		_ = ln.Close() // nothing was accepted
		if plain != nil {
			_ = plain.Close() // as above
		}
		return errDry
	}
	l.mu.Lock()
	l.ctx = ctx // before this a reload may have come already, which starts nothing that ends
	s := l.Server()
	l.attend(s)
	l.mu.Unlock()
	go s.Start(ctx)
	if s.process.tls == nil {
		return s.serve(ctx, ln, l)
	}
	defer s.process.tls.Close()
	if plain != nil {
		srv := s.plainServer()
		capped, _ := s.guard(plain)
		go func() { _ = srv.Serve(capped) }() // its error is ErrServerClosed; it closes plain
		defer func() { _ = srv.Close() }()    // nothing there is worth waiting for
	}
	// After the plain listener: the HTTP-01 challenge of ACME (RFC 8555 section 8.3) is
	// answered there.
	if err := s.process.tls.Start(ctx); err != nil {
		_ = ln.Close() // the error of the start is what is reported
		return fmt.Errorf("tls: %w", err)
	}
	return s.serve(ctx, ln, l)
}

// attend starts what goes on beside the requests of a server that keeps something
// in the store, at the start or at the reload that switches it on. l.mu is held.
func (l *Live) attend(s *Server) {
	if !l.process.dry && open.Needed(s.cfg) {
		l.attends.Do(func() {
			go l.sweep(l.ctx)
			go l.control(l.ctx)
			if l.process.storage.shared() != nil {
				go l.tellReplicas(l.ctx)
			}
		})
	}
}

// Close releases what the current server has open. It waits for a reload under way, whose
// generation would be left open otherwise.
func (l *Live) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Server().Close()
}

// ReloadStatus is what became of the attempts to load the configuration anew.
type ReloadStatus struct {
	// Problem says that the last attempt failed; "" when it did not, or when
	// there was none. It names nothing from the file.
	Problem string
	// Changed, which /readyz shows beside a problem, is when the configuration in force was loaded.
	Changed time.Time
	// Reloads and Failures count attempts since the start.
	Reloads, Failures int
}

// reloadState is a ReloadStatus that all generations of a process share: metrics and /readyz
// show it whichever of them answers.
type reloadState struct {
	mu sync.Mutex
	s  ReloadStatus
}

// note counts an attempt; err is why it failed. The problem names nothing of the file, as
// /readyz shows it to anybody.
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
