package oauth

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

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
			s.unused.Delete(id)
			continue
		}
		now := s.o.Now()
		since, _ := s.unused.LoadOrStore(id, now)
		if at, ok := since.(time.Time); !ok || now.Sub(at) < flowTTL {
			continue
		}
		s.recent.Take(id)
		if err := s.o.Upstream.Forget(ctx, id); err != nil {
			return forgotten, fmt.Errorf("credential: %w", err)
		}
		s.unused.Delete(id)
		forgotten++
	}
	return forgotten, nil
}
