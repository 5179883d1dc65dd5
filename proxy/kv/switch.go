package kv

import (
	"context"
	"iter"
	"sync/atomic"
	"time"
)

// Switch is a [Store] that passes calls on to another one, which may be replaced while it
// is used: for what outlives a change of the store's keys. Safe for concurrent use.
type Switch struct{ behind atomic.Pointer[Store] }

// NewSwitch returns a switch with s behind it.
func NewSwitch(s Store) *Switch {
	w := &Switch{}
	w.Use(s)
	return w
}

// Use makes s the store for all calls that begin afterwards. The one before it is not
// closed.
func (w *Switch) Use(s Store) { w.behind.Store(&s) }

func (w *Switch) store() Store { return *w.behind.Load() }

// Get implements [Store].
func (w *Switch) Get(ctx context.Context, key string) (Entry, error) { return w.store().Get(ctx, key) }

// Put implements [Store].
func (w *Switch) Put(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	return w.store().Put(ctx, key, value, ttl)
}

// Take implements [Store].
func (w *Switch) Take(ctx context.Context, key string) (Entry, error) {
	return w.store().Take(ctx, key)
}

// CompareAndSwap implements [Store].
func (w *Switch) CompareAndSwap(
	ctx context.Context, key string, version uint64, value []byte, ttl time.Duration,
) (uint64, error) {
	return w.store().CompareAndSwap(ctx, key, version, value, ttl)
}

// Delete implements [Store].
func (w *Switch) Delete(ctx context.Context, key string) error { return w.store().Delete(ctx, key) }

// Keys implements [Store].
func (w *Switch) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return w.store().Keys(ctx, prefix)
}

// Close does nothing: the store behind it is closed where it was opened.
func (w *Switch) Close() error { return nil }
