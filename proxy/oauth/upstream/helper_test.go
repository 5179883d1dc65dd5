package upstream_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"aegis/config"
	"aegis/proxy/gitea/fakegitea"
	"aegis/proxy/kv"
	"aegis/proxy/oauth/upstream"
)

// direct shares no connection with another request: httptest closes the idle ones of
// http.DefaultTransport whenever a test's server is closed, and a test beside it fails.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

const callback = "http://127.0.0.1:9/oauth/callback"

// someScopes are the scopes of most tests; they reach for organisations.
var someScopes = []string{"write:repository", "write:issue", "read:user", "read:organization"}

// clock is a time that only tests move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// lab is a double of Gitea with an application, a store and a clock.
type lab struct {
	*fakegitea.Server
	t          testing.TB
	clock      *clock
	base       string
	id, secret string
	store      kv.Store

	mu     sync.Mutex
	events []upstream.Event
}

// newLab starts a double; invalidate is Gitea's INVALIDATE_REFRESH_TOKENS.
func newLab(t testing.TB, invalidate bool) *lab {
	return newLabOf(t, fakegitea.Options{}, fakegitea.OAuthOptions{InvalidateRefreshTokens: invalidate})
}

func newLabOf(t testing.TB, opts fakegitea.Options, oauth fakegitea.OAuthOptions) *lab {
	t.Helper()
	l := &lab{t: t, clock: &clock{t: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}, Server: fakegitea.New(opts)}
	l.SetClock(l.clock.now)
	l.SetOAuthOptions(oauth)
	srv := httptest.NewServer(l.Server)
	t.Cleanup(srv.Close)
	l.base = srv.URL + opts.SubPath
	l.id, l.secret = l.RegisterOAuthApp("aegis", true, callback)
	l.store = kv.NewMemory(l.clock.now)
	return l
}

// replica returns one more Gitea over the lab's store. change may be nil.
func (l *lab) replica(change func(*upstream.Options)) *upstream.Gitea {
	l.t.Helper()
	api, err := url.Parse(l.base)
	if err != nil {
		l.t.Fatal(err)
	}
	o := upstream.Options{
		Config:      config.OAuth{ClientID: l.id, ClientSecret: config.NewSecret(l.secret), Scopes: someScopes},
		Gitea:       api,
		RedirectURL: callback,
		HTTP:        &http.Client{Transport: &http.Transport{}},
		Store:       l.store,
		Now:         l.clock.now,
		Event: func(e upstream.Event) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.events = append(l.events, e)
		},
	}
	if change != nil {
		change(&o)
	}
	g, err := upstream.New(o)
	if err != nil {
		l.t.Fatal(err)
	}
	g.Hurry()
	l.t.Cleanup(o.HTTP.CloseIdleConnections)
	return g
}

// saw counts the events of a kind.
func (l *lab) saw(kind upstream.EventKind) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, e := range l.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// code lets a person agree and returns what [upstream.Gitea.Exchange] wants.
func (l *lab) code(g *upstream.Gitea, login string) (code, verifier string) {
	l.t.Helper()
	verifier = oauth2.GenerateVerifier()
	location, err := l.Approve(login, g.LoginURL("state-1", verifier))
	if err != nil {
		l.t.Fatal(err)
	}
	u, err := url.Parse(location)
	if err != nil || !strings.HasPrefix(location, callback+"?") || u.Query().Get("state") != "state-1" {
		l.t.Fatalf("sent to %q: %v", location, err)
	}
	return u.Query().Get("code"), verifier
}

// signIn signs a person in.
func (l *lab) signIn(g *upstream.Gitea, login string) *upstream.User {
	l.t.Helper()
	code, verifier := l.code(g, login)
	u, err := g.Exchange(l.t.Context(), code, verifier)
	if err != nil {
		l.t.Fatal(err)
	}
	return u
}

// must returns a credential that Gitea accepts.
func (l *lab) must(g *upstream.Gitea, id int64) upstream.Credential {
	l.t.Helper()
	c, err := g.Credential(l.t.Context(), id)
	if err != nil {
		l.t.Fatal(err)
	}
	if status := l.try(c); status != http.StatusOK {
		l.t.Fatalf("Gitea answers %d to the credential", status)
	}
	return c
}

// try asks Gitea's API who it is.
func (l *lab) try(c upstream.Credential) int {
	l.t.Helper()
	req, err := http.NewRequest(http.MethodGet, l.base+"/api/v1/user", nil)
	if err != nil {
		l.t.Fatal(err)
	}
	req.Header.Set("Authorization", c.Token.Authorization())
	resp, err := direct.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// wantKind fails unless err is an [*upstream.Error] of this kind.
func wantKind(t testing.TB, err error, kind upstream.Kind) *upstream.Error {
	t.Helper()
	var e *upstream.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("got %v, want kind %s", err, kind)
	}
	return e
}

// state is [upstream.Gitea.State].
func (l *lab) state(g *upstream.Gitea, id int64) bool {
	l.t.Helper()
	ok, err := g.State(l.t.Context(), id)
	if err != nil {
		l.t.Fatal(err)
	}
	return ok
}

// flaky is a store whose writes of credentials can fail, and which can be asked
// to do something before one.
type flaky struct {
	kv.Store
	mu     sync.Mutex
	broken bool
	before func()
}

func (f *flaky) fail(broken bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = broken
}

func (f *flaky) CompareAndSwap(ctx context.Context, key string, version uint64, value []byte, ttl time.Duration) (uint64, error) {
	if !strings.HasPrefix(key, "cred/") {
		return f.Store.CompareAndSwap(ctx, key, version, value, ttl)
	}
	f.mu.Lock()
	broken, before := f.broken, f.before
	f.before = nil
	f.mu.Unlock()
	if before != nil {
		before()
	}
	if broken {
		return 0, errors.New("no space left on device")
	}
	return f.Store.CompareAndSwap(ctx, key, version, value, ttl)
}
