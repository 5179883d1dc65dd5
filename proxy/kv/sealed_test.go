package kv_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"aegis/proxy/internal/seal"
	"aegis/proxy/kv"
	"aegis/proxy/kv/kvtest"
)

func TestNothingPlainReachesTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "aegis.db")
	f := openFile(t, path, kv.FileOptions{})
	s := kv.Sealed(f, newRing(t, keyA))
	const secret = "a-gitea-access-token-of-somebody"
	put(t, s, "cred/1", secret, time.Hour)
	if _, err := s.CompareAndSwap(t.Context(), "cred/2", 0, []byte(secret), 0); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte(secret)) || !bytes.Contains(text, []byte("cred/1")) {
		t.Error("the file holds the plain value, or nothing")
	}
}

func put(t testing.TB, s kv.Store, key, value string, ttl time.Duration) {
	t.Helper()
	if err := s.Put(t.Context(), key, []byte(value), ttl); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, s kv.Store, key string) string {
	t.Helper()
	e, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return string(e.Value)
}

// TestMovedValuesDoNotOpen: somebody who can write to the file puts one person's
// credential in the place of another's, changes one, or makes one up.
func TestMovedValuesDoNotOpen(t *testing.T) {
	t.Parallel()
	inner := kv.NewMemory(nil)
	s := kv.Sealed(inner, newRing(t, keyA))
	put(t, s, "cred/1", "mallory's", 0)
	put(t, s, "cred/2", "alice's", 0)
	mallorys, err := inner.Get(t.Context(), "cred/1")
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(mallorys.Value)
	flipped[len(flipped)-1] ^= 1
	for name, value := range map[string][]byte{"moved": mallorys.Value, "changed": flipped, "plain": []byte(`{"token":"x"}`), "empty": nil} {
		for method, call := range map[string]func() (kv.Entry, error){
			"Get":  func() (kv.Entry, error) { return s.Get(t.Context(), "cred/2") },
			"Take": func() (kv.Entry, error) { return s.Take(t.Context(), "cred/2") },
		} {
			if err := inner.Put(t.Context(), "cred/2", value, 0); err != nil {
				t.Fatal(err)
			}
			e, err := call()
			if err == nil || errors.Is(err, kv.ErrNotFound) || e.Value != nil {
				t.Errorf("%s by %s: %q, %v", name, method, e.Value, err)
			}
			if !strings.Contains(err.Error(), "cred/") || strings.Contains(err.Error(), "cred/2") {
				t.Errorf("%v; want the kind of the key and no more", err)
			}
		}
	}
}

func TestOldValuesAreSealedAnewWhenRead(t *testing.T) {
	t.Parallel()
	clock := kvtest.NewClock()
	inner := kv.NewMemory(clock.Now)
	put(t, kv.Sealed(inner, newRing(t, keyA)), "cred/1", "kept", time.Hour)
	clock.Add(20 * time.Minute)
	s := kv.Sealed(inner, newRing(t, keyB, keyA))
	e, err := s.Get(t.Context(), "cred/1")
	if err != nil || string(e.Value) != "kept" {
		t.Fatalf("%q, %v", e.Value, err)
	}
	after, err := kv.Sealed(inner, newRing(t, keyB)).Get(t.Context(), "cred/1")
	if err != nil || string(after.Value) != "kept" || after.Version != e.Version || !after.Expires.Equal(clock.Now().Add(40*time.Minute)) {
		t.Errorf("%q, version %d, want %d; expires %v; %v", after.Value, after.Version, e.Version, after.Expires, err)
	}
	if _, err := s.CompareAndSwap(t.Context(), "cred/1", e.Version, []byte("new"), 0); err != nil {
		t.Errorf("the version that was read does not swap: %v", err)
	}
}

func TestMissingKeysAreFoundAtStart(t *testing.T) {
	t.Parallel()
	inner := kv.NewMemory(nil)
	a, b, c := newRing(t, keyA), newRing(t, keyB), newRing(t, keyC)
	put(t, kv.Sealed(inner, a), "cred/1", "x", 0)
	put(t, kv.Sealed(inner, a), "cred/2", "x", 0)
	put(t, kv.Sealed(inner, b), "cred/3", "x", 0)
	put(t, kv.Sealed(inner, c), "cred/4", "x", 0)
	err := kv.Sealed(inner, c).Check(t.Context())
	if !errors.Is(err, seal.ErrKey) || !strings.Contains(err.Error(), "2 values were sealed with key "+a.KeyIDs()[0]) || !strings.Contains(err.Error(), "1 values were sealed with key "+b.KeyIDs()[0]) {
		t.Errorf("%v", err)
	}
	if err := kv.Sealed(inner, newRing(t, keyC, keyB, keyA)).Check(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := kv.Sealed(inner, c).Get(t.Context(), "cred/1"); !errors.Is(err, seal.ErrKey) || !strings.Contains(err.Error(), a.KeyIDs()[0]) {
		t.Errorf("%v", err)
	}
	put(t, inner, "cred/5", "not sealed", 0)
	if err := kv.Sealed(inner, newRing(t, keyC, keyB, keyA)).Check(t.Context()); !errors.Is(err, seal.ErrDamaged) {
		t.Errorf("a value that is not sealed: %v", err)
	}
}

func TestResealWhileInUse(t *testing.T) {
	t.Parallel()
	inner := kv.NewMemory(nil)
	old := kv.Sealed(inner, newRing(t, keyA))
	for i := range 200 {
		put(t, old, fmt.Sprint("k/", i), "0", 0)
	}
	both := kv.Sealed(inner, newRing(t, keyB, keyA))
	put(t, both, "new", "0", 0)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 200 { // a process that has not seen the new key yet
			put(t, old, fmt.Sprint("k/", 199-i), "1", 0)
			if i%3 == 0 {
				if err := old.Delete(t.Context(), fmt.Sprint("k/", i)); err != nil {
					t.Error(err)
				}
			}
		}
	})
	if _, err := both.Reseal(t.Context()); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if _, err := both.Reseal(t.Context()); err != nil {
		t.Error(err)
	}
	if err := kv.Sealed(inner, newRing(t, keyB)).Check(t.Context()); err != nil {
		t.Errorf("after it, old keys are needed: %v", err)
	}
	if n, err := both.Reseal(t.Context()); n != 0 || err != nil {
		t.Errorf("done again: %d, %v", n, err)
	}
	if got := get(t, both, "k/100"); got != "1" {
		t.Errorf("a write was undone: %q", got)
	}
}

func TestRotate(t *testing.T) {
	t.Parallel()
	keys, path := filepath.Join(t.TempDir(), "store.keys"), filepath.Join(t.TempDir(), "aegis.db")
	if _, err := kv.Rotate(t.Context(), keys, path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a key file: %v", err)
	}
	ring := openRing(t, keys)
	if r, err := kv.Rotate(t.Context(), keys, path); err != nil || r.InUse || r.Resealed != 0 || r.KeyID != openRing(t, keys).KeyIDs()[0] {
		t.Errorf("without a store: %+v, %v", r, err)
	}
	f := openFile(t, path, kv.FileOptions{})
	for i := range 20 {
		put(t, kv.Sealed(f, ring), fmt.Sprint("k/", i), "kept", 0)
	}
	r, err := kv.Rotate(t.Context(), keys, path)
	if err != nil || !r.InUse || r.Resealed != 0 {
		t.Errorf("while it is in use: %+v, %v", r, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r, err = kv.Rotate(t.Context(), keys, path)
	if err != nil || r.InUse || r.Resealed != 20 {
		t.Errorf("%+v, %v", r, err)
	}
	onlyCurrent(t, keys, path, r.KeyID)
}

// onlyCurrent checks that every value opens and needs only the current key.
func onlyCurrent(t *testing.T, keys, path, id string) {
	t.Helper()
	ring := openRing(t, keys)
	f := openFile(t, path, kv.FileOptions{})
	defer f.Close()
	if ring.KeyIDs()[0] != id || len(ring.KeyIDs()) != 4 {
		t.Errorf("keys %v, want %s first", ring.KeyIDs(), id)
	}
	for i := range 20 {
		e, err := f.Get(t.Context(), fmt.Sprint("k/", i))
		if err != nil {
			t.Fatal(err)
		}
		if got, stale, err := ring.Open(fmt.Sprint("k/", i), e.Value); err != nil || stale || string(got) != "kept" {
			t.Errorf("%q, stale %v, %v", got, stale, err)
		}
	}
}

func openRing(t *testing.T, path string) *seal.Ring {
	t.Helper()
	r, err := seal.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRotateLeavesAForeignStoreAlone: with the wrong key file, nothing is changed.
func TestRotateLeavesAForeignStoreAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys, path := filepath.Join(dir, "store.keys"), filepath.Join(dir, "aegis.db")
	before := openRing(t, keys).KeyIDs()
	f := openFile(t, path, kv.FileOptions{})
	put(t, kv.Sealed(f, newRing(t, keyA)), "k", "x", 0)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := kv.Rotate(t.Context(), keys, path); !errors.Is(err, seal.ErrKey) {
		t.Errorf("%+v, %v", r, err)
	}
	if after := openRing(t, keys).KeyIDs(); len(after) != 1 || after[0] != before[0] {
		t.Errorf("keys %v, were %v", after, before)
	}
}
