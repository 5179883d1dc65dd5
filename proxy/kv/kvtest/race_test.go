package kvtest_test

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"aegis/proxy/kv"
	"aegis/proxy/kv/kvtest"
)

// racers runs n calls at once.
func racers(n int, call func(i int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			call(i)
		})
	}
	close(start)
	wg.Wait()
}

func compareAndSwap(t *testing.T, s kv.Store, clock *kvtest.Clock) {
	swap := func(version uint64, value string, want error) uint64 {
		t.Helper()
		v, err := s.CompareAndSwap(t.Context(), "a", version, []byte(value), time.Minute)
		if !errors.Is(err, want) || (err == nil) != (v != 0) {
			t.Fatalf("swap: version %d, %v; want %v", v, err, want)
		}
		return v
	}
	swap(7, "x", kv.ErrConflict)
	absent(t, s, "a")
	v1 := swap(0, "one", nil)
	if e := get(t, s, "a"); e.Version != v1 || string(e.Value) != "one" || !e.Expires.Equal(clock.Now().Add(time.Minute)) {
		t.Errorf("%q, version %d, want %d; expires %v", e.Value, e.Version, v1, e.Expires)
	}
	swap(0, "x", kv.ErrConflict)
	swap(v1+1, "x", kv.ErrConflict)
	v2 := swap(v1, "two", nil)
	swap(v1, "x", kv.ErrConflict)
	if e := get(t, s, "a"); v2 == v1 || e.Version != v2 || string(e.Value) != "two" {
		t.Errorf("%q, version %d after %d", e.Value, e.Version, v1)
	}
	put(t, s, "a", "three", 0)
	swap(v2, "x", kv.ErrConflict)
}

// swapRacers: a counter that everybody adds to loses nothing.
func swapRacers(t *testing.T, s kv.Store, _ *kvtest.Clock) {
	put(t, s, "n", "0", 0)
	put(t, s, "other", "kept", 0)
	racers(16, func(int) {
		for range 5 {
			for {
				e, err := s.Get(t.Context(), "n")
				if err != nil {
					t.Error(err)
					return
				}
				n, _ := strconv.Atoi(string(e.Value))
				_, err = s.CompareAndSwap(t.Context(), "n", e.Version, []byte(strconv.Itoa(n+1)), 0)
				if err == nil {
					break
				}
				if !errors.Is(err, kv.ErrConflict) {
					t.Error(err)
					return
				}
			}
		}
	})
	if e := get(t, s, "n"); string(e.Value) != "80" {
		t.Errorf("counted %s of 80", e.Value)
	}
}

func createRacers(t *testing.T, s kv.Store, _ *kvtest.Clock) {
	var mu sync.Mutex
	var winners []int
	racers(32, func(i int) {
		_, err := s.CompareAndSwap(t.Context(), "lease", 0, []byte(strconv.Itoa(i)), time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			winners = append(winners, i)
		} else if !errors.Is(err, kv.ErrConflict) {
			t.Error(err)
		}
	})
	if len(winners) != 1 || string(get(t, s, "lease").Value) != strconv.Itoa(winners[0]) {
		t.Errorf("winners %v, value %q", winners, get(t, s, "lease").Value)
	}
}
