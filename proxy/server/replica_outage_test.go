package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// callWithin fails the test when a call is held up.
func (f *fleet) callWithin(d time.Duration, token string) reply {
	f.t.Helper()
	begin := time.Now()
	r, _ := f.whoami(token)
	if took := time.Since(begin); took > d {
		f.t.Errorf("a call was held up for %v", took)
	}
	return r
}

// outage is how the store goes away and comes back.
var outages = map[string]struct{ begin, end func(f *fleet) }{
	"stopped": {func(f *fleet) { f.redis.Stop() }, func(f *fleet) { f.redis.Run() }},
	"frozen":  {func(f *fleet) { f.redis.Signal(syscall.SIGSTOP) }, func(f *fleet) { f.redis.Signal(syscall.SIGCONT) }},
}

// TestStoreOutage: without the store, static tokens go on, access tokens that were
// verified go on for store.grace, everything else is 503 with Retry-After, and all
// is well again by itself.
func TestStoreOutage(t *testing.T) {
	for name, o := range outages {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, fleetOptions{store: "grace: 12s\n", redis: []string{"--appendonly", "yes", "--appendfsync", "always"}})
			a := f.newApp()
			known, unseen := a.connect("alice"), a.connect("bob")
			f.each(func(*replica) { f.works(known.field("access_token"), "alice") })
			verified := time.Now()
			o.begin(f)
			f.each(func(x *replica) {
				for range 5 {
					if r := f.callWithin(4*time.Second, botToken); r.status != http.StatusOK {
						t.Errorf("%s: static token: %d %s", x.name, r.status, r.body)
					}
				}
			})
			for time.Since(verified) < 8*time.Second { // past what is remembered in any case
				time.Sleep(100 * time.Millisecond)
			}
			f.each(func(x *replica) {
				if r := f.callWithin(4*time.Second, known.field("access_token")); time.Since(verified) < 12*time.Second && r.status != http.StatusOK {
					t.Errorf("%s: verified token after %v: %d %s", x.name, time.Since(verified), r.status, r.body)
				}
				f.refuses(x, unseen.field("access_token"))
				f.refuses(x, "aegis_at_"+strings.Repeat("A", 43)+"000000")
			})
			for time.Since(verified) < 13*time.Second {
				time.Sleep(100 * time.Millisecond)
			}
			f.each(func(x *replica) { f.refuses(x, known.field("access_token")) })
			if r := a.refresh(known.field("refresh_token")); r.status != http.StatusServiceUnavailable {
				t.Errorf("refresh: %d %s", r.status, r.body)
			}
			o.end(f)
			f.each(func(x *replica) {
				x.eventually(10*time.Second, func() error {
					if r, _ := f.whoami(unseen.field("access_token")); r.status != http.StatusOK {
						return fmt.Errorf("%s: %d %s", x.name, r.status, r.body)
					}
					return nil
				})
				f.works(known.field("access_token"), "alice")
			})
			if r := a.refresh(known.field("refresh_token")); r.status != http.StatusOK {
				t.Errorf("refresh afterwards: %d %s", r.status, r.body)
			}
		})
	}
}

// refuses fails the test unless a token that cannot be verified is answered 503, or
// 401 when its form alone shows that it is none, and never let in.
func (f *fleet) refuses(x *replica, token string) {
	f.t.Helper()
	r := f.callWithin(4*time.Second, token)
	after, err := strconv.Atoi(r.header.Get("Retry-After"))
	switch {
	case r.status == http.StatusUnauthorized && strings.Contains(token, "AAAA"):
	case r.status != http.StatusServiceUnavailable || err != nil || after < 1:
		f.t.Errorf("%s: %d, Retry-After %q: %s", x.name, r.status, r.header.Get("Retry-After"), r.body)
	}
}

// TestStoreFlapsUnderLoad: the store is stopped and started while calls come. Static
// tokens never notice; access tokens are served or told to come again, and nobody is
// told to sign in again.
func TestStoreFlapsUnderLoad(t *testing.T) {
	f := newFleet(t, fleetOptions{store: "grace: 2s\n", top: "limits: {address: {rate: off}, identity: {rate: off}}\n", redis: []string{"--appendonly", "yes", "--appendfsync", "always"}})
	a := f.newApp()
	token := a.connect("alice").field("access_token")
	f.each(func(*replica) { f.works(token, "alice") })
	stop := make(chan struct{})
	var served, later atomic.Int64
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if r, _ := f.whoami(botToken); r.status != http.StatusOK {
					t.Errorf("static token: %d %s", r.status, r.body)
				}
				switch r, _ := f.whoami(token); r.status {
				case http.StatusOK:
					served.Add(1)
				case http.StatusServiceUnavailable:
					later.Add(1)
				default:
					t.Errorf("access token: %d %s", r.status, r.body)
				}
			}
		})
	}
	for range 2 {
		time.Sleep(500 * time.Millisecond)
		f.redis.Stop()
		time.Sleep(6 * time.Second)
		f.redis.Run()
		time.Sleep(time.Second)
	}
	close(stop)
	load.Wait()
	if served.Load() == 0 || later.Load() == 0 {
		t.Errorf("%d calls served, %d put off; both were to happen", served.Load(), later.Load())
	}
	t.Logf("%d calls served, %d put off", served.Load(), later.Load())
	f.each(func(x *replica) { f.works(token, "alice") })
}

// TestReplicaDiesDuringRefreshes: a replica that is killed or frozen in the middle
// of its work, with whatever it holds, keeps the others from nothing for long.
func TestReplicaDiesDuringRefreshes(t *testing.T) {
	f := newFleet(t, fleetOptions{})
	a := f.newApp()
	token := a.connect("alice").field("refresh_token")
	f.through(0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.refresh(token)
	}()
	f.replicas[0].signal(syscall.SIGSTOP)
	f.through(1)
	var next reply
	f.replicas[1].eventually(60*time.Second, func() error {
		if next = a.refresh(token); next.status != http.StatusOK {
			return errors.New(next.body)
		}
		return nil
	})
	f.works(next.field("access_token"), "alice")
	f.replicas[0].signal(syscall.SIGCONT)
	<-done
	f.through(2)
	f.works(next.field("access_token"), "alice")
	f.replicas[0].kill()
	f.through(1)
	if r := a.refresh(next.field("refresh_token")); r.status != http.StatusOK {
		t.Errorf("%d %s", r.status, r.body)
	}
}
