package limit

import (
	"sync"

	"aegis/config"
)

// Counters are what limiters count: buckets by caller, and calls in flight. They
// outlive a change of the configuration. A limiter that is made with them takes on
// the buckets of each limit that did not change; its own it leaves there only once
// [Counters.Keep] says that it serves, so that one that is not used after all has
// changed nothing. Safe for concurrent use.
type Counters struct {
	flight flight
	mu     sync.Mutex
	stores map[storeKey]*store
}

// storeKey is what makes two limits the same one. A changed limit begins with full
// buckets: tokens of the old rate say nothing about the new one.
type storeKey struct {
	endpoint string
	kind     Bucket
	tool     string // for [BucketTool]
	limit    config.Limit
	maxKeys  int
}

// NewCounters returns counters that have counted nothing.
func NewCounters() *Counters { return &Counters{flight: flight{by: map[string]int{}}} }

// Keep makes the buckets of these limiters, which serve from now on, those that the
// next ones take on. All others are forgotten here; a limiter that answers its last
// calls still has its own.
func (c *Counters) Keep(serving ...*Limiter) {
	stores := map[storeKey]*store{}
	for _, l := range serving {
		for key, s := range l.held {
			stores[key] = s
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stores = stores
}
