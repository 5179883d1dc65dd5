package limit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/limit"
)

// bench is a limiter with a clock in hand and a record of refusals.
type bench struct {
	l       *limit.Limiter
	now     time.Time
	refused map[limit.Bucket]int
}

func newBench(cfg config.Limits, o limit.Options) *bench {
	b := &bench{now: start, refused: map[limit.Bucket]int{}}
	cfg.MaxKeys = 1000
	o.Now = func() time.Time { return b.now }
	o.Refused = func(k limit.Bucket) { b.refused[k]++ }
	b.l = limit.New(cfg, o)
	return b
}

var ok = proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) { return &proxy.Result{Status: 200}, nil })

func call(who string, t *proxy.Tool) *proxy.Call {
	c := &proxy.Call{Identity: &proxy.Identity{Login: who, Mode: proxy.ModeStatic, TokenName: who}, Tool: t, Op: t}
	if t.Name == "gitea_api_request" {
		c.Op = reader
	}
	return c
}

var (
	reader  = &proxy.Tool{Name: "gitea_issue_list", OperationID: "issueListIssues", ReadOnly: true}
	writer  = &proxy.Tool{Name: "gitea_issue_create", OperationID: "issueCreateIssue", Risk: proxy.R2}
	remover = &proxy.Tool{Name: "gitea_repo_delete", OperationID: "repoDelete", Destructive: true, Risk: proxy.R3}
	admin   = &proxy.Tool{Name: "gitea_admin_user_create", Risk: proxy.R4}
)

// run returns how many of n calls pass, and the last refusal.
func (b *bench) run(n int, who string, t *proxy.Tool) (passed int, last *proxy.Error) {
	h := b.l.Stage()(ok)
	for range n {
		_, err := h.Handle(context.Background(), call(who, t))
		if err == nil {
			passed++
		} else if !errors.As(err, &last) {
			panic(err)
		}
	}
	return passed, last
}

func TestEachBucket(t *testing.T) {
	t.Parallel()
	five := perSecond(5, 5)
	for name, tc := range map[string]struct {
		cfg    config.Limits
		tool   *proxy.Tool
		bucket limit.Bucket
		// shared: what alice used up, bob lacks.
		shared bool
	}{
		"identity":    {config.Limits{Identity: five}, reader, limit.BucketIdentity, false},
		"team":        {config.Limits{Team: five}, reader, limit.BucketTeam, true},
		"read":        {config.Limits{Read: five}, reader, limit.BucketRead, false},
		"write":       {config.Limits{Write: five}, writer, limit.BucketWrite, false},
		"destructive": {config.Limits{Destructive: five}, remover, limit.BucketDestructive, false},
		"admin":       {config.Limits{Destructive: five}, admin, limit.BucketDestructive, false},
		"tool":        {config.Limits{Tools: map[string]config.Limit{"gitea_issue_list": five}}, reader, limit.BucketTool, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(tc.cfg, limit.Options{})
			passed, err := b.run(8, "alice", tc.tool)
			if passed != 5 || err == nil || err.Kind != proxy.KindRateLimited || err.RetryAfter <= 0 || err.RetryAfter > 200*time.Millisecond {
				t.Fatalf("%d passed, error %+v", passed, err)
			}
			c := call("alice", tc.tool)
			if _, err := b.l.Stage()(ok).Handle(context.Background(), c); err == nil || c.Stats.Limiter != string(tc.bucket) {
				t.Errorf("refused by %q: %v", c.Stats.Limiter, err)
			}
			if b.refused[tc.bucket] != 4 || len(b.refused) != 1 {
				t.Errorf("refusals: %v", b.refused)
			}
			if passed, _ := b.run(1, "bob", tc.tool); (passed == 0) != tc.shared {
				t.Errorf("another identity: %d passed", passed)
			}
			if passed, _ := b.run(1, "alice", &proxy.Tool{Name: "gitea_other", ReadOnly: !tc.tool.ReadOnly}); (passed == 0) != (name == "identity" || name == "team") {
				t.Errorf("another tool: %d passed", passed)
			}
			b.now = b.now.Add(err.RetryAfter)
			if passed, err := b.run(1, "alice", tc.tool); passed != 1 {
				t.Errorf("after retry_after: %v", err)
			}
		})
	}
}

// TestRawToolCountsAsItsOperation: the raw tool is no way around the limit of a
// tool, and may have one of its own.
func TestRawToolCountsAsItsOperation(t *testing.T) {
	t.Parallel()
	raw := &proxy.Tool{Name: "gitea_api_request", OperationID: "issueListIssues", ReadOnly: true}
	b := newBench(config.Limits{Tools: map[string]config.Limit{"gitea_issue_list": perSecond(1, 3)}}, limit.Options{})
	b.run(2, "alice", reader)
	if passed, _ := b.run(5, "alice", raw); passed != 1 {
		t.Errorf("%d raw calls passed, want 1", passed)
	}
	b = newBench(config.Limits{Tools: map[string]config.Limit{"gitea_api_request": perSecond(1, 2)}}, limit.Options{})
	if passed, _ := b.run(5, "alice", raw); passed != 2 {
		t.Errorf("%d raw calls passed, want 2", passed)
	}
	if passed, _ := b.run(5, "alice", reader); passed != 5 {
		t.Errorf("%d direct calls passed, want 5", passed)
	}
}

func TestRefusedCallsAreFree(t *testing.T) {
	t.Parallel()
	b := newBench(config.Limits{Identity: perSecond(1, 10), Destructive: perSecond(1, 1)}, limit.Options{})
	b.run(500, "alice", remover) // one passes
	if passed, _ := b.run(20, "alice", reader); passed != 9 {
		t.Errorf("%d reads passed, want the 9 that the refused deletes did not use", passed)
	}
}

func TestConcurrency(t *testing.T) {
	t.Parallel()
	b := newBench(config.Limits{Identity: perSecond(1, 3), Concurrency: config.Concurrency{Identity: 2, Total: 3}}, limit.Options{})
	enter, leave := make(chan struct{}), make(chan struct{})
	slow := b.l.Stage()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		enter <- struct{}{}
		<-leave
		return &proxy.Result{}, nil
	}))
	var wg sync.WaitGroup
	for _, who := range []string{"alice", "alice", "bob"} {
		wg.Go(func() { _, _ = slow.Handle(context.Background(), call(who, reader)) })
		<-enter
	}
	for range 100 {
		if passed, err := b.run(1, "alice", reader); passed != 0 || err.Kind != proxy.KindRateLimited || err.RetryAfter != time.Second {
			t.Fatalf("alice: %d passed, %v", passed, err)
		}
	}
	b.run(1, "carol", reader)
	if b.refused[limit.BucketConcurrencyIdentity] != 100 || b.refused[limit.BucketConcurrencyTotal] != 1 {
		t.Errorf("refusals: %v", b.refused)
	}
	close(leave)
	wg.Wait()
	// The refused calls have cost no token: alice has one of her three.
	if passed, _ := b.run(3, "alice", reader); passed != 1 {
		t.Errorf("%d passed, want 1", passed)
	}
	if calls, ids := b.l.InFlight(); calls != 0 || ids != 0 {
		t.Errorf("%d calls of %d identities are left", calls, ids)
	}
}

func TestPanicLeaves(t *testing.T) {
	t.Parallel()
	b := newBench(config.Limits{Concurrency: config.Concurrency{Identity: 1}}, limit.Options{})
	h := b.l.Stage()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) { panic("boom") }))
	for range 3 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the call was refused or the panic swallowed")
				}
			}()
			_, _ = h.Handle(context.Background(), call("alice", reader))
		}()
	}
}

// TestChangedConfiguration: buckets outlive a change that does not concern them.
func TestChangedConfiguration(t *testing.T) {
	t.Parallel()
	cfg := config.Limits{Identity: perSecond(1, 5), Read: perSecond(1, 4), Tools: map[string]config.Limit{"gitea_issue_create": perSecond(1, 2)}}
	counters := limit.NewCounters()
	b := newBench(cfg, limit.Options{Counters: counters})
	counters.Keep(b.l)
	b.run(4, "alice", reader)
	cfg.Read, cfg.Write = config.Limit{}, perSecond(1, 1)
	next := newBench(cfg, limit.Options{Counters: counters})
	if passed, _ := next.run(3, "alice", reader); passed != 1 {
		t.Errorf("%d passed, want the one token that the identity has left", passed)
	}
	if passed, _ := next.run(3, "bob", writer); passed != 1 {
		t.Errorf("%d passed the new limit, want 1", passed)
	}
}

// TestCountersOfLimitersThatServe: what a limiter counted that never served is not
// taken on, endpoints have buckets of their own, and a limit that was changed and
// changed back begins with full ones.
func TestCountersOfLimitersThatServe(t *testing.T) {
	t.Parallel()
	cfg := config.Limits{Identity: perSecond(1, 3), Concurrency: config.Concurrency{Identity: 9}}
	counters := limit.NewCounters()
	at := func(endpoint string, cfg config.Limits) *bench {
		return newBench(cfg, limit.Options{Counters: counters, Endpoint: endpoint})
	}
	left := func(b *bench) int {
		passed, _ := b.run(4, "alice", reader)
		return passed
	}
	dropped := at("", cfg)
	left(dropped)
	first, team := at("", cfg), at("web", cfg)
	if a, b := left(first), left(team); a != 3 || b != 3 {
		t.Errorf("after one that never served: %d and %d of 3 passed", a, b)
	}
	counters.Keep(first.l, team.l)
	if a, b := left(at("", cfg)), left(at("web", cfg)); a != 0 || b != 0 {
		t.Errorf("the buckets did not go on: %d and %d passed", a, b)
	}
	other := cfg
	other.Identity = perSecond(1, 2)
	counters.Keep(at("", other).l)
	if n := left(at("", cfg)); n != 3 {
		t.Errorf("changed back: %d of 3 passed", n)
	}
}

func TestOffIsOff(t *testing.T) {
	t.Parallel()
	b := newBench(config.Limits{}, limit.Options{})
	if passed, _ := b.run(5000, "alice", remover); passed != 5000 {
		t.Errorf("%d passed", passed)
	}
}

// TestDefaultsAreGenerous: an agent at ten calls a second notices nothing, nor do
// ten of them with one identity.
func TestDefaultsAreGenerous(t *testing.T) {
	t.Parallel()
	b := newBench(config.Default().Limits, limit.Options{})
	for i := range 6000 {
		b.now = start.Add(time.Duration(i) * 10 * time.Millisecond)
		if passed, err := b.run(1, "alice", reader); passed != 1 {
			t.Fatalf("call %d: %v", i, err)
		}
	}
}

func TestAddressOverHTTP(t *testing.T) {
	t.Parallel()
	b := newBench(config.Limits{Address: config.Limit{Rate: config.Rate{Count: 30, Per: time.Minute}, Burst: 3}}, limit.Options{})
	h := b.l.Address(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "served") }))
	get := func(addr string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader("{}"))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(proxy.WithRequestInfo(r.Context(), &proxy.RequestInfo{RequestID: "req-1", Addr: addr})))
		return w
	}
	for range 3 {
		if w := get("192.0.2.1"); w.Code != 200 {
			t.Fatalf("status %d", w.Code)
		}
	}
	w := get("::ffff:192.0.2.1")
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "2" || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if p, r := w.Header().Get("RateLimit-Policy"), w.Header().Get("RateLimit"); p != `"address";q=3;w=6` || r != `"address";r=0;t=2` {
		t.Errorf("RateLimit-Policy: %s, RateLimit: %s", p, r)
	}
	var body struct {
		Error struct {
			Kind      string `json:"kind"`
			Message   string `json:"message"`
			RequestID string `json:"request_id"`
			After     int    `json:"retry_after"`
		} `json:"error"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Error.Kind != "rate_limited" || body.Error.RequestID != "req-1" || body.Error.After != 2 {
		t.Errorf("%v: %s", err, w.Body)
	}
	if w := get("192.0.2.2"); w.Code != 200 {
		t.Errorf("another address: status %d", w.Code)
	}
	b.now = b.now.Add(2 * time.Second)
	if w := get("192.0.2.1"); w.Code != 200 {
		t.Errorf("after Retry-After: status %d", w.Code)
	}
}

func TestWithoutRequestInfoIsClosed(t *testing.T) {
	t.Parallel()
	b := newBench(config.Limits{}, limit.Options{})
	w := httptest.NewRecorder()
	b.l.Address(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("let through") })).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("status %d", w.Code)
	}
}

func BenchmarkStage(b *testing.B) {
	l := limit.New(config.Default().Limits, limit.Options{Now: func() time.Time { return start }})
	h := l.Stage()(ok)
	b.RunParallel(func(pb *testing.PB) {
		c := call("alice", reader)
		for pb.Next() {
			_, _ = h.Handle(context.Background(), c)
		}
	})
}
