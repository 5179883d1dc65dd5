package oauth_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"aegis/proxy/oauth"
	"aegis/proxy/oauth/grant"
)

// signedIn is a browser of a person at /account.
func (w *world) signedIn() *browser {
	w.t.Helper()
	b := w.browser()
	b.open(base + "/account")
	b.act("sign_in")
	b.back(b.stateOf())
	if b.last.Code != http.StatusFound || b.last.Header().Get("Location") != base+"/account" {
		w.t.Fatalf("not signed in: %d %v", b.last.Code, b.last.Header())
	}
	b.open(base + "/account")
	return b
}

// act presses a button of the page that was shown last.
func (b *browser) act(do string, pairs ...string) *httptest.ResponseRecorder {
	f := url.Values{"do": {do}, "token": {b.form().Get("token")}}
	for i := 0; i+1 < len(pairs); i += 2 {
		f.Set(pairs[i], pairs[i+1])
	}
	return b.submit(base+"/account", f)
}

// people have a grant each: alice (7) two, bob (8) one.
func people(t *testing.T, change func(*oauth.Options)) *world {
	w := build(t, change)
	at := w.clock.now()
	for _, g := range []grant.Grant{
		{ID: "a1", UserID: 7, Login: "alice", ClientID: "c1", ClientName: "Editor <b>", Scopes: []string{"write:issue", "read:user"}, Created: at.Add(-48 * time.Hour), LastUsed: at.Add(-time.Hour)},
		{ID: "a2", UserID: 7, Login: "alice", ClientID: "c2", ClientName: "Robby", Verified: true, Scopes: []string{"read:repository"}, Created: at.Add(-time.Hour)},
		{ID: "b1", UserID: 8, Login: "bob", ClientID: "c3", ClientName: "Bob's tool", Scopes: []string{"read:issue"}, Created: at, LastUsed: at},
	} {
		w.grants.grants[g.ID] = &g
	}
	return w
}

func TestAccountShowsOnesOwn(t *testing.T) {
	t.Parallel()
	w := people(t, nil)
	page := w.get(base + "/account").Body.String()
	if !strings.Contains(page, "Sign in with Gitea") || strings.Contains(page, "Robby") || strings.Contains(page, "Disconnect") {
		t.Errorf("nobody sees: %s", page)
	}
	w.codes.pending = []oauth.PendingCode{{Code: "4711-<x>", Tool: "gitea_repository_delete", Summary: "Delete acme/infra & all", Expires: w.clock.now().Add(time.Minute)}}
	b := w.signedIn()
	page = b.last.Body.String()
	for _, want := range []string{"<strong>alice</strong>", "Editor &lt;b&gt;", "Robby", "Issues: read and change", "Your account: read", "Repositories: read", "last used never", "4 May 2026, 09:00 UTC", "2 May 2026", "not verified", "known client",
		"4711-&lt;x&gt;", "gitea_repository_delete", "Delete acme/infra &amp; all", "https://git.example/user/settings/applications"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "Bob") || strings.Contains(page, "Everybody") {
		t.Error("alice sees what is bob's")
	}
	if len(w.events) != 1 || w.events[0].Name != "login" || w.events[0].Login != "alice" {
		t.Errorf("events: %v", w.events)
	}
}

func TestAccountRevokes(t *testing.T) {
	t.Parallel()
	w := people(t, nil)
	b := w.signedIn()
	if b.act("revoke", "id", "b1"); w.grants.grants["b1"] == nil || b.last.Code != http.StatusSeeOther {
		t.Fatalf("alice ended bob's grant: %d", b.last.Code)
	}
	b.open(base + "/account")
	if b.act("revoke", "id", "a1"); b.last.Code != http.StatusSeeOther || b.last.Header().Get("Location") != base+"/account" || w.grants.grants["a1"] != nil || len(w.gitea.forgotten) != 0 {
		t.Errorf("%d %v, forgotten %v", b.last.Code, b.last.Header(), w.gitea.forgotten)
	}
	b.open(base + "/account")
	if b.act("revoke_all"); len(w.grants.grants) != 1 || len(w.gitea.forgotten) != 1 || w.gitea.forgotten[0] != 7 {
		t.Errorf("left %v, forgotten %v", w.grants.grants, w.gitea.forgotten)
	}
	if page := b.open(base + "/account").Body.String(); !strings.Contains(page, "None. A client appears here") {
		t.Errorf("%s", page)
	}
}

func TestAccountAdmins(t *testing.T) {
	t.Parallel()
	w := people(t, func(o *oauth.Options) { o.Config.Admins = []string{"root", "Alice"} })
	b := w.signedIn()
	page := b.last.Body.String()
	if !strings.Contains(page, "Everybody else") || !strings.Contains(page, "of <strong>bob</strong>") || strings.Count(page, "Robby") != 2 { // heading and button
		t.Errorf("an admin sees: %s", page)
	}
	if b.act("revoke", "id", "b1"); w.grants.grants["b1"] != nil || len(w.gitea.forgotten) != 1 || w.gitea.forgotten[0] != 8 {
		t.Errorf("an admin could not revoke: %d, forgotten %v", b.last.Code, w.gitea.forgotten)
	}
	b.open(base + "/account")
	if b.act("revoke_all"); len(w.grants.grants) != 0 {
		t.Errorf("left: %v", w.grants.grants)
	}
}

func TestAccountForgery(t *testing.T) {
	t.Parallel()
	w := people(t, nil)
	b := w.signedIn()
	token := b.form().Get("token")
	other := w.browser()
	other.open(base + "/account")
	for name, c := range map[string]struct {
		form    url.Values
		headers []string
	}{
		"no token":            {url.Values{"do": {"revoke_all"}}, nil},
		"another's token":     {url.Values{"do": {"revoke_all"}, "token": {other.form().Get("token")}}, nil},
		"twice":               {url.Values{"do": {"revoke_all", "sign_out"}, "token": {token}}, nil},
		"cross-site":          {url.Values{"do": {"revoke_all"}, "token": {token}}, []string{"Sec-Fetch-Site", "cross-site"}},
		"other origin":        {url.Values{"do": {"revoke_all"}, "token": {token}}, []string{"Origin", "https://evil.example"}},
		"unknown action":      {url.Values{"do": {"explode"}, "token": {token}}, nil},
		"sign in, no token":   {url.Values{"do": {"sign_in"}}, nil},
		"sign in, this token": {url.Values{"do": {"sign_in"}, "token": {token}}, nil},
	} {
		if rec := b.submit(base+"/account", c.form, c.headers...); rec.Code < 400 || b.next() != "" {
			t.Errorf("%s: %d", name, rec.Code)
		}
	}
	if rec := other.submit(base+"/account", url.Values{"do": {"revoke_all"}, "token": {token}}); rec.Code != http.StatusForbidden {
		t.Errorf("without a session: %d", rec.Code)
	}
	if len(w.grants.grants) != 3 {
		t.Errorf("left: %v", w.grants.grants)
	}
}

func TestAccountSessions(t *testing.T) {
	t.Parallel()
	w := people(t, nil)
	b := w.browser()
	b.cookies["__Host-aegis-account"] = strings.Repeat("A", 43) // planted before the sign-in
	b.open(base + "/account")
	b.act("sign_in")
	state := b.stateOf()
	victim := w.browser()
	victim.open(base + "/account")
	if rec := victim.back(state); rec.Code != http.StatusForbidden || victim.cookies["__Host-aegis-account"] != "" {
		t.Errorf("somebody else's sign-in was taken over: %d", rec.Code)
	}
	b = w.signedIn()
	if b.cookies["__Host-aegis-account"] == strings.Repeat("A", 43) {
		t.Error("the session of before is the session of after")
	}
	old := b.cookies["__Host-aegis-account"]
	b.act("sign_out")
	b.cookies["__Host-aegis-account"] = old
	if page := b.open(base + "/account").Body.String(); !strings.Contains(page, "Sign in with Gitea") {
		t.Error("a session lives on after signing out")
	}
	b = w.signedIn()
	w.clock.add(31 * time.Minute)
	if page := b.open(base + "/account").Body.String(); !strings.Contains(page, "Sign in with Gitea") {
		t.Error("a session lives longer than half an hour")
	}
	// A session gives nothing at the endpoint, and a flow for it no code.
	if len(w.grants.codes) != 0 {
		t.Error("signing in to the page made a code")
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	w := people(t, nil)
	ctx := t.Context()
	for _, key := range []string{"cred/7", "cred/8", "cred/9", "cred/what"} {
		if err := w.store.Put(ctx, key, []byte("{}"), 0); err != nil {
			t.Fatal(err)
		}
	}
	sweep := func(want int) {
		t.Helper()
		if n, err := w.server.Sweep(ctx); n != want || err != nil {
			t.Fatalf("swept %d, want %d: %v", n, want, err)
		}
	}
	sweep(0)
	w.clock.add(5 * time.Minute)
	sweep(0)
	w.clock.add(6 * time.Minute)
	w.gitea.user.ID = 9 // signs in again at this very moment: the code is no grant yet
	w.signIn(w.browser())
	sweep(0)
	w.clock.add(11 * time.Minute)
	delete(w.grants.grants, "b1")
	sweep(1)
	if len(w.gitea.forgotten) != 1 || w.gitea.forgotten[0] != 9 {
		t.Errorf("forgotten: %v", w.gitea.forgotten)
	}
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.server.Sweep(ctx); err == nil {
		t.Error("no error from a closed store")
	}
}
