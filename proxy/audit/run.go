package audit

import (
	"errors"
	"time"

	"aegis/proxy"
)

// run is the log's goroutine: it writes whatever waits, all of it in one write
// and one flush, and keeps the files in order. Calls write too, see push.
func (l *Log) run() {
	defer close(l.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var retry time.Time
	for open := true; open; {
		select {
		case _, open = <-l.wake:
		case <-timer.C:
		}
		now := time.Now()
		// Calls that wake the goroutine in an outage must not make it try all the time.
		if l.outage.Load() != nil && now.Before(retry) && open {
			timer.Reset(retry.Sub(now))
			continue
		}
		pause := l.waits.retry
		if l.turn() {
			l.saveCheckpoint()
			pause = l.nextUpkeep()
		}
		retry = time.Now().Add(l.waits.retry)
		timer.Reset(pause)
	}
	l.finish()
}

// nextUpkeep returns when the writer has something to do by itself.
func (l *Log) nextUpkeep() time.Duration {
	l.writing.Lock()
	defer l.letGo()
	return l.writer.nextUpkeep(l.o.Now())
}

// saveCheckpoint keeps the newest checkpoint besides the log. Three flushes are too
// long to hold the writer.
func (l *Log) saveCheckpoint() {
	l.writing.Lock()
	save := l.writer.takeUnsaved()
	l.letGo()
	save()
}

// letGo releases the writer. Records that came meanwhile are the goroutine's:
// push left them to the holder of the writer.
func (l *Log) letGo() {
	l.writing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) > 0 && l.outage.Load() == nil && l.state == stateOpen {
		l.signal()
	}
}

// push sees to it that what the caller has put into the queue is written. With
// sync always that is the goroutine's work, which gathers records for one flush.
// Otherwise a write takes less time than waking the goroutine and being woken by
// it, so the caller writes what waits itself, unless another goroutine does: it
// looks at the queue again when done.
func (l *Log) push() {
	if l.o.Config.Sync == "always" || l.outage.Load() != nil {
		l.wakeUp()
		return
	}
	if !l.writing.TryLock() {
		return
	}
	defer l.letGo()
	if l.pushLocked() {
		l.wakeUp()
	}
}

// pushLocked writes one batch and reports whether the goroutine has to do the
// rest: to go on after a failure, to keep a checkpoint, or to flush or cover the
// first record since the last flush or checkpoint when its time comes.
func (l *Log) pushLocked() (rest bool) {
	l.busy.Store(time.Now().UnixNano())
	defer l.busy.Store(0)
	batch := l.take()
	if len(batch) == 0 {
		return false
	}
	first := l.writer.unsynced.IsZero() || l.writer.waiting.IsZero()
	ok := l.writeBatch(batch)
	if now := l.o.Now(); ok && l.writer.rotationDue(now) {
		if err := l.writer.upkeep(now); err != nil {
			l.fail(nil, err)
			ok = false
		}
	}
	l.noteUnsynced()
	return !ok || first || l.writer.unsaved != ""
}

// wakeUp signals the goroutine that there is something to do.
func (l *Log) wakeUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == stateOpen { // else it does the last of its work already
		l.signal()
	}
}

// turn writes what waits and does the upkeep. It reports whether the log can
// be written.
func (l *Log) turn() bool {
	l.writing.Lock()
	defer l.letGo()
	return l.turnLocked()
}

// turnLocked is turn under the writer's lock. It empties the queue before it looks after
// the files, as calls wait for the former.
func (l *Log) turnLocked() bool {
	l.busy.Store(time.Now().UnixNano())
	defer l.busy.Store(0)
	defer l.noteUnsynced()
	for {
		batch := l.take()
		if len(batch) == 0 && l.outage.Load() == nil {
			break
		}
		if !l.writeBatch(batch) {
			return false
		}
		l.busy.Store(time.Now().UnixNano())
	}
	if missed := l.missedEntries(missedEvery); len(missed) > 0 && !l.writeBatch(missed) {
		return false
	}
	if err := l.writer.upkeep(l.o.Now()); err != nil {
		l.fail(nil, err)
		return false
	}
	return true
}

// take returns the next entries to write.
func (l *Log) take() []*entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.queue), maxBatch)
	// Its capacity ends there: what is appended to the batch must not overwrite the queue.
	batch := l.queue[:n:n]
	l.queue = l.queue[n:]
	if len(l.queue) == 0 {
		l.queue = nil // or the memory behind it would stay
	}
	l.room = n
	if n > 0 {
		l.taken = batch[0].at
	}
	// The batch is written without this lock, while withhold may exchange a body.
	for _, e := range batch {
		e.out = e.body
	}
	return batch
}

// writeBatch writes entries, and after an outage the record about it. An
// outage ends with the first write that succeeds.
func (l *Log) writeBatch(batch []*entry) bool {
	o := l.outage.Load()
	if o != nil {
		// A disk that takes writes and does not keep them has not recovered.
		if err := l.writer.sync(); err != nil {
			l.fail(batch, err)
			return false
		}
	}
	all, refused := batch, l.refused.Load()
	if o != nil {
		all = append(all[:len(all):len(all)], l.about(o, refused))
	}
	err := l.writer.commit(all, false)
	if changed := new(changedError); errors.As(err, &changed) {
		// The file can be written again. Record what happened, and retry.
		all = append(all[:len(all):len(all)], l.about(&outage{l.o.Now(), err}, 0))
		l.o.Log.Error().Err(err).Msg("somebody changed the audit log's file while it is in use")
		err = l.writer.commit(all, false)
	}
	if err != nil {
		l.fail(batch, err)
		return false
	}
	if o != nil {
		l.outage.Store(nil)
		l.refused.Add(-refused) // those that are on record; more may have come since
		l.o.Log.Info().Dur("after", l.o.Now().Sub(o.since)).Uint64("refused", refused).
			Msg("the audit log can be written again")
	}
	l.settle(batch)
	return true
}

// about returns the entry about an outage.
func (l *Log) about(o *outage, refused uint64) *entry {
	since := o.since.UTC()
	d := &Detail{Reason: proxy.Clip(o.err.Error(), maxDetail), Since: &since, Count: refused}
	return ownEntry(&Record{Event: LogRecovered, Detail: d}, l.o.Now())
}

// settle reports the entries as written to all who wait for them.
func (l *Log) settle(batch []*entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.room, l.taken = 0, time.Time{}
	for _, e := range batch {
		if !e.ended {
			e.ended = true
			close(e.done)
		}
	}
}

// fail begins or continues an outage: entries that must not be lost go back to
// the front of the queue, the others are dropped, and all who wait get the error.
func (l *Log) fail(batch []*entry, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.room, l.taken = 0, time.Time{}
	if l.outage.Load() == nil {
		l.outage.Store(&outage{l.o.Now(), err})
		l.o.Log.Error().Err(err).Msg("the audit log cannot be written; calls are refused until it can")
	}
	// What came in since and must not be kept fails as well.
	var kept []*entry
	for _, e := range append(batch[:len(batch):len(batch)], l.queue...) {
		if e.keep {
			kept = append(kept, e)
		}
		if !e.ended {
			e.withhold() // before anything is written again
			e.ended, e.err = true, err
			close(e.done)
		}
	}
	l.queue = kept
}

// finish writes the last records.
func (l *Log) finish() {
	w := l.writer
	l.writing.Lock()
	defer l.writing.Unlock()
	l.turnLocked()
	last := append(l.missedEntries(0), ownEntry(&Record{Event: Stop}, l.o.Now()))
	err := w.commit(last, true)
	if err == nil {
		err = w.sync()
	}
	if err == nil {
		err = w.store.flush()
	}
	w.takeUnsaved()()
	l.mu.Lock()
	lost := len(l.queue)
	l.queue, l.unsynced = nil, time.Time{}
	l.mu.Unlock()
	if err != nil || lost > 0 {
		l.o.Log.Error().Err(err).Int("lost", lost).Msg("the audit log could not be closed well")
	}
	w.close()
}

// offer hands what was written to the second sinks.
func (l *Log) offer(written []byte) {
	for _, s := range l.sinks {
		s.offer(written)
	}
}
