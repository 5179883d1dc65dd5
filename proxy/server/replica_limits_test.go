package server_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// sharedBudget is a bucket that all replicas share. Nothing comes back to one of an
// hour while a test runs.
func sharedBudget(rate string) string {
	return "limits:\n  shared: true\n  address: {rate: off}\n  identity: {rate: " + rate + ", burst: 100}\n  concurrency: {identity: 0, total: 0}\n"
}

// spend makes n calls from some goroutines in turn through all replicas, and returns
// how many passed.
func (f *fleet) spend(n int) int {
	var passed atomic.Int64
	parallel(6, func(i int) {
		for range (n + i) / 6 {
			if _, a := f.whoami(botToken); a.Status == http.StatusOK {
				passed.Add(1)
			}
		}
	})
	return int(passed.Load())
}

// counted waits until each replica knows how many there are.
func (f *fleet) counted() {
	f.t.Helper()
	for _, x := range f.replicas {
		eventually(f.t, func() error {
			if m := fmt.Sprintf("aegis_replicas %d\n", len(f.replicas)); !strings.Contains(metricsOf(f.t, x.metrics), m) {
				return fmt.Errorf("%s does not say %q", x.name, m)
			}
			return nil
		})
	}
}

// TestSharedLimits: three replicas together keep to one budget; without the store
// each keeps to its third of it, and afterwards to the one again.
func TestSharedLimits(t *testing.T) {
	f := newFleet(t, fleetOptions{redis: lasting, top: sharedBudget("1/h"), env: []string{replicaHaste + "=1"}})
	f.counted()
	if n := f.spend(160); n != 100 {
		t.Errorf("%d calls passed of a budget of 100", n)
	}
	f.redis.Stop()
	// The buckets of the replicas' own are full; each call takes a token for each replica.
	if n := f.spend(160); n != 3*(100/3) {
		t.Errorf("%d calls passed without the store, and each of the three has a third of 100", n)
	}
	for _, x := range f.replicas {
		eventually(t, func() error {
			if m := metricsOf(t, x.metrics); !strings.Contains(m, "aegis_store_up 0\n") || !strings.Contains(m, "aegis_replicas 3\n") || strings.Contains(m, "aegis_limits_uncounted_total 0\n") {
				return fmt.Errorf("%s: the metrics do not tell: %s", x.name, regexp.MustCompile("(?m)^aegis_(store|replicas|limits).*$").FindAllString(m, -1))
			}
			return nil
		})
	}
	f.redis.Run()
	for _, x := range f.replicas {
		eventually(t, func() error {
			if !strings.Contains(metricsOf(t, x.metrics), "aegis_store_up 1\n") {
				return errors.New(x.name + " does not see that the store is back")
			}
			return nil
		})
	}
	if n := f.spend(60); n != 0 {
		t.Errorf("%d calls passed of the common budget, which was spent", n)
	}
}

// TestSharedRate: tokens come back at the rate that is configured, whichever replicas
// are asked, no slower and no faster. A refusal tells that the bucket was empty then,
// which bounds from below what passed until then, however slow the machine is.
func TestSharedRate(t *testing.T) {
	f := newFleet(t, fleetOptions{top: sharedBudget("40/s")})
	const burst, rate = 100, 40
	begin := time.Now()
	var full time.Time // the bucket was, until at most then
	refusals := 0
	for passed := 0; passed < burst+rate/2; {
		asked := time.Now()
		_, a := f.whoami(botToken)
		now := time.Now()
		if a.Status == http.StatusOK {
			passed++
			if full.IsZero() {
				full = now
			}
			if budget := burst + rate*now.Sub(begin).Seconds(); float64(passed) > budget+1 {
				t.Fatalf("%d calls passed, and the budget was %.1f", passed, budget)
			}
			continue
		}
		refusals++
		if budget := burst + rate*asked.Sub(full).Seconds(); float64(passed) < budget-2 {
			t.Fatalf("refused after %d calls, and the budget was %.1f", passed, budget)
		}
	}
	t.Logf("%d refusals", refusals)
}

// TestSharedLimitsRefuse: with on_store_failure refuse nothing passes uncounted.
func TestSharedLimitsRefuse(t *testing.T) {
	f := newFleet(t, fleetOptions{redis: lasting, top: sharedBudget("1/h") + "  on_store_failure: refuse\n"})
	f.redis.Stop()
	f.each(func(x *replica) {
		r, a := f.whoami(botToken)
		if r.status != http.StatusOK || a.Error.Kind != "rate_limited" || !strings.Contains(a.Error.Message, "cannot be counted") {
			t.Errorf("%s: %d %s", x.name, r.status, r.body)
		}
	})
	f.redis.Run()
	f.each(func(x *replica) {
		eventually(t, func() error {
			if _, a := f.whoami(botToken); a.Status != http.StatusOK {
				return errors.New(a.Error.Message)
			}
			return nil
		})
	})
}

// metricsOf reads the metrics of a replica.
func metricsOf(t testing.TB, addr string) string {
	t.Helper()
	res, err := direct.Get("http://" + addr + "/metrics")
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
