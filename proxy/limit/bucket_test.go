package limit_test

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy/limit"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func perSecond(n, burst int) config.Limit {
	return config.Limit{Rate: config.Rate{Count: n, Per: time.Second}, Burst: burst}
}

func TestTokensComeBack(t *testing.T) {
	t.Parallel()
	b := limit.NewBuckets(perSecond(2, 3), config.Limit{Rate: config.Rate{Count: 3, Per: time.Minute}})
	now := start
	for _, step := range []struct {
		after  time.Duration
		bucket int
		wait   time.Duration
	}{
		{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 500 * time.Millisecond}, {400 * time.Millisecond, 0, 100 * time.Millisecond},
		{100 * time.Millisecond, 0, 0}, {0, 0, 500 * time.Millisecond}, {time.Hour, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 500 * time.Millisecond},
		// Without a burst, the rate's own number comes at once, and then its pace.
		{0, 1, 0}, {0, 1, 0}, {0, 1, 0}, {0, 1, 20 * time.Second}, {20 * time.Second, 1, 0}, {0, 1, 20 * time.Second},
		// A clock that was set back gives nothing away.
		{-time.Hour, 1, 20 * time.Second},
	} {
		now = now.Add(step.after)
		if _, wait := b.Take(now, step.bucket); wait.Round(time.Millisecond) != step.wait {
			t.Fatalf("%v: wait %v, want %v", step, wait, step.wait)
		}
	}
}

// TestAllOrNothing: what one bucket refuses costs the others nothing, and the
// longest wait is the one that is told.
func TestAllOrNothing(t *testing.T) {
	t.Parallel()
	b := limit.NewBuckets(perSecond(1, 10), perSecond(1, 1), config.Limit{Rate: config.Rate{Count: 1, Per: time.Hour}})
	if i, _ := b.Take(start, 0, 1, 2); i != -1 {
		t.Fatalf("bucket %d refuses", i)
	}
	for range 1000 {
		if i, wait := b.Take(start, 0, 1, 2); i != 2 || wait.Round(time.Second) != time.Hour {
			t.Fatalf("bucket %d, wait %v", i, wait)
		}
	}
	if got := b.Tokens(start, 0); got != 9 {
		t.Errorf("the first bucket holds %v tokens, want 9", got)
	}
}

// TestRandomCallsAgainstModel compares with the plainest token bucket there is.
func TestRandomCallsAgainstModel(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := 1 + rng.IntN(4)
		limits := make([]config.Limit, n)
		model := make([]float64, n)
		for i := range limits {
			limits[i] = config.Limit{Rate: config.Rate{Count: 1 + rng.IntN(100), Per: []time.Duration{time.Second, time.Minute}[rng.IntN(2)]}, Burst: rng.IntN(20)}
			model[i] = float64(limits[i].Size())
		}
		b, now := limit.NewBuckets(limits...), start
		for range 200 {
			step := time.Duration(rng.Int64N(int64(300 * time.Millisecond)))
			now = now.Add(step)
			var which []int
			admitted := true
			for i := range limits {
				model[i] = min(float64(limits[i].Size()), model[i]+limits[i].Rate.PerSecond()*step.Seconds())
				if rng.IntN(2) == 0 {
					which = append(which, i)
				}
			}
			for _, i := range which {
				if math.Abs(model[i]-1) < 1e-6 {
					model[i] = b.Tokens(now, i) // too close to call
				}
				admitted = admitted && model[i] >= 1
			}
			i, wait := b.Take(now, which...)
			if (i == -1) != admitted || (wait == 0) != admitted {
				t.Fatalf("refused by %d, wait %v; the model says %v of %v", i, wait, model, which)
			}
			if admitted {
				for _, i := range which {
					model[i]--
				}
			} else if j, again := b.Take(now.Add(wait), which[i]); again != 0 {
				t.Fatalf("came back after %v and was refused by %d for %v", wait, j, again)
			} else {
				model[which[i]] = b.Tokens(now, which[i])
				now = now.Add(wait)
				for j := range model {
					model[j] = b.Tokens(now, j)
				}
			}
		}
	}
}

func TestAddressesThatAreOneCaller(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.1", true}, {"192.0.2.1", "192.0.2.2", false}, {"192.0.2.1", "::ffff:192.0.2.1", true},
		{"2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true}, {"2001:db8::1", "2001:db8:0:1::1", false},
		{"fe80::1%eth0", "fe80::1%eth1", true}, {"fe80::1%eth0", "fe80::2", true}, {"::", "0.0.0.0", false}, {"::1", "127.0.0.1", false},
		{"unknown", "unknown", true}, {"unknown", "", false}, {"unknown", "192.0.2.1", false},
	} {
		if got := limit.Same(tc.a, tc.b); got != tc.same {
			t.Errorf("%s and %s: one caller is %v", tc.a, tc.b, got)
		}
	}
}

// TestFloodOfAddresses: a flood of strangers takes no more memory than max_keys of
// them, and each still gets what the limit grants.
func TestFloodOfAddresses(t *testing.T) {
	cfg := config.Default().Limits
	l := limit.New(cfg, limit.Options{Now: func() time.Time { return start }})
	before := heap()
	var worst uint64
	flood := 250_000 // four times what is remembered
	if os.Getenv("AEGIS_TEST_WHOLE") == "1" {
		flood = 1_000_000
	}
	for i := range flood {
		addr := netip.AddrFrom16([16]byte{0x20, 0x01, byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i), 0, byte(i % 3)})
		if wait := l.Admit(addr.String()); wait != 0 {
			t.Fatalf("stranger %d waits %v", i, wait)
		}
		if (i+1)%(flood/4) == 0 {
			worst = max(worst, heap())
		}
	}
	if n := l.Addresses(); n > cfg.MaxKeys || n < cfg.MaxKeys*9/10 {
		t.Errorf("%d addresses are remembered, want some %d", n, cfg.MaxKeys)
	}
	// 512 bytes a caller: bucket, key twice, ring and the table with its slack.
	bound := uint64(cfg.MaxKeys) * 512
	if grown := worst - min(worst, before); grown > bound {
		t.Errorf("memory grew by %d bytes, want at most %d", grown, bound)
	}
	runtime.KeepAlive(l)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestFloodForgetsTheOldest: whoever keeps calling is remembered through a flood.
func TestFloodForgetsTheOldest(t *testing.T) {
	t.Parallel()
	l := limit.New(config.Limits{Address: perSecond(1, 2), MaxKeys: 1000}, limit.Options{Now: func() time.Time { return start }})
	l.Admit("192.0.2.1")
	l.Admit("192.0.2.1")
	for i := range 10_000 {
		l.Admit(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).String())
		if i%20 == 0 && l.Admit("192.0.2.1") == 0 {
			t.Fatalf("after %d others the caller's bucket is full again", i)
		}
	}
}

// TestManyOverTheLimit: 100 000 requests at one moment from many goroutines;
// exactly the burst passes.
func TestManyOverTheLimit(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	clock := func() time.Time { return start.Add(time.Duration(now.Load())) }
	l := limit.New(config.Limits{Address: perSecond(50, 100), MaxKeys: 1000}, limit.Options{Now: clock})
	count := func() int64 {
		var passed atomic.Int64
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				for range 10_000 {
					if l.Admit("192.0.2.1") == 0 {
						passed.Add(1)
					}
				}
			})
		}
		wg.Wait()
		return passed.Load()
	}
	if n := count(); n != 100 {
		t.Errorf("%d passed, want the burst of 100", n)
	}
	now.Store(int64(time.Second))
	if n := count(); n != 50 {
		t.Errorf("%d passed a second later, want 50", n)
	}
}
