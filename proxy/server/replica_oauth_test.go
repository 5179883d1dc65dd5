package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"aegis/proxy/gitea/fakegitea"
)

// TestSignInAcrossReplicas: registration, consent, Gitea's answer, the code, the
// token and calls, each at another replica than the step before, whichever is
// first.
func TestSignInAcrossReplicas(t *testing.T) {
	f := newFleet(t, fleetOptions{})
	for range f.replicas { // each begins once
		a := f.newApp()
		r := a.connect("alice")
		f.each(func(x *replica) { f.works(r.field("access_token"), "alice") })
		next := a.refresh(r.field("refresh_token"))
		if next.status != http.StatusOK {
			t.Fatalf("refresh: %d %s", next.status, next.body)
		}
		f.each(func(x *replica) { f.works(next.field("access_token"), "alice") })
		f.next.Add(1)
	}
	eventually(t, func() error { // a log comes behind
		seen := map[string]bool{}
		for _, x := range f.replicas {
			for _, step := range []string{"/register", "/authorize", "/consent", "/oauth/callback", "/token", "/mcp"} {
				if strings.Contains(x.log.String(), `"path":"`+step+`"`) {
					seen[step+" at "+x.name] = true
				}
			}
		}
		if len(seen) < 15 { // six steps at three replicas, in turn
			return fmt.Errorf("the steps were at too few replicas: %v", seen)
		}
		return nil
	})
}

// TestCodeOnceAcrossReplicas: of a code that is redeemed everywhere at once, one
// gets tokens at most, and the replay ends them.
func TestCodeOnceAcrossReplicas(t *testing.T) {
	f := newFleet(t, fleetOptions{})
	a := f.newApp()
	code := f.person("alice").allow(a.address()).Get("code")
	var mu sync.Mutex
	var won []reply
	parallel(12, func(int) {
		if r := a.redeem(code); r.status == http.StatusOK {
			mu.Lock()
			defer mu.Unlock()
			won = append(won, r)
		}
	})
	if len(won) > 1 {
		t.Errorf("%d redemptions of one code", len(won))
	}
}

// TestParallelRefreshesAcrossReplicas: 24 processes of one client refresh at once
// through three replicas; all get the same successor, and the grant lives on.
func TestParallelRefreshesAcrossReplicas(t *testing.T) {
	f := newFleet(t, fleetOptions{oauth: "refresh_grace: 10m\n"})
	a := f.newApp()
	token := a.connect("alice").field("refresh_token")
	for generation := range 3 {
		got := make([]reply, 24)
		parallel(24, func(i int) { got[i] = a.refresh(token) })
		for i, r := range got {
			if r.status != http.StatusOK || r.field("refresh_token") != got[0].field("refresh_token") {
				t.Fatalf("generation %d, refresh %d: %d %s", generation, i, r.status, r.body)
			}
			f.works(r.field("access_token"), "alice")
		}
		token = got[0].field("refresh_token")
	}
}

// TestOneUpstreamRefresh: when a person's Gitea token ends, one of three replicas
// renews it, though all are asked at once.
func TestOneUpstreamRefresh(t *testing.T) {
	const life = 30 * time.Minute
	f := newFleet(t, fleetOptions{timely: true})
	f.double.SetOAuthOptions(fakegitea.OAuthOptions{InvalidateRefreshTokens: true, AccessLifetime: life})
	a := f.newApp()
	token := a.connect("alice").field("access_token")
	f.each(func(*replica) { f.works(token, "alice") })
	before := f.double.OAuthCounts().Refresh
	f.add(life)
	parallel(24, func(int) { f.works(token, "alice") })
	if n := f.double.OAuthCounts().Refresh - before; n != 1 {
		t.Errorf("%d refreshes at Gitea, want 1", n)
	}
}

// TestRevocationAcrossReplicas: what ends at one replica has ended at all five seconds
// later.
func TestRevocationAcrossReplicas(t *testing.T) {
	f := newFleet(t, fleetOptions{timely: true})
	a := f.newApp()
	r := a.connect("alice")
	token := r.field("access_token")
	f.each(func(*replica) { f.works(token, "alice") }) // all have it in mind
	f.through(1)
	if got := f.ask(http.MethodPost, "/revoke", url.Values{"token": {r.field("refresh_token")}, "client_id": {a.id}}.Encode()); got.status != http.StatusOK {
		t.Fatalf("revoke: %d %s", got.status, got.body)
	}
	f.add(5 * time.Second)
	f.each(func(x *replica) {
		if r, _ := f.whoami(token); r.status != http.StatusUnauthorized {
			t.Errorf("%s still answers %d", x.name, r.status)
		}
	})
	f.through(2)
	if got := a.refresh(r.field("refresh_token")); got.status != http.StatusBadRequest {
		t.Errorf("refresh: %d %s", got.status, got.body)
	}
}

// TestKeyRotationAcrossReplicas: first every replica learns of the new key, then it
// comes to the front; nobody is signed out, and in the end the old one is not
// needed.
func TestKeyRotationAcrossReplicas(t *testing.T) {
	f := newFleet(t, fleetOptions{})
	a := f.newApp()
	r := a.connect("alice")
	const fresh = "fresh-key-of-all-replicas-0123456789-012345"
	keys := "[" + replicaKey + "]"
	for _, next := range []string{"[" + replicaKey + ", " + fresh + "]", "[" + fresh + ", " + replicaKey + "]"} {
		for _, x := range f.replicas {
			text, err := os.ReadFile(x.file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(x.file, []byte(strings.Replace(string(text), keys, next, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			before := strings.Count(x.log.String(), "was loaded anew")
			x.signal(syscall.SIGHUP)
			eventually(t, func() error {
				if strings.Count(x.log.String(), "was loaded anew") == before {
					return errors.New("not reloaded: " + x.log.String())
				}
				return nil
			})
			for range f.replicas { // in the midst of it, whoever answers
				r = a.refresh(r.field("refresh_token"))
				if r.status != http.StatusOK {
					t.Fatalf("refresh: %d %s", r.status, r.body)
				}
				f.works(r.field("access_token"), "alice")
			}
		}
		keys = next
	}
	b := f.newApp()
	f.works(b.connect("alice").field("access_token"), "alice")
}

// TestReplicaThatDoesNotFit: a replica with other keys does not start, nor does one
// without the store.
func TestReplicaThatDoesNotFit(t *testing.T) {
	f := newFleet(t, fleetOptions{n: 1})
	for name, c := range map[string]struct{ from, to, want string }{
		"other keys": {replicaKey, "key-of-somebody-else-0123456789-0123456789", "other keys"},
		"no store":   {"redis://" + f.redis.Address, "redis://127.0.0.1:1", "the store cannot be reached"},
	} {
		x := f.configure(name, fleetOptions{})
		text, err := os.ReadFile(x.file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(x.file, []byte(strings.Replace(strings.Replace(string(text), c.from, c.to, 1), "replica: "+name, "replica: x", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		x.start()
		select {
		case <-x.done:
		case <-time.After(patience):
			x.kill()
			t.Errorf("%s: it serves", name)
		}
		if !strings.Contains(x.log.String(), c.want) || strings.Contains(x.log.String(), "key-of-somebody-else") {
			t.Errorf("%s: %s", name, x.log)
		}
	}
}
