package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/oauth2"

	"aegis/config"
	"aegis/proxy/gitea/fakegitea"
	"aegis/proxy/kv"
	"aegis/proxy/oauth/upstream"
)

const (
	pathToken      = "/login/oauth/access_token"
	pathIntrospect = "/login/oauth/introspect"
)

func TestSignIn(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	g := l.replica(nil)
	u := l.signIn(g, "alice")
	want := &upstream.User{ID: u.ID, Credential: upstream.Credential{
		Login: "alice", Scopes: []string{"write:issue", "read:organization", "write:repository", "read:user"},
	}}
	if u.Login != want.Login || !slices.Equal(u.Scopes, want.Scopes) || u.ID == 0 ||
		u.Token.Secret() != l.must(g, u.ID).Token.Secret() ||
		strings.Contains(fmt.Sprintf("%+v", u), u.Token.Secret()) {
		t.Errorf("%+v", u)
	}
	for _, scope := range l.OAuthCounts().AuthorizeScopes {
		if scope != strings.Join(want.Scopes, " ") {
			t.Errorf("Gitea was asked for %q", scope)
		}
	}
	c := l.must(g, u.ID)
	if c.Login != "alice" || !slices.Equal(c.Scopes, want.Scopes) {
		t.Errorf("%+v", c)
	}
	if !l.state(g, u.ID) || l.state(g, u.ID+1) || l.saw(upstream.EventSignedIn) != 1 {
		t.Error("the record is not what it should be")
	}
}

func TestLoginURL(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	g := l.replica(func(o *upstream.Options) {
		o.Config.BrowserURL = &config.URL{URL: url.URL{Scheme: "https", Host: "git.example.org", Path: "/git"}}
	})
	verifier := oauth2.GenerateVerifier()
	u, err := url.Parse(g.LoginURL("a b&c=d", verifier))
	if err != nil {
		t.Fatal(err)
	}
	if got := u.Scheme + "://" + u.Host + u.Path; got != "https://git.example.org/git/login/oauth/authorize" {
		t.Errorf("browsers are sent to %s", got)
	}
	want := url.Values{
		"client_id": {l.id}, "redirect_uri": {callback}, "response_type": {"code"}, "state": {"a b&c=d"},
		"scope":          {"write:issue read:organization write:repository read:user"},
		"code_challenge": {oauth2.S256ChallengeFromVerifier(verifier)}, "code_challenge_method": {"S256"},
	}
	if diff := cmp.Diff(want, u.Query()); diff != "" {
		t.Error(diff)
	}
	if g.RevokeURL() != "https://git.example.org/git/user/settings/applications" {
		t.Error(g.RevokeURL())
	}
}

// TestSubPath: Gitea lives under a path, and browsers know it by another host.
func TestSubPath(t *testing.T) {
	t.Parallel()
	l := newLabOf(t, fakegitea.Options{SubPath: "/git", RootURL: "http://gitea.public/git"}, fakegitea.OAuthOptions{})
	g := l.replica(func(o *upstream.Options) {
		o.Config.BrowserURL = &config.URL{URL: url.URL{Scheme: "http", Host: "gitea.public", Path: "/git/"}}
		o.Gitea.Path += "/"
	})
	u := l.signIn(g, "alice")
	l.must(g, u.ID)
	if problems, warnings := g.Check(t.Context()); len(problems)+len(warnings) != 0 {
		t.Error(problems, warnings)
	}
}

func TestOlderGrants(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scope string
		kind  upstream.Kind
		words string
	}{
		{"read:user", upstream.Narrow, "write:issue, read:organization, write:repository"},
		{"read:repository read:issue read:user read:organization", upstream.Narrow, "write:issue, write:repository"},
		{"public-only write:repository write:issue read:user read:organization", upstream.Narrow, "not public"},
		{"write:repository write:issue read:user read:organization write:admin", upstream.Wide, "write:admin"},
		{"write:repository write:issue write:user read:organization", upstream.Wide, "write:user"},
		{"offline_access write:repository write:issue read:user read:organization", upstream.Wide, "full access"},
		{"openid profile email", upstream.Wide, "full access"},
		{"all", upstream.Wide, "full access"},
		{"", upstream.Wide, "full access"},
		{"write:repository,bogus", upstream.Wide, "full access"},
	} {
		t.Run(c.scope, func(t *testing.T) {
			l := newLab(t, false)
			g := l.replica(nil)
			if !l.AddGrant("alice", l.id, c.scope) {
				t.Fatal("no grant")
			}
			code, verifier := l.code(g, "alice")
			_, err := g.Exchange(t.Context(), code, verifier)
			e := wantKind(t, err, c.kind)
			if !strings.Contains(e.Public, c.words) || !strings.Contains(e.Public, g.RevokeURL()) {
				t.Errorf("the text does not help: %s", e.Public)
			}
			if l.state(g, l.Grants("alice")[0].UserID) || l.saw(upstream.EventRefused) != 1 {
				t.Error("a refused grant was stored")
			}
			// Revoking the old grant is the way out that the text promises.
			l.RevokeGrant("alice", l.id)
			l.signIn(g, "alice")
		})
	}
}

// TestRefusedSignInSparesTheRecord: the answer of a refused sign-in ends the
// refresh token of the person's record, which must not suffer.
func TestRefusedSignInSparesTheRecord(t *testing.T) {
	t.Parallel()
	for _, scopes := range [][]string{{"write:issue", "write:repository"}, {"read:issue"}} {
		l := newLab(t, true)
		before := l.replica(func(o *upstream.Options) { o.Config.Scopes = []string{"read:issue", "read:user"} })
		u := l.signIn(before, "alice")
		after := l.replica(func(o *upstream.Options) { o.Config.Scopes = scopes })
		code, verifier := l.code(after, "alice")
		if _, err := after.Exchange(t.Context(), code, verifier); err == nil {
			t.Fatal("a grant of other scopes was accepted")
		}
		l.clock.add(2 * time.Hour)
		if c := l.must(after, u.ID); !slices.Equal(c.Scopes, []string{"read:issue"}) {
			t.Errorf("with the scopes %v the credential has %v", scopes, c.Scopes)
		}
	}
}

func TestExchangeRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(l *lab, code, verifier *string)
		kind  upstream.Kind
		alarm int
	}{
		"unknown code": {func(_ *lab, code, _ *string) { *code = "gta_bogus" }, upstream.Denied, 0},
		"empty code":   {func(_ *lab, code, _ *string) { *code = "" }, upstream.Denied, 0},
		"wrong verifier": {func(_ *lab, _, verifier *string) { *verifier = oauth2.GenerateVerifier() },
			upstream.Denied, 0},
		"expired code":    {func(l *lab, _, _ *string) { l.clock.add(11 * time.Minute) }, upstream.Denied, 0},
		"rotated secret":  {func(l *lab, _, _ *string) { l.RotateOAuthSecret(l.id) }, upstream.Config, 1},
		"deleted app":     {func(l *lab, _, _ *string) { l.DeleteOAuthApp(l.id) }, upstream.Config, 1},
		"gateway error":   {func(l *lab, _, _ *string) { l.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultStatus}) }, upstream.Unavailable, 0},
		"page of a proxy": {func(l *lab, _, _ *string) { l.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultHTML}) }, upstream.Unavailable, 0},
		"no connection":   {func(l *lab, _, _ *string) { l.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultDown}) }, upstream.Unavailable, 0},
		"introspection down": {func(l *lab, _, _ *string) {
			l.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultStatus, Paths: []string{pathIntrospect}})
		}, upstream.Unavailable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, false)
			g := l.replica(nil)
			code, verifier := l.code(g, "alice")
			id := l.Grants("alice")[0].UserID
			c.spoil(l, &code, &verifier)
			_, err := g.Exchange(t.Context(), code, verifier)
			wantKind(t, err, c.kind)
			if l.state(g, id) || l.saw(upstream.EventClient) != c.alarm {
				t.Errorf("stored: %v, alarms: %d", l.state(g, id), l.saw(upstream.EventClient))
			}
		})
	}
}

func TestCodeWorksOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	g := l.replica(nil)
	code, verifier := l.code(g, "alice")
	if _, err := g.Exchange(t.Context(), code, verifier); err != nil {
		t.Fatal(err)
	}
	_, err := g.Exchange(t.Context(), code, verifier)
	wantKind(t, err, upstream.Denied)
}

func TestExchangeOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	l := newLab(t, true)
	g := l.replica(nil)
	code, verifier := l.code(g, "alice")
	entered, release := make(chan struct{}, 1), make(chan struct{})
	l.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultHoldAnswer, Paths: []string{pathToken}, Times: 1,
		Entered: entered, Release: release})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { _, err := g.Exchange(ctx, code, verifier); done <- err }()
	<-entered
	cancel()
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	l.must(g, l.Grants("alice")[0].UserID)
}

func TestIntrospectionIsTriedAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t, true)
	g := l.replica(nil)
	l.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultStatus, Paths: []string{pathIntrospect}, Times: 2})
	l.must(g, l.signIn(g, "alice").ID)
}

// TestGrantDiesBeforeIntrospection: Gitea up to 1.26 answers 401 about a dead
// token, which is not about Aegis' secret.
func TestGrantDiesBeforeIntrospection(t *testing.T) {
	t.Parallel()
	for _, old := range []bool{false, true} {
		l := newLabOf(t, fakegitea.Options{}, fakegitea.OAuthOptions{OldIntrospection: old})
		g := l.replica(nil)
		code, verifier := l.code(g, "alice")
		entered, release := make(chan struct{}, 1), make(chan struct{})
		l.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultHold, Paths: []string{pathIntrospect},
			Entered: entered, Release: release})
		done := make(chan error)
		go func() { _, err := g.Exchange(t.Context(), code, verifier); done <- err }()
		<-entered
		l.RevokeGrant("alice", l.id)
		close(release)
		wantKind(t, <-done, upstream.Denied)
		if l.saw(upstream.EventClient) != 0 {
			t.Error("a dead token raised the alarm about the secret")
		}
	}
}

func TestSecretDiesBeforeIntrospection(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	g := l.replica(nil)
	code, verifier := l.code(g, "alice")
	entered, release := make(chan struct{}, 1), make(chan struct{})
	l.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultHold, Paths: []string{pathIntrospect}, Entered: entered,
		Release: release})
	done := make(chan error)
	go func() { _, err := g.Exchange(t.Context(), code, verifier); done <- err }()
	<-entered
	l.RotateOAuthSecret(l.id)
	close(release)
	wantKind(t, <-done, upstream.Config)
}

func TestOldGitea(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version func(w http.ResponseWriter, r *http.Request)
		kind    upstream.Kind // "": the sign-in works
	}{
		"1.22": {func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, 200, `{"version":"1.22.6"}`) },
			upstream.Config},
		"1.23": {func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, 200, `{"version":"1.23.0"}`) }, ""},
		"1.22 that tells only users": {func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				writeJSON(w, 403, `{"message":"Must be signed in"}`)
				return
			}
			writeJSON(w, 200, `{"version":"1.22.6"}`)
		}, upstream.Config},
		"scopes are known": {func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				writeJSON(w, 403, `{"message":"Must be signed in"}`)
				return
			}
			writeJSON(w, 403, `{"message":"token does not have at least one of required scope(s), required=[read:misc]"}`)
		}, ""},
		"told to nobody": {func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, 403, `{"message":"no"}`) },
			upstream.Unavailable},
		"no answer": {func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, 502, `{}`) },
			upstream.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, false)
			l.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/api/v1/version" {
					return false
				}
				c.version(w, r)
				return true
			})
			g := l.replica(nil)
			code, verifier := l.code(g, "alice")
			_, err := g.Exchange(t.Context(), code, verifier)
			if c.kind != "" {
				wantKind(t, err, c.kind)
			} else if err != nil {
				t.Fatal(err)
			}
			if l.state(g, l.Grants("alice")[0].UserID) != (c.kind == "") {
				t.Error("stored or not, the other way round")
			}
		})
	}
}

func writeJSON(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json;charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

// TestRecordsBelongToAnApplication: another server, or another application of
// the same one, has other users and grants.
func TestRecordsBelongToAnApplication(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	g := l.replica(nil)
	u := l.signIn(g, "alice")
	other, secret := l.RegisterOAuthApp("other", true, callback)
	h := l.replica(func(o *upstream.Options) {
		o.Config.ClientID, o.Config.ClientSecret = other,
			config.NewSecret(secret)
	})
	_, err := h.Credential(t.Context(), u.ID)
	wantKind(t, err, upstream.Gone)
	l.signIn(h, "alice")
	l.must(h, u.ID)
	if l.state(g, u.ID) {
		t.Error("the record still belongs to the first application")
	}
}

func TestStoreFailsAtSignIn(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	store := &flaky{Store: l.store, broken: true}
	g := l.replica(func(o *upstream.Options) { o.Store = store })
	code, verifier := l.code(g, "alice")
	_, err := g.Exchange(t.Context(), code, verifier)
	wantKind(t, err, upstream.Unavailable)
	if errors.Is(err, kv.ErrConflict) {
		t.Error("a failing store is no conflict")
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	api, _ := url.Parse(l.base)
	whole := func() upstream.Options {
		return upstream.Options{
			Config: config.OAuth{ClientID: "id", ClientSecret: config.NewSecret("hush"), Scopes: someScopes},
			Gitea:  api, RedirectURL: callback, HTTP: direct, Store: l.store,
		}
	}
	if _, err := upstream.New(whole()); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*upstream.Options){
		`"offline_access" is not a scope`: func(o *upstream.Options) {
			o.Config.Scopes = []string{"read:user",
				"offline_access"}
		},
		`"all" is not a scope`:         func(o *upstream.Options) { o.Config.Scopes = []string{"all"} },
		`"" is not a scope`:            func(o *upstream.Options) { o.Config.Scopes = []string{""} },
		`"read:user read:issue"`:       func(o *upstream.Options) { o.Config.Scopes = []string{"read:user read:issue"} },
		`"Read:user" is not a scope`:   func(o *upstream.Options) { o.Config.Scopes = []string{"Read:user"} },
		"scopes is empty":              func(o *upstream.Options) { o.Config.Scopes = nil },
		"client_id is missing":         func(o *upstream.Options) { o.Config.ClientID = "" },
		"client_secret is missing":     func(o *upstream.Options) { o.Config.ClientSecret = config.Secret{} },
		"gitea.url is missing":         func(o *upstream.Options) { o.Gitea = nil },
		"redirect URL is not absolute": func(o *upstream.Options) { o.RedirectURL = "/oauth/callback" },
		"no HTTP client":               func(o *upstream.Options) { o.HTTP = nil },
		"no store":                     func(o *upstream.Options) { o.Store = nil },
	} {
		o := whole()
		spoil(&o)
		if _, err := upstream.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
