package upstream_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"sync"
	"testing"
	"time"

	"aegis/proxy/gitea/fakegitea"
	"aegis/proxy/oauth/upstream"
)

func itoa(id int64) string { return strconv.FormatInt(id, 10) }

// TestParallelCallsRefreshOnce: callers of one process and of several replicas
// near the end of a token cause one refresh, whatever Gitea does with used
// refresh tokens.
func TestParallelCallsRefreshOnce(t *testing.T) {
	t.Parallel()
	for _, invalidate := range []bool{false, true} {
		for _, replicas := range []int{1, 2, 3} {
			l := newLab(t, invalidate)
			var all []*upstream.Gitea
			for range replicas {
				all = append(all, l.replica(nil))
			}
			u := l.signIn(all[0], "alice")
			for round := 1; round <= 4; round++ {
				l.clock.add(56 * time.Minute)
				var group sync.WaitGroup
				for i := range 24 {
					group.Go(func() {
						if _, err := all[i%replicas].Credential(t.Context(), u.ID); err != nil {
							t.Error(err)
						}
					})
				}
				group.Wait()
				if l.refreshes() != round {
					t.Fatalf("%d refreshes after %d rounds with %d replicas", l.refreshes(), round, replicas)
				}
				for _, g := range all {
					l.must(g, u.ID)
				}
			}
		}
	}
}

// TestCallerGoesAway: the refresh that it began is completed for the others.
func TestCallerGoesAway(t *testing.T) {
	t.Parallel()
	l := newLab(t, true)
	g := l.replica(nil)
	u := l.signIn(g, "alice")
	l.clock.add(2 * time.Hour)
	entered, release := make(chan struct{}, 1), make(chan struct{})
	l.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultHoldAnswer, Paths: []string{pathToken}, Times: 1, Entered: entered, Release: release})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { _, err := g.Credential(ctx, u.ID); done <- err }()
	<-entered
	cancel()
	wantKind(t, <-done, upstream.Unavailable)
	close(release)
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.must(l.replica(nil), u.ID)
	if l.refreshes() != 1 {
		t.Errorf("%d refreshes", l.refreshes())
	}
}

// TestLostRace: Gitea's counter moved between its reading and its writing.
func TestLostRace(t *testing.T) {
	t.Parallel()
	l := newLab(t, true)
	g := l.replica(nil)
	u := l.signIn(g, "alice")
	l.clock.add(2 * time.Hour)
	l.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultLostRace, Paths: []string{pathToken}, Times: 1})
	l.must(g, u.ID)
	if l.refreshes() != 2 {
		t.Errorf("%d refreshes", l.refreshes())
	}
}

// TestLostAnswer: Gitea has renewed the token, and the answer never arrived.
// With INVALIDATE_REFRESH_TOKENS there is no way back but a sign-in.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	for _, invalidate := range []bool{false, true} {
		l := newLab(t, invalidate)
		g := l.replica(nil)
		u := l.signIn(g, "alice")
		l.clock.add(2 * time.Hour)
		l.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultLostAnswer, Paths: []string{pathToken}, Times: 1})
		_, err := g.Credential(t.Context(), u.ID)
		wantKind(t, err, upstream.Unavailable)
		l.clock.add(time.Minute)
		_, err = g.Credential(t.Context(), u.ID)
		if invalidate {
			wantKind(t, err, upstream.Gone)
			l.signIn(g, "alice")
		} else if err != nil {
			t.Error(err)
		}
		l.must(g, u.ID)
	}
}

// TestSilence: a Gitea that takes the request and never answers.
func TestSilence(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	g := l.replica(nil)
	u := l.signIn(g, "alice")
	l.clock.add(2 * time.Hour)
	release := make(chan struct{})
	defer close(release)
	l.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultHold, Paths: []string{pathToken}, Release: release})
	g.Impatient(20 * time.Millisecond)
	_, err := g.Credential(t.Context(), u.ID)
	wantKind(t, err, upstream.Unavailable)
	if !l.state(g, u.ID) {
		t.Error("silence signed somebody out")
	}
}

// TestCrash: a replica dies between Gitea's answer and the store, with the lease
// in its hand. Another goes on once the lease has ended by itself.
func TestCrash(t *testing.T) {
	t.Parallel()
	for _, invalidate := range []bool{false, true} {
		l := newLab(t, invalidate)
		u := l.signIn(l.replica(nil), "alice")
		l.clock.add(2 * time.Hour)
		if _, err := l.store.CompareAndSwap(t.Context(), "lease/cred/"+itoa(u.ID), 0, []byte("held"), 40*time.Second); err != nil {
			t.Fatal(err)
		}
		mustIssue(l) // what the dead replica got
		g := l.replica(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := g.Credential(ctx, u.ID)
		cancel()
		wantKind(t, err, upstream.Unavailable)
		if l.refreshes() != 0 {
			t.Error("refreshed without the lease")
		}
		l.clock.add(41 * time.Second)
		_, err = g.Credential(t.Context(), u.ID)
		if invalidate {
			wantKind(t, err, upstream.Gone)
		} else if err != nil {
			t.Error(err)
		}
	}
}

// TestStoreFails: an answer of Gitea that the store did not take is not used, and
// not lost either.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	l := newLab(t, true)
	store := &flaky{Store: l.store}
	g := l.replica(func(o *upstream.Options) { o.Store = store })
	u := l.signIn(g, "alice")
	l.clock.add(2 * time.Hour)
	store.fail(true)
	for range 3 {
		_, err := g.Credential(t.Context(), u.ID)
		if e := wantKind(t, err, upstream.Unavailable); e.RetryAfter == 0 {
			t.Error("no word of when to come back")
		}
	}
	store.fail(false)
	l.must(g, u.ID)
	if l.refreshes() != 1 || l.saw(upstream.EventReauth) != 0 {
		t.Errorf("%d refreshes", l.refreshes())
	}
}

// TestForgetDuringRefresh: the record is deleted between Gitea's answer and the
// store.
func TestForgetDuringRefresh(t *testing.T) {
	t.Parallel()
	l := newLab(t, true)
	store := &flaky{Store: l.store}
	g := l.replica(func(o *upstream.Options) { o.Store = store })
	u := l.signIn(g, "alice")
	l.clock.add(2 * time.Hour)
	store.before = func() {
		if err := l.replica(nil).Forget(t.Context(), u.ID); err != nil {
			t.Error(err)
		}
	}
	_, err := g.Credential(t.Context(), u.ID)
	wantKind(t, err, upstream.Gone)
	if l.state(g, u.ID) {
		t.Error("the refresh brought back what was forgotten")
	}
}

// TestUsedElsewhere: the refresh token was used by a replica whose answer is on
// its way to the store.
func TestUsedElsewhere(t *testing.T) {
	t.Parallel()
	l := newLab(t, true)
	g, other := l.replica(nil), l.replica(nil)
	u := l.signIn(g, "alice")
	l.clock.add(2 * time.Hour)
	// The other signs the person in while g's request is under way: its answer
	// ends the refresh token that g holds.
	entered, release := make(chan struct{}, 1), make(chan struct{})
	l.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultHold, Paths: []string{pathToken}, Times: 1, Entered: entered, Release: release})
	done := make(chan error)
	go func() { _, err := g.Credential(t.Context(), u.ID); done <- err }()
	<-entered
	l.signIn(other, "alice")
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	l.must(g, u.ID)
	if l.refreshes() != 1 || l.saw(upstream.EventReauth) != 0 {
		t.Errorf("%d refreshes, %d ends", l.refreshes(), l.saw(upstream.EventReauth))
	}
}

// TestSignInOvertakesRefresh: Gitea has answered the refresh, then a sign-in,
// and the sign-in is stored first. Its counter is the larger one.
func TestSignInOvertakesRefresh(t *testing.T) {
	t.Parallel()
	l := newLab(t, true)
	g, other := l.replica(nil), l.replica(nil)
	u := l.signIn(g, "alice")
	l.clock.add(2 * time.Hour)
	entered, release := make(chan struct{}, 1), make(chan struct{})
	l.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultHoldAnswer, Paths: []string{pathToken}, Times: 1, Entered: entered, Release: release})
	done := make(chan error)
	go func() { _, err := g.Credential(t.Context(), u.ID); done <- err }()
	<-entered
	l.signIn(other, "alice")
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	l.clock.add(2 * time.Hour)
	l.must(g, u.ID) // only the newest refresh token works
}

// TestSignInsCross: of two sign-ins, the one that Gitea answered first is stored
// last. The other must stay.
func TestSignInsCross(t *testing.T) {
	t.Parallel()
	l := newLab(t, true)
	g, other := l.replica(nil), l.replica(nil)
	code, verifier := l.code(g, "alice")
	entered, release := make(chan struct{}, 1), make(chan struct{})
	l.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultHoldAnswer, Paths: []string{pathToken}, Times: 1, Entered: entered, Release: release})
	done := make(chan error)
	go func() { _, err := g.Exchange(t.Context(), code, verifier); done <- err }()
	<-entered
	u := l.signIn(other, "alice")
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	l.clock.add(2 * time.Hour)
	l.must(g, u.ID)
}

// TestSignInAfterRestore: a record with a larger counter than Gitea's, as after
// Gitea was restored from a backup, does not keep a sign-in out.
func TestSignInAfterRestore(t *testing.T) {
	t.Parallel()
	l := newLab(t, true)
	g := l.replica(nil)
	u := l.signIn(g, "alice")
	key := "cred/" + itoa(u.ID)
	entry, err := l.store.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	var record map[string]any
	if err := json.Unmarshal(entry.Value, &record); err != nil {
		t.Fatal(err)
	}
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"gnt":1000,"tt":1,"cnt":1000,"exp":4102444800}`))
	record["refresh"] = "e30." + claims + ".c2ln"
	value, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.store.Put(t.Context(), key, value, 0); err != nil {
		t.Fatal(err)
	}
	l.clock.add(time.Hour)
	l.signIn(g, "alice")
	l.clock.add(2 * time.Hour)
	l.must(g, u.ID)
}

// TestGrantMadeAnew: the person revoked the grant and signed in again while a
// refresh with the old one was under way, or had just been answered.
func TestGrantMadeAnew(t *testing.T) {
	t.Parallel()
	for _, kind := range []fakegitea.FaultKind{fakegitea.FaultHold, fakegitea.FaultHoldAnswer} {
		l := newLab(t, true)
		g, other := l.replica(nil), l.replica(nil)
		u := l.signIn(g, "alice")
		l.clock.add(2 * time.Hour)
		entered, release := make(chan struct{}, 1), make(chan struct{})
		l.FailOAuth(fakegitea.OAuthFault{Kind: kind, Paths: []string{pathToken}, Times: 1, Entered: entered, Release: release})
		done := make(chan error)
		go func() { _, err := g.Credential(t.Context(), u.ID); done <- err }()
		<-entered
		l.RevokeGrant("alice", l.id)
		l.signIn(other, "alice")
		close(release)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		l.must(g, u.ID)
		if l.saw(upstream.EventRevoked) != 0 {
			t.Error("the new record was ended for the old grant's sake")
		}
	}
}

// TestOneAlarm: several refreshes that are refused at once are one trouble.
func TestOneAlarm(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	g := l.replica(nil)
	ids := []int64{l.signIn(g, "alice").ID, l.signIn(g, "bob").ID}
	l.clock.add(2 * time.Hour)
	entered, release := make(chan struct{}, 2), make(chan struct{})
	l.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultHold, Paths: []string{pathToken}, Entered: entered, Release: release})
	var group sync.WaitGroup
	for _, id := range ids {
		group.Go(func() {
			if _, err := g.Credential(t.Context(), id); err == nil {
				t.Error("refreshed with a wrong secret")
			}
		})
	}
	<-entered
	<-entered
	l.RotateOAuthSecret(l.id)
	close(release)
	group.Wait()
	if n := l.saw(upstream.EventClient); n != 1 {
		t.Errorf("%d alarms", n)
	}
}
