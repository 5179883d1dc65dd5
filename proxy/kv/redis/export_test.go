package redis

import "time"

// ErrSpared is what calls get that are not sent, as the last ones failed.
var ErrSpared = errSpared

// Slot is where a cluster keeps a key.
var Slot = slot

// Spare sets how long calls are spared after a failure.
func (s *Store) Spare(d time.Duration) { s.breaker.spare = d }
