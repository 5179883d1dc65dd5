package kv

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// FileOptions are the knobs of [OpenFile]; the zero value is fit for use.
type FileOptions struct {
	// Now is the clock; nil: [time.Now].
	Now func() time.Time
	// Sweep is the time between two sweeps of expired keys. 0: 5 minutes;
	// negative: they are never swept, only invisible.
	Sweep time.Duration
	// MaxBytes is how much the file may hold; beyond it writes fail with
	// [ErrFull] and deletions work on. 0: 1 GiB.
	MaxBytes int64
	// Wait is how long a process that still has the file is waited for. 0: 500 ms.
	Wait time.Duration
	// Failed is called when a sweep fails; may be nil. The next one tries again.
	Failed func(error)
}

// File is a [Store] in one file, for one process. Writes of the same moment
// share one transaction and one fsync.
type File struct {
	ops
	db    *bolt.DB
	now   func() time.Time
	max   int64
	close func() error
}

// OpenFile opens the store at path. A file that is missing is made, readable by
// its owner alone, together with its folder; one that others may use is closed to
// them. The error wraps [ErrInUse] when another process has it open. The file
// belongs to this process until Close.
func OpenFile(path string, o FileOptions) (*File, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Sweep, o.MaxBytes = cmp.Or(o.Sweep, 5*time.Minute), cmp.Or(o.MaxBytes, 1<<30)
	db, err := openBolt(path, cmp.Or(o.Wait, lockWait))
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	f := &File{db: db, now: o.Now, max: o.MaxBytes}
	f.ops = ops{f}
	ctx, cancel := context.WithCancel(context.Background())
	var sweeper sync.WaitGroup
	f.close = sync.OnceValue(func() error {
		cancel() // a long sweep must not hold up the end
		sweeper.Wait()
		return db.Close()
	})
	if o.Sweep > 0 {
		sweeper.Go(func() { f.sweepEvery(ctx, o.Sweep, o.Failed) })
	}
	return f, nil
}

// Now returns the time by the store's clock.
func (f *File) Now() time.Time { return f.now() }

// Close implements [Store].
func (f *File) Close() error { return f.close() }

// read implements table.
func (f *File) read(key string) (e Entry, err error) {
	err = f.view(func(t tx) error {
		e, err = t.live(key, f.now())
		e.Value = bytes.Clone(e.Value) // the file's memory is not ours to keep
		return err
	})
	return e, err
}

// holds implements table.
func (f *File) holds(key string) (found bool, err error) {
	err = f.view(func(t tx) error { found = t.data.Get([]byte(key)) != nil; return nil })
	return found, err
}

// edit implements table.
func (f *File) edit(key string, next *value, decide func(Entry, error) error) (version uint64, err error) {
	if next != nil { // a full store lets go of entries
		if err := f.room(); err != nil {
			return 0, err
		}
	}
	var refused error
	err = f.update(func(t tx) (err error) {
		// An error would undo the writes of others in the same transaction.
		if refused = decide(t.live(key, f.now())); refused != nil {
			return nil
		}
		if next == nil {
			return t.remove(key)
		}
		version, err = t.put(key, next.bytes, expiry(f.now(), next.ttl))
		return err
	})
	return version, cmp.Or(err, refused)
}

// keysAtOnce is how many keys Keys reads in one transaction. None is open while
// the caller works: it may write, and a transaction left open would keep the
// file from shrinking.
const keysAtOnce = 256

// Keys implements [Store]; it yields them in order.
func (f *File) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		from := []byte(prefix)
		for from != nil {
			err := ctx.Err()
			var keys []string
			if err == nil {
				err = f.view(func(t tx) error {
					keys, from = t.keys(from, []byte(prefix), f.now())
					return nil
				})
			}
			if err != nil {
				yield("", err)
				return
			}
			for _, k := range keys {
				if !yield(k, nil) {
					return
				}
			}
		}
	}
}

// view runs fn on the file as it is.
func (f *File) view(fn func(tx) error) error {
	return flat(f.db.View(func(b *bolt.Tx) error { return fn(buckets(b)) }))
}

// update runs fn in a transaction that it may share with others, and returns
// when that is durable. fn may run more than once.
func (f *File) update(fn func(tx) error) error {
	return flat(f.db.Batch(func(b *bolt.Tx) error { return fn(buckets(b)) }))
}

// room fails when the pages in use are as many as they may be. The file itself
// never shrinks; what was deleted is used again.
func (f *File) room() error {
	var size int64
	if err := flat(f.db.View(func(b *bolt.Tx) error { size = b.Size(); return nil })); err != nil {
		return err
	}
	if size < f.max { // the usual case, without a look at the free pages
		return nil
	}
	if size-int64(f.db.Stats().FreePageN)*int64(f.db.Info().PageSize) < f.max {
		return nil
	}
	return ErrFull
}

// flat puts the errors of the library into the words of the package.
func flat(err error) error {
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}
