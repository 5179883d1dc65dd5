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
	ops
	now func() time.Time

	mu      sync.Mutex
	entries map[string]Entry // nil: closed
	version uint64           // the last one given
}

// NewMemory returns an empty store with this clock; nil:
// [time.Now].
func NewMemory(now func() time.Time) *Memory {
	if now == nil {
		now = time.Now
	}
	m := &Memory{now: now, entries: map[string]Entry{}}
	m.ops = ops{m}
	return m
}

// Now returns the time by the store's clock.
func (m *Memory) Now() time.Time { return m.now() }

// read implements table.
func (m *Memory) read(key string) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, err := m.live(key)
	e.Value = bytes.Clone(e.Value)
	return e, err
}

// holds implements table.
func (m *Memory) holds(key string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil {
		return false, ErrClosed
	}
	_, found := m.entries[key]
	return found, nil
}

// edit implements table.
func (m *Memory) edit(key string, next *value, decide func(Entry, error) error) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil {
		return 0, ErrClosed
	}
	if err := decide(m.live(key)); err != nil {
		return 0, err
	}
	if next == nil {
		delete(m.entries, key)
		return 0, nil
	}
	return m.write(key, next.bytes, next.ttl), nil
}

// live returns the entry of key, whose value is the store's own.
func (m *Memory) live(key string) (Entry, error) {
	if m.entries == nil {
		return Entry{}, ErrClosed
	}
	e, ok := m.entries[key]
	if _, alive := e.Left(m.now()); !ok || !alive {
		return Entry{}, ErrNotFound
	}
	return e, nil
}

// write sets key and returns its version. m.mu is held.
func (m *Memory) write(key string, value []byte, ttl time.Duration) uint64 {
	m.version++
	m.entries[key] = Entry{Value: append([]byte{}, value...), Version: m.version, Expires: expiry(m.now(), ttl)}
	// Each write looks at some other entries, in Go's random order, so that the
	// expired ones stay a small part.
	looks := 4
	for k, e := range m.entries {
		if _, alive := e.Left(m.now()); !alive {
			delete(m.entries, k)
		}
		if looks--; looks == 0 {
			break
		}
	}
	return m.version
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
		if _, alive := e.Left(m.now()); alive && strings.HasPrefix(k, prefix) {
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
