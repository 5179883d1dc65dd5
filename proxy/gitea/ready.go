package gitea

import (
	"context"
	"sync"
	"time"
)

const (
	// ReadinessTTL is how long an answer to a probe is given again.
	ReadinessTTL = 2 * time.Second
	// readinessTimeout bounds one question to Gitea.
	readinessTimeout = 5 * time.Second
)

// Readiness asks whether Gitea is ready, and remembers the answer for a moment, so that
// probes, which anybody may send, do not become traffic to Gitea. A failure is remembered
// as long as a success: a Gitea that comes up under load must not be met by every probe at
// once.
type Readiness struct {
	check func(context.Context) error
	now   func() time.Time
	mu    sync.Mutex
	asked time.Time
	err   error
}

// Readiness returns that of the client's Gitea, by a clock.
func (c *Client) Readiness(now func() time.Time) *Readiness {
	return &Readiness{check: c.Ready, now: now}
}

// Check returns why Gitea is not ready, as of [ReadinessTTL] ago at most.
func (r *Readiness) Check(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.asked.IsZero() && r.now().Sub(r.asked) < ReadinessTTL {
		return r.err
	}
	// The answer is for the next probes too, so this one's client does not
	// decide how long it may take.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readinessTimeout)
	defer cancel()
	r.err = r.check(ctx)
	r.asked = r.now()
	return r.err
}
