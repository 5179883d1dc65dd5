package limit

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"aegis/proxy"
)

// busyRetry is when a call that found too many others running should come back.
const busyRetry = time.Second

// Stage returns the stage that holds calls to the limits. It belongs after
// the stage that finds the tool.
func (l *Limiter) Stage() proxy.Stage {
	return func(next proxy.Handler) proxy.Handler {
		return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
			who := identityName(c.Identity)
			// The cap comes first: a call that it refuses has taken no token.
			if full := l.flight.enter(who, l.cfg.Concurrency); full != "" {
				return nil, l.refuse(c, full, busyRetry)
			}
			defer l.flight.leave(who)
			if err := l.spend(ctx, c, who); err != nil {
				return nil, err
			}
			return next.Handle(ctx, c)
		})
	}
}

// maxClaims is how many buckets a call has at most.
const maxClaims = 5

// claims are the buckets of one call, in an order that is the same for every call; see take.
type claims struct {
	list [maxClaims]claim
	n    int
}

// claim is one token of a call, still to be taken.
type claim struct {
	name  Bucket
	store *store
	// caller is who the token counts for, tool what for; "" where the bucket is for all tools.
	caller, tool string
}

// add adds a claim, unless the limit is off.
func (cs *claims) add(name Bucket, s *store, caller, tool string) {
	if s != nil {
		cs.list[cs.n] = claim{name, s, caller, tool}
		cs.n++
	}
}

// claim fills in the buckets of a call.
func (l *Limiter) claim(cs *claims, c *proxy.Call, who string) {
	cs.add(BucketIdentity, l.identity, who, "")
	cs.add(BucketTeam, l.team, c.Team, "")
	if c.Tool == nil {
		return
	}
	class, tool := c.Tool.Class(), c.Tool.Name
	cs.add(Bucket(class), l.class[class], who, "")
	cs.add(BucketTool, l.tools[tool], who, tool)
	if c.Op != nil && c.Op.Name != tool { // reached by the tool for any route
		cs.add(BucketTool, l.tools[c.Op.Name], who, c.Op.Name)
	}
}

// spend takes the call's tokens.
func (l *Limiter) spend(ctx context.Context, c *proxy.Call, who string) error {
	var cs claims // on the stack: most calls have some, and no budget
	l.claim(&cs, c, who)
	switch {
	case cs.n == 0:
		return nil
	case l.shared != nil:
		return l.spendShared(ctx, c, cs)
	}
	return l.spendHere(c, &cs, 1)
}

// spendHere takes n tokens from each of the call's buckets in this process.
func (l *Limiter) spendHere(c *proxy.Call, cs *claims, n int) error {
	var buckets [maxClaims]*bucket
	for i, claim := range cs.list[:cs.n] {
		buckets[i] = claim.store.bucket(key{name: claim.caller})
	}
	if i, wait := take(l.now(), buckets[:cs.n], n); i >= 0 {
		return l.refuse(c, cs.list[i].name, wait)
	}
	return nil
}

// identityName returns a name that no two identities share. The modes cannot meet: a static token's
// name and a login are different things. People count by their number: they can
// take another login, and must not get fresh limits by it.
func identityName(id *proxy.Identity) string {
	if id == nil {
		return ""
	}
	name := id.TokenName
	switch {
	case name != "":
	case id.UserID != 0:
		name = "#" + strconv.FormatInt(id.UserID, 10)
	default:
		name = id.Login
	}
	return clip(string(id.Mode) + " " + name)
}

// refuse notes a refusal and returns its error.
func (l *Limiter) refuse(c *proxy.Call, b Bucket, wait time.Duration) error {
	l.refused(b)
	c.Stats.Limiter = string(b)
	return &proxy.Error{Kind: proxy.KindRateLimited, Public: explain(b), RetryAfter: wait, Err: refusal(b)}
}

// refusal is the cause in the log: which bucket it was.
type refusal Bucket

// Error names the bucket.
func (r refusal) Error() string { return "limits: " + string(r) }

// explain says what a model should do: fewer calls, or the same later.
func explain(b Bucket) string {
	const then = "; nothing was sent to Gitea, call again after retry_after seconds"
	switch b {
	case BucketConcurrencyIdentity:
		return "you have too many calls running at the same time" + then + ", with fewer of them in parallel"
	case BucketConcurrencyTotal:
		return "the server is busy with calls of others" + then
	case BucketTeam:
		return "all users of this endpoint together have used up its calls" + then
	case BucketTool:
		return "you have used up your calls of this operation" + then
	case BucketRead, BucketWrite, BucketDestructive:
		return fmt.Sprintf("you have used up your calls of %s tools", b) + then
	}
	return "you have used up your calls" + then
}
