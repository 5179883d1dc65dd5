package upstream

import (
	"sync"
	"time"

	"aegis/proxy/internal/lru"
)

const (
	// firstHold and lastHold are how long Gitea is left alone after a failed
	// refresh: doubled with each failure in a row.
	firstHold = 2 * time.Second
	lastHold  = 30 * time.Second
	// maxHeld bounds how many users' failures, and unsaved records, are
	// remembered.
	maxHeld = 4096
)

// held is a failure that is answered again, without asking Gitea, for a while.
type held struct {
	err   *Error
	until time.Time
	delay time.Duration
}

// next returns the hold that follows h.
func (h held) next(err *Error, now time.Time) held {
	delay := min(max(2*h.delay, firstHold, err.RetryAfter), lastHold)
	return held{err: err, until: now.Add(delay), delay: delay}
}

// answer returns the failure with what is left of the wait, nil when that is
// over.
func (h held) answer(now time.Time) error {
	if h.err == nil || !now.Before(h.until) {
		return nil
	}
	e := *h.err
	e.RetryAfter = max(e.RetryAfter, h.until.Sub(now))
	return &e
}

// allUsers is the number under which a [hold] keeps what concerns all of them: none has it.
const allUsers = 0

// hold keeps failing refreshes from hammering Gitea: by user, since the trouble
// may be the user's alone, and for everybody when Gitea refuses Aegis itself.
type hold struct {
	mu    sync.Mutex
	users *lru.Cache[int64, held]
}

func newHold() *hold { return &hold{users: lru.New[int64, held](maxHeld)} }

// check returns the failure to answer for the user now, nil when Gitea may be
// asked.
func (h *hold) check(id int64, now time.Time) error {
	for _, who := range []int64{allUsers, id} {
		last, _ := h.users.Get(who)
		if err := last.answer(now); err != nil {
			return err
		}
	}
	return nil
}

// fail remembers a failure of one user's refresh, or of everybody's, and reports whether
// it is the first since the last wait was over: an alarm is due once for each hold, and
// refreshes that failed at the same time make the wait no longer.
func (h *hold) fail(id int64, err *Error, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.users.Get(allUsers) // used just now, so that failures of users do not push it out
	last, _ := h.users.Get(id)
	if last.answer(now) != nil {
		return false
	}
	h.users.Put(id, last.next(err, now))
	return true
}

// clear forgets the failures of a user, and of everybody: Gitea has answered.
func (h *hold) clear(id int64) {
	h.users.Take(id)
	h.users.Take(allUsers)
}
