package limit

import (
	"time"

	"aegis/config"
)

// Buckets are buckets of their own, for the decision alone.
type Buckets []*bucket

// NewBuckets returns one full bucket per limit.
func NewBuckets(limits ...config.Limit) Buckets {
	var out Buckets
	for _, l := range limits {
		out = append(out, newBucket(l))
	}
	return out
}

// Take is the decision over some of the buckets.
func (b Buckets) Take(now time.Time, which ...int) (int, time.Duration) {
	var some []*bucket
	for _, i := range which {
		some = append(some, b[i])
	}
	return take(now, some, 1)
}

// Tokens returns what bucket i holds.
func (b Buckets) Tokens(now time.Time, i int) float64 { return b[i].tokens.TokensAt(now) }

// Same reports whether two addresses count as one caller.
func Same(a, b string) bool { return addressKey(a) == addressKey(b) }

// Addresses returns how many addresses are remembered.
func (l *Limiter) Addresses() (n int) {
	for _, p := range l.address.parts {
		n += p.Len()
	}
	return n
}

// Admit is the decision by address alone.
func (l *Limiter) Admit(addr string) time.Duration {
	_, wait := l.admit(addr)
	return wait
}

// InFlight returns the calls that are being answered, and the identities that
// are remembered for them.
func (l *Limiter) InFlight() (calls, identities int) {
	l.flight.mu.Lock()
	defer l.flight.mu.Unlock()
	return l.flight.total, len(l.flight.by)
}

// BudgetKey is the key of a shared bucket.
var BudgetKey = budgetKey
