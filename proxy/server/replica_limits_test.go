package server_test

import (
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const sharedBudget = "limits:\n  shared: true\n  identity: {rate: 40/s, burst: 100}\n  concurrency: {identity: 0, total: 0}\n"

// spend calls as fast as it goes for a while, from some goroutines in turn through
// all replicas, and returns how many calls passed, and when the last one did: one
// that waits for the store must not count as time in which others could have.
func (f *fleet) spend(d time.Duration) (int, time.Duration) {
	var passed, last atomic.Int64
	begin := time.Now()
	parallel(6, func(int) {
		for time.Since(begin) < d {
			if _, a := f.whoami(botToken); a.Status == http.StatusOK {
				passed.Add(1)
				last.Store(int64(time.Since(begin)))
			}
		}
	})
	return int(passed.Load()), time.Duration(last.Load())
}

// within fails the test when passed is further from the budget than the tolerance.
func within(t *testing.T, what string, passed int, burst float64, took time.Duration, tolerance float64) {
	t.Helper()
	budget := burst + 40*took.Seconds()
	t.Logf("%s: %d calls of a budget of %.0f (%+.1f %%)", what, passed, budget, 100*(float64(passed)/budget-1))
	if float64(passed) > budget*(1+tolerance) || float64(passed) < budget*(1-tolerance) {
		t.Errorf("%s: %d calls passed, and the budget was %.0f", what, passed, budget)
	}
}

// TestSharedLimits: three replicas together keep to one budget; without the store
// each keeps to its third of it, and afterwards to the one again.
func TestSharedLimits(t *testing.T) {
	f := newFleet(t, fleetOptions{top: sharedBudget})
	untilNoError(t, 20*time.Second, func() error { // all must know that they are three
		for range f.replicas {
			if n := strings.TrimPrefix(f.redis.Do("HLEN aegis:kv:meta/replicas"), ":"); n == "0" {
				return errors.New("no replica has given a sign of life")
			}
		}
		return nil
	})
	time.Sleep(4 * time.Second) // one beat more, so that each has counted the others
	passed, took := f.spend(4 * time.Second)
	within(t, "shared", passed, 100, took, 0.05)

	f.redis.Signal(syscall.SIGSTOP)
	// First each replica must notice, and its own buckets are full: a burst comes
	// once more.
	if passed, took = f.spend(3 * time.Second); float64(passed) > 1.05*(100+40*took.Seconds()) {
		t.Errorf("%d calls passed in the first %v", passed, took)
	}
	passed, took = f.spend(4 * time.Second)
	within(t, "alone", passed, 0, took, 0.15)
	for _, x := range f.replicas {
		if m := metricsOf(t, x.metrics); !strings.Contains(m, "aegis_store_up 0\n") || !strings.Contains(m, "aegis_replicas 3\n") || strings.Contains(m, "aegis_limits_uncounted_total 0\n") {
			t.Errorf("%s: the metrics do not tell: %s", x.name, regexp.MustCompile("(?m)^aegis_(store|replicas|limits).*$").FindAllString(m, -1))
		}
	}
	f.redis.Signal(syscall.SIGCONT)
	time.Sleep(time.Second)
	if passed, _ = f.spend(2 * time.Second); passed == 0 {
		t.Error("no call passes afterwards")
	}
}

// TestSharedLimitsRefuse: with on_store_failure refuse nothing passes uncounted.
func TestSharedLimitsRefuse(t *testing.T) {
	f := newFleet(t, fleetOptions{n: 3, top: sharedBudget + "  on_store_failure: refuse\n"})
	f.redis.Stop()
	f.each(func(x *replica) {
		r, a := f.whoami(botToken)
		if r.status != http.StatusOK || a.Error.Kind != "rate_limited" || !strings.Contains(a.Error.Message, "cannot be counted") {
			t.Errorf("%s: %d %s", x.name, r.status, r.body)
		}
	})
	f.redis.Run()
	f.each(func(x *replica) {
		x.eventually(10*time.Second, func() error {
			if _, a := f.whoami(botToken); a.Status != http.StatusOK {
				return errors.New(a.Error.Message)
			}
			return nil
		})
	})
}

// metricsOf reads the metrics of a replica.
func metricsOf(t *testing.T, addr string) string {
	t.Helper()
	res, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
