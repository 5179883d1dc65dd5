package audit

import "time"

// Lag is how far the disk is behind the calls.
type Lag struct {
	// Pending is how many records wait to be written, those of an outage included.
	Pending int
	// Oldest is the age of the oldest record that may not be on the disk yet: one
	// that waits, or with sync interval or none one that waits for the next flush.
	// 0 when there is none.
	Oldest time.Duration
}

// Lag returns how far the disk is behind now. Nil and closed logs have no lag.
func (l *Log) Lag() Lag {
	if l == nil {
		return Lag{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := l.unsynced
	earlier := func(at time.Time) {
		if !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	earlier(l.taken)
	if len(l.queue) > 0 {
		earlier(l.queue[0].at)
	}
	lag := Lag{Pending: len(l.queue) + l.room}
	if !oldest.IsZero() {
		lag.Oldest = max(0, l.o.Now().Sub(oldest))
	}
	return lag
}

// noteUnsynced lets Lag see what the writer, which is the goroutine's own, knows.
func (l *Log) noteUnsynced() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsynced = l.writer.unsynced
}
