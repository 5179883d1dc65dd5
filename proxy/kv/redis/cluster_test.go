package redis_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"aegis/proxy/kv"
	"aegis/proxy/kv/redis"
	"aegis/proxy/kv/redistest"
)

// TestSlots: keys are looked for where Redis itself keeps them.
func TestSlots(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, "--cluster-enabled", "yes")
	for _, key := range []string{"123456789", "kv:a", "{tag}x", "x{tag}y{other}", "{}x", "x{", "x}y{z}", "{{a}}", "ü", strings.Repeat("k", 300)} {
		if got, want := fmt.Sprintf(":%d", redis.Slot(key)), node.Do("CLUSTER KEYSLOT "+key); got != want {
			t.Errorf("%q: %s instead of %s", key, got, want)
		}
	}
}

// TestMovingSlot: entries are found while their slot moves to another master, where
// it is afterwards, and after that master alone is left of those that were configured.
func TestMovingSlot(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t)
	allowClusterUser(t, nodes)
	s := open(t, redis.Options{Addresses: []string{nodes[0].Address}, Cluster: true, Username: "aegis", Password: "secret-of-aegis", Prefix: "aegis:"})
	const key = "moving"
	slot := redis.Slot("aegis:kv:" + key)
	from := slot * 3 / 16384
	to := (from + 1) % 3
	ids := make([]string, len(nodes))
	for i, n := range nodes {
		ids[i] = n.Bulk("CLUSTER MYID")
	}
	set := func(n *redistest.Server, how string, id int) {
		t.Helper()
		if got := n.Do(fmt.Sprintf("CLUSTER SETSLOT %d %s %s", slot, how, ids[id])); got != "+OK" {
			t.Fatal(got)
		}
	}
	if err := s.Put(t.Context(), key, []byte("one"), 0); err != nil {
		t.Fatal(err)
	}
	set(nodes[to], "IMPORTING", from)
	set(nodes[from], "MIGRATING", to)
	get := func(want string) {
		t.Helper()
		if e, err := s.Get(t.Context(), key); err != nil || string(e.Value) != want {
			t.Errorf("%q, %v; want %q", e.Value, err, want)
		}
	}
	get("one") // it has not moved yet
	host, port, _ := strings.Cut(nodes[to].Address, ":")
	if got := nodes[from].Do(fmt.Sprintf("MIGRATE %s %s aegis:kv:%s 0 60000", host, port, key)); got != "+OK" {
		t.Fatal(got)
	}
	get("one") // ASK
	if err := s.Put(t.Context(), key, []byte("two"), 0); err != nil {
		t.Error(err)
	}
	if _, err := s.Spend(t.Context(), []redis.Budget{{Key: "a", Every: 1, Burst: 1}, {Key: "b", Every: 1, Burst: 1}}); err != nil {
		t.Error(err)
	}
	for _, n := range []int{to, from, 3 - to - from} {
		set(nodes[n], "NODE", to)
	}
	get("two") // MOVED
	if e, err := s.Take(t.Context(), key); err != nil || string(e.Value) != "two" {
		t.Errorf("%q, %v", e.Value, err)
	}
	if _, err := s.Get(t.Context(), key); !errors.Is(err, kv.ErrNotFound) {
		t.Error(err)
	}
}

// allowClusterUser makes the user that docs/scaling.md describes.
func allowClusterUser(t *testing.T, nodes []*redistest.Server) {
	t.Helper()
	for _, n := range nodes {
		if got := n.Do("ACL SETUSER aegis on >secret-of-aegis ~aegis:* +@read +@write +@scripting +time +ping +info +asking +cluster|slots"); got != "+OK" {
			t.Fatal(got)
		}
	}
}

// TestClusterWithoutSlots: what is no cluster is said to be none.
func TestClusterWithoutSlots(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no cluster": {nil, "cluster support disabled"},
		"no slots":   {[]string{"--cluster-enabled", "yes"}, "keeps no slots"},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, c.args...)
			s, err := redis.New(redis.Options{Addresses: []string{server.Address}, Cluster: true})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}

// TestSentinelWithoutMaster: a wrong store.sentinel.master is named.
func TestSentinelWithoutMaster(t *testing.T) {
	t.Parallel()
	sentinel := redistest.StartSentinel(t, sentinelFile(t, ""))
	s, err := redis.New(redis.Options{Addresses: []string{sentinel.Address}, Master: "other"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), `knows no master "other"`) {
		t.Error(err)
	}
}
