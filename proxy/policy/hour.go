package policy

import (
	"sync"
	"time"
)

// hour counts the writes of identities: each may save up to an hour's worth and
// gets them back evenly (the generic cell rate algorithm, which keeps one time
// per identity).
type hour struct {
	n     int
	every time.Duration
	now   func() time.Time

	mu   sync.Mutex
	full map[string]time.Time // when an identity's hour is whole again
}

// maxCounted bounds the identities that are counted at once. Identities are known
// people and tokens, so only an instance with more of them ever forgets one.
const maxCounted = 1 << 16

func newHour(n int, now func() time.Time) *hour {
	return &hour{n: n, every: time.Hour / time.Duration(n), now: now, full: map[string]time.Time{}}
}

// adopt takes over what another one has counted.
func (h *hour) adopt(old *hour) {
	if old == nil {
		return
	}
	old.mu.Lock()
	defer old.mu.Unlock()
	for key, at := range old.full {
		h.full[key] = at
	}
}

// take counts one write, or says how long until there is one again.
func (h *hour) take(key string) (time.Duration, bool) {
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	at, known := h.full[key]
	if at.Before(now) {
		at = now
	}
	next := at.Add(h.every)
	if over := next.Sub(now) - h.every*time.Duration(h.n); over > 0 {
		return over, false
	}
	if !known && len(h.full) >= maxCounted {
		h.forget(now)
	}
	h.full[key] = next
	return 0, true
}

// giveBack takes back one count.
func (h *hour) giveBack(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at, known := h.full[key]; known {
		h.full[key] = at.Add(-h.every)
	}
}

// forget drops the identities whose hour is whole, or else the one nearest to it.
func (h *hour) forget(now time.Time) {
	first, at := "", time.Time{}
	for key, full := range h.full {
		if !full.After(now) {
			delete(h.full, key)
			continue
		}
		if first == "" || full.Before(at) {
			first, at = key, full
		}
	}
	if len(h.full) >= maxCounted {
		delete(h.full, first)
	}
}
