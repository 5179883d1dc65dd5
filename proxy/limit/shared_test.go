package limit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/limit"
)

// counter is a shared counter in memory, without refilling.
type counter struct {
	mu    sync.Mutex
	spent map[string]int
	down  bool
	calls int
}

func (c *counter) Spend(_ context.Context, list []limit.Budget) ([]time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	if c.down {
		return nil, errors.New("down")
	}
	out := make([]time.Duration, len(list))
	full := false
	for i, b := range list {
		if c.spent[b.Key] >= b.Limit.Size() {
			out[i], full = time.Second, true
		}
	}
	for _, b := range list {
		if !full {
			c.spent[b.Key]++
		}
	}
	return out, nil
}

// sharing returns benches that share a counter.
func sharing(n int, cfg config.Limits, refuse bool) (*counter, []*bench, *int) {
	c, failed := &counter{spent: map[string]int{}}, new(int)
	var list []*bench
	for range n {
		list = append(list, newBench(cfg, limit.Options{Shared: &limit.Shared{
			Counter: c, Refuse: refuse, Replicas: func() int { return n }, Failed: func(error) { *failed++ },
		}}))
	}
	return c, list, failed
}

func TestReplicasShareEachBucket(t *testing.T) {
	t.Parallel()
	five := perSecond(5, 6)
	for name, tc := range map[string]struct {
		cfg    config.Limits
		tool   *proxy.Tool
		bucket limit.Bucket
	}{
		"identity":    {config.Limits{Identity: five}, reader, limit.BucketIdentity},
		"team":        {config.Limits{Team: five}, reader, limit.BucketTeam},
		"write":       {config.Limits{Write: five}, writer, limit.BucketWrite},
		"destructive": {config.Limits{Destructive: five}, remover, limit.BucketDestructive},
		"tool":        {config.Limits{Tools: map[string]config.Limit{"gitea_issue_list": five}}, reader, limit.BucketTool},
	} {
		c, list, _ := sharing(3, tc.cfg, false)
		passed := 0
		for i := range 30 {
			n, err := list[i%3].run(1, "alice", tc.tool)
			if passed += n; n == 0 && err.RetryAfter != time.Second {
				t.Errorf("%s: %+v", name, err)
			}
		}
		if passed != 6 || list[0].refused[tc.bucket] != 8 {
			t.Errorf("%s: %d passed, refusals %v", name, passed, list[0].refused)
		}
		if n, _ := list[0].run(1, "bob", tc.tool); (n == 0) != (name == "team") {
			t.Errorf("%s: bob passed %d times", name, n)
		}
		c.calls = 0
		list[0].run(1, "carol", &proxy.Tool{Name: "gitea_other", ReadOnly: !tc.tool.ReadOnly})
		if (c.calls == 0) != (name != "identity" && name != "team") {
			t.Errorf("%s: a call without limits asked the counter %d times", name, c.calls)
		}
	}
}

// TestCounterFails: three replicas alone admit as much as the limit says together.
func TestCounterFails(t *testing.T) {
	t.Parallel()
	c, list, failed := sharing(3, config.Limits{Identity: perSecond(30, 60)}, false)
	c.down = true
	count := func() (passed int) {
		for i := range 300 {
			n, _ := list[i%3].run(1, "alice", reader)
			passed += n
		}
		return passed
	}
	if n := count(); n != 60 {
		t.Errorf("%d passed, want the bucket's 60", n)
	}
	for _, b := range list {
		b.now = b.now.Add(time.Second)
	}
	if n := count(); n != 30 {
		t.Errorf("%d passed in a second, want 30", n)
	}
	if *failed != 600 {
		t.Errorf("%d failures were told of", *failed)
	}
	// A bucket smaller than the number of replicas still serves.
	c, list, _ = sharing(3, config.Limits{Identity: perSecond(1, 1)}, false)
	c.down = true
	if n, _ := list[0].run(5, "alice", reader); n != 1 {
		t.Errorf("%d passed of a bucket of one", n)
	}
	c.down = false
	if n, _ := list[0].run(5, "alice", reader); n != 1 {
		t.Errorf("%d passed after the counter came back, want its 1", n)
	}
}

func TestCounterFailsAndCallsAreRefused(t *testing.T) {
	t.Parallel()
	c, list, _ := sharing(2, config.Limits{Write: perSecond(5, 5)}, true)
	c.down = true
	n, err := list[0].run(3, "alice", writer)
	if n != 0 || err.Kind != proxy.KindRateLimited || err.RetryAfter <= 0 || list[0].refused[limit.BucketStore] != 3 {
		t.Errorf("%d passed, %+v, %v", n, err, list[0].refused)
	}
	if n, _ := list[0].run(3, "alice", reader); n != 3 {
		t.Errorf("%d calls without a limit passed", n)
	}
}

// TestBudgetKeys: callers, teams, tools and limits are told apart, however their
// names are composed.
func TestBudgetKeys(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, l := range []config.Limit{perSecond(1, 1), perSecond(1, 2), perSecond(2, 1)} {
		for _, parts := range [][]string{{"identity", "", "", "a"}, {"identity", "a", "", ""}, {"identity", "", "a", ""}, {"tool", "", "a", "b"}, {"tool", "", "ab", ""}, {"tool", "a", "b", ""}} {
			k := limit.BudgetKey(l, parts...)
			what := l.Rate.String() + " " + parts[0] + "|" + parts[1] + "|" + parts[2] + "|" + parts[3]
			if other, twice := seen[k]; twice || len(k) != 22 {
				t.Errorf("%s and %s have the key %s", what, other, k)
			}
			seen[k] = what
		}
	}
}
