package server

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"aegis/config"
	"aegis/proxy/audit"
	"aegis/proxy/edge/certs"
	"aegis/proxy/kv"
	"aegis/proxy/kv/open"
	"aegis/proxy/kv/replicas"
	"aegis/proxy/limit"
	"aegis/proxy/oauth/client"
	"aegis/proxy/policy"
	"aegis/proxy/telemetry"
)

// Process is what lives as long as the process, whatever the configuration becomes:
// the audit log, the store, certificates, metrics, and what was counted and learned.
// [New] makes one generation of the server after another on it. Make one with [Open]
// for serving, or with [Dry] for looking at a configuration.
type Process struct {
	cfg     *config.Config // of the start; see [startOnly]
	version string
	log     Log
	dry     bool
	library *library // of the start

	audit     *auditing
	tls       *certs.TLS         // nil: plain HTTP
	metrics   *telemetry.Metrics // nil: none are served
	limits    *limit.Counters
	writes    *policy.Counters
	replica   *replicas.Replica // this process among those that share the store
	uncounted atomic.Int64      // calls that shared limits could not count
	reload    *reloadState
	stopping  context.Context // done when the process takes no more requests
	stop      context.CancelFunc
	storage   storage
	first     atomic.Pointer[draft]  // made by Open for the first generation, until that takes it
	inForce   atomic.Pointer[Server] // what the next one takes parts of; nil before the first
	pace      pace
	// documents changes how client documents are fetched; nil but in tests,
	// which have no public addresses to fetch from.
	documents func(*client.Options)
}

// storage is the store of a process. A store in memory is used until a
// configuration needs one, which may come by a reload.
type storage struct {
	mu      sync.Mutex
	backing *open.Backing
	opened  bool           // backing is what the configuration says
	first   *open.Store    // backing as it was sealed when it was opened
	madeFor *config.Config // the configuration that this was for
	latest  *kv.Switch     // backing sealed with the keys in force, for what outlives generations
}

// pace is what goes by time. Tests have another one, so that they need not wait and
// do not depend on how fast a machine is.
type pace struct {
	now   func() time.Time                     // by which what was learned is believed
	after func(time.Duration) <-chan time.Time // time.After
	beat  time.Duration                        // between two signs of life
	poll  time.Duration                        // between two looks at another's lock; 0: as certstore has it
	wait  time.Duration                        // for a process that has the store's file; 0: as kv has it
	learn time.Duration                        // between two attempts to read Gitea's API description
	made  func(part string)                    // is called for each part that is built; nil but in a test that counts
}

// OpenError is trouble with what [Open] opens, as opposed to a configuration that is
// wrong. The text says what to do.
type OpenError struct{ err error }

// Error returns the text.
func (e *OpenError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *OpenError) Unwrap() error { return e.err }

// Open makes the process of a configuration that is to be served: it opens the audit
// log, and the store when anything is kept in it, and makes folders, files and keys
// that are missing. It listens nowhere. The error is [config.Problems] when the
// configuration is wrong, in which case no file was touched, or an [OpenError].
func Open(cfg *config.Config, version string, log Log) (*Process, error) {
	return openProcess(cfg, version, log, nil)
}

// openProcess is Open; prepare, unless it is nil, changes the process before it
// touches anything.
func openProcess(cfg *config.Config, version string, log Log, prepare func(*Process)) (*Process, error) {
	p, err := newProcess(cfg, version, log)
	if err != nil {
		return nil, err
	}
	if prepare != nil {
		prepare(p)
	}
	if err := p.open(cfg); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// open opens what is served with.
func (p *Process) open(cfg *config.Config) error {
	// What the configuration has wrong is said before files are made.
	first, err := p.newDraft(cfg, p.log, nil)
	if err != nil {
		if first != nil {
			first.warn()
		}
		return err
	}
	p.first.Store(first)
	p.audit.use(first.teams[0].masks)
	if p.audit.log = newAuditLog(cfg, p); p.audit.log != nil {
		err = p.audit.log.Open()
	}
	if open.Needed(cfg) { // also after an error: both are reported at once
		err = errors.Join(err, p.openStore(cfg))
	}
	if err != nil {
		return &OpenError{err}
	}
	return nil
}

// Dry makes the process of a configuration that is only looked at: it touches no file
// but to read what the configuration names. The store is in memory, and nothing is
// recorded; it cannot be served. The error is as that of [New].
func Dry(cfg *config.Config, version string, log Log) (*Process, error) {
	p, err := newProcess(cfg, version, log)
	if err == nil {
		p.dry = true
	}
	return p, err
}

// newProcess makes a process that has opened nothing yet.
func newProcess(cfg *config.Config, version string, log Log) (*Process, error) {
	p := &Process{
		cfg: cfg, version: version, log: log.of(cfg), audit: &auditing{},
		limits: limit.NewCounters(), writes: policy.NewCounters(),
		replica: replicas.New(), reload: &reloadState{s: ReloadStatus{Changed: time.Now()}},
		pace: pace{now: time.Now, after: time.After, beat: beatEvery, learn: missingRetry},
	}
	var err error
	if p.storage.backing, err = open.Memory(); err != nil {
		return nil, err
	}
	p.storage.latest = kv.NewSwitch(kv.NewMemory(nil)) // until a generation is in force
	go p.log.masks.get()                               // compiled while the catalog is read; both take their time
	if p.library, err = loadLibrary(cfg); err != nil {
		return nil, err
	}
	if cfg.Metrics.Listen != "" {
		p.metrics = telemetry.NewMetrics(telemetry.Build{Version: version, Catalog: p.library.catalog.Version})
	}
	if err := p.secure(cfg); err != nil {
		return nil, err
	}
	p.stopping, p.stop = context.WithCancel(context.Background())
	return p, nil
}

// now is the clock by which Gitea's answers and sign-ins are believed.
func (p *Process) now() time.Time { return p.pace.now() }

// building notes that a part is built, for the test that counts how often that happens:
// parts cost a start its time, and a reload what the part had learned.
func (p *Process) building(part string) {
	if p.pace.made != nil {
		p.pace.made(part)
	}
}

// openStore opens the store of a configuration, once. It is done before the generation
// that needs it is built; one that is not used after all leaves the store open, and
// those that serve go on with the one in memory.
func (p *Process) openStore(cfg *config.Config) error {
	st := &p.storage
	st.mu.Lock()
	opened := st.opened // only this changes it, at the start or by a reload, of which there is one at a time
	st.mu.Unlock()
	if opened {
		return nil
	}
	b, err := open.Open(context.Background(), cfg, kv.FileOptions{Wait: p.pace.wait, Failed: func(err error) {
		p.log.Error().Err(err).Msg("expired entries of the store could not be removed")
	}})
	if err != nil {
		return err
	}
	sealed, err := b.Seal(context.Background(), cfg) // local files; a person waits for the start
	if err != nil {
		_ = b.Close() // nothing was written; why it cannot be used is what matters
		return err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.backing, st.opened, st.first, st.madeFor = b, true, sealed, cfg
	return nil
}

// sealed returns the store, sealed with the keys of a configuration. It fails when a
// key is missing that values in the store need.
func (st *storage) sealed(cfg *config.Config) (*open.Store, error) {
	st.mu.Lock()
	// Open has sealed the store once, to find missing keys before it serves; the first
	// generation takes that over, as reading a large store again takes time.
	b, first := st.backing, st.first
	if st.madeFor != cfg {
		first = nil
	}
	st.mu.Unlock() // calls must not wait until the whole store has been read
	if first != nil {
		return first, nil
	}
	return b.Seal(context.Background(), cfg)
}

// use puts a generation in force: what it made is what the next one takes on. Counters of
// limits that no endpoint has any more are dropped here, not when a generation is built,
// as one that fails must change nothing.
func (p *Process) use(s *Server) {
	p.inForce.Store(s)
	p.audit.use(s.teams[0].masks)
	p.storage.latest.Use(s.store)
	limiters := make([]*limit.Limiter, len(s.teams))
	for i, t := range s.teams {
		limiters[i] = t.limits
	}
	p.limits.Keep(limiters...)
}

// Close closes the store and ends the audit log. No generation works afterwards.
func (p *Process) Close() {
	p.stop()
	p.storage.mu.Lock()
	_ = p.storage.backing.Close() // nothing can be done about it any more
	p.storage.mu.Unlock()
	p.audit.log.Close() // last: until here there may be something to record
}

// reloaded records what became of a changed configuration.
func (p *Process) reloaded(err error) {
	name, detail := audit.ConfigReloaded, audit.Detail{Version: p.version}
	if err != nil { // its text may hold what is in the file
		name, detail = audit.ConfigRefused, audit.Detail{
			Reason: "the changed configuration is not used; the operational log says why",
		}
	}
	p.audit.log.Event(name, nil, detail)
}

// errDry is why a process that keeps no audit log does not serve: no call may go unrecorded.
var errDry = errors.New("this process was made for looking at a configuration and keeps no audit log; it cannot serve")
