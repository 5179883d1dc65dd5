package policy

import (
	"sync"
	"time"
)

// Counters are the writes of identities that count against policy.budgets. They
// outlive a change of the configuration. Safe for concurrent use.
type Counters struct {
	mu   sync.Mutex
	full map[writer]time.Time // when an hour is whole again
}

// writer is an identity at an endpoint. The endpoint belongs to it, as each endpoint has a
// budget of its own.
type writer struct{ endpoint, identity string }

// NewCounters returns counters that have counted nothing.
func NewCounters() *Counters { return &Counters{full: map[writer]time.Time{}} }

// hour counts the writes of identities at one endpoint: each may save up to an
// hour's worth and gets them back evenly (the generic cell rate algorithm, which
// keeps one time per identity).
type hour struct {
	n        int
	every    time.Duration
	now      func() time.Time
	endpoint string
	*Counters
}

// maxCounted bounds the writers that are counted at once. Identities are known
// people and tokens, so only an instance with more of them ever forgets one.
const maxCounted = 1 << 16

// newHour returns the count of one endpoint, with what was counted before.
func newHour(n int, o Options) *hour {
	h := &hour{n: n, every: time.Hour / time.Duration(n), now: o.Now, endpoint: o.Endpoint, Counters: o.Counters}
	if h.Counters == nil {
		h.Counters = NewCounters()
	}
	return h
}

// take counts one write, or says how long until there is one again.
func (h *hour) take(identity string) (time.Duration, bool) {
	now, key := h.now(), writer{h.endpoint, identity}
	h.mu.Lock()
	defer h.mu.Unlock()
	at, known := h.full[key]
	if at.Before(now) {
		at = now
	}
	next := at.Add(h.every)
	// The stored time runs ahead of the clock by what was used: at most an hour's
	// worth.
	if over := next.Sub(now) - h.every*time.Duration(h.n); over > 0 {
		return over, false
	}
	if !known && len(h.full) >= maxCounted {
		h.forget(now)
	}
	h.full[key] = next
	return 0, true
}

// giveBack takes back one count. A call that waits for a person or is refused by a later
// stage would otherwise use up the budget of the one that follows.
func (h *hour) giveBack(identity string) {
	key := writer{h.endpoint, identity}
	h.mu.Lock()
	defer h.mu.Unlock()
	if at, known := h.full[key]; known {
		h.full[key] = at.Add(-h.every)
	}
}

// forget drops the writers whose hour is whole, or else the one nearest to it. The
// caller holds the lock.
func (c *Counters) forget(now time.Time) {
	var first writer
	var at time.Time
	for key, full := range c.full {
		if !full.After(now) {
			delete(c.full, key)
			continue
		}
		if at.IsZero() || full.Before(at) {
			first, at = key, full
		}
	}
	if len(c.full) >= maxCounted {
		delete(c.full, first)
	}
}
