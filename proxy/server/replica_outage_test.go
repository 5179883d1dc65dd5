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

// outage is how the store goes away and comes back.
type outage struct {
	options    fleetOptions
	begin, end func(f *fleet)
}

func stopped() outage {
	return outage{fleetOptions{}, func(f *fleet) { f.redis.Stop() }, func(f *fleet) { f.redis.Run() }}
}

func frozen() outage {
	// Each call that asks waits for the timeout, until some have in vain.
	return outage{fleetOptions{frozen: true}, func(f *fleet) { f.redis.Signal(syscall.SIGSTOP) }, func(f *fleet) { f.redis.Signal(syscall.SIGCONT) }}
}

// TestStoreOutage: without the store, static tokens go on, access tokens that were
// verified go on for store.grace, everything else is 503 with Retry-After, and all
// is well again by itself.
func TestStoreOutage(t *testing.T) {
	t.Run("stopped", func(t *testing.T) { storeOutage(t, stopped()) })
	if whole() {
		t.Run("frozen", func(t *testing.T) { storeOutage(t, frozen()) })
	}
}

// lasting are arguments of a Redis that loses nothing when it is stopped.
var lasting = []string{"--appendonly", "yes", "--appendfsync", "always"}

func storeOutage(t *testing.T, o outage) {
	o.options.timely, o.options.redis = true, lasting
	o.options.store += "grace: 1m\n"
	f := newFleet(t, o.options)
	a := f.newApp()
	known, unseen := a.connect("alice"), a.connect("bob")
	f.each(func(*replica) { f.works(known.field("access_token"), "alice") })
	o.begin(f)
	f.each(func(x *replica) {
		for range 5 {
			if r, _ := f.whoami(botToken); r.status != http.StatusOK {
				t.Errorf("%s: static token: %d %s", x.name, r.status, r.body)
			}
		}
	})
	f.add(10 * time.Second) // past what is remembered in any case
	f.each(func(x *replica) {
		if r, _ := f.whoami(known.field("access_token")); r.status != http.StatusOK {
			t.Errorf("%s: verified token: %d %s", x.name, r.status, r.body)
		}
		f.refuses(x, unseen.field("access_token"))
		f.refuses(x, "aegis_at_"+strings.Repeat("A", 43)+"000000")
	})
	f.add(time.Minute)
	f.each(func(x *replica) { f.refuses(x, known.field("access_token")) })
	if r := a.refresh(known.field("refresh_token")); r.status != http.StatusServiceUnavailable {
		t.Errorf("refresh: %d %s", r.status, r.body)
	}
	o.end(f)
	f.each(func(x *replica) {
		eventually(t, func() error { return f.answers(unseen.field("access_token")) })
		f.works(known.field("access_token"), "alice")
	})
	if r := a.refresh(known.field("refresh_token")); r.status != http.StatusOK {
		t.Errorf("refresh afterwards: %d %s", r.status, r.body)
	}
}

// answers returns an error unless a call with the token is answered.
func (f *fleet) answers(token string) error {
	f.t.Helper()
	if r, _ := f.whoami(token); r.status != http.StatusOK {
		return fmt.Errorf("%d %s", r.status, r.body)
	}
	return nil
}

// refuses fails the test unless a token that cannot be verified is answered 503, or
// 401 when its form alone shows that it is none, and never let in.
func (f *fleet) refuses(x *replica, token string) {
	f.t.Helper()
	r, _ := f.whoami(token)
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
	flaps := 1
	if whole() {
		flaps = 5
	}
	f := newFleet(t, fleetOptions{
		timely: true, redis: lasting,
		store: "grace: 2s\n", top: "limits: {address: {rate: off}, identity: {rate: off}}\n",
	})
	a := f.newApp()
	first := a.connect("alice")
	token := first.field("access_token")
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
	more := func(n *atomic.Int64, what string) {
		t.Helper()
		before := n.Load()
		eventually(t, func() error {
			if n.Load() < before+10 {
				return errors.New("no more calls are " + what)
			}
			return nil
		})
	}
	for range flaps {
		more(&served, "served")
		f.redis.Stop()
		f.add(10 * time.Second) // nobody remembers the token any longer
		more(&later, "put off")
		f.redis.Run()
		more(&served, "served")
	}
	close(stop)
	load.Wait()
	t.Logf("%d calls served, %d put off", served.Load(), later.Load())
	f.each(func(x *replica) {
		eventually(t, func() error { return f.answers(token) }) // one that served nobody may wait for a moment
	})
	if r := a.refresh(first.field("refresh_token")); r.status != http.StatusOK {
		t.Errorf("refresh afterwards: %d %s", r.status, r.body)
	}
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
	eventually(t, func() error {
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
