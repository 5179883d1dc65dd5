package kv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"aegis/proxy/internal/seal"
)

// SealedStore is a [Store] that seals the values of another one under a key
// ring, each for its key alone. Keys, versions and lifetimes stay readable, and
// are not protected from one who can write to the other store: a value whose
// lifetime matters says so itself.
type SealedStore struct {
	inner // for what it does not seal: Delete, Keys and Close
	ring  *seal.Ring
}

// inner is not exported, or the field would lead past the seal.
type inner = Store

// Sealed returns s with its values sealed by ring. A value that an old key of the
// ring sealed is sealed anew when it is read. Closing it closes s.
func Sealed(s Store, ring *seal.Ring) *SealedStore { return &SealedStore{s, ring} }

// Get implements [Store].
func (s *SealedStore) Get(ctx context.Context, key string) (Entry, error) {
	e, err := s.inner.Get(ctx, key)
	if err != nil {
		return Entry{}, err
	}
	e, stale, err := s.open(key, e)
	if err != nil {
		return Entry{}, err
	}
	if stale {
		// It can be read as it is; what comes in between only puts this off.
		if version, err := s.reseal(ctx, key, e); err == nil {
			e.Version = version
		}
	}
	return e, nil
}

// open unseals the value of e; stale: by another key than the current one. The error names
// the kind of value, never the key, which may name a person.
func (s *SealedStore) open(key string, e Entry) (Entry, bool, error) {
	plain, stale, err := s.ring.Open(key, e.Value)
	if err != nil {
		return Entry{}, false, fmt.Errorf("store: a value under %s…: %w", family(key), err)
	}
	e.Value = plain
	return e, stale, nil
}

// family returns the part of a key that says what kind of value it has.
func family(key string) string {
	kind, _, _ := strings.Cut(key, "/")
	return kind + "/"
}

// reseal writes the opened entry e again unless it was changed since.
func (s *SealedStore) reseal(ctx context.Context, key string, e Entry) (uint64, error) {
	ttl, alive := e.Left(s.Now())
	if !alive {
		return 0, ErrConflict
	}
	return s.CompareAndSwap(ctx, key, e.Version, e.Value, ttl)
}

// Now returns the time by the clock of the store below.
func (s *SealedStore) Now() time.Time {
	if c, ok := s.inner.(interface{ Now() time.Time }); ok {
		return c.Now()
	}
	return time.Now()
}

// seal returns the value sealed for its key.
func (s *SealedStore) seal(key string, value []byte) ([]byte, error) {
	if len(value) > MaxValue {
		return nil, tooLarge(len(value))
	}
	return s.ring.Seal(key, value)
}

// Put implements [Store].
func (s *SealedStore) Put(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	sealed, err := s.seal(key, value)
	if err != nil {
		return err
	}
	return s.inner.Put(ctx, key, sealed, ttl)
}

// Take implements [Store].
func (s *SealedStore) Take(ctx context.Context, key string) (Entry, error) {
	e, err := s.inner.Take(ctx, key)
	if err != nil {
		return Entry{}, err
	}
	e, _, err = s.open(key, e)
	return e, err
}

// CompareAndSwap implements [Store].
func (s *SealedStore) CompareAndSwap(
	ctx context.Context, key string, version uint64, value []byte, ttl time.Duration,
) (uint64, error) {
	sealed, err := s.seal(key, value)
	if err != nil {
		return 0, err
	}
	return s.inner.CompareAndSwap(ctx, key, version, sealed, ttl)
}

// Check reads every value and fails unless the ring has the keys of all. Run it
// at start: a key that was taken away too early is found before anybody is sent
// away for it. The error names the missing keys.
func (s *SealedStore) Check(ctx context.Context) error {
	missing := map[string]int{}
	for key, err := range s.inner.Keys(ctx, "") {
		if err != nil {
			return err
		}
		e, err := s.inner.Get(ctx, key)
		if errors.Is(err, ErrNotFound) {
			continue // gone since
		}
		if err != nil {
			return err
		}
		id, err := seal.KeyID(e.Value)
		if err != nil {
			return fmt.Errorf("store: a value under %s…: %w; restore the file from a backup", family(key), err)
		}
		if !s.ring.Has(id) {
			missing[id]++
		}
	}
	var errs []error
	for id, n := range missing {
		errs = append(errs, fmt.Errorf("store: %d values were sealed with key %s: %w; "+
			"put that key back behind the current one", n, id, seal.ErrKey))
	}
	return errors.Join(errs...)
}

// Reseal seals every value anew that a key other than the current one sealed, and
// returns how many those were. After it the older keys open nothing more in this
// store. It may run while the store is used.
func (s *SealedStore) Reseal(ctx context.Context) (n int, err error) {
	for key, err := range s.inner.Keys(ctx, "") {
		if err != nil {
			return n, err
		}
		done, err := s.resealKey(ctx, key)
		if err != nil {
			return n, err
		}
		if done {
			n++
		}
	}
	return n, nil
}

// resealKey seals one value anew and reports whether that was needed. It fails rather than skip
// a value that cannot be opened: the operator is about to remove the key.
func (s *SealedStore) resealKey(ctx context.Context, key string) (bool, error) {
	for {
		e, err := s.inner.Get(ctx, key)
		if errors.Is(err, ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		e, stale, err := s.open(key, e)
		if err != nil || !stale {
			return false, err
		}
		// The process that wrote it meanwhile may have an older ring: look again.
		if _, err := s.reseal(ctx, key, e); !errors.Is(err, ErrConflict) {
			return err == nil, err
		}
	}
}
