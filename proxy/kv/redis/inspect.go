package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"aegis/proxy/kv"
)

// Grade says how serious a [Finding] is.
type Grade string

// The grades.
const (
	OK      Grade = "ok"
	Warning Grade = "warning" // it works, and something may be lost
	Failure Grade = "failure" // Aegis cannot work with it
)

// Finding is one result of [Store.Inspect]. Its form in JSON is what "aegis store
// check --json" prints.
type Finding struct {
	Grade Grade `json:"grade"`
	// What was found.
	What string `json:"what"`
	// Do is what to do about it; "" when all is well.
	Do string `json:"do,omitempty"`
}

// Inspect looks whether Redis is fit to keep what must not be lost: whether the
// user may do all that is needed, whether entries survive a restart and are not
// evicted, and how long an operation takes. It writes entries of its own under the
// prefix and deletes them. It needs the right to use INFO for some of that, and
// says so when it lacks it.
func (s *Store) Inspect(ctx context.Context) []Finding {
	if err := s.Ping(ctx); err != nil { // all else would fail for the same reason
		return []Finding{{Failure, "Redis cannot be used: " + err.Error(),
			"see that it runs, and that store.url, store.username, store.password and store.tls fit it"}}
	}
	list := []Finding{{OK, "Redis answers", ""}}
	list = append(list, s.permissions(ctx)...)
	list = append(list, s.latency(ctx))
	masters, err := s.masters(ctx)
	if err != nil {
		return append(list, Finding{Failure, "the cluster's masters cannot be asked: " + err.Error(),
			"see that every node can be reached from here"})
	}
	for i, m := range masters { // each has a configuration and a disk of its own
		name := ""
		if len(masters) > 1 {
			name = "master " + strconv.Itoa(i+1) + ": "
		}
		list = append(list, s.server(ctx, m, name)...)
	}
	return list
}

// permissions tries each operation, as asking for the user's rights (ACL GETUSER) is itself
// a right that the user should not have. Each step uses what the one before has left.
func (s *Store) permissions(ctx context.Context) (list []Finding) {
	key := "check/" + rand.Text() // an Aegis that serves, or another check, has none of this name
	var version uint64
	steps := []struct {
		name string
		try  func() error
	}{
		{"write (EVALSHA, EVAL, DEL, HSET, PEXPIRE, TIME)",
			func() error { return s.Put(ctx, key, []byte("1"), time.Minute) }},
		{"read (HMGET)", func() error { e, err := s.Get(ctx, key); version = e.Version; return err }},
		{"compare and swap", func() error {
			_, err := s.CompareAndSwap(ctx, key, version, []byte("2"), time.Minute)
			return err
		}},
		{"list (SCAN)", func() error {
			for k, err := range s.Keys(ctx, "check/") {
				if err != nil || k == key {
					return err
				}
			}
			return errors.New("redis: SCAN does not show an entry that is there")
		}},
		{"take", func() error { _, err := s.Take(ctx, key); return err }},
		{"delete (DEL)", func() error { return s.Delete(ctx, key) }},
		{"shared limits (GET, SET)", func() error {
			_, err := s.Spend(ctx, []Budget{{Key: key, Every: time.Second, Burst: 1}})
			return err
		}},
	}
	for _, step := range steps {
		if err := step.try(); err != nil {
			return append(list, Finding{Failure, "cannot " + step.name + ": " + err.Error(),
				"give the user +@read +@write +@scripting +time +ping +info " +
					"(in a cluster also +asking +cluster|slots), and ~" + s.o.Prefix + "* as its keys"})
		}
	}
	return append(list, Finding{OK, "the user may do all that is needed", ""})
}

const (
	probes = 100
	// slow is when a call pays too much for the store, which it asks up to three times.
	slow = 10 * time.Millisecond
)

// latency measures reads of an entry that is not there: they take the same trip as all
// others, and leave nothing behind.
func (s *Store) latency(ctx context.Context) Finding {
	took := make([]time.Duration, 0, probes)
	for range probes {
		begin := time.Now()
		if _, err := s.Get(ctx, "check/none"); !errors.Is(err, kv.ErrNotFound) {
			return Finding{Failure, fmt.Sprintf("a read failed: %v", err), "see that Redis keeps running"}
		}
		took = append(took, time.Since(begin))
	}
	// The median says what calls pay, the slowest how evenly.
	slices.Sort(took)
	text := fmt.Sprintf("a read takes %v, and %v for the slowest of %d", took[probes/2].Round(time.Microsecond),
		took[probes-1].Round(time.Microsecond), probes)
	if took[probes/2] > slow {
		return Finding{Warning, text, "put Redis into the same network as Aegis; " +
			"a call makes up to three requests to it"}
	}
	return Finding{OK, text, ""}
}

// server reads what a server says of itself. That it may not be asked is a warning: INFO is
// among the commands that Redis calls dangerous, and an operator may withhold it.
func (s *Store) server(ctx context.Context, m *node, name string) []Finding {
	ask := &command{name: "INFO"} // the default sections have all that judge reads
	err := s.do(ctx, again, func(ctx context.Context) error {
		if err := m.run(ctx, ask); err != nil {
			return err
		}
		return ask.err
	})
	text, err := redis.String(ask.reply, err)
	if err != nil {
		return []Finding{{Warning, name + "whether entries can be lost is not known: " + err.Error(),
			"allow the user +info, and check again"}}
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[k] = v
		}
	}
	return judge(name, info)
}

// judge says what INFO means for what must not be lost. A field that is missing says
// nothing: services that run Redis for others leave some out.
func judge(name string, info map[string]string) (list []Finding) {
	add := func(g Grade, what, do string) { list = append(list, Finding{g, name + what, do}) }
	if info["role"] != "" && info["role"] != "master" {
		add(Failure, "the server is a replica, which takes no writes",
			"let store.url name the master, or set store.sentinel.master or store.cluster")
	}
	switch policy := info["maxmemory_policy"]; {
	case policy == "" || policy == "noeviction":
		add(OK, "entries are never evicted (maxmemory-policy noeviction)", "")
	case info["maxmemory"] == "0": // no bound, so that the policy is never applied
		add(Warning, "maxmemory-policy is "+policy+", and only for the lack of maxmemory nothing is evicted",
			"set maxmemory-policy noeviction")
	default:
		add(Failure, "Redis may evict entries (maxmemory-policy "+policy+"): people would be signed out, "+
			"and used codes forgotten", "set maxmemory-policy noeviction")
	}
	switch {
	case info["aof_enabled"] != "1":
		add(Warning, "without appendonly a restart of Redis loses what was written since its last snapshot, or all: "+
			"people sign in again", "set appendonly yes and appendfsync everysec")
	case info["aof_last_write_status"] == "err":
		add(Failure, "Redis cannot write its append-only file", "see that its disk has room")
	default:
		add(OK, "entries survive a restart (appendonly yes)", "")
	}
	if info["connected_slaves"] == "0" { // the field kept its old name
		add(Warning, "the server has no replica: while it is away, nobody can sign in",
			"add a replica and Sentinels, or a cluster; or accept it")
	}
	return list
}
