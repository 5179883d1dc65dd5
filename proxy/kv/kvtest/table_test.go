package kvtest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"aegis/proxy/kv"
	"aegis/proxy/kv/kvtest"
)

// opener returns a new, empty store that tells the time by now. It sees to it that
// the store is closed when the test ends.
type opener func(t *testing.T, now func() time.Time) kv.Store

// run runs the table over the stores that open makes.
func run(t *testing.T, open opener) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, s kv.Store, clock *kvtest.Clock)
	}{
		{"PutGet", putGet},
		{"OwnCopies", ownCopies},
		{"Lifetime", lifetime},
		{"TakeOnce", takeOnce},
		{"Delete", deleteKey},
		{"DeleteExpired", deleteExpired},
		{"CompareAndSwap", compareAndSwap},
		{"CompareAndSwapRacers", swapRacers},
		{"CreateRacers", createRacers},
		{"VersionsNeverReturn", versions},
		{"Keys", keys},
		{"KeysWhileWriting", keysWhileWriting},
		{"Bounds", bounds},
		{"CancelledContext", cancelled},
		{"Closed", closed},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := kvtest.NewClock()
			c.test(t, open(t, clock.Now), clock)
		})
	}
}

func put(t *testing.T, s kv.Store, key, value string, ttl time.Duration) {
	t.Helper()
	if err := s.Put(t.Context(), key, []byte(value), ttl); err != nil {
		t.Errorf("Put %q: %v", key, err)
	}
}

func get(t *testing.T, s kv.Store, key string) kv.Entry {
	t.Helper()
	e, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("Get %q: %v", key, err)
	}
	return e
}

func absent(t *testing.T, s kv.Store, key string) {
	t.Helper()
	if e, err := s.Get(t.Context(), key); !errors.Is(err, kv.ErrNotFound) || e.Value != nil || e.Version != 0 {
		t.Errorf("Get %q: %q, %v; want ErrNotFound", key, e.Value, err)
	}
}

func putGet(t *testing.T, s kv.Store, _ *kvtest.Clock) {
	absent(t, s, "a")
	for _, key := range []string{"a", "a/b", "A", "a\x00", "ü", " ", strings.Repeat("k", kv.MaxKey)} {
		for _, value := range []string{"", "1", "\x00\xff", strings.Repeat("v", kv.MaxValue)} {
			put(t, s, key, value, 0)
			if e := get(t, s, key); string(e.Value) != value || e.Value == nil || e.Version == 0 || !e.Expires.IsZero() {
				t.Errorf("%.10q: %.10q, version %d, expires %v", key, e.Value, e.Version, e.Expires)
			}
		}
	}
}

func ownCopies(t *testing.T, s kv.Store, _ *kvtest.Clock) {
	for i := range 4 { // enough that a store in a file gives the keys pages of their own
		put(t, s, strconv.Itoa(i), strings.Repeat("v", 5000), 0)
	}
	mine := []byte("value")
	if err := s.Put(t.Context(), "a", mine, 0); err != nil {
		t.Fatal(err)
	}
	mine[0] = 'X'
	get(t, s, "a").Value[1] = 'X'
	if e := get(t, s, "a"); string(e.Value) != "value" {
		t.Errorf("changed from outside: %q", e.Value)
	}
}

func lifetime(t *testing.T, s kv.Store, clock *kvtest.Clock) {
	put(t, s, "short", "x", time.Minute)
	put(t, s, "longer", "x", time.Minute)
	put(t, s, "longer", "y", time.Hour)
	put(t, s, "ever", "x", time.Minute)
	put(t, s, "ever", "y", 0)
	if e := get(t, s, "short"); !e.Expires.Equal(clock.Now().Add(time.Minute)) {
		t.Errorf("expires %v at %v", e.Expires, clock.Now())
	}
	old := get(t, s, "short").Version
	clock.Add(time.Minute - time.Nanosecond)
	get(t, s, "short")
	clock.Add(time.Nanosecond)
	absent(t, s, "short")
	if _, err := s.Take(t.Context(), "short"); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("Take of an expired key: %v", err)
	}
	if got := list(t, s, ""); !slices.Equal(got, []string{"ever", "longer"}) {
		t.Errorf("keys: %q", got)
	}
	if _, err := s.CompareAndSwap(t.Context(), "short", old, nil, 0); !errors.Is(err, kv.ErrConflict) {
		t.Errorf("swap of an expired version: %v", err)
	}
	if _, err := s.CompareAndSwap(t.Context(), "short", 0, []byte("again"), time.Minute); err != nil {
		t.Errorf("an expired key is as good as absent: %v", err)
	}
	if e := get(t, s, "short"); string(e.Value) != "again" {
		t.Errorf("%q", e.Value)
	}
	clock.Add(100 * 365 * 24 * time.Hour)
	if e := get(t, s, "ever"); string(e.Value) != "y" {
		t.Errorf("%q", e.Value)
	}
}

func takeOnce(t *testing.T, s kv.Store, _ *kvtest.Clock) {
	for round := range 5 {
		key := "code/" + strconv.Itoa(round)
		put(t, s, key, "prize", time.Minute)
		put(t, s, "other", "kept", 0)
		var mu sync.Mutex
		winners := 0
		racers(32, func(int) {
			e, err := s.Take(t.Context(), key)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && string(e.Value) == "prize":
				winners++
			case !errors.Is(err, kv.ErrNotFound) || e.Value != nil:
				t.Errorf("%q, %v", e.Value, err)
			}
		})
		if winners != 1 {
			t.Errorf("%d winners", winners)
		}
		absent(t, s, key)
		get(t, s, "other")
	}
}

func deleteKey(t *testing.T, s kv.Store, _ *kvtest.Clock) {
	put(t, s, "a", "1", 0)
	put(t, s, "ab", "2", time.Hour)
	for range 2 {
		if err := s.Delete(t.Context(), "a"); err != nil {
			t.Errorf("%v", err)
		}
		absent(t, s, "a")
	}
	get(t, s, "ab")
	put(t, s, "a", "3", 0)
	get(t, s, "a")
}

// deleteExpired: what was deleted stays away when the clock is set back, also what had expired.
func deleteExpired(t *testing.T, s kv.Store, clock *kvtest.Clock) {
	put(t, s, "a", "1", time.Minute)
	clock.Add(2 * time.Minute)
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	clock.Add(-2 * time.Minute)
	absent(t, s, "a")
}

// versions: whoever holds a version from before a deletion must not win.
func versions(t *testing.T, s kv.Store, clock *kvtest.Clock) {
	seen := map[uint64]bool{}
	for i := range 20 {
		put(t, s, "a", "x", time.Minute)
		e := get(t, s, "a")
		if seen[e.Version] {
			t.Fatalf("version %d came back", e.Version)
		}
		seen[e.Version] = true
		switch i % 4 {
		case 0:
			if err := s.Delete(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		case 1:
			if _, err := s.Take(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		case 2:
			clock.Add(time.Hour)
		}
	}
}

func list(t *testing.T, s kv.Store, prefix string) []string {
	t.Helper()
	got := []string{}
	for k, err := range s.Keys(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, k)
	}
	slices.Sort(got)
	return got
}

func keys(t *testing.T, s kv.Store, clock *kvtest.Clock) {
	all := []string{"a*", "a*/1", "a*/2", "ab", "a[b]", "a?", "b", `a\*/3`, "a*\xff", "user/1/fam/x", "user/11/fam/y"}
	for i := range 600 {
		all = append(all, fmt.Sprintf("many/%04d", i))
	}
	racers(len(all), func(i int) { put(t, s, all[i], "v", 0) })
	racers(300, func(i int) { put(t, s, fmt.Sprintf("many/%04d.expired", i), "v", time.Second) })
	clock.Add(time.Minute)
	slices.Sort(all)
	for _, prefix := range []string{"", "a", "a*", "a*/", "a?", "a[", `a\`, "user/1/", "user/1", "many/", "none", "a*\xff", "\xff"} {
		var want []string
		for _, k := range all {
			if strings.HasPrefix(k, prefix) {
				want = append(want, k)
			}
		}
		if got := list(t, s, prefix); !slices.Equal(got, want) {
			t.Errorf("prefix %q: %d keys, want %d", prefix, len(got), len(want))
		}
	}
	n := 0
	for range s.Keys(t.Context(), "many/") {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("went on after the loop ended: %d", n)
	}
	put(t, s, "after", "v", 0)
}

// keysWhileWriting: a loop over keys may change the store.
func keysWhileWriting(t *testing.T, s kv.Store, _ *kvtest.Clock) {
	racers(600, func(i int) { put(t, s, fmt.Sprintf("old/%04d", i), "v", 0) })
	n := 0
	for k, err := range s.Keys(t.Context(), "old/") {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if n%100 != 1 {
			continue
		}
		put(t, s, "new/"+k, strings.Repeat("v", 10000), 0)
		if err := s.Delete(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	if n != 600 {
		t.Errorf("%d keys of 600", n)
	}
	if got := len(list(t, s, "old/")); got != 594 {
		t.Errorf("%d keys are left", got)
	}
}

func bounds(t *testing.T, s kv.Store, _ *kvtest.Clock) {
	big := bytes.Repeat([]byte("v"), kv.MaxValue+1)
	for name, err := range map[string]error{
		"long key":         s.Put(t.Context(), strings.Repeat("k", kv.MaxKey+1), nil, 0),
		"empty key":        s.Put(t.Context(), "", nil, 0),
		"large value":      s.Put(t.Context(), "a", bytes.Repeat(big, 2), 0),
		"get of long key":  second(s.Get(t.Context(), strings.Repeat("k", kv.MaxKey+1))),
		"take of empty":    second(s.Take(t.Context(), "")),
		"delete of empty":  s.Delete(t.Context(), ""),
		"swap of large":    second(s.CompareAndSwap(t.Context(), "a", 0, bytes.Repeat(big, 2), 0)),
		"swap of long key": second(s.CompareAndSwap(t.Context(), strings.Repeat("k", 9999), 0, nil, 0)),
	} {
		if !errors.Is(err, kv.ErrTooLarge) {
			t.Errorf("%s: %v; want ErrTooLarge", name, err)
		}
	}
	if s.Put(t.Context(), "a", nil, -1) == nil || second(s.CompareAndSwap(t.Context(), "a", 0, nil, -time.Hour)) == nil {
		t.Error("a negative lifetime is taken")
	}
	absent(t, s, "a")
}

func second[T any](_ T, err error) error { return err }

// all calls every method and returns their errors.
func all(ctx context.Context, s kv.Store) map[string]error {
	errs := map[string]error{
		"Get":    second(s.Get(ctx, "a")),
		"Put":    s.Put(ctx, "a", []byte("new"), 0),
		"Take":   second(s.Take(ctx, "a")),
		"Swap":   second(s.CompareAndSwap(ctx, "a", 0, []byte("new"), 0)),
		"Delete": s.Delete(ctx, "a"),
		"Keys":   errors.New("Keys yielded no error"),
	}
	for _, err := range s.Keys(ctx, "") {
		errs["Keys"] = err
	}
	return errs
}

func cancelled(t *testing.T, s kv.Store, _ *kvtest.Clock) {
	put(t, s, "a", "kept", 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range all(ctx, s) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if e := get(t, s, "a"); string(e.Value) != "kept" {
		t.Errorf("changed to %q", e.Value)
	}
}

func closed(t *testing.T, s kv.Store, _ *kvtest.Clock) {
	put(t, s, "a", "kept", 0)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	for name, err := range all(t.Context(), s) {
		if !errors.Is(err, kv.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
