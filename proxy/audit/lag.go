package audit

import "time"

// Lag returns how far the disk is behind the calls: how many records wait to be written,
// those of an outage included, and the age of the oldest that may not be on the disk yet,
// since it waits or, with sync interval or none, waits for the next flush; 0 when there is
// none. Nil and closed logs have no lag.
func (l *Log) Lag() (pending int, oldest time.Duration) {
	if l == nil {
		return 0, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.unsynced
	earlier := func(at time.Time) {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	earlier(l.taken)
	if len(l.queue) > 0 { // in an outage the oldest is in front again
		earlier(l.queue[0].at)
	}
	if !first.IsZero() {
		oldest = max(0, l.o.Now().Sub(first)) // the clock may have been set back
	}
	return len(l.queue) + l.room, oldest
}

// noteUnsynced lets Lag see what the writer, which is the goroutine's own, knows.
func (l *Log) noteUnsynced() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsynced = l.writer.unsynced
}
