package kv

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"sync"
	"time"
)

// Memory is a [Store] that forgets everything when the process ends.
type Memory struct {
	now func() time.Time

	mu      sync.Mutex
	entries map[string]Entry // nil: closed
	version uint64           // the last one given
}

// NewMemory returns an empty store that tells the time by now; nil:
// [time.Now].
func NewMemory(now func() time.Time) *Memory {
	if now == nil {
		now = time.Now
	}
	return &Memory{now: now, entries: map[string]Entry{}}
}

// Now returns the time by the store's clock.
func (m *Memory) Now() time.Time { return m.now() }

// Get implements [Store].
func (m *Memory) Get(ctx context.Context, key string) (Entry, error) {
	if err := checkKey(ctx, key); err != nil {
		return Entry{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e, err := m.live(key)
	e.Value = bytes.Clone(e.Value)
	return e, err
}

// live returns the entry of key, whose value is the store's own.
func (m *Memory) live(key string) (Entry, error) {
	if m.entries == nil {
		return Entry{}, ErrClosed
	}
	e, ok := m.entries[key]
	if !ok || m.expired(e) {
		return Entry{}, ErrNotFound
	}
	return e, nil
}

func (m *Memory) expired(e Entry) bool { return !e.Expires.IsZero() && !m.now().Before(e.Expires) }

// Put implements [Store].
func (m *Memory) Put(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	if err := checkWrite(ctx, key, value, ttl); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil {
		return ErrClosed
	}
	m.write(key, value, ttl)
	return nil
}

// write sets key and returns its version. m.mu is held.
func (m *Memory) write(key string, value []byte, ttl time.Duration) uint64 {
	m.version++
	m.entries[key] = Entry{Value: append([]byte{}, value...), Version: m.version, Expires: expiry(m.now(), ttl)}
	// Each write looks at some other entries, in Go's random order, so that the
	// expired ones stay a small part.
	looks := 4
	for k, e := range m.entries {
		if m.expired(e) {
			delete(m.entries, k)
		}
		if looks--; looks == 0 {
			break
		}
	}
	return m.version
}

// Take implements [Store].
func (m *Memory) Take(ctx context.Context, key string) (Entry, error) {
	if err := checkKey(ctx, key); err != nil {
		return Entry{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e, err := m.live(key)
	if err == nil {
		delete(m.entries, key)
	}
	return e, err
}

// CompareAndSwap implements [Store].
func (m *Memory) CompareAndSwap(
	ctx context.Context, key string, version uint64, value []byte, ttl time.Duration,
) (uint64, error) {
	if err := checkWrite(ctx, key, value, ttl); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil {
		return 0, ErrClosed
	}
	if e, _ := m.live(key); e.Version != version { // an absent entry has version 0
		return 0, ErrConflict
	}
	return m.write(key, value, ttl), nil
}

// Delete implements [Store].
func (m *Memory) Delete(ctx context.Context, key string) error {
	if err := checkKey(ctx, key); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil {
		return ErrClosed
	}
	delete(m.entries, key)
	return nil
}

// Keys implements [Store]; it yields the keys of the moment when it begins.
func (m *Memory) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		keys, err := m.keys(prefix)
		if err != nil {
			yield("", err)
			return
		}
		for _, k := range keys {
			if err := ctx.Err(); err != nil {
				yield("", err)
				return
			}
			if !yield(k, nil) {
				return
			}
		}
	}
}

// keys are collected at once, so that the caller of Keys may write to the store.
func (m *Memory) keys(prefix string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil {
		return nil, ErrClosed
	}
	var keys []string
	for k, e := range m.entries {
		if strings.HasPrefix(k, prefix) && !m.expired(e) {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

// Close implements [Store].
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries = nil
	return nil
}
