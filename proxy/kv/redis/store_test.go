package redis_test

import (
	"errors"
	"testing"
	"time"

	"aegis/proxy/kv"
	"aegis/proxy/kv/redis"
	"aegis/proxy/kv/redistest"
)

func open(t testing.TB, o redis.Options) *redis.Store {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = time.Minute // a slow machine is no outage
	}
	s, err := redis.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestOwnClock: without a clock of a test, Redis decides what has expired.
func TestOwnClock(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Options{Addresses: []string{server.Address}, Prefix: "a:"})
	before := time.Now()
	if err := s.Put(t.Context(), "short", []byte("v"), 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CompareAndSwap(t.Context(), "long", 0, []byte("v"), time.Hour); err != nil {
		t.Fatal(err)
	}
	e, err := s.Get(t.Context(), "long")
	if left := e.Expires.Sub(before); err != nil || left < time.Hour || left > 2*time.Hour {
		t.Errorf("%v, %v", left, err)
	}
	eventually(t, func() error {
		_, err := s.Get(t.Context(), "short")
		if err == nil {
			return errors.New("still there")
		}
		if errors.Is(err, kv.ErrNotFound) {
			return nil
		}
		return err
	})
	if _, err := s.Take(t.Context(), "short"); err != kv.ErrNotFound {
		t.Error(err)
	}
	if ttl := server.Do("PTTL a:kv:long"); ttl == ":-1" || ttl == ":-2" {
		t.Errorf("Redis does not know when the entry expires: %s", ttl)
	}
}
