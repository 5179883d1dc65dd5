package upstream_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"aegis/proxy/gitea/fakegitea"
	"aegis/proxy/oauth/upstream"
)

// refreshes counts the refresh requests that Gitea got.
func (l *lab) refreshes() int { return l.OAuthCounts().Refresh }

func TestRefreshWhenFiveMinutesAreLeft(t *testing.T) {
	t.Parallel()
	for _, invalidate := range []bool{false, true} {
		l := newLab(t, invalidate)
		g := l.replica(nil)
		u := l.signIn(g, "alice")
		first := l.must(g, u.ID)
		l.clock.add(54 * time.Minute)
		if l.must(g, u.ID).Token.Secret() != first.Token.Secret() || l.refreshes() != 0 {
			t.Error("renewed too early")
		}
		l.clock.add(2 * time.Minute)
		second := l.must(g, u.ID)
		if second.Token.Secret() == first.Token.Secret() || l.refreshes() != 1 || l.saw(upstream.EventRefreshed) != 1 {
			t.Error("not renewed")
		}
		if l.must(g, u.ID).Token.Secret() != second.Token.Secret() || l.refreshes() != 1 {
			t.Error("renewed again")
		}
		for range 5 {
			l.clock.add(2 * time.Hour)
			l.must(g, u.ID)
		}
		if l.refreshes() != 6 {
			t.Errorf("%d refreshes", l.refreshes())
		}
	}
}

// TestShortLife: an access token that lives two minutes is not renewed by every
// call.
func TestShortLife(t *testing.T) {
	t.Parallel()
	l := newLabOf(t, fakegitea.Options{}, fakegitea.OAuthOptions{AccessLifetime: 2 * time.Minute})
	g := l.replica(nil)
	u := l.signIn(g, "alice")
	for range 9 {
		l.must(g, u.ID)
		l.clock.add(10 * time.Second)
	}
	if l.refreshes() != 0 {
		t.Errorf("%d refreshes within 90 seconds", l.refreshes())
	}
	l.clock.add(5 * time.Second)
	l.must(g, u.ID)
	if l.refreshes() != 1 {
		t.Error("not renewed in its last quarter")
	}
}

// TestDeadCredentials: Gitea's own word ends a credential, and only that of the
// person.
func TestDeadCredentials(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil      func(l *lab)
		event      upstream.EventKind
		words      string
		invalidate bool
	}{
		"grant revoked":         {func(l *lab) { l.RevokeGrant("alice", l.id) }, upstream.EventRevoked, "revoked", false},
		"signing key changed":   {func(l *lab) { l.RotateSigningKey() }, upstream.EventReauth, "expired", false},
		"refresh token expired": {func(l *lab) { l.clock.add(800 * time.Hour) }, upstream.EventReauth, "expired", false},
		"token used by a thief": {func(l *lab) { mustIssue(l) }, upstream.EventReauth, "expired", true},
		"unknown word of refusal": {func(l *lab) {
			l.Intercept(answerToken(400, `{"error":"invalid_grant","error_description":"in words of a later version"}`))
		}, upstream.EventReauth, "expired", false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, c.invalidate)
			g := l.replica(nil)
			u, bob := l.signIn(g, "alice"), l.signIn(g, "bob")
			c.spoil(l)
			l.clock.add(56 * time.Minute)
			_, err := g.Credential(t.Context(), u.ID)
			if e := wantKind(t, err, upstream.Gone); !strings.Contains(e.Public, c.words) || !strings.Contains(e.Public, "sign in again") {
				t.Errorf("the text does not help: %s", e.Public)
			}
			if l.state(g, u.ID) || l.saw(c.event) != 1 || !l.state(g, bob.ID) {
				t.Error("the end was not written down, or touched somebody else")
			}
			before := l.refreshes()
			_, err = g.Credential(t.Context(), u.ID)
			wantKind(t, err, upstream.Gone)
			if l.refreshes() != before {
				t.Error("Gitea is asked again about a credential that ended")
			}
			entry, err := l.store.Get(t.Context(), "cred/"+itoa(u.ID))
			if err == nil && strings.Contains(string(entry.Value), "eyJ") {
				t.Error("the store keeps a dead token")
			}
			l.Intercept(nil)
			l.signIn(g, "alice")
			l.must(g, u.ID)
		})
	}
}

func mustIssue(l *lab) {
	l.t.Helper()
	if _, _, err := l.IssueOAuthTokens("alice", l.id); err != nil {
		l.t.Fatal(err)
	}
}

// answerToken answers refreshes instead of Gitea.
func answerToken(status int, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, pathToken) || r.FormValue("grant_type") != "refresh_token" {
			return false
		}
		writeJSON(w, status, body)
		return true
	}
}

// TestOutage: whatever stands before Gitea may answer what it likes; nobody is
// signed out by it.
func TestOutage(t *testing.T) {
	t.Parallel()
	fault := func(f fakegitea.OAuthFault) func(*lab) {
		f.Paths = []string{pathToken}
		return func(l *lab) { l.FailOAuth(f) }
	}
	answer := func(status int, body string) func(*lab) {
		return func(l *lab) { l.Intercept(answerToken(status, body)) }
	}
	plain := func(contentType, body string) func(*lab) {
		return func(l *lab) {
			l.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, pathToken) {
					return false
				}
				w.Header().Set("Content-Type", contentType)
				_, _ = w.Write([]byte(body))
				return true
			})
		}
	}
	for name, spoil := range map[string]func(*lab){
		"no connection":           fault(fakegitea.OAuthFault{Kind: fakegitea.FaultDown}),
		"bad gateway":             fault(fakegitea.OAuthFault{Kind: fakegitea.FaultStatus}),
		"too many requests":       fault(fakegitea.OAuthFault{Kind: fakegitea.FaultStatus, Status: 429}),
		"a page":                  fault(fakegitea.OAuthFault{Kind: fakegitea.FaultHTML}),
		"a page with 400":         fault(fakegitea.OAuthFault{Kind: fakegitea.FaultHTML, Status: 400}),
		"a page with 401":         fault(fakegitea.OAuthFault{Kind: fakegitea.FaultHTML, Status: 401}),
		"a redirect":              fault(fakegitea.OAuthFault{Kind: fakegitea.FaultStatus, Status: 302}),
		"lost race, ever again":   fault(fakegitea.OAuthFault{Kind: fakegitea.FaultLostRace}),
		"JSON with 500":           answer(500, `{"error":"invalid_grant","error_description":"grant does not exist"}`),
		"JSON with 403":           answer(403, `{"error":"invalid_grant","error_description":"grant does not exist"}`),
		"an error with 200":       answer(200, `{"error":"invalid_grant","error_description":"grant does not exist"}`),
		"an unknown code":         answer(400, `{"error":"temporarily_unavailable"}`),
		"invalid_request":         answer(400, `{"error":"invalid_request","error_description":"cannot sign token"}`),
		"an empty object":         answer(200, `{}`),
		"null":                    answer(200, `null`),
		"wrong types":             answer(200, `{"access_token":1,"refresh_token":[],"expires_in":"soon"}`),
		"nulls":                   answer(200, `{"access_token":null,"refresh_token":null,"expires_in":null}`),
		"a token with a newline":  answer(200, `{"access_token":"a\nb","token_type":"bearer","refresh_token":"c","expires_in":3600}`),
		"a token of another type": answer(200, `{"access_token":"ab","token_type":"mac","refresh_token":"c","expires_in":3600}`),
		"an endless token":        answer(200, `{"access_token":"`+strings.Repeat("a", 9000)+`","token_type":"bearer","refresh_token":"c","expires_in":3600}`),
		"a huge answer":           answer(200, `{"padding":"`+strings.Repeat("a", 2<<20)+`","access_token":"a","refresh_token":"c"}`),
		"broken JSON":             answer(200, `{"access_token":"a`),
		"a form":                  plain("application/x-www-form-urlencoded", "access_token=a&refresh_token=b&token_type=bearer&expires_in=3600"),
		"a form as text":          plain("text/plain", "access_token=a&refresh_token=b&token_type=bearer&expires_in=3600"),
		"no type at all":          plain("", `{"access_token":"a","refresh_token":"b"}`),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, true)
			g := l.replica(nil)
			u := l.signIn(g, "alice")
			old := l.must(g, u.ID)
			spoil(l)
			l.clock.add(56 * time.Minute)
			if c := l.must(g, u.ID); c.Token.Secret() != old.Token.Secret() {
				t.Error("the token that still lives is not used")
			}
			l.clock.add(5 * time.Minute)
			_, err := g.Credential(t.Context(), u.ID)
			if e := wantKind(t, err, upstream.Unavailable); e.Public == "" {
				t.Error("no text")
			}
			if !l.state(g, u.ID) || l.saw(upstream.EventReauth)+l.saw(upstream.EventRevoked)+l.saw(upstream.EventClient) != 0 {
				t.Error("an outage signed somebody out or raised an alarm")
			}
			l.ClearOAuthFaults()
			l.Intercept(nil)
			l.clock.add(time.Minute)
			l.must(g, u.ID)
		})
	}
}

// TestOutageIsNotHammered: between attempts Gitea is left alone, for longer each
// time, and Retry-After is honoured.
func TestOutageIsNotHammered(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	g := l.replica(nil)
	u, bob := l.signIn(g, "alice"), l.signIn(g, "bob")
	l.clock.add(2 * time.Hour)
	l.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultStatus, Paths: []string{pathToken}})
	for range 20 {
		_, err := g.Credential(t.Context(), u.ID)
		if e := wantKind(t, err, upstream.Unavailable); e.RetryAfter < 0 || e.RetryAfter > 30*time.Second {
			t.Errorf("retry after %s", e.RetryAfter)
		}
	}
	if l.refreshes() != 1 {
		t.Errorf("%d attempts at once", l.refreshes())
	}
	for range 600 {
		l.clock.add(time.Second)
		_, _ = g.Credential(t.Context(), u.ID)
	}
	if n := l.refreshes(); n < 15 || n > 30 {
		t.Errorf("%d attempts in ten minutes", n)
	}
	l.ClearOAuthFaults()
	l.must(g, bob.ID)
}

func TestRefusedClient(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(l *lab){
		"rotated secret": func(l *lab) { l.secret = l.RotateOAuthSecret(l.id) },
		"as a proxy says it": func(l *lab) {
			l.Intercept(answerToken(401, `{"error":"invalid_client","error_description":"no"}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, true)
			g := l.replica(nil)
			u, bob := l.signIn(g, "alice"), l.signIn(g, "bob")
			spoil(l)
			l.clock.add(56 * time.Minute)
			l.must(g, u.ID)
			l.clock.add(time.Hour)
			for _, id := range []int64{u.ID, bob.ID, u.ID} {
				_, err := g.Credential(t.Context(), id)
				if e := wantKind(t, err, upstream.Config); !strings.Contains(e.Public, "client_secret") {
					t.Errorf("the text does not help: %s", e.Public)
				}
			}
			// One alarm for each attempt, and one attempt for each hold.
			if n := l.saw(upstream.EventClient); n != 2 {
				t.Errorf("%d alarms after two attempts", n)
			}
			if !l.state(g, u.ID) || !l.state(g, bob.ID) {
				t.Error("the operator's mistake signed people out")
			}
			l.Intercept(nil)
			mended := l.replica(nil)
			l.must(mended, u.ID)
			l.must(mended, bob.ID)
		})
	}
}

// TestDeletedApplication: the operator may have deleted it by mistake, or the
// whole of Gitea may be another for a moment.
func TestDeletedApplication(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	g := l.replica(nil)
	u := l.signIn(g, "alice")
	l.DeleteOAuthApp(l.id)
	l.clock.add(2 * time.Hour)
	_, err := g.Credential(t.Context(), u.ID)
	wantKind(t, err, upstream.Config)
	if !l.state(g, u.ID) {
		t.Error("the record is gone")
	}
}

// TestAnswerWithoutRefreshToken: the old one stays (RFC 6749 section 6).
func TestAnswerWithoutRefreshToken(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	g := l.replica(nil)
	u := l.signIn(g, "alice")
	access, _, err := l.IssueOAuthTokens("alice", l.id)
	if err != nil {
		t.Fatal(err)
	}
	l.clock.add(56 * time.Minute)
	for _, body := range []string{`{"access_token":"` + access + `","expires_in":60}`, `{"access_token":"` + access + `","refresh_token":null,"refresh_token":"","expires_in":"60"}`} {
		l.Intercept(answerToken(200, body))
		if c, err := g.Credential(t.Context(), u.ID); err != nil || c.Token.Secret() != access {
			t.Fatalf("%v, %v", c, err)
		}
		l.clock.add(time.Minute)
	}
	l.Intercept(nil)
	l.must(g, u.ID)
}

// TestRenamed: the login follows at the next refresh, the number stays.
func TestRenamed(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	g := l.replica(nil)
	u := l.signIn(g, "alice")
	l.RenameUser("alice", "alicia")
	l.clock.add(56 * time.Minute)
	if c := l.must(g, u.ID); c.Login != "alicia" || l.saw(upstream.EventRenamed) != 1 {
		t.Errorf("the login is %q", c.Login)
	}
	if v := l.signIn(g, "alicia"); v.ID != u.ID {
		t.Error("a renamed user is somebody else")
	}
	// Trouble with asking who it is does not spoil the refresh.
	l.RenameUser("alicia", "alice")
	l.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultStatus, Paths: []string{pathIntrospect}})
	l.clock.add(time.Hour)
	if c := l.must(g, u.ID); c.Login != "alicia" {
		t.Errorf("the login is %q", c.Login)
	}
}

// TestNarrowedConfiguration: the record goes on with what is configured now.
func TestNarrowedConfiguration(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	u := l.signIn(l.replica(nil), "alice")
	g := l.replica(func(o *upstream.Options) { o.Config.Scopes = []string{"read:issue", "write:user"} })
	l.clock.add(time.Hour)
	if c := l.must(g, u.ID); strings.Join(c.Scopes, " ") != "read:issue read:user" {
		t.Errorf("%v", c.Scopes)
	}
}

// TestHoldForAllStays: failures of single users, however many, do not push out that Gitea
// refuses Aegis itself.
func TestHoldForAllStays(t *testing.T) {
	t.Parallel()
	if !upstream.HeldForAll(2 * upstream.MaxHeld) {
		t.Error("Gitea would be asked again at once")
	}
}
