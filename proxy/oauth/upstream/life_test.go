package upstream_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy/gitea/fakegitea"
	"aegis/proxy/oauth/upstream"
)

func TestRejected(t *testing.T) {
	t.Parallel()
	l := newLab(t, true)
	g := l.replica(nil)
	u := l.signIn(g, "alice")
	used := l.must(g, u.ID).Token
	if e := wantKind(t, g.Rejected(t.Context(), u.ID, used), upstream.Unavailable); e.RetryAfter == 0 || l.refreshes() != 0 {
		t.Error("a token that is a second old was renewed")
	}
	l.clock.add(time.Minute)
	if err := g.Rejected(t.Context(), u.ID, used); err != nil || l.refreshes() != 1 {
		t.Fatalf("%v after %d refreshes", err, l.refreshes())
	}
	if err := g.Rejected(t.Context(), u.ID, used); err != nil || l.refreshes() != 1 {
		t.Error("a token that is not in use any more was renewed again")
	}
	used = l.must(g, u.ID).Token
	l.clock.add(time.Minute)
	l.RevokeGrant("alice", l.id)
	wantKind(t, g.Rejected(t.Context(), u.ID, used), upstream.Gone)
	if l.state(g, u.ID) {
		t.Error("a revoked grant is still good")
	}
}

func TestForget(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	g := l.replica(nil)
	u := l.signIn(g, "alice")
	for range 2 {
		if err := g.Forget(t.Context(), u.ID); err != nil {
			t.Fatal(err)
		}
	}
	_, err := g.Credential(t.Context(), u.ID)
	wantKind(t, err, upstream.Gone)
	if l.state(g, u.ID) {
		t.Error("not forgotten")
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	l := newLab(t, true)
	g := l.replica(nil)
	u := l.signIn(g, "alice")
	l.clock.add(56 * time.Minute)
	entered, release := make(chan struct{}, 1), make(chan struct{})
	l.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultHoldAnswer, Paths: []string{pathToken}, Entered: entered, Release: release})
	done := make(chan error)
	go func() { _, err := g.Credential(t.Context(), u.ID); done <- err }()
	<-entered
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Close(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("closed with a refresh under way: %v", err)
	}
	close(release)
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	l.must(g, u.ID) // what was stored is still told
	l.clock.add(2 * time.Hour)
	_, err := g.Credential(t.Context(), u.ID)
	wantKind(t, err, upstream.Unavailable)
	code, verifier := l.code(g, "bob")
	_, err = g.Exchange(t.Context(), code, verifier)
	wantKind(t, err, upstream.Unavailable)
	l.must(l.replica(nil), u.ID)
}

func TestStoreTroubleSignsNobodyOut(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	u := l.signIn(l.replica(nil), "alice")
	ctx := t.Context()
	if err := l.store.Put(ctx, "cred/"+itoa(u.ID), []byte("{broken"), 0); err != nil {
		t.Fatal(err)
	}
	g := l.replica(func(o *upstream.Options) { o.Config.ClientSecret = config.NewSecret(l.secret) })
	_, err := g.Credential(ctx, u.ID)
	wantKind(t, err, upstream.Unavailable)
	if _, err := g.State(ctx, u.ID); err == nil {
		t.Error("a record that cannot be read is not the same as none")
	}
	l.signIn(g, "alice")
	l.must(g, u.ID)
}

// TestGrantTurnsWide: what a refresh learns of the grant counts too.
func TestGrantTurnsWide(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	g := l.replica(nil)
	u := l.signIn(g, "alice")
	l.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == pathIntrospect {
			writeJSON(w, 200, `{"active":true,"scope":"offline_access","username":"alice","sub":"`+itoa(u.ID)+`","aud":"`+l.id+`"}`)
		}
		return r.URL.Path == pathIntrospect
	})
	l.clock.add(2 * time.Hour)
	for range 2 {
		_, err := g.Credential(t.Context(), u.ID)
		if e := wantKind(t, err, upstream.Gone); !strings.Contains(e.Public, g.RevokeURL()) {
			t.Error(e.Public)
		}
	}
	if l.state(g, u.ID) {
		t.Error("full access is still good")
	}
}

// TestIntrospectionOfAnother: an answer about another user at a refresh changes
// nothing.
func TestIntrospectionOfAnother(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	g := l.replica(nil)
	u := l.signIn(g, "alice")
	l.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == pathIntrospect {
			writeJSON(w, 200, `{"active":true,"scope":"write:issue","username":"mallory","sub":"`+itoa(u.ID+1)+`","aud":"`+l.id+`"}`)
		}
		return r.URL.Path == pathIntrospect
	})
	l.clock.add(2 * time.Hour)
	if c := l.must(g, u.ID); c.Login != "alice" || len(c.Scopes) != len(someScopes) {
		t.Errorf("%+v", c)
	}
}

func TestReadIntrospection(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`{"active":true,"scope":"read:user","username":"alice","sub":"7","aud":["other","id"]}`: true,
		`{"active":true,"scope":"","username":"a","sub":"7","aud":"id"}`:                        true,
		`{"active":true,"username":"alice","sub":"7","aud":["other"]}`:                          false,
		`{"active":true,"username":"alice","sub":"7","aud":null}`:                               false,
		`{"active":true,"username":"alice","sub":"7"}`:                                          false,
		`{"active":true,"username":"alice","sub":"0","aud":"id"}`:                               false,
		`{"active":true,"username":"alice","sub":"7.5","aud":"id"}`:                             false,
		`{"active":true,"username":"alice","sub":7,"aud":"id"}`:                                 false,
		`{"active":true,"username":"","sub":"7","aud":"id"}`:                                    false,
		`{"active":true,"username":"a b","sub":"7","aud":"id"}`:                                 false,
		`{"active":true,"username":"a\u202eb","sub":"7","aud":"id"}`:                            false,
		`{"active":false,"username":"alice","sub":"7","aud":"id"}`:                              false,
		`{"username":"alice","sub":"7","aud":"id"}`:                                             false,
		`[]`: false, `null`: false, ``: false, `"active"`: false,
		`{"active":true,"username":"alice","sub":"7","aud":"id","scope":"` + strings.Repeat("a", 5000) + `"}`: false,
	} {
		id, login, _, err := upstream.ReadIntrospection([]byte(body), "id")
		if (err == nil) != want || want && (id != 7 || login == "") {
			t.Errorf("%.120s: %d %q %v", body, id, login, err)
		}
	}
}
