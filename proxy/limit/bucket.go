package limit

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"aegis/config"
)

// bucket is the tokens of one caller under one limit. Its lock is held while
// tokens are looked at and taken together with those of other buckets.
type bucket struct {
	mu     sync.Mutex
	tokens *rate.Limiter
}

func newBucket(l config.Limit) *bucket {
	return &bucket{tokens: rate.NewLimiter(rate.Limit(l.Rate.PerSecond()), l.Size())}
}

// nearly is how much of a token may be missing: rounding must not refuse a caller
// who comes back at the very time that it was given. ReserveN takes it as a debt.
const nearly = 1e-6

// wait returns how long after now n tokens will be there, or as many as the bucket can hold; 0
// when they are. The bucket is locked.
func (b *bucket) wait(now time.Time, n int) time.Duration {
	missing := float64(min(n, b.tokens.Burst())) - b.tokens.TokensAt(now)
	if missing < nearly {
		return 0
	}
	// Rounded up, so that a caller who comes back after it finds the tokens.
	return time.Duration(math.Ceil(missing / float64(b.tokens.Limit()) * float64(time.Second)))
}

// take takes n tokens from each bucket, or all that one can hold, or none from any. It returns
// the index of the bucket that makes the caller wait longest and that time; -1 when the tokens
// were taken. Every caller must pass buckets in one order of limits, or two of them could wait
// for each other.
func take(now time.Time, buckets []*bucket, n int) (refused int, wait time.Duration) {
	refused = -1
	for _, b := range buckets {
		b.mu.Lock()
		defer b.mu.Unlock()
	}
	for i, b := range buckets {
		if w := b.wait(now, n); w > wait {
			refused, wait = i, w
		}
	}
	if refused >= 0 {
		return refused, wait
	}
	for _, b := range buckets {
		b.tokens.ReserveN(now, min(n, b.tokens.Burst()))
	}
	return -1, 0
}
