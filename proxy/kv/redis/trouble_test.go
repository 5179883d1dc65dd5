package redis_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"aegis/proxy/kv"
	"aegis/proxy/kv/redis"
	"aegis/proxy/kv/redistest"
)

// eventually tries until there is no error. Its end is generous: it is for what never
// comes, and slow machines must not meet it.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestFrozen: a Redis that takes connections and answers nothing holds nobody up
// for longer than the timeout, soon nobody at all, and is used again by itself.
func TestFrozen(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Options{Addresses: []string{server.Address}, Timeout: 500 * time.Millisecond})
	eventually(t, func() error { return s.Put(t.Context(), "a", []byte("v"), 0) })
	server.Signal(syscall.SIGSTOP)
	thaw := sync.OnceFunc(func() { server.Signal(syscall.SIGCONT) })
	defer thaw()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			// It returns at all, although the server never answers.
			if _, err := s.Get(t.Context(), "a"); !errors.Is(err, kv.ErrUnavailable) {
				t.Errorf("Get: %v", err)
			}
		})
	}
	wg.Wait()
	if !s.Down() {
		t.Error("it is not known to be down")
	}
	if _, err := s.Take(t.Context(), "a"); !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("Take: %v", err)
	}
	thaw()
	eventually(t, func() error {
		if _, err := s.Get(t.Context(), "b"); !errors.Is(err, kv.ErrNotFound) || s.Down() {
			return fmt.Errorf("%w; down: %v", err, s.Down())
		}
		return nil
	})
}

// TestBackAtOnce: however long a server was away and however often it was missed, the
// first call that is sent when it is back is answered, also one that is sent once.
func TestBackAtOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s := open(t, redis.Options{Addresses: []string{server.Address}})
	s.Spare(time.Millisecond)
	var wg sync.WaitGroup
	for i := range 16 { // as many connections rest
		wg.Go(func() {
			if err := s.Put(t.Context(), fmt.Sprint(i), []byte("v"), 0); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	server.Stop()
	for missed := 0; missed < 30; {
		_, err := s.Get(t.Context(), "0")
		if !errors.Is(err, kv.ErrUnavailable) {
			t.Fatal(err)
		}
		if !errors.Is(err, redis.ErrSpared) {
			missed++
		}
	}
	server.Run()
	for {
		if e, err := s.Take(t.Context(), "0"); err == nil && string(e.Value) == "v" {
			break
		} else if !errors.Is(err, redis.ErrSpared) {
			t.Fatalf("%q, %v", e.Value, err)
		}
	}
	// Connections that ended while they rested cost a call nothing either.
	server.Stop()
	server.Run()
	if _, err := s.Get(t.Context(), "1"); err != nil {
		t.Error(err)
	}
}

// TestRestart: what was written is there again, and the scripts need not be.
func TestRestart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s := open(t, redis.Options{Addresses: []string{server.Address}})
	v, err := s.CompareAndSwap(t.Context(), "a", 0, []byte("one"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	server.Stop()
	if _, err := s.Get(t.Context(), "a"); !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("Get of a server that is gone: %v", err)
	}
	server.Run()
	eventually(t, func() error { return s.Ping(t.Context()) })
	e, err := s.Get(t.Context(), "a")
	if err != nil || e.Version != v || string(e.Value) != "one" || e.Expires.IsZero() {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := s.CompareAndSwap(t.Context(), "a", v, []byte("two"), 0); err != nil {
		t.Error(err)
	}
	if e, err := s.Take(t.Context(), "a"); err != nil || string(e.Value) != "two" {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestFull(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory", "3mb", "--maxmemory-policy", "noeviction")
	s := open(t, redis.Options{Addresses: []string{server.Address}})
	var err error
	for i := 0; i < 200 && err == nil; i++ {
		err = s.Put(t.Context(), fmt.Sprint(i), []byte(strings.Repeat("v", kv.MaxValue)), 0)
	}
	if !errors.Is(err, kv.ErrFull) {
		t.Errorf("%v; want ErrFull", err)
	}
	if _, err := s.Get(t.Context(), "0"); err != nil {
		t.Errorf("what was there: %v", err)
	}
	if err := s.Delete(t.Context(), "0"); err != nil {
		t.Errorf("deletion: %v", err)
	}
}

// TestForeignKeys: what other programs keep beside us is not ours.
func TestForeignKeys(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Options{Addresses: []string{server.Address}, Prefix: "a:"})
	for _, c := range []string{"SET a:kv:text hello", "SET other 1", "HSET a:kv:odd f 1", "HSET a:kv:none v 1", "LPUSH a:kv:list 1"} {
		server.Do(c)
	}
	for _, k := range []string{"text", "list", "none"} {
		if e, err := s.Get(t.Context(), k); err == nil || e.Value != nil || errors.Is(err, kv.ErrUnavailable) {
			t.Errorf("%s: %v, %v", k, e, err)
		}
	}
	if _, err := s.Get(t.Context(), "other"); !errors.Is(err, kv.ErrNotFound) {
		t.Error(err)
	}
}

func TestNoPasswordInErrors(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--requirepass", "right-password")
	const wrong = "wrong-password-1234"
	s, err := redis.New(redis.Options{Addresses: []string{server.Address}, Password: wrong})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Ping(t.Context()); err == nil || strings.Contains(err.Error(), wrong) || !strings.Contains(err.Error(), "store.password") {
		t.Errorf("%v", err)
	}
}

func TestOptionsRefused(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]redis.Options{
		"no address": {}, "cluster and sentinel": {Addresses: []string{"a:1"}, Cluster: true, Master: "m"},
		"database of a cluster": {Addresses: []string{"a:1"}, Cluster: true, Database: 1}, "timeout": {Addresses: []string{"a:1"}, Timeout: -1},
	} {
		if s, err := redis.New(o); err == nil || s != nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func grades(list []redis.Finding) string {
	var out []string
	for _, f := range list {
		out = append(out, string(f.Grade)+": "+f.What)
	}
	return strings.Join(out, "\n")
}

func TestInspect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		user string
		want []string
	}{
		"sound":       {[]string{"--appendonly", "yes"}, "", []string{"ok: the user may do all", "ok: entries survive", "ok: entries are never evicted", "warning: the server has no replica"}},
		"evicts":      {[]string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}, "", []string{"failure: Redis may evict"}},
		"forgets":     {nil, "", []string{"warning: without appendonly"}},
		"no scripts":  {nil, "+@all -@scripting", []string{"failure: cannot write"}},
		"no scan":     {nil, "+@all -scan", []string{"failure: cannot list"}},
		"no info":     {nil, "+@all -info", []string{"ok: the user may do all", "warning: whether entries can be lost is not known"}},
		"just enough": {nil, "+@read +@write +@scripting +time +ping +info", []string{"ok: the user may do all", "ok: entries are never evicted"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, c.args...)
			o := redis.Options{Addresses: []string{server.Address}, Prefix: "aegis:"}
			if c.user != "" {
				o.Username, o.Password = "aegis", "secret-of-aegis"
				if got := server.Do("ACL SETUSER aegis on >secret-of-aegis ~aegis:* " + c.user); got != "+OK" {
					t.Fatal(got)
				}
			}
			got := grades(open(t, o).Inspect(t.Context()))
			for _, w := range c.want {
				if !strings.Contains(got, w) {
					t.Errorf("%q is missing from\n%s", w, got)
				}
			}
			if keys := server.Do("DBSIZE"); keys != ":0" && keys != ":1" { // a bucket of limits may be left for a second
				t.Errorf("it left %s keys", keys)
			}
		})
	}
	s, err := redis.New(redis.Options{Addresses: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := grades(s.Inspect(t.Context())); !strings.HasPrefix(got, "failure: Redis cannot be used") {
		t.Error(got)
	}
}

// TestSentinel: after the master dies, the other server is written to.
func TestSentinel(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	host, port, _ := strings.Cut(master.Address, ":")
	second := redistest.Start(t, "--replicaof", host+" "+port)
	// Sentinels ask a master for its replicas at the start, and then every ten seconds.
	master.Do("SET early 1")
	eventually(t, func() error {
		if got := second.Do("EXISTS early"); got != ":1" {
			return errors.New(got)
		}
		return nil
	})
	text := fmt.Sprintf("sentinel monitor main %s %s 1\nsentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n", host, port)
	sentinel := redistest.StartSentinel(t, sentinelFile(t, text))
	// One of the Sentinels is not there.
	s := open(t, redis.Options{Addresses: []string{"127.0.0.1:1", sentinel.Address}, Master: "main"})
	eventually(t, func() error { return s.Put(t.Context(), "a", []byte("before"), 0) })
	eventually(t, func() error { // the sentinel must know the replica, and the replica the entry
		if got := second.Do("EXISTS kv:a"); got != ":1" {
			return errors.New(got)
		}
		if got := sentinel.Do("SENTINEL CKQUORUM main"); !strings.HasPrefix(got, "+OK") {
			return errors.New(got)
		}
		if got := sentinel.Do("SENTINEL REPLICAS main"); got != "*1" {
			return errors.New("replicas: " + got)
		}
		return nil
	})
	master.Stop()
	eventually(t, func() error { return s.Put(t.Context(), "b", []byte("after"), 0) })
	if e, err := s.Get(t.Context(), "a"); err != nil || string(e.Value) != "before" {
		t.Errorf("%q, %v", e.Value, err)
	}
}

// sentinelFile returns a configuration of a Sentinel.
func sentinelFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestSpend: three clients in parallel get the bucket's tokens and no more.
func TestSpend(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var clients []*redis.Store
	for range 3 {
		clients = append(clients, open(t, redis.Options{Addresses: []string{server.Address}}))
	}
	slow := redis.Budget{Key: "slow", Every: time.Hour, Burst: 100}
	var got atomic.Int64
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			for range 25 {
				out, err := clients[i%3].Spend(context.Background(), []redis.Budget{slow})
				if err != nil {
					t.Error(err)
				} else if out[0] == 0 {
					got.Add(1)
				} else if out[0] > time.Hour || out[0] < 50*time.Minute {
					t.Errorf("wait %v", out[0])
				}
			}
		})
	}
	wg.Wait()
	if got.Load() != 100 {
		t.Errorf("%d tokens of 100", got.Load())
	}
	// What one bucket refuses costs the others nothing.
	wide := redis.Budget{Key: "wide", Every: time.Hour, Burst: 10}
	for range 50 {
		if out, err := clients[0].Spend(t.Context(), []redis.Budget{wide, slow}); err != nil || out[0] != 0 || out[1] == 0 {
			t.Fatalf("%v, %v", out, err)
		}
	}
	for i := range 11 { // it has all of its tokens, and no more
		out, err := clients[1].Spend(t.Context(), []redis.Budget{wide})
		if err != nil || (out[0] > 0) != (i == 10) {
			t.Errorf("%d: %v, %v", i, out, err)
		}
	}
	quick := redis.Budget{Key: "quick", Every: 50 * time.Millisecond, Burst: 1}
	first, err := clients[0].Spend(t.Context(), []redis.Budget{quick})
	if err != nil || first[0] != 0 {
		t.Errorf("%v, %v", first, err)
	}
	eventually(t, func() error {
		out, err := clients[2].Spend(t.Context(), []redis.Budget{quick})
		if err == nil && out[0] > 0 {
			err = errors.New("the token does not come back")
		}
		return err
	})
}

// TestSpendAcrossCluster: buckets of several nodes in one call.
func TestSpendAcrossCluster(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t)
	s := open(t, redis.Options{Addresses: []string{nodes[0].Address}, Cluster: true})
	var all []redis.Budget
	for i := range 5 {
		all = append(all, redis.Budget{Key: fmt.Sprint(i), Every: time.Hour, Burst: 2 + i})
	}
	for i := range 3 {
		out, err := s.Spend(t.Context(), all)
		if err != nil || (out[0] > 0) != (i == 2) || out[4] != 0 {
			t.Fatalf("%d: %v, %v", i, out, err)
		}
	}
}

// TestClusterUser: what docs/scaling.md lets the user do is enough in a cluster too.
func TestClusterUser(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t)
	allowClusterUser(t, nodes)
	s := open(t, redis.Options{Addresses: []string{nodes[2].Address}, Cluster: true, Username: "aegis", Password: "secret-of-aegis", Prefix: "aegis:"})
	list := s.Inspect(t.Context())
	if got := grades(list); strings.Contains(got, "failure") || !strings.Contains(got, "ok: the user may do all") || !strings.Contains(got, "master 3: ") {
		t.Error(got)
	}
}
