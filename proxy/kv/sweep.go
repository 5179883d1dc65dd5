package kv

import (
	"context"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
)

// sweepAtOnce is how many keys one transaction sweeps; other writes wait for it.
const sweepAtOnce = 500

// Sweep deletes what has expired, and returns how many keys that were. It runs by
// itself as [FileOptions] say.
func (f *File) Sweep(ctx context.Context) (n int, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		// A look first: a transaction that writes nothing costs an fsync as well.
		due := false
		if err := f.view(func(t tx) error { due = t.due(f.now()) != nil; return nil }); err != nil || !due {
			return n, err
		}
		swept := 0
		err := f.db.Update(func(b *bolt.Tx) (err error) {
			swept, err = buckets(b).sweep(f.now(), sweepAtOnce)
			return err
		})
		if err != nil {
			return n, flat(err)
		}
		n += swept
	}
}

// sweepEvery sweeps until ctx ends.
func (f *File) sweepEvery(ctx context.Context, every time.Duration, failed func(error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, err := f.Sweep(ctx); err != nil && ctx.Err() == nil && failed != nil {
				failed(fmt.Errorf("store: expired keys could not be swept: %w", err))
			}
		}
	}
}
