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
	// Refused is told of every refusal; nil: nobody is. It is called from many
	// goroutines and must not block.
	Refused func(Bucket)
	// From is the limiter that this one follows after a change of configuration;
	// nil at the start. Limits that did not change keep their buckets, and calls
	// in flight keep counting.
	From *Limiter
	// Flight is the limiter whose calls in flight count together with this one's,
	// whose own caps then do not count; nil: none.
	Flight *Limiter
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
	shared                  *Shared
	policy                  []string // the RateLimit-Policy header; nil without a limit by address
}

// New returns the limiter of a configuration that [config.Config.Validate] has
// found right.
func New(cfg config.Limits, o Options) *Limiter {
	l := &Limiter{cfg: cfg, now: o.Now, refused: o.Refused, shared: o.Shared, flight: &flight{by: map[string]int{}}}
	if l.now == nil {
		l.now = time.Now
	}
	if l.refused == nil {
		l.refused = func(Bucket) {}
	}
	from := o.From
	if from == nil {
		from = &Limiter{}
	} else {
		l.flight = from.flight
	}
	if o.Flight != nil {
		l.flight, l.cfg.Concurrency = o.Flight.flight, o.Flight.cfg.Concurrency
	}
	l.policy = policy(config.Limit(cfg.Address))
	l.address = l.keep(from, from.address, config.Limit(cfg.Address))
	l.identity = l.keep(from, from.identity, config.Limit(cfg.Identity))
	l.team = l.keep(from, from.team, cfg.Team)
	l.class = map[proxy.Class]*store{
		proxy.ClassRead:        l.keep(from, from.class[proxy.ClassRead], cfg.Read),
		proxy.ClassWrite:       l.keep(from, from.class[proxy.ClassWrite], cfg.Write),
		proxy.ClassDestructive: l.keep(from, from.class[proxy.ClassDestructive], cfg.Destructive),
	}
	l.tools = make(map[string]*store, len(cfg.Tools))
	for name, limit := range cfg.Tools {
		l.tools[name] = l.keep(from, from.tools[name], limit)
	}
	return l
}

// keep returns the store of a limit: the former one when nothing changed.
func (l *Limiter) keep(from *Limiter, old *store, limit config.Limit) *store {
	if old != nil && old.limit == limit && from.cfg.MaxKeys == l.cfg.MaxKeys {
		return old
	}
	return newStore(limit, l.cfg.MaxKeys)
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
