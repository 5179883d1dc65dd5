package limit

import (
	"sync"
	"time"

	"aegis/config"
	"aegis/proxy"
)

// Bucket names what refused a caller, for metrics and logs.
type Bucket string

// The buckets and caps.
const (
	BucketAddress             Bucket = "address"
	BucketIdentity            Bucket = "identity"
	BucketTeam                Bucket = "team"
	BucketRead                Bucket = "read"
	BucketWrite               Bucket = "write"
	BucketDestructive         Bucket = "destructive"
	BucketTool                Bucket = "tool"
	BucketConcurrencyIdentity Bucket = "concurrency_identity"
	BucketConcurrencyTotal    Bucket = "concurrency_total"
	BucketStore               Bucket = "store" // shared limits that could not be counted
)

// Options are what a [Limiter] needs besides its configuration.
type Options struct {
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Refused is called for every refusal, unless it is nil. It is called from many
	// goroutines and must not block.
	Refused func(Bucket)
	// Counters are what limiters have counted before and elsewhere; nil: nothing.
	// All limiters that share them count their calls in flight together.
	Counters *Counters
	// Endpoint names the limiter among those that share counters: each has its own buckets.
	Endpoint string
	// Shared counts the calls of identities and teams for all replicas together;
	// nil: this process counts its own.
	Shared *Shared
}

// Limiter holds the buckets of all callers. It is safe for concurrent use.
type Limiter struct {
	cfg     config.Limits
	now     func() time.Time
	refused func(Bucket)

	address, identity, team *store
	class                   map[proxy.Class]*store
	tools                   map[string]*store
	flight                  *flight
	held                    map[storeKey]*store // all of the above
	shared                  *Shared
	policy                  []string // the RateLimit-Policy header; nil without a limit by address
}

// New returns the limiter of a configuration that [config.Config.Validate] has
// found right.
func New(cfg config.Limits, o Options) *Limiter {
	if o.Counters == nil {
		o.Counters = NewCounters()
	}
	l := &Limiter{
		cfg: cfg, now: o.Now, refused: o.Refused, shared: o.Shared,
		flight: &o.Counters.flight, held: map[storeKey]*store{},
	}
	if l.now == nil {
		l.now = time.Now
	}
	if l.refused == nil {
		l.refused = func(Bucket) {}
	}
	keep := func(kind Bucket, tool string, limit config.Limit) *store {
		return l.hold(o.Counters, storeKey{o.Endpoint, kind, tool, limit, cfg.MaxKeys})
	}
	l.policy = policy(cfg.Address)
	l.address = keep(BucketAddress, "", cfg.Address)
	l.identity = keep(BucketIdentity, "", cfg.Identity)
	l.team = keep(BucketTeam, "", cfg.Team)
	l.class = map[proxy.Class]*store{
		proxy.ClassRead:        keep(BucketRead, "", cfg.Read),
		proxy.ClassWrite:       keep(BucketWrite, "", cfg.Write),
		proxy.ClassDestructive: keep(BucketDestructive, "", cfg.Destructive),
	}
	l.tools = make(map[string]*store, len(cfg.Tools))
	for name, limit := range cfg.Tools {
		l.tools[name] = keep(BucketTool, name, limit)
	}
	return l
}

// hold returns the buckets of a limit: those that count already, or new ones.
func (l *Limiter) hold(c *Counters, key storeKey) *store {
	c.mu.Lock()
	s := c.stores[key]
	c.mu.Unlock()
	if s == nil {
		s = newStore(key.limit, key.maxKeys)
	}
	if s != nil {
		l.held[key] = s
	}
	return s
}

// flight counts the calls that are being answered. Identities that have none are
// not remembered, so the table is as large as the calls in flight at most.
type flight struct {
	mu    sync.Mutex
	total int
	by    map[string]int
}

// enter counts a call in, within the caps (0: no cap). It returns the cap that
// refuses it, or "".
func (f *flight) enter(identity string, caps config.Concurrency) Bucket {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case caps.Identity > 0 && f.by[identity] >= caps.Identity:
		return BucketConcurrencyIdentity
	case caps.Total > 0 && f.total >= caps.Total:
		return BucketConcurrencyTotal
	}
	f.total++
	f.by[identity]++
	return ""
}

func (f *flight) leave(identity string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total--
	if f.by[identity]--; f.by[identity] <= 0 {
		delete(f.by, identity)
	}
}
