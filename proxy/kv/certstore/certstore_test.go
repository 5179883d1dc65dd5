package certstore_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"aegis/proxy/kv"
	"aegis/proxy/kv/certstore"
)

func newStorage(store kv.Store) *certstore.Storage {
	return certstore.New(store, certstore.Options{Poll: time.Millisecond})
}

func put(t *testing.T, s *certstore.Storage, names ...string) {
	t.Helper()
	for _, n := range names {
		if err := s.Store(t.Context(), n, []byte("content of "+n)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	s, began := newStorage(kv.NewMemory(nil)), time.Now()
	put(t, s, "acme/ca/sites/a/a.crt", "acme/ca/sites/a/a.key", "acme/ca/sites/b/b.crt", "acme/ca/users/x", "last")
	if got, err := s.Load(t.Context(), "acme/ca/sites/a/a.crt"); err != nil || string(got) != "content of acme/ca/sites/a/a.crt" {
		t.Errorf("%q, %v", got, err)
	}
	for _, name := range []string{"none", "acme", "acme/ca/sites/a", "acme/ca/sites/a/a.crt/x"} {
		if got, err := s.Load(t.Context(), name); !errors.Is(err, fs.ErrNotExist) || got != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "/", "..", "a/../b", "a//b", "."} {
		if err := s.Store(t.Context(), name, nil); err == nil {
			t.Errorf("%q is taken for a name", name)
		}
	}
	for _, c := range []struct {
		folder    string
		recursive bool
		want      []string
	}{
		{"acme/ca", false, []string{"acme/ca/sites", "acme/ca/users"}},
		{"acme/ca/sites", true, []string{"acme/ca/sites/a/a.crt", "acme/ca/sites/a/a.key", "acme/ca/sites/b/b.crt"}},
		{"acme/ca/sites/", false, []string{"acme/ca/sites/a", "acme/ca/sites/b"}},
		{"", false, []string{"acme", "last"}},
	} {
		if got, err := s.List(t.Context(), c.folder, c.recursive); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v", c.folder, got, err)
		}
	}
	if _, err := s.List(t.Context(), "acm", true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	i, err := s.Stat(t.Context(), "last")
	if err != nil || !i.IsTerminal || i.Size != int64(len("content of last")) || i.Modified.Before(began.Round(0)) || i.Modified.After(time.Now()) {
		t.Errorf("%+v, %v", i, err)
	}
	if i, err := s.Stat(t.Context(), "acme/ca"); err != nil || i.IsTerminal {
		t.Errorf("%+v, %v", i, err)
	}
	if !s.Exists(t.Context(), "acme/ca/sites/a") || s.Exists(t.Context(), "acme/c") {
		t.Error("Exists")
	}
	for range 2 {
		if err := s.Delete(t.Context(), "acme/ca/sites/a"); err != nil {
			t.Error(err)
		}
	}
	if s.Exists(t.Context(), "acme/ca/sites/a") || !s.Exists(t.Context(), "acme/ca/sites/b/b.crt") {
		t.Error("the wrong things were deleted")
	}
}

// TestOneHolder: of many that want a lock, one has it at a time, in one process or
// in several.
func TestOneHolder(t *testing.T) {
	t.Parallel()
	store := kv.NewMemory(nil)
	replicas := []*certstore.Storage{newStorage(store), newStorage(store), newStorage(store)}
	var inside, passed atomic.Int64
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			s := replicas[i%3]
			if err := s.Lock(t.Context(), "host"); err != nil {
				t.Error(err)
				return
			}
			if n := inside.Add(1); n != 1 {
				t.Errorf("%d holders", n)
			}
			passed.Add(1)
			inside.Add(-1)
			if err := s.Unlock(t.Context(), "host"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if passed.Load() != 12 {
		t.Errorf("%d of 12", passed.Load())
	}
}

// TestRenewal: a holder that works for longer than the lease keeps the lock; one
// that has died loses it.
func TestRenewal(t *testing.T) { synctest.Test(t, testRenewal) }

func testRenewal(t *testing.T) {
	store := kv.NewMemory(nil)
	a, b := certstore.New(store, certstore.Options{}), certstore.New(store, certstore.Options{})
	if err := a.Lock(t.Context(), "host"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second) // three leases
	defer cancel()
	if err := b.Lock(ctx, "host"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the lock was taken from its holder: %v", err)
	}
	certstore.Freeze(a, "host") // as if the process had been stopped
	if err := b.Lock(t.Context(), "host"); err != nil {
		t.Fatal(err)
	}
	if err := a.Unlock(t.Context(), "host"); err != nil {
		t.Error(err)
	}
	if ok, err := a.TryLock(t.Context(), "host"); ok || err != nil {
		t.Errorf("the former holder's Unlock freed the other's lock: %v, %v", ok, err)
	}
	if err := b.RenewLockLease(t.Context(), "host", time.Minute); err != nil {
		t.Error(err)
	}
	if err := b.Unlock(t.Context(), "host"); err != nil {
		t.Error(err)
	}
	if err := b.Unlock(t.Context(), "host"); err == nil {
		t.Error("unlocked twice")
	}
}
