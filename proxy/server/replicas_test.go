package server_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"aegis/proxy/kv"
	"aegis/proxy/kv/kvtest"
	"aegis/proxy/server"
)

// TestPresence: replicas that give signs of life count, whatever their clocks say;
// one that is silent or leaves does not, and one that wakes up does again.
func TestPresence(t *testing.T) {
	store, clock := kv.NewMemory(nil), kvtest.NewClock()
	late := func() time.Time { return clock.Now().Add(-100 * time.Hour) }
	a, b, c := server.NewPresence("a", clock.Now), server.NewPresence("b", late), server.NewPresence("c", clock.Now)
	beat := func(p server.Presence, want int) {
		t.Helper()
		if n, err := p.Beat(t.Context(), store); n != want || err != nil {
			t.Errorf("%d replicas, %v; want %d", n, err, want)
		}
	}
	beat(a, 1)
	beat(b, 2)
	beat(c, 3)
	beat(a, 3)
	clock.Add(server.Silence - time.Second)
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
	if err := store.Put(t.Context(), server.PresenceKey, []byte("{broken"), 0); err != nil {
		t.Fatal(err)
	}
	beat(a, 1)
	beat(b, 2)
	parallel(16, func(i int) {
		if _, err := server.NewPresence(fmt.Sprint(i), clock.Now).Beat(context.Background(), store); err != nil {
			t.Error(err)
		}
	})
	beat(a, 18)
}

// TestBulletin: what one replica tells the others hear once, and it does not hear
// itself; a newcomer hears nothing of before.
func TestBulletin(t *testing.T) {
	store := &failing{Store: kv.NewMemory(nil)}
	a, b := server.NewBulletin(), server.NewBulletin()
	hears := func(x *server.Bulletin, want ...string) {
		t.Helper()
		if got, err := x.Exchange(t.Context(), store); err != nil || !slices.Equal(got, want) {
			t.Errorf("heard %q, %v; want %q", got, err, want)
		}
	}
	hears(a)
	hears(b)
	a.Left("user 1")
	a.Left("user 2")
	hears(a)
	c := server.NewBulletin()
	hears(c)
	hears(b, "user 1", "user 2")
	hears(b)
	hears(a)
	b.Left("user 3")
	store.down = true
	if _, err := b.Exchange(t.Context(), store); !errors.Is(err, kv.ErrUnavailable) {
		t.Error(err)
	}
	store.down = false
	hears(b) // it was kept
	hears(a, "user 3")
	hears(c, "user 3")
	for i := range 2 * server.MaxLeavers {
		a.Left(fmt.Sprint(i))
	}
	hears(a)
	if got, err := b.Exchange(t.Context(), store); err != nil || len(got) != server.MaxLeavers {
		t.Errorf("%d notes, %v", len(got), err)
	}
	for _, garbage := range []string{"", "{", `{"last":"x"}`, "[]"} { // the record begins anew
		if err := store.Put(t.Context(), server.BulletinKey, []byte(garbage), 0); err != nil {
			t.Fatal(err)
		}
		hears(b)
		a.Left("after")
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
