package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"

	"aegis/proxy/internal/files"
)

// writer turns entries into the chain. Only the log's goroutine uses it once
// the log is open.
type writer struct {
	o       *Options
	store   *store
	signer  *signer
	keys    []string        // the content of the .pub file: keys before, and the one in use
	known   []note.Verifier // the same, ready for use
	last    position        // of the newest record in the file
	clock   time.Time       // that record's time
	pinned  uint64          // up to here a checkpoint covers the records, itself included
	unsaved string          // the newest checkpoint, until it is kept besides the log
	// waiting is when the oldest uncovered record was made; zero without one.
	waiting time.Time
	// unsynced is when the oldest record was written that may not be on the
	// disk; zero without one.
	unsynced    time.Time
	rotateAfter time.Time // no rotation is tried before, as the last one failed
	buf         []byte
	emit        func(written []byte)
	packers     sync.WaitGroup
	packing     sync.Mutex
}

// commit writes the entries as one piece and sets their positions. When it
// fails none of them is in the log. A checkpoint that is due comes last in the
// same write; force makes one due.
func (w *writer) commit(batch []*entry, force bool) error {
	pos, buf, clock := w.last, w.buf[:0], w.clock
	for _, e := range batch {
		if e.out == nil { // without a body there is no line, and no gap may be left for it
			return e.err
		}
		clock = steady(clock, e.at)
		buf, e.pos = appendLine(buf, pos, clock, e.out)
		pos = e.pos
	}
	now := w.o.Now()
	signed := ""
	if force && pos.seq > w.pinned || w.checkpointDue(pos, batch, now) {
		var err error
		clock = steady(clock, now)
		if buf, pos, err = w.addCheckpoint(buf, pos, clock); err == nil {
			signed, err = w.signer.sign(pin{pos, now})
		}
		if err != nil {
			return fmt.Errorf("a checkpoint cannot be signed: %w", err)
		}
	}
	if w.buf = buf; cap(buf) > 4<<20 { // what waited through an outage may be large
		w.buf = nil
	}
	if len(buf) == 0 {
		return nil
	}
	if err := w.store.write(buf, w.o.Config.Sync == "always"); err != nil {
		return err
	}
	// Only now: a write that failed leaves the chain where it was.
	w.written(batch, pos, now)
	w.clock = clock
	if signed != "" {
		w.pinned, w.waiting = pos.seq, time.Time{}
		w.unsaved = signed
	}
	w.emit(buf)
	return nil
}

// steady returns the time of a record after one of time last. A record that was
// overtaken on its way to the file gets the time of the one before it; a clock
// that was set back by a second or more shows.
func steady(last, at time.Time) time.Time {
	at = at.Round(0) // the wall clock is what is written
	if d := last.Sub(at); d > 0 && d < time.Second {
		return last
	}
	return at
}

// written takes note of a successful write.
func (w *writer) written(batch []*entry, pos position, now time.Time) {
	s := w.store
	if s.first == 0 {
		s.first, s.born = w.last.seq+1, now
	}
	w.last = pos
	if w.waiting.IsZero() && len(batch) > 0 {
		w.waiting = batch[0].at
	}
	if w.o.Config.Sync != "always" && w.unsynced.IsZero() {
		w.unsynced = now
	}
}

// checkpointDue counts records and time since the last one, whichever comes first.
func (w *writer) checkpointDue(pos position, batch []*entry, now time.Time) bool {
	oldest := w.waiting
	if oldest.IsZero() && len(batch) > 0 {
		oldest = batch[0].at
	}
	return pos.seq-w.pinned >= uint64(max(w.o.Config.CheckpointRecords, 1)) ||
		!oldest.IsZero() && now.Sub(oldest) >= time.Duration(w.o.Config.CheckpointInterval)
}

// addCheckpoint appends the record of a checkpoint about pos.
func (w *writer) addCheckpoint(buf []byte, pos position, now time.Time) ([]byte, position, error) {
	signed, err := w.signer.sign(pin{pos, now})
	if err != nil {
		return buf, pos, err
	}
	body, err := encode(&Record{Event: Checkpoint, Detail: &Detail{Note: signed}})
	if err != nil {
		return buf, pos, err
	}
	buf, pos = appendLine(buf, pos, now, body)
	return buf, pos, nil
}

// notePath is where a checkpoint about the newest checkpoint record is kept
// besides the log itself: a log that was cut lacks the record, this file has it.
func notePath(path string) string { return path + ".checkpoint" }

// publicPath is where the verifier key is.
func publicPath(path string) string { return path + ".pub" }

// takeUnsaved returns what keeps the newest checkpoint besides the log, if it is not kept
// yet. That touches nothing that calls use, so they need not wait for it.
func (w *writer) takeUnsaved() (save func()) {
	signed, log := w.unsaved, w.store.f
	w.unsaved = ""
	return func() {
		if signed != "" {
			w.saveCheckpoint(signed, log)
		}
	}
}

// saveCheckpoint keeps a checkpoint of a record in the file log. The records must be
// durable first, or a power cut would look like a cut log; those of a file that was
// rotated since, and closed, are.
func (w *writer) saveCheckpoint(signed string, log *os.File) {
	err := log.Sync()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	if err == nil {
		err = files.Replace(notePath(w.o.Path), []byte(signed), 0o644)
	}
	if _, gone := os.Lstat(publicPath(w.o.Path)); gone != nil && err == nil {
		err = files.Replace(publicPath(w.o.Path), []byte(w.publicText()), 0o644)
	}
	if err != nil {
		w.o.Log.Error().Err(err).Msg("the audit log's checkpoint file was not written; " +
			"the checkpoint is in the log itself")
	}
}

// sync makes what was written durable.
func (w *writer) sync() error {
	if w.unsynced.IsZero() {
		return nil
	}
	if err := w.store.flush(); err != nil {
		return err
	}
	w.unsynced = time.Time{}
	return nil
}

// upkeep does what time brings: syncing, checkpoints, rotation.
func (w *writer) upkeep(now time.Time) error {
	cfg := &w.o.Config
	if !w.unsynced.IsZero() && cfg.Sync == "interval" && now.Sub(w.unsynced) >= time.Duration(cfg.Interval) {
		if err := w.sync(); err != nil {
			return err
		}
	}
	if !w.waiting.IsZero() && now.Sub(w.waiting) >= time.Duration(cfg.CheckpointInterval) {
		if err := w.commit(nil, true); err != nil {
			return err
		}
	}
	if w.rotationDue(now) {
		return w.rotate(now)
	}
	return nil
}

// rotationDue is false for a file without a record: an empty file has no name to rotate
// to, since that has the number of its first record.
func (w *writer) rotationDue(now time.Time) bool {
	s, cfg := w.store, &w.o.Config
	return s.first != 0 && !now.Before(w.rotateAfter) &&
		(s.size >= int64(cfg.RotateSize) || now.Sub(s.born) >= time.Duration(cfg.RotateAge))
}

// nextUpkeep returns when upkeep has something to do.
func (w *writer) nextUpkeep(now time.Time) time.Duration {
	cfg := &w.o.Config
	next := time.Minute // for what was missed, whose time is not known here
	soon := func(since time.Time, after time.Duration) {
		if !since.IsZero() {
			next = min(next, since.Add(after).Sub(now))
		}
	}
	if cfg.Sync == "interval" {
		soon(w.unsynced, time.Duration(cfg.Interval))
	}
	soon(w.waiting, time.Duration(cfg.CheckpointInterval))
	if w.store.first != 0 && now.After(w.rotateAfter) {
		soon(w.store.born, time.Duration(cfg.RotateAge))
	}
	return max(next, 10*time.Millisecond) // a clock that is set must not make a busy loop
}

// rotationPause is the time before a failed rotation is tried again. Calls go on meanwhile, in
// a file that is larger than it should be.
const rotationPause = time.Minute

// rotate closes the file with a checkpoint and begins the next. A file that
// cannot be moved goes on being written to.
func (w *writer) rotate(now time.Time) error {
	if err := w.commit(nil, true); err != nil {
		return err
	}
	if err := w.sync(); err != nil {
		return err
	}
	name, err := w.store.rotate()
	if w.store.moved != "" {
		return err // the next write tries to make the new file
	}
	if err != nil {
		w.rotateAfter = now.Add(rotationPause)
		w.o.Log.Error().Err(err).Msg("the audit log cannot be rotated; it goes on in the same file")
		return nil
	}
	w.o.Log.Info().Str("file", filepath.Base(name)).Msg("audit log rotated")
	w.pack()
	return w.prune(now)
}

// close waits for files that are being compressed, or half of one would be left.
func (w *writer) close() {
	w.packers.Wait()
	w.store.close()
}
