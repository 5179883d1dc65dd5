package kvtest_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"aegis/proxy/kv"
)

// alternating gives each call to another of its stores.
type alternating struct {
	all  []kv.Store
	next *atomic.Int64
}

func (a *alternating) one() kv.Store { return a.all[int(a.next.Add(1))%len(a.all)] }

func (a *alternating) Get(ctx context.Context, key string) (kv.Entry, error) {
	return a.one().Get(ctx, key)
}

func (a *alternating) Put(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	return a.one().Put(ctx, key, value, ttl)
}

func (a *alternating) Take(ctx context.Context, key string) (kv.Entry, error) {
	return a.one().Take(ctx, key)
}

func (a *alternating) CompareAndSwap(ctx context.Context, key string, version uint64, value []byte, ttl time.Duration) (uint64, error) {
	return a.one().CompareAndSwap(ctx, key, version, value, ttl)
}

func (a *alternating) Delete(ctx context.Context, key string) error { return a.one().Delete(ctx, key) }

func (a *alternating) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return a.one().Keys(ctx, prefix)
}

func (a *alternating) Close() error {
	var errs []error
	for _, s := range a.all {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
