package oauth

import (
	"math"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/time/rate"

	"aegis/proxy/internal/lru"
)

// rates hold strangers to a pace before anything is done for them. Hosted clients
// serve many people from few addresses, so the rates are generous: they stop
// floods, not users.
type rates struct {
	register, everyRegister, token, browse, failures *buckets
	// begin bounds the sign-ins that all begin together. Each waits in the store for
	// ten minutes, and strangers can begin one: from many addresses they could fill
	// the store, and then no token could be refreshed.
	begin *buckets
}

const (
	// maxAddrs bounds the addresses that a limit remembers; the one unseen
	// longest is forgotten first.
	maxAddrs = 10_000
	// everyone is the key of a limit that all share.
	everyone = "*"
)

func newRates(now func() time.Time) *rates {
	return &rates{
		// Slower than everyRegister, or one address could use that up for all.
		register:      newBuckets(now, rate.Every(30*time.Second), 30),
		everyRegister: newBuckets(now, rate.Every(6*time.Second), 200),
		// Parallel processes of one client refresh at the same time.
		token:  newBuckets(now, 5, 150),
		browse: newBuckets(now, 2, 60),
		// Against guessing: a secret of the configuration may have 16 characters only.
		failures: newBuckets(now, rate.Every(3*time.Second), 20),
		begin:    newBuckets(now, 10, 600),
	}
}

// buckets is one limit by address.
type buckets struct {
	now   func() time.Time
	every rate.Limit
	burst int
	keys  *lru.Cache[string, *rate.Limiter]
}

func newBuckets(now func() time.Time, every rate.Limit, burst int) *buckets {
	return &buckets{now: now, every: every, burst: burst, keys: lru.New[string, *rate.Limiter](maxAddrs)}
}

// of returns the bucket of a key, a full one when the key is new.
func (b *buckets) of(key string) *rate.Limiter {
	return b.keys.Ensure(key, func() *rate.Limiter { return rate.NewLimiter(b.every, b.burst) })
}

// take takes a token of a key. wait is how long until there is one, 0 when it was
// taken.
func (b *buckets) take(key string) (wait time.Duration) {
	tokens := b.of(key)
	now := b.now()
	if tokens.AllowN(now, 1) {
		return 0
	}
	return b.wait(tokens, now)
}

// empty returns how long a key must wait for a token, and takes none.
func (b *buckets) empty(key string) (wait time.Duration) { return b.wait(b.of(key), b.now()) }

func (b *buckets) wait(tokens *rate.Limiter, now time.Time) time.Duration {
	missing := 1 - tokens.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	return time.Duration(math.Ceil(missing / float64(b.every) * float64(time.Second)))
}

// addrKey is who counts as one: an IPv4 address, or an IPv6 /64 network, as one
// customer usually has all of its addresses.
func addrKey(r *http.Request) string {
	a, err := netip.ParseAddr(requestInfo(r).Addr)
	if err != nil {
		return "?"
	}
	a = a.Unmap().WithZone("")
	if a.Is6() {
		p, _ := a.Prefix(64) // the length fits every IPv6 address
		return p.String()
	}
	return a.String()
}

// tooMany is the refusal of a caller who must wait; nil when there is no wait.
func tooMany(wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	return &failure{status: http.StatusTooManyRequests, code: codeMany, retry: wait,
		says: "too many requests from your address; come back after Retry-After seconds"}
}
