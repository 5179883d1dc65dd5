package limit

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math"
	"time"

	"aegis/config"
	"aegis/proxy"
)

// Budget is a bucket that all replicas share.
type Budget struct {
	// Key names the caller and the limit. It is a digest: bounded, and nothing can
	// be read from it.
	Key string
	// Limit is the bucket's rate and size.
	Limit config.Limit
}

// Counter keeps shared buckets.
type Counter interface {
	// Spend takes one token of each budget, or none of any, and returns for each
	// how long until it has one; 0: it had. The error is trouble of the counter.
	Spend(ctx context.Context, list []Budget) ([]time.Duration, error)
}

// Shared are limits that all replicas keep together. While the counter fails, each
// replica counts alone: with n replicas a call then takes n tokens of a bucket, so
// that all together admit as much as the limit says, as long as callers come to
// each alike.
type Shared struct {
	// Counter keeps the buckets.
	Counter Counter
	// Refuse refuses calls while the counter fails, rather than to count alone.
	Refuse bool
	// Replicas returns the last known number of replicas, at least 1.
	Replicas func() int
	// Failed is called for each call that could not be counted. It must not block.
	Failed func(error)
}

// spendShared takes the call's tokens from the shared buckets.
func (l *Limiter) spendShared(ctx context.Context, c *proxy.Call, cs claims) error {
	var budgets [maxClaims]Budget
	for i, claim := range cs.list[:cs.n] {
		limit := claim.store.limit
		budgets[i] = Budget{Key: budgetKey(limit, string(claim.name), c.Team, claim.tool, claim.caller), Limit: limit}
	}
	waits, err := l.shared.Counter.Spend(ctx, budgets[:cs.n])
	if err != nil || len(waits) != cs.n {
		l.shared.Failed(err)
		return l.spendAlone(c, &cs)
	}
	refused, longest := -1, time.Duration(0)
	for i, w := range waits {
		if w > longest {
			refused, longest = i, w
		}
	}
	if refused >= 0 {
		return l.refuse(c, cs.list[refused].name, longest)
	}
	return nil
}

// budgetKey digests what makes a bucket another one. Another limit is another bucket, as a
// changed configuration begins with full ones.
func budgetKey(l config.Limit, parts ...string) string {
	h := sha256.New()
	var n [8]byte
	number := func(v uint64) {
		binary.BigEndian.PutUint64(n[:], v)
		h.Write(n[:])
	}
	number(math.Float64bits(l.Rate.PerSecond()))
	number(uint64(l.Size()))
	for _, p := range parts {
		number(uint64(len(p)))
		h.Write([]byte(p))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

// spendAlone takes the call's tokens from this replica's own buckets, or refuses it.
func (l *Limiter) spendAlone(c *proxy.Call, cs *claims) error {
	if l.shared.Refuse {
		l.refused(BucketStore)
		c.Stats.Limiter = string(BucketStore)
		return &proxy.Error{
			Kind: proxy.KindRateLimited, RetryAfter: retryShared, Err: refusal(BucketStore),
			Public: "the limits that all servers share cannot be counted at the moment; " +
				"nothing was sent to Gitea, call again after retry_after seconds",
		}
	}
	return l.spendHere(c, cs, max(1, l.shared.Replicas()))
}

// retryShared is when a call should come back that could not be counted.
const retryShared = 5 * time.Second
