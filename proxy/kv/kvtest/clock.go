// Package kvtest has the clock that tests of stores go by. Its own tests are the table that
// every store of kv must pass: a new store is one more line there.
package kvtest

import (
	"sync"
	"time"
)

// Clock is a clock that moves only when it is told to. It is safe for
// concurrent use.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// NewClock returns a clock at noon of some day.
func NewClock() *Clock { return &Clock{at: time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)} }

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Add moves the clock on.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}
