package upstream_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy/gitea/fakegitea"
	"aegis/proxy/oauth/upstream"
)

// world is a Gitea where bob is a developer of acme.
func world(t *testing.T) (l *lab, g *upstream.Gitea, alice, bob int64) {
	l = newLabOf(t, fakegitea.Options{Seed: fakegitea.SeedDemo}, fakegitea.OAuthOptions{})
	g = l.replica(nil)
	return l, g, l.signIn(g, "alice").ID, l.signIn(g, "bob").ID
}

// apiCalls counts requests for lists of organisations and teams.
func (l *lab) apiCalls() int {
	n := 0
	for _, r := range l.Requests() {
		if strings.Contains(r.RequestURI, "/api/v1/user/orgs") || strings.Contains(r.RequestURI, "/api/v1/user/teams") {
			n++
		}
	}
	return n
}

func people(logins, orgs, teams string) config.People {
	return config.People{Logins: strings.Fields(logins), Organizations: strings.Fields(orgs), Teams: strings.Fields(teams)}
}

func TestMember(t *testing.T) {
	t.Parallel()
	l, g, alice, bob := world(t)
	for _, c := range []struct {
		people     config.People
		alice, bob bool
	}{
		{people("", "", ""), true, true},
		{people("Alice root1", "", ""), true, false},
		{people("alic", "", ""), false, false},
		{people("", "ACME", ""), true, true},
		{people("", "acm", ""), false, false},
		{people("", "", "acme/Developers"), false, true},
		{people("", "", "acme/owners"), true, false},
		{people("", "", "other/developers"), false, false},
		{people("", "", "/ acme/"), false, false},
		{people("alice", "", "acme/developers"), true, true},
		{people("nobody", "nowhere acme", "acme/nothing"), true, true},
	} {
		for id, want := range map[int64]bool{alice: c.alice, bob: c.bob} {
			if got, err := g.Member(t.Context(), id, c.people); err != nil || got != want {
				t.Errorf("%+v: user %d: %v, %v", c.people, id, got, err)
			}
		}
	}
	if _, err := g.Member(t.Context(), 12345, people("alice", "", "")); err == nil {
		t.Error("a stranger was judged")
	}
	if n := l.apiCalls(); n > 8 {
		t.Errorf("%d calls of the API for two people", n)
	}
}

func TestMemberIsCached(t *testing.T) {
	t.Parallel()
	l, g, _, bob := world(t)
	devs := people("", "", "acme/developers")
	is := func(want bool) {
		t.Helper()
		if got, err := g.Member(t.Context(), bob, devs); err != nil || got != want {
			t.Fatalf("%v, %v", got, err)
		}
	}
	is(true)
	l.SetTeamMember("acme", "developers", "bob", false)
	is(true)
	l.clock.add(2 * time.Minute)
	is(false)
	l.SetTeamMember("acme", "developers", "bob", true)
	l.clock.add(119 * time.Second)
	is(false)
	l.clock.add(2 * time.Second)
	is(true)
	// A sign-in begins anew.
	l.SetTeamMember("acme", "developers", "bob", false)
	l.signIn(g, "bob")
	is(false)
}

func TestMemberPages(t *testing.T) {
	t.Parallel()
	l, g, alice, _ := world(t)
	const total = 137
	l.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/user/orgs" {
			return false
		}
		// A server that gives ten to a page, whatever is asked for, and no count.
		var page int
		_, _ = fmt.Sscan(r.FormValue("page"), &page)
		var rows []string
		for i := (page - 1) * 10; i < min(page*10, total); i++ {
			rows = append(rows, fmt.Sprintf(`{"id":%d,"username":"org-%d"}`, i, i))
		}
		writeJSON(w, 200, "["+strings.Join(rows, ",")+"]")
		return true
	})
	for name, want := range map[string]bool{"org-0": true, "org-136": true, "org-137": false} {
		if got, err := g.Member(t.Context(), alice, people("", name, "")); err != nil || got != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestEndlessPages: a server whose list has no end is not asked for ever.
func TestEndlessPages(t *testing.T) {
	t.Parallel()
	l, g, alice, _ := world(t)
	l.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/user/orgs" {
			return false
		}
		writeJSON(w, 200, `[{"username":"again"}]`)
		return true
	})
	l.ResetRequests()
	if got, err := g.Member(t.Context(), alice, people("", "never", "")); err != nil || got {
		t.Error(got, err)
	}
	if n := l.apiCalls(); n > 50 {
		t.Errorf("%d pages", n)
	}
}

// TestBarredMember: whom Gitea has deactivated, or forbidden to sign in, is in
// no organisation and no team.
func TestBarredMember(t *testing.T) {
	t.Parallel()
	for name, bar := range map[string]func(*lab){
		"deactivated": func(l *lab) { l.SetUserActive("bob", false) },
		"prohibited":  func(l *lab) { l.ProhibitUser("bob", true) },
	} {
		t.Run(name, func(t *testing.T) {
			l, g, _, bob := world(t)
			l.SetOAuthOptions(fakegitea.OAuthOptions{OldIntrospection: true})
			bar(l)
			for range 2 {
				for _, p := range []config.People{people("", "acme", ""), people("", "", "acme/developers")} {
					if got, err := g.Member(t.Context(), bob, p); err != nil || got {
						t.Errorf("%+v: %v, %v", p, got, err)
					}
				}
				l.clock.add(3 * time.Minute)
			}
		})
	}
}

func TestMemberFailures(t *testing.T) {
	t.Parallel()
	acme := people("", "acme", "")
	down := func(status int, body string) func(*lab) {
		return func(l *lab) {
			l.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasPrefix(r.URL.Path, "/api/v1/user/orgs") {
					return false
				}
				writeJSON(w, status, body)
				return true
			})
		}
	}
	for name, c := range map[string]struct {
		spoil func(l *lab)
		kind  upstream.Kind
	}{
		"bad gateway":   {down(502, `{}`), upstream.Unavailable},
		"not found":     {down(404, `{}`), upstream.Unavailable},
		"an object":     {down(200, `{"message":"hello"}`), upstream.Unavailable},
		"wrong types":   {down(200, `[{"username":7}]`), upstream.Unavailable},
		"huge":          {down(200, `[{"username":"`+strings.Repeat("a", 2<<20)+`"}]`), upstream.Unavailable},
		"scope missing": {down(403, `{"message":"token does not have at least one of required scope(s), required=[read:organization]"}`), upstream.Config},
		"revoked":       {func(l *lab) { l.RevokeGrant("alice", l.id) }, upstream.Gone},
		"not accepted":  {down(401, `{"message":"user does not exist"}`), upstream.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			l, g, alice, _ := world(t)
			c.spoil(l)
			l.clock.add(time.Minute)
			_, err := g.Member(t.Context(), alice, acme)
			wantKind(t, err, c.kind)
			if c.kind == upstream.Gone {
				return
			}
			// A failure is not remembered as an answer.
			l.Intercept(nil)
			if got, err := g.Member(t.Context(), alice, acme); err != nil || !got {
				t.Error(got, err)
			}
		})
	}
}

// TestMemberScopes: with scopes that do not reach, the operator is told.
func TestMemberScopes(t *testing.T) {
	t.Parallel()
	l := newLabOf(t, fakegitea.Options{Seed: fakegitea.SeedDemo}, fakegitea.OAuthOptions{})
	g := l.replica(func(o *upstream.Options) { o.Config.Scopes = []string{"read:repository"} })
	u := l.signIn(g, "alice")
	for _, p := range []config.People{people("", "acme", ""), people("", "", "acme/owners")} {
		_, err := g.Member(t.Context(), u.ID, p)
		if e := wantKind(t, err, upstream.Config); !strings.Contains(e.Public, "read:organization") {
			t.Error(e.Public)
		}
	}
	if ok, err := g.Member(t.Context(), u.ID, people("alice", "acme", "")); err != nil || !ok {
		t.Error("a login needs no scope")
	}
}

// TestSignInKnowsNewNames: a name that passed to somebody else does not let its former
// owner in at the next sign-in, or let the owner be somebody else.
func TestSignInKnowsNewNames(t *testing.T) {
	t.Parallel()
	l, g, alice, _ := world(t)
	l.RenameUser("alice", "alicia")
	if id := l.signIn(g, "alicia").ID; id != alice {
		t.Fatalf("user %d is now %d", alice, id)
	}
	for name, want := range map[string]bool{"alice": false, "alicia": true} {
		if got, err := g.Member(t.Context(), alice, people(name, "", "")); err != nil || got != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
