package oauth

import (
	"sync"
	"time"

	"aegis/proxy/oauth/upstream"
)

const (
	// recentFor is how long a Gitea credential is used without asking the store
	// for it again, which has to be unsealed there.
	recentFor = time.Second
	// maxRecent bounds the people that are remembered.
	maxRecent = 4096
)

// recent remembers the Gitea credentials of a moment ago.
type recent struct {
	mu   sync.Mutex
	user map[int64]recentCredential
}

type recentCredential struct {
	credential upstream.Credential
	until      time.Time
}

func newRecent() *recent { return &recent{user: map[int64]recentCredential{}} }

// get returns a person's credential, of a moment ago or no longer than longer before.
func (r *recent) get(userID int64, now time.Time, longer time.Duration) (upstream.Credential, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.user[userID]
	return c.credential, ok && now.Before(c.until.Add(longer))
}

func (r *recent) put(userID int64, c upstream.Credential, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.user) >= maxRecent { // what is old is no loss
		clear(r.user)
	}
	r.user[userID] = recentCredential{c, now.Add(recentFor)}
}

// drop forgets a person's credential, which has changed or is no good.
func (r *recent) drop(userID int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.user, userID)
}
