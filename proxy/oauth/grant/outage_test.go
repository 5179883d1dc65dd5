package grant_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"aegis/proxy/kv"
	"aegis/proxy/kv/kvtest"
	"aegis/proxy/oauth/grant"
)

// away is a store that cannot be reached while it is away.
type away struct {
	kv.Store
	gone bool
}

func (a *away) Get(ctx context.Context, key string) (kv.Entry, error) {
	if a.gone {
		return kv.Entry{}, kv.ErrUnavailable
	}
	return a.Store.Get(ctx, key)
}

// TestOutage: while the store is away, tokens that were verified are taken for as
// long as was agreed, and no others.
func TestOutage(t *testing.T) {
	t.Parallel()
	clock := kvtest.NewClock()
	store := &away{Store: kv.NewMemory(clock.Now)}
	w := newWorld(t, withStore(store), withClock(clock))
	w.Grants = withOutage(t, w, time.Minute)
	known, unseen, ended := w.signIn(), w.signIn(), w.signIn()
	w.works(known.Access)
	w.works(ended.Access)
	other := withOutage(t, w, time.Minute) // another replica ends a grant, and this one notices
	if err := other.End(t.Context(), ended.Grant.ID); err != nil {
		t.Fatal(err)
	}
	clock.Add(6 * time.Second)
	w.dead(ended.Access)
	w.works(known.Access)
	store.gone = true
	clock.Add(59 * time.Second)
	w.works(known.Access)
	for name, token := range map[string]string{"never verified": unseen.Access, "ended before": ended.Access} {
		if got, err := w.Verify(t.Context(), token); got != nil || !errors.Is(err, kv.ErrUnavailable) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	clock.Add(time.Second)
	if got, err := w.Verify(t.Context(), known.Access); got != nil || !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("after the agreed time: %v, %v", got, err)
	}
	store.gone = false
	w.works(known.Access)
	w.works(unseen.Access)
	w.dead(ended.Access)
}

func TestOutageUnlessAgreed(t *testing.T) {
	t.Parallel()
	clock := kvtest.NewClock()
	store := &away{Store: kv.NewMemory(clock.Now)}
	w := newWorld(t, withStore(store), withClock(clock))
	tokens := w.signIn()
	w.works(tokens.Access)
	clock.Add(6 * time.Second)
	store.gone = true
	if got, err := w.Verify(t.Context(), tokens.Access); got != nil || !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("%v, %v", got, err)
	}
}

func withOutage(t *testing.T, w *world, d time.Duration) *grant.Grants {
	t.Helper()
	g, err := grant.New(grant.Options{Store: w.store, Keys: ring(t, keyA).Derive, Config: life.config(),
		Now: w.clock.Now, Outage: d})
	if err != nil {
		t.Fatal(err)
	}
	return g
}
