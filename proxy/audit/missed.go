package audit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// The rate bounds what strangers can add to the log: some 5 kB a second.
const (
	eventBurst = 100
	eventRate  = 10
	// missedEvery is how long the number of missed events waits for the next
	// one that is recorded, before it gets a record of its own.
	missedEvery = time.Minute
)

// throttle lets eventBurst events through at once and then eventRate a second.
type throttle struct {
	now    func() time.Time // a clock that is never set back, or nothing passes until it catches up
	rate   *rate.Limiter
	mu     sync.Mutex
	missed uint64
	since  time.Time // when the first of those was missed
}

// take reports whether an event may be recorded, and how many were not since
// the last that was.
func (t *throttle) take() (ok bool, missed uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.rate.AllowN(t.now(), 1) {
		t.add(1)
		return false, 0
	}
	missed, t.missed = t.missed, 0
	return true, missed
}

// miss counts events that were not recorded, although the rate let them.
func (t *throttle) miss(n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(n)
}

// add counts under the lock.
func (t *throttle) add(n uint64) {
	if t.missed == 0 {
		t.since = t.now()
	}
	t.missed += n
}

// overdue takes the number of missed events once the first is that old.
func (t *throttle) overdue(age time.Duration) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.missed == 0 || t.now().Sub(t.since) < age {
		return 0
	}
	missed := t.missed
	t.missed = 0
	return missed
}

// missedEntries returns the records of what was missed and is that old: events
// that came too fast and, at the end, what the second sinks had no room for.
func (l *Log) missedEntries(age time.Duration) []*entry {
	var out []*entry
	add := func(r *Record) { out = append(out, ownEntry(r, l.o.Now())) }
	if n := l.events.overdue(age); n > 0 {
		add(&Record{Event: BearerRefused, Detail: &Detail{
			Suppressed: n, Reason: "requests without a valid token that came too fast to be recorded one by one",
		}})
	}
	// Sinks record their gaps themselves as long as they run.
	if age > 0 {
		return out
	}
	for _, s := range l.sinks {
		if n := s.takeDropped(); n > 0 {
			add(&Record{Event: SinkGap, Detail: &Detail{Sink: s.name, Count: n, Reason: sinkGapReason}})
		}
	}
	return out
}
