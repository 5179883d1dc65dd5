package kv

import (
	"bytes"
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
	// Now tells the time; nil: [time.Now].
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
	db  *bolt.DB
	now func() time.Time
	max int64

	stop  chan struct{} // closed by Close
	done  chan struct{} // closed when the sweeper has ended
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
	if o.Sweep == 0 {
		o.Sweep = 5 * time.Minute
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	if o.Wait == 0 {
		o.Wait = lockWait
	}
	db, err := openBolt(path, o.Wait)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	f := &File{db: db, now: o.Now, max: o.MaxBytes, stop: make(chan struct{}), done: make(chan struct{})}
	f.close = sync.OnceValue(func() error {
		close(f.stop)
		<-f.done
		return db.Close()
	})
	if o.Sweep > 0 {
		go f.sweeper(o.Sweep, o.Failed)
	} else {
		close(f.done)
	}
	return f, nil
}

// Now returns the time by the store's clock.
func (f *File) Now() time.Time { return f.now() }

// Close implements [Store].
func (f *File) Close() error { return f.close() }

// Get implements [Store].
func (f *File) Get(ctx context.Context, key string) (e Entry, err error) {
	if err := checkKey(ctx, key); err != nil {
		return Entry{}, err
	}
	err = f.view(func(t tx) error {
		e, err = t.live(key, f.now())
		e.Value = bytes.Clone(e.Value) // the file's memory is not ours to keep
		return err
	})
	return e, err
}

// Put implements [Store].
func (f *File) Put(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	if err := checkWrite(ctx, key, value, ttl); err != nil {
		return err
	}
	if err := f.room(); err != nil {
		return err
	}
	return f.update(func(t tx) error {
		_, err := t.put(key, value, expiry(f.now(), ttl))
		return err
	})
}

// Take implements [Store].
func (f *File) Take(ctx context.Context, key string) (Entry, error) {
	// Most calls with a key that is not there come from guesses; they must not
	// cost a write.
	if _, err := f.Get(ctx, key); err != nil {
		return Entry{}, err
	}
	var e Entry
	var outcome error
	err := f.update(func(t tx) (err error) {
		// An error would undo the writes of others in the same transaction.
		e, outcome = t.live(key, f.now())
		if outcome != nil {
			return nil
		}
		e.Value = bytes.Clone(e.Value)
		return t.remove(key)
	})
	if err == nil {
		err = outcome
	}
	if err != nil {
		return Entry{}, err
	}
	return e, nil
}

// CompareAndSwap implements [Store].
func (f *File) CompareAndSwap(
	ctx context.Context, key string, version uint64, value []byte, ttl time.Duration,
) (uint64, error) {
	if err := checkWrite(ctx, key, value, ttl); err != nil {
		return 0, err
	}
	if e, err := f.Get(ctx, key); err != nil && !errors.Is(err, ErrNotFound) {
		return 0, err
	} else if e.Version != version { // an absent entry has version 0
		return 0, ErrConflict
	}
	if err := f.room(); err != nil {
		return 0, err
	}
	var fresh uint64
	var outcome error
	err := f.update(func(t tx) (err error) {
		fresh, outcome = 0, nil
		e, err := t.live(key, f.now())
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if e.Version != version {
			outcome = ErrConflict // and no error, as in Take
			return nil
		}
		fresh, err = t.put(key, value, expiry(f.now(), ttl))
		return err
	})
	if err == nil {
		err = outcome
	}
	if err != nil {
		return 0, err
	}
	return fresh, nil
}

// Delete implements [Store].
func (f *File) Delete(ctx context.Context, key string) error {
	if err := checkKey(ctx, key); err != nil {
		return err
	}
	absent := false
	if err := f.view(func(t tx) error { absent = t.data.Get([]byte(key)) == nil; return nil }); err != nil || absent {
		return err
	}
	return f.update(func(t tx) error { return t.remove(key) })
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
