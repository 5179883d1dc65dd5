package grant_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"aegis/proxy/kv"
	"aegis/proxy/kv/kvtest"
	"aegis/proxy/oauth/grant"
)

// faulty is a store whose n-th call fails.
type faulty struct {
	kv.Store
	mu     sync.Mutex
	left   int  // calls until the one that fails; negative: none does
	effect bool // it takes effect all the same
	dead   bool // every later call fails as well
}

// fails runs call unless it is to fail without effect.
func fails[T any](f *faulty, call func() (T, error)) (v T, err error) {
	f.mu.Lock()
	hit := f.left == 0
	if f.left > 0 || hit && !f.dead {
		f.left--
	}
	f.mu.Unlock()
	if hit && !f.effect {
		return v, errDown
	}
	got, err := call()
	if hit {
		return v, errDown
	}
	return got, err
}

func (f *faulty) arm(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = n
}

func (f *faulty) Get(ctx context.Context, key string) (kv.Entry, error) {
	return fails(f, func() (kv.Entry, error) { return f.Store.Get(ctx, key) })
}

func (f *faulty) Take(ctx context.Context, key string) (kv.Entry, error) {
	return fails(f, func() (kv.Entry, error) { return f.Store.Take(ctx, key) })
}

func (f *faulty) Put(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	_, err := fails(f, func() (int, error) { return 0, f.Store.Put(ctx, key, value, ttl) })
	return err
}

func (f *faulty) CompareAndSwap(ctx context.Context, key string, version uint64, value []byte, ttl time.Duration) (uint64, error) {
	return fails(f, func() (uint64, error) { return f.Store.CompareAndSwap(ctx, key, version, value, ttl) })
}

func (f *faulty) Delete(ctx context.Context, key string) error {
	_, err := fails(f, func() (int, error) { return 0, f.Store.Delete(ctx, key) })
	return err
}

func (f *faulty) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return f.Store.Keys(ctx, prefix)
}

// eachFault runs test with a store whose n-th call fails, for every n that
// matters, in each of the ways to fail.
func eachFault(t *testing.T, test func(t *testing.T, w *world, f *faulty, n int) (hit bool)) {
	for name, way := range map[string]struct{ effect, dead bool }{"without effect": {}, "with effect": {effect: true}, "for good": {dead: true}} {
		t.Run(name, func(t *testing.T) {
			for n := 0; ; n++ {
				if n > 50 {
					t.Fatal("it never ends")
				}
				clock := kvtest.NewClock()
				f := &faulty{Store: kv.NewMemory(clock.Now), left: -1, effect: way.effect, dead: way.dead}
				if !test(t, newWorld(t, withStore(f), withClock(clock)), f, n) {
					if n < 2 {
						t.Error("nothing failed")
					}
					return
				}
			}
		})
	}
}

// isTrouble checks the answer of a call that the store has failed.
func isTrouble(t *testing.T, n int, tokens *grant.Tokens, err error) {
	t.Helper()
	if tokens != nil || !errors.Is(err, errDown) || errors.Is(err, grant.ErrInvalid) {
		t.Errorf("call %d: %v, %v", n, tokens, err)
	}
}

func TestStoreFailsDuringRedeem(t *testing.T) {
	t.Parallel()
	eachFault(t, func(t *testing.T, w *world, f *faulty, n int) bool {
		code := w.code()
		f.arm(n)
		tokens, err := w.Redeem(t.Context(), code, aRedeem())
		f.arm(-1)
		if err == nil {
			return false
		}
		isTrouble(t, n, tokens, err)
		w.wantKinds("")
		listed, all := w.ids(alice), w.allIDs()
		if !slices.Equal(listed, all) {
			t.Errorf("call %d: grants %v, and the person sees %v", n, all, listed)
		}
		if len(all) != 0 && !f.dead {
			t.Errorf("call %d: a grant is left whose tokens nobody has", n)
		}
		again, err := w.Redeem(t.Context(), code, aRedeem())
		if err != nil {
			isInvalid(t, fmt.Sprintf("call %d, again", n), again, err)
			return true
		}
		w.works(again.Access)
		if !slices.Contains(w.ids(alice), again.Grant.ID) {
			t.Errorf("call %d: the new grant is not listed", n)
		}
		return true
	})
}

func TestStoreFailsDuringRefresh(t *testing.T) {
	t.Parallel()
	eachFault(t, func(t *testing.T, w *world, f *faulty, n int) bool {
		first := w.signIn()
		f.arm(n)
		tokens, err := w.refresh(first.Refresh)
		f.arm(-1)
		if err == nil {
			return false
		}
		isTrouble(t, n, tokens, err)
		again := w.refreshed(first.Refresh)
		w.works(first.Access)
		w.works(again.Access)
		w.refreshed(again.Refresh)
		if !slices.Equal(w.ids(alice), w.allIDs()) || len(w.allIDs()) != 1 {
			t.Errorf("call %d: grants %v, listed %v", n, w.allIDs(), w.ids(alice))
		}
		return true
	})
}

// TestStoreFailsDuringAReplay: the replay is not forgiven; when it comes once
// more, the grant ends.
func TestStoreFailsDuringAReplay(t *testing.T) {
	t.Parallel()
	eachFault(t, func(t *testing.T, w *world, f *faulty, n int) bool {
		code := w.code()
		tokens, err := w.Redeem(t.Context(), code, aRedeem())
		if err != nil {
			t.Fatal(err)
		}
		w.works(tokens.Access)
		f.arm(n)
		again, err := w.Redeem(t.Context(), code, aRedeem())
		f.arm(-1)
		hit := !errors.Is(err, grant.ErrInvalid)
		if hit {
			isTrouble(t, n, again, err)
		}
		again, err = w.Redeem(t.Context(), code, aRedeem())
		isInvalid(t, "once more", again, err)
		w.dead(tokens.Access)
		return hit
	})
}

// TestClientLeavesDuringRedeem: whatever was begun is undone.
func TestClientLeavesDuringRedeem(t *testing.T) {
	t.Parallel()
	clock := kvtest.NewClock()
	store := &leaving{Store: kv.NewMemory(clock.Now)}
	w := newWorld(t, withStore(store), withClock(clock))
	code := w.code()
	ctx, cancel := context.WithCancel(t.Context())
	store.leave = cancel
	tokens, err := w.Redeem(ctx, code, aRedeem())
	if tokens != nil || !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, %v", tokens, err)
	}
	if all := w.allIDs(); len(all) != 0 {
		t.Errorf("left: %v", all)
	}
	if _, err := w.Redeem(t.Context(), code, aRedeem()); err != nil {
		t.Errorf("the code afterwards: %v", err)
	}
}

// leaving is a store during whose first swap the client goes away.
type leaving struct {
	kv.Store
	leave func()
}

func (l *leaving) CompareAndSwap(ctx context.Context, key string, version uint64, value []byte, ttl time.Duration) (uint64, error) {
	v, err := l.Store.CompareAndSwap(ctx, key, version, value, ttl)
	if l.leave != nil {
		l.leave()
	}
	return v, err
}
