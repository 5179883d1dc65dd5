package replicas_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"aegis/proxy/kv"
	"aegis/proxy/kv/kvtest"
	"aegis/proxy/kv/replicas"
)

// TestPresence: replicas that give signs of life count, whatever their clocks say;
// one that is silent or leaves does not, and one that wakes up does again.
func TestPresence(t *testing.T) {
	t.Parallel()
	store, clock := kv.NewMemory(nil), kvtest.NewClock()
	late := func() time.Time { return clock.Now().Add(-100 * time.Hour) }
	a, b, c := replicas.NewPresence("a", clock.Now), replicas.NewPresence("b", late), replicas.NewPresence("c", clock.Now)
	beat := func(p replicas.Presence, want int) {
		t.Helper()
		if n, err := p.Beat(t.Context(), store); n != want || err != nil {
			t.Errorf("%d replicas, %v; want %d", n, err, want)
		}
	}
	beat(a, 1)
	beat(b, 2)
	beat(c, 3)
	beat(a, 3)
	clock.Add(replicas.Silence - time.Second)
	beat(a, 3)
	beat(c, 3)
	clock.Add(time.Second)
	beat(a, 2) // b was silent
	beat(c, 2)
	beat(b, 3)
	beat(a, 3)
	if err := c.Leave(t.Context(), store); err != nil {
		t.Error(err)
	}
	beat(a, 2)
	if err := store.Put(t.Context(), replicas.PresenceKey, []byte("{broken"), 0); err != nil {
		t.Fatal(err)
	}
	beat(a, 1)
	beat(b, 2)
	var together sync.WaitGroup
	for i := range 16 {
		together.Go(func() {
			if _, err := replicas.NewPresence(fmt.Sprint(i), clock.Now).Beat(t.Context(), store); err != nil {
				t.Error(err)
			}
		})
	}
	together.Wait()
	beat(a, 18)
}

// TestRevocations: what one replica tells the others hear once, and it does not hear
// itself; a newcomer hears nothing of before.
func TestRevocations(t *testing.T) {
	t.Parallel()
	store := &failing{Store: kv.NewMemory(nil)}
	a, b := replicas.NewFeed(), replicas.NewFeed()
	hears := func(x *replicas.Feed, want ...string) {
		t.Helper()
		if got, err := x.Exchange(t.Context(), store); err != nil || !slices.Equal(got, want) {
			t.Errorf("heard %q, %v; want %q", got, err, want)
		}
	}
	hears(a)
	hears(b)
	a.Revoke("user 1")
	a.Revoke("user 2")
	hears(a)
	c := replicas.NewFeed()
	hears(c)
	hears(b, "user 1", "user 2")
	hears(b)
	hears(a)
	b.Revoke("user 3")
	store.down = true
	if _, err := b.Exchange(t.Context(), store); !errors.Is(err, kv.ErrUnavailable) {
		t.Error(err)
	}
	store.down = false
	hears(b) // it was kept
	hears(a, "user 3")
	hears(c, "user 3")
	for i := range 2 * replicas.MaxRevocations {
		a.Revoke(fmt.Sprint(i))
	}
	hears(a)
	if got, err := b.Exchange(t.Context(), store); err != nil || len(got) != replicas.MaxRevocations {
		t.Errorf("%d notes, %v", len(got), err)
	}
	for _, garbage := range []string{"", "{", `{"last":"x"}`, "[]"} { // the record begins anew
		if err := store.Put(t.Context(), replicas.RevocationsKey, []byte(garbage), 0); err != nil {
			t.Fatal(err)
		}
		hears(b)
		a.Revoke("after")
		hears(a)
		hears(b, "after")
	}
}

// failing is a store that is down at times.
type failing struct {
	kv.Store
	down bool
}

func (f *failing) Get(ctx context.Context, key string) (kv.Entry, error) {
	if f.down {
		return kv.Entry{}, kv.ErrUnavailable
	}
	return f.Store.Get(ctx, key)
}
