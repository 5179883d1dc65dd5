// Package kv is the small key-value store that Aegis keeps its state in: a
// [File] for one process, a [Memory] that forgets, and [Sealed], which keeps the
// values of either secret. A store shared by several processes is one more
// [Store]; the tests of kvtest are the table that it must pass.
package kv

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"aegis/proxy/internal/seal"
)

// The errors that callers branch on. Every other error of a store is trouble of
// the store itself.
var (
	ErrNotFound = errors.New("kv: no such key")
	ErrConflict = errors.New("kv: the key has another version")
	ErrTooLarge = errors.New("kv: the key or the value is too large")
	ErrFull     = errors.New("kv: the store is full; find out what fills it")
	ErrClosed   = errors.New("kv: the store is closed")
	ErrInUse    = errors.New("kv: another Aegis uses the store")
)

// ErrUnavailable is wrapped by the errors of a store that cannot be reached, or
// did not answer in time: nothing is known of what it holds. Stores in other
// processes return it; it says nothing of the caller's request.
var ErrUnavailable = errors.New("kv: the store cannot be reached")

// The bounds of what a store keeps.
const (
	MaxKey   = 512      // bytes of a key, at least one
	MaxValue = 64 << 10 // bytes of a value, before sealing
)

// maxStored is what a store takes, so that a value of [MaxValue] bytes fits
// when it is sealed.
const maxStored = MaxValue + seal.Overhead

// Entry is a value and what the store knows of it.
type Entry struct {
	// Value is the caller's own copy.
	Value []byte
	// Version changes with every write of the key, is never 0, and never comes
	// back, not even when the key is deleted and made again.
	Version uint64
	// Expires is when the key vanishes; zero: never.
	Expires time.Time
}

// Left returns the lifetime that the entry has left, 0 for one that never expires, and
// whether it has not expired by now.
func (e Entry) Left(now time.Time) (ttl time.Duration, alive bool) {
	if e.Expires.IsZero() {
		return 0, true
	}
	ttl = e.Expires.Sub(now)
	return ttl, ttl > 0
}

// Store keeps values under keys. All methods may be called at the same time.
// Each is atomic, and durable once it has returned without an error; after an
// error of a write other than those above, the write may have happened. A
// context that is done before a call begins prevents it; a write that has begun
// is waited for, so that its outcome is known.
type Store interface {
	// Get returns the entry of key; [ErrNotFound] when there is none or it has
	// expired.
	Get(ctx context.Context, key string) (Entry, error)
	// Put writes key, whatever was there. ttl 0: it never expires; a negative ttl
	// is an error.
	Put(ctx context.Context, key string, value []byte, ttl time.Duration) error
	// Take returns the entry of key and deletes it. Of several callers one gets
	// it, the others [ErrNotFound].
	Take(ctx context.Context, key string) (Entry, error)
	// CompareAndSwap writes key if it has this version (0: if it is absent or has
	// expired) and returns the new version; [ErrConflict] otherwise.
	CompareAndSwap(ctx context.Context, key string, version uint64, value []byte, ttl time.Duration) (uint64, error)
	// Delete deletes key; that it is absent is no error.
	Delete(ctx context.Context, key string) error
	// Keys yields the keys that begin with prefix, in no promised order. Keys
	// written or deleted meanwhile may be among them or not; the store may be used
	// in between. It reads the whole prefix: not for the path of a request. An
	// error ends it.
	Keys(ctx context.Context, prefix string) iter.Seq2[string, error]
	// Close ends the store; every later call fails with [ErrClosed].
	Close() error
}

// CheckKey returns what every call on a key must refuse: a context that is done, and a
// key that is empty or longer than [MaxKey] ([ErrTooLarge]).
func CheckKey(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(key) == 0 || len(key) > MaxKey {
		return fmt.Errorf("%w: a key has 1 to %d bytes, not %d", ErrTooLarge, MaxKey, len(key))
	}
	return nil
}

// CheckWrite returns what every write must refuse, [CheckKey] included: a value longer
// than a sealed one of [MaxValue] bytes, and a negative lifetime.
func CheckWrite(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	if err := CheckKey(ctx, key); err != nil {
		return err
	}
	if len(value) > maxStored {
		return tooLarge(len(value))
	}
	if ttl < 0 {
		return errTTL
	}
	return nil
}

func tooLarge(n int) error {
	return fmt.Errorf("%w: a value has at most %d bytes, not %d", ErrTooLarge, MaxValue, n)
}

var errTTL = errors.New("kv: a negative lifetime")

// expiry returns when what is written now expires; zero: never.
func expiry(now time.Time, ttl time.Duration) time.Time {
	if ttl == 0 {
		return time.Time{}
	}
	return now.Add(ttl)
}
