package kvtest_test

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"aegis/proxy/internal/seal"
	"aegis/proxy/kv"
	"aegis/proxy/kv/redis"
	"aegis/proxy/kv/redistest"
)

const (
	keyA = "first-key-0123456789-0123456789-abcdef"
	keyB = "other-key-0123456789-0123456789-abcdef"
)

func newRing(t *testing.T, keys ...string) *seal.Ring {
	t.Helper()
	var secrets [][]byte
	for _, k := range keys {
		secrets = append(secrets, []byte(k))
	}
	r, err := seal.New(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// closing closes a store when the test ends.
func closing(t *testing.T, s kv.Store) {
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestMemory(t *testing.T) {
	t.Parallel()
	run(t, func(_ *testing.T, now func() time.Time) kv.Store { return kv.NewMemory(now) })
}

// switched is a switch that closes the store behind it, as the table wants it.
type switched struct {
	*kv.Switch
	behind kv.Store
}

func (s switched) Close() error { return s.behind.Close() }

func TestSwitch(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, now func() time.Time) kv.Store {
		m := kv.NewMemory(now)
		return switched{kv.NewSwitch(m), m}
	})
}

func newFile(t *testing.T, now func() time.Time) kv.Store {
	t.Helper()
	f, err := kv.OpenFile(filepath.Join(t.TempDir(), "aegis.db"), kv.FileOptions{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, f)
	return f
}

func TestFile(t *testing.T) {
	t.Parallel()
	run(t, newFile)
}

func TestSealedFile(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, now func() time.Time) kv.Store {
		return kv.Sealed(newFile(t, now), newRing(t, keyA))
	})
}

// mixed puts with an older ring than it does everything else.
type mixed struct {
	kv.Store
	old kv.Store
}

func (m mixed) Put(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	return m.old.Put(ctx, key, value, ttl)
}

// TestSealedFileOfOldKeys runs the table while every read finds a value of an
// old key.
func TestSealedFileOfOldKeys(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, now func() time.Time) kv.Store {
		f := newFile(t, now)
		return mixed{kv.Sealed(f, newRing(t, keyB, keyA)), kv.Sealed(f, newRing(t, keyA))}
	})
}

var prefixes atomic.Int64

// fresh returns a prefix that no test used before.
func fresh() string { return "t" + strconv.FormatInt(prefixes.Add(1), 10) + "*:" }

func newRedis(t *testing.T, o redis.Options) kv.Store {
	t.Helper()
	o.Timeout = time.Minute // a slow machine is no outage
	s, err := redis.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	closing(t, s)
	return s
}

func TestRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	run(t, func(t *testing.T, now func() time.Time) kv.Store {
		return newRedis(t, redis.Options{Addresses: []string{server.Address}, Prefix: fresh(), Database: 1, Now: now})
	})
}

func TestRedisCluster(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t)
	run(t, func(t *testing.T, now func() time.Time) kv.Store {
		return newRedis(t, redis.Options{Addresses: []string{nodes[1].Address}, Cluster: true, Prefix: fresh(), Now: now})
	})
}

func TestSealedRedis(t *testing.T) {
	t.Parallel()
	server, ring := redistest.Start(t), newRing(t, strings.Repeat("k", 40))
	run(t, func(t *testing.T, now func() time.Time) kv.Store {
		return kv.Sealed(newRedis(t, redis.Options{Addresses: []string{server.Address}, Prefix: fresh(), Now: now}), ring)
	})
}

// TestManyProcesses: clients of one Redis see the same, and one wins.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	prefix := fresh()
	run(t, func(t *testing.T, now func() time.Time) kv.Store {
		server.Do("FLUSHALL")
		o := redis.Options{Addresses: []string{server.Address}, Prefix: prefix, Now: now}
		return &alternating{[]kv.Store{newRedis(t, o), newRedis(t, o), newRedis(t, o)}, &atomic.Int64{}}
	})
}
