package upstream_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"aegis/config"
	"aegis/proxy/kv"
	"aegis/proxy/oauth/upstream"
)

// person is somebody with a browser at a real Gitea.
type person struct {
	t                     *testing.T
	base, login, password string
	client                *http.Client
}

// live returns a person of the server that AEGIS_TEST_GITEA_URL,
// AEGIS_TEST_GITEA_LOGIN and AEGIS_TEST_GITEA_PASSWORD name.
func live(t *testing.T) *person {
	p := &person{t: t, base: os.Getenv("AEGIS_TEST_GITEA_URL"), login: os.Getenv("AEGIS_TEST_GITEA_LOGIN"), password: os.Getenv("AEGIS_TEST_GITEA_PASSWORD")}
	if p.base == "" || p.login == "" || p.password == "" {
		t.Skip("AEGIS_TEST_GITEA_URL, AEGIS_TEST_GITEA_LOGIN and AEGIS_TEST_GITEA_PASSWORD name no server and person")
	}
	p.base = strings.TrimRight(p.base, "/")
	jar, _ := cookiejar.New(nil)
	p.client = &http.Client{Transport: direct.Transport, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	p.form("/user/login", url.Values{"user_name": {p.login}, "password": {p.password}}, http.StatusSeeOther)
	return p
}

// form sends a form and returns where the browser is sent to.
func (p *person) form(path string, values url.Values, want int) string {
	p.t.Helper()
	resp, err := p.client.PostForm(p.base+path, values)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != want {
		p.t.Fatalf("POST %s: %d", path, resp.StatusCode)
	}
	return resp.Header.Get("Location")
}

// api sends JSON as the person.
func (p *person) api(method, path string, body any, into any) {
	p.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	req, err := http.NewRequest(method, p.base+"/api/v1"+path, bytes.NewReader(text))
	if err != nil {
		p.t.Fatal(err)
	}
	req.SetBasicAuth(p.login, p.password)
	req.Header.Set("Content-Type", "application/json")
	resp, err := direct.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 300 {
		p.t.Fatalf("%s %s: %d", method, path, resp.StatusCode)
	}
	if into != nil {
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
			p.t.Fatal(err)
		}
	}
}

type liveApp struct {
	ID     int64  `json:"id"`
	Client string `json:"client_id"`
	Secret string `json:"client_secret"`
}

// app makes an application, which is deleted at the end.
func (p *person) app(confidential bool) *liveApp {
	p.t.Helper()
	a := &liveApp{}
	p.api(http.MethodPost, "/user/applications/oauth2", map[string]any{
		"name": fmt.Sprintf("aegis test %d", time.Now().UnixNano()), "redirect_uris": []string{callback}, "confidential_client": confidential,
	}, a)
	p.t.Cleanup(func() { p.api(http.MethodDelete, fmt.Sprintf("/user/applications/oauth2/%d", a.ID), nil, nil) })
	return a
}

// approve opens a URL of the authorization endpoint, agrees if asked, and
// returns the code.
func (p *person) approve(authorize string) string {
	p.t.Helper()
	resp, err := p.client.Get(authorize)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = resp.Body.Close()
	location := resp.Header.Get("Location")
	if resp.StatusCode == http.StatusOK {
		at, _ := url.Parse(authorize)
		q := at.Query()
		location = p.form("/login/oauth/grant", url.Values{
			"client_id": q["client_id"], "state": q["state"], "scope": q["scope"], "redirect_uri": q["redirect_uri"], "granted": {"true"},
		}, http.StatusSeeOther)
	}
	to, err := url.Parse(location)
	if err != nil || to.Query().Get("code") == "" {
		p.t.Fatalf("no code: %d, sent to %q", resp.StatusCode, location)
	}
	return to.Query().Get("code")
}

// revokeAll presses every revoke button of the person's page.
func (p *person) revokeAll() {
	p.t.Helper()
	resp, err := p.client.Get(p.base + "/user/settings/applications")
	if err != nil {
		p.t.Fatal(err)
	}
	var page bytes.Buffer
	_, _ = page.ReadFrom(resp.Body)
	_ = resp.Body.Close()
	buttons := regexp.MustCompile(`/user/settings/applications/oauth2/\d+/revoke/\d+`).FindAllString(page.String(), -1)
	if len(buttons) == 0 {
		p.t.Fatal("nothing to revoke")
	}
	for _, b := range buttons {
		p.form(b, nil, http.StatusOK)
	}
}

// TestLive compares the double with a real Gitea: the whole life of a credential.
func TestLive(t *testing.T) {
	p := live(t)
	app := p.app(true)
	l := &lab{t: t, base: p.base, id: app.Client, secret: app.Secret, clock: &clock{t: time.Now()}}
	l.store = kv.NewMemory(l.clock.now)
	g, other := l.replica(nil), l.replica(nil)
	signIn := func(g *upstream.Gitea) (*upstream.User, error) {
		verifier := oauth2.GenerateVerifier()
		return g.Exchange(t.Context(), p.approve(g.LoginURL("st", verifier)), verifier)
	}
	if problems, warnings := g.Check(t.Context()); len(problems)+len(warnings) != 0 {
		t.Error(problems, warnings)
	}
	u, err := signIn(g)
	if err != nil {
		t.Fatal(err)
	}
	if u.Login != p.login || u.ID <= 0 || len(u.Scopes) != len(someScopes) {
		t.Errorf("%+v", u)
	}
	first := l.must(g, u.ID)
	time.Sleep(1100 * time.Millisecond) // two access tokens of one second are the same: nothing else in them changes
	for round := range 3 {
		l.clock.add(56 * time.Minute)
		var group sync.WaitGroup
		for i := range 12 {
			group.Go(func() {
				if _, err := []*upstream.Gitea{g, other}[i%2].Credential(t.Context(), u.ID); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		group.Wait()
		l.must(g, u.ID)
	}
	if l.saw(upstream.EventRefreshed) != 3 || l.must(g, u.ID).Token.Secret() == first.Token.Secret() {
		t.Errorf("%d refreshes", l.saw(upstream.EventRefreshed))
	}
	nobody := config.People{Organizations: []string{"no-such-organisation"}, Teams: []string{"no/such"}}
	if ok, err := g.Member(t.Context(), u.ID, nobody); ok || err != nil {
		t.Error(ok, err)
	}
	more := l.replica(func(o *upstream.Options) { o.Config.Scopes = append([]string{"write:package"}, someScopes...) })
	_, err = signIn(more)
	wantKind(t, err, upstream.Narrow)
	less := l.replica(func(o *upstream.Options) { o.Config.Scopes = someScopes[1:] })
	_, err = signIn(less)
	wantKind(t, err, upstream.Wide)
	l.clock.add(time.Hour)
	l.must(g, u.ID)

	p.revokeAll()
	l.clock.add(time.Minute)
	entry, err := l.store.Get(t.Context(), "cred/"+itoa(u.ID))
	if err != nil {
		t.Fatal(err)
	}
	wantKind(t, g.Rejected(t.Context(), u.ID, l.must(g, u.ID).Token), upstream.Gone)
	if err := l.store.Put(t.Context(), "cred/"+itoa(u.ID), entry.Value, 0); err != nil {
		t.Fatal(err)
	}
	l.clock.add(time.Hour)
	_, err = g.Credential(t.Context(), u.ID)
	wantKind(t, err, upstream.Gone)
	if l.state(g, u.ID) || l.saw(upstream.EventRevoked) != 2 {
		t.Errorf("%d revocations", l.saw(upstream.EventRevoked))
	}
	if _, err = signIn(g); err != nil {
		t.Fatal(err)
	}
	if _, err = g.Exchange(t.Context(), "gta_bogus", "verifier"); err == nil {
		t.Error("a code out of thin air was accepted")
	}
	wantKind(t, err, upstream.Denied)
	l.spoilLive(p, app, g, u.ID)
}

// spoilLive rotates the application's secret.
func (l *lab) spoilLive(p *person, app *liveApp, g *upstream.Gitea, id int64) {
	l.t.Helper()
	l.clock.add(2 * time.Hour)
	p.api(http.MethodPatch, fmt.Sprintf("/user/applications/oauth2/%d", app.ID), map[string]any{
		"name": "aegis test", "redirect_uris": []string{callback}, "confidential_client": true,
	}, app)
	_, err := g.Credential(l.t.Context(), id)
	wantKind(l.t, err, upstream.Config)
	if problems, _ := g.Check(l.t.Context()); len(problems) != 1 {
		l.t.Errorf("%v", problems)
	}
	l.secret = app.Secret
	l.must(l.replica(nil), id)
	elsewhere := l.replica(func(o *upstream.Options) { o.RedirectURL = "https://elsewhere.example/oauth/callback" })
	if problems, _ := elsewhere.Check(l.t.Context()); len(problems) != 1 || !strings.Contains(problems[0].Error(), "redirect URI") {
		l.t.Errorf("%v", problems)
	}
}

// TestLiveWideGrants: grants that Gitea takes for everything.
func TestLiveWideGrants(t *testing.T) {
	t.Parallel()
	p := live(t)
	for _, scope := range []string{"offline_access read:user", "openid profile", "", "read:user,bogus:thing"} {
		app := p.app(true)
		l := &lab{t: t, base: p.base, id: app.Client, secret: app.Secret, clock: &clock{t: time.Now()}}
		l.store = kv.NewMemory(l.clock.now)
		g := l.replica(nil)
		verifier := oauth2.GenerateVerifier()
		at, err := url.Parse(g.LoginURL("st", verifier))
		if err != nil {
			t.Fatal(err)
		}
		q := at.Query()
		q.Set("scope", scope)
		at.RawQuery = q.Encode()
		_, err = g.Exchange(t.Context(), p.approve(at.String()), verifier)
		wantKind(t, err, upstream.Wide)
	}
	open := p.app(false)
	l := &lab{t: t, base: p.base, id: open.Client, secret: open.Secret, clock: &clock{t: time.Now()}}
	l.store = kv.NewMemory(l.clock.now)
	if problems, _ := l.replica(nil).Check(t.Context()); len(problems) != 1 || !strings.Contains(problems[0].Error(), "Confidential") {
		t.Errorf("%v", problems)
	}
}
