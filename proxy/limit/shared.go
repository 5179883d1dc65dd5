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
	// Failed is told of each call that could not be counted. It must not block.
	Failed func(error)
}

// maxBudgets is how many buckets a call has at most.
const maxBudgets = 5

// spending is what a call asks of the buckets.
type spending struct {
	n       int
	names   [maxBudgets]Bucket
	stores  [maxBudgets]*store
	callers [maxBudgets]string
	budgets [maxBudgets]Budget
}

// spendShared takes the call's tokens from the shared buckets.
func (l *Limiter) spendShared(ctx context.Context, c *proxy.Call, who string) error {
	s := l.spending(c, who)
	if s.n == 0 {
		return nil
	}
	waits, err := l.shared.Counter.Spend(ctx, s.budgets[:s.n])
	if err != nil || len(waits) != s.n {
		l.shared.Failed(err)
		return l.spendAlone(c, s)
	}
	refused, longest := -1, time.Duration(0)
	for i, w := range waits {
		if w > longest {
			refused, longest = i, w
		}
	}
	if refused >= 0 {
		return l.refuse(c, s.names[refused], longest)
	}
	return nil
}

// spending returns the buckets of a call, those of [Limiter.spend].
func (l *Limiter) spending(c *proxy.Call, who string) *spending {
	s := &spending{}
	add := func(name Bucket, st *store, caller, tool string) {
		if st == nil {
			return
		}
		s.names[s.n], s.stores[s.n], s.callers[s.n] = name, st, caller
		s.budgets[s.n] = Budget{Key: budgetKey(st.limit, string(name), c.Team, tool, caller), Limit: st.limit}
		s.n++
	}
	add(BucketIdentity, l.identity, who, "")
	add(BucketTeam, l.team, c.Team, "")
	if c.Tool != nil {
		class, tool := c.Tool.Class(), c.Tool.Name
		add(Bucket(class), l.class[class], who, "")
		add(BucketTool, l.tools[tool], who, tool)
		if c.Op != nil && c.Op.Name != tool { // reached by the tool for any route
			add(BucketTool, l.tools[c.Op.Name], who, c.Op.Name)
		}
	}
	return s
}

// budgetKey digests what tells buckets apart. Another limit is another bucket, as a
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
func (l *Limiter) spendAlone(c *proxy.Call, s *spending) error {
	if l.shared.Refuse {
		l.refused(BucketStore)
		c.Facts.Limiter = string(BucketStore)
		return &proxy.Error{
			Kind: proxy.KindRateLimited, RetryAfter: retryShared, Err: refusal(BucketStore),
			Public: "the limits that all servers share cannot be counted at the moment; nothing was sent to Gitea, call again after retry_after seconds",
		}
	}
	var buckets [maxBudgets]*bucket
	for i := range s.n {
		buckets[i] = s.stores[i].bucket(key{name: s.callers[i]})
	}
	if i, wait := takeMany(l.now(), buckets[:s.n], max(1, l.shared.Replicas())); i >= 0 {
		return l.refuse(c, s.names[i], wait)
	}
	return nil
}

// retryShared is when a call should come back that could not be counted.
const retryShared = 5 * time.Second

// takeMany is take for n tokens of each bucket, or all that it can hold.
func takeMany(now time.Time, buckets []*bucket, n int) (refused int, wait time.Duration) {
	refused = -1
	for _, b := range buckets {
		b.mu.Lock()
		defer b.mu.Unlock()
	}
	for i, b := range buckets {
		missing := float64(min(n, b.tokens.Burst())) - b.tokens.TokensAt(now)
		if missing < nearly {
			continue
		}
		if w := time.Duration(math.Ceil(missing / float64(b.tokens.Limit()) * float64(time.Second))); w > wait {
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
