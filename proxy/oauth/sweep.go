package oauth

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// unused remembers since when people with a stored credential have had no grant.
// A sign-in stores the credential a moment before its code becomes a grant, so one
// look is not enough to call a credential unused.
type unused struct {
	mu    sync.Mutex
	since map[int64]time.Time
}

func newUnused() *unused { return &unused{since: map[int64]time.Time{}} }

// keep: the credential is in use, as far as is known.
func (u *unused) keep(userID int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.since, userID)
}

// idle returns how long a credential has been unused, 0 at the first look.
func (u *unused) idle(userID int64, now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if t, ok := u.since[userID]; ok {
		return now.Sub(t)
	}
	u.since[userID] = now
	return 0
}

// credPrefix begins the store's keys of Gitea credentials; the user's number
// follows it.
const credPrefix = "cred/"

// Sweep forgets the Gitea credentials of people who have had no grant for ten
// minutes: the last one ran out or was revoked. It reads all of them, so call it
// every few minutes and not on the path of a request. It returns how many it
// forgot.
func (s *Server) Sweep(ctx context.Context) (forgotten int, err error) {
	for key, err := range s.o.Store.Keys(ctx, credPrefix) {
		if err != nil {
			return forgotten, fmt.Errorf("credentials: %w", err)
		}
		id, err := strconv.ParseInt(strings.TrimPrefix(key, credPrefix), 10, 64)
		if err != nil {
			continue // a record of another kind
		}
		left, err := s.o.Grants.List(ctx, id)
		if err != nil {
			return forgotten, fmt.Errorf("grants: %w", err)
		}
		if len(left) > 0 {
			s.unused.keep(id)
			continue
		}
		if s.unused.idle(id, s.o.Now()) < flowTTL {
			continue
		}
		s.recent.drop(id)
		if err := s.o.Upstream.Forget(ctx, id); err != nil {
			return forgotten, fmt.Errorf("credential: %w", err)
		}
		s.unused.keep(id)
		forgotten++
	}
	return forgotten, nil
}
