package grant_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"aegis/proxy/kv"
)

// full is a store that takes nothing more, as one that has reached its bound.
type full struct {
	kv.Store
	on bool
}

func (f *full) Put(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	if f.on {
		return kv.ErrFull
	}
	return f.Store.Put(ctx, key, value, ttl)
}

// TestAFullStoreKeepsNobodyFromEnding what they allowed.
func TestAFullStoreKeepsNobodyFromEnding(t *testing.T) {
	t.Parallel()
	store := &full{Store: kv.NewMemory(nil)}
	w := newWorld(t, withStore(store))
	a, b := w.signIn(), w.signIn()
	store.on = true
	n, err := w.EndUser(t.Context(), alice)
	if n != 2 || !errors.Is(err, kv.ErrFull) {
		t.Errorf("ended %d: %v", n, err)
	}
	for _, token := range []string{a.Access, b.Access} {
		if _, err := w.Verify(t.Context(), token); err == nil {
			t.Error("a token of an ended grant works")
		}
	}
}
