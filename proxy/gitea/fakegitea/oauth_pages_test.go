package fakegitea_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"aegis/proxy/gitea/fakegitea"
)

// signedIn is a browser of a user.
func signedIn(t *testing.T, a *oauthApp, login string) *person {
	t.Helper()
	p := newPerson(t)
	res, _ := p.open(a.base+"/user/login", url.Values{"user_name": {login}, "password": {"demo-password"}})
	if res.StatusCode != 303 {
		t.Fatalf("login of %s: %d", login, res.StatusCode)
	}
	return p
}

// TestLoginRedirect leads to links of this site only.
func TestLoginRedirect(t *testing.T) {
	t.Parallel()
	a := newApp(t, true, fakegitea.Options{RootURL: "http://git.example/sub"})
	for to, want := range map[string]string{
		"/sub/user/settings/applications":            "/sub/user/settings/applications",
		"http://git.example/sub/a?b=c":               "http://git.example/sub/a?b=c",
		"":                                           "/sub/",
		"/other":                                     "/sub/",
		"//evil.example/sub/":                        "/sub/",
		`/\evil.example/sub/`:                        "/sub/",
		`/sub/..\evil`:                               "/sub/",
		"https://evil.example/sub/":                  "/sub/",
		"http://git.example.evil.example/sub/":       "/sub/",
		"javascript:alert(1)":                        "/sub/",
		"http://git.example/subversion/":             "/sub/",
		"/sub/a\r\nX: y":                             "/sub/",
		"/sub/login/oauth/authorize?state=%2F%2F&a=": "/sub/login/oauth/authorize?state=%2F%2F&a=",
	} {
		p := newPerson(t)
		p.http.Jar = nil // the cookies belong to the sub-path of the public address
		for _, form := range []url.Values{{"redirect_to": {to}}, nil} {
			header := []string{}
			if form == nil { // by the cookie that the login page sets
				form = url.Values{}
				res, _ := p.open(a.base+"/user/login?redirect_to="+url.QueryEscape(to), nil)
				for _, k := range res.Cookies() {
					header = append(header, "Cookie", k.Name+"="+k.Value)
				}
			}
			form.Set("user_name", "alice")
			form.Set("password", "demo-password")
			res, _ := p.open(a.base+"/user/login", form, header...)
			if got := res.Header.Get("Location"); res.StatusCode != 303 || got != want {
				t.Errorf("%q: %d %q, want %q", to, res.StatusCode, got, want)
			}
		}
	}
}

// TestLoginRefusals: nobody gets in without a password of her own.
func TestLoginRefusals(t *testing.T) {
	t.Parallel()
	a := newApp(t, true, fakegitea.Options{})
	a.ProhibitUser("bob", true)
	for _, tt := range []struct{ name, password, page string }{
		{"alice", "", "is incorrect"}, {"alice", "wrong", "is incorrect"}, {"", "demo-password", "is incorrect"},
		{"nobody", "demo-password", "is incorrect"}, {"acme", "", "is incorrect"}, {"acme", "demo-password", "is incorrect"},
		{"bob", "demo-password", "prohibited from signing in"}, {"bob", "wrong", "is incorrect"},
		{`"><script>alert(1)</script>`, "x", "&lt;script&gt;"},
	} {
		res, body := newPerson(t).open(a.base+"/user/login", url.Values{"user_name": {tt.name}, "password": {tt.password}})
		if res.StatusCode != 200 || !strings.Contains(body, tt.page) || len(res.Cookies()) != 0 || strings.Contains(body, "<script") {
			t.Errorf("%q %q: %d %v %s", tt.name, tt.password, res.StatusCode, res.Cookies(), body)
		}
	}
}

// TestBarred: the prohibited and the deactivated see one page and no API, while
// their tokens can be refreshed and introspected.
func TestBarred(t *testing.T) {
	t.Parallel()
	for name, bar := range map[string]func(*oauthApp, bool){
		"prohibited":  func(a *oauthApp, on bool) { a.ProhibitUser("alice", on) },
		"deactivated": func(a *oauthApp, on bool) { a.SetUserActive("alice", !on) },
	} {
		a := newApp(t, true, fakegitea.Options{})
		got := a.login("alice", "read:user")
		p := signedIn(t, a, "alice")
		bar(a, true)
		if status, _, body := a.get("/api/v1/user", "Bearer "+got.Access); status != 403 ||
			body != `{"message":"This account is prohibited from signing in, please contact your site administrator."}` {
			t.Errorf("%s: API %d %s", name, status, body)
		}
		if res, body := p.open(a.authorizeURL(), nil); res.StatusCode != 200 || !strings.Contains(body, "Sign-In Prohibited") {
			t.Errorf("%s: authorize %d %s", name, res.StatusCode, body)
		}
		if again := a.refresh(got.Refresh); again.status != 200 {
			t.Errorf("%s: refresh %s", name, again.raw)
		}
		if _, _, body := a.post("/login/oauth/introspect", basic(a.id, a.secret), url.Values{"token": {got.Access}}); !strings.Contains(body, `"active":true`) {
			t.Errorf("%s: introspection %s", name, body)
		}
		a.SetOAuthOptions(fakegitea.OAuthOptions{OldIntrospection: true})
		if status, _, body := a.post("/login/oauth/introspect", basic(a.id, a.secret), url.Values{"token": {got.Access}}); status != 200 || !strings.Contains(body, "Sign-In Prohibited") {
			t.Errorf("%s: old introspection %d %s", name, status, body)
		}
		bar(a, false)
		if status, _, _ := a.get("/api/v1/user", "Bearer "+got.Access); status != 200 {
			t.Errorf("%s: allowed again, %d", name, status)
		}
	}
	a := newApp(t, true, fakegitea.Options{})
	a.SetUserActive("bob", false)
	if _, body := signedIn(t, a, "bob").open(a.base+"/user/settings/applications", nil); !strings.Contains(body, "Sign-In Prohibited") {
		t.Errorf("a deactivated user: %s", body)
	}
}

// TestApplicationsPage lists grants and takes them back; another user's stays.
func TestApplicationsPage(t *testing.T) {
	t.Parallel()
	a := newApp(t, true, fakegitea.Options{})
	alice, bob := a.login("alice", "read:user"), a.login("bob", "offline_access")
	if res, _ := newPerson(t).open(a.base+"/user/settings/applications", nil); res.StatusCode != 303 ||
		res.Header.Get("Location") != "/user/login?redirect_to=%2Fuser%2Fsettings%2Fapplications" {
		t.Errorf("nobody: %d %s", res.StatusCode, res.Header.Get("Location"))
	}
	p := signedIn(t, a, "alice")
	_, page := p.open(a.base+"/user/settings/applications", nil)
	_, rest, ok := strings.Cut(page, `<form method="post" action="`)
	path, _, _ := strings.Cut(rest, `"`)
	if !ok || !strings.Contains(page, "gateway") || !strings.Contains(page, "<code>read:user</code>") || strings.Contains(page, "Everything") {
		t.Fatalf("%s", page)
	}
	if _, page := signedIn(t, a, "bob").open(a.base+"/user/settings/applications", nil); !strings.Contains(page, "Everything") {
		t.Errorf("bob allowed everything: %s", page)
	}
	if res, _ := signedIn(t, a, "bob").open(a.base+path, url.Values{}); res.StatusCode != 303 || len(a.Grants("alice")) != 1 {
		t.Errorf("bob took the grant of alice: %d", res.StatusCode)
	}
	if res, _ := p.open(a.base+path, url.Values{}, "Sec-Fetch-Site", "cross-site"); res.StatusCode != 403 {
		t.Errorf("from another site: %d", res.StatusCode)
	}
	res, body := p.open(a.base+path, url.Values{}, "Accept", "*/*")
	if res.StatusCode != 200 || body != `{"redirect":"/user/settings/applications"}`+"\n" || len(a.Grants("alice")) != 0 {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if status, _, _ := a.get("/api/v1/user", "Bearer "+alice.Access); status != 401 {
		t.Errorf("the access token lives: %d", status)
	}
	if got := a.refresh(alice.Refresh); got.Code != "invalid_grant" || got.Text != "grant does not exist" {
		t.Errorf("refresh: %s", got.raw)
	}
	if status, _, _ := a.get("/api/v1/user", "Bearer "+bob.Access); status != 200 {
		t.Errorf("bob: %d", status)
	}
	if res, page := p.open(a.authorizeURL(), nil); res.StatusCode != 200 || !strings.Contains(page, "Authorize gateway") {
		t.Errorf("she is not asked again: %d", res.StatusCode)
	}
}

// TestLogout ends the session, on the server too.
func TestLogout(t *testing.T) {
	t.Parallel()
	a := newApp(t, true, fakegitea.Options{})
	p := signedIn(t, a, "alice")
	home, err := url.Parse(a.base)
	if err != nil {
		t.Fatal(err)
	}
	cookies := p.http.Jar.Cookies(home)
	if _, page := p.open(a.base+"/", nil); !strings.Contains(page, "signed in as <b>alice</b>") {
		t.Errorf("home: %s", page)
	}
	if res, _ := p.open(a.base+"/user/login?redirect_to=/user/settings/applications", nil); res.StatusCode != 303 ||
		res.Header.Get("Location") != "/user/settings/applications" {
		t.Errorf("the login page of who is in: %d", res.StatusCode)
	}
	if res, _ := p.open(a.base+"/user/logout", url.Values{}); res.StatusCode != 405 {
		t.Errorf("POST: %d", res.StatusCode)
	}
	if res, _ := p.open(a.base+"/user/logout", nil); res.StatusCode != 303 || res.Header.Get("Location") != "/" {
		t.Errorf("%d %s", res.StatusCode, res.Header.Get("Location"))
	}
	p.http.Jar.SetCookies(home, cookies)
	if res, _ := p.open(a.base+"/user/settings/applications", nil); res.StatusCode != 303 {
		t.Errorf("the old cookie: %d", res.StatusCode)
	}
}

// TestMounted: with a sub-path and a root URL elsewhere, URLs name the root, links
// its path, and nothing is served outside of the sub-path.
func TestMounted(t *testing.T) {
	t.Parallel()
	a := newApp(t, true, fakegitea.Options{SubPath: "/git", RootURL: "https://public.example/git"})
	status, _, body := a.get("/.well-known/openid-configuration", "")
	var doc map[string]any
	if err := json.Unmarshal([]byte(body), &doc); err != nil || status != 200 {
		t.Fatalf("%d %v", status, err)
	}
	for name, want := range map[string]string{
		"issuer": "https://public.example/git", "authorization_endpoint": "https://public.example/git/login/oauth/authorize",
		"token_endpoint":         "https://public.example/git/login/oauth/access_token",
		"introspection_endpoint": "https://public.example/git/login/oauth/introspect",
	} {
		if doc[name] != want {
			t.Errorf("%s: %v", name, doc[name])
		}
	}
	root := strings.TrimSuffix(a.base, "/git")
	for path, want := range map[string]int{
		"/git/api/v1/version": 200, "/git/user/login": 200, "/git": 404, "/git/nothing": 404,
		"/api/v1/version": 404, "/user/login": 404, "/gitea/api/v1/version": 404, "/gituser/login": 404, "/": 404,
		"/git/api/v1/repos/acme/garden/raw/docs/100%25.txt": 200,
	} {
		res, err := direct.Get(root + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, res.StatusCode, want)
		}
	}
	res, _ := newPerson(t).open(a.base+"/user/login", url.Values{"user_name": {"alice"}, "password": {"demo-password"}})
	for _, k := range res.Cookies() {
		if k.Path != "/git" || !k.Secure || !k.HttpOnly {
			t.Errorf("cookie %s: %+v", k.Name, k)
		}
	}
	if res.Header.Get("Location") != "/git/" {
		t.Errorf("%s", res.Header.Get("Location"))
	}
	got := a.login("alice", "read:repository")
	if _, header, _ := a.get("/api/v1/repos/acme/garden/issues?limit=1", "token "+a.Token("alice")); !strings.Contains(header.Get("Link"), "<https://public.example/git/api/v1/repos/") {
		t.Errorf("Link: %s", header.Get("Link"))
	}
	if status, _, _ := a.get("/api/v1/repos/acme/garden", "Bearer "+got.Access); status != 200 {
		t.Errorf("API: %d", status)
	}
	send(a.Server, "", "PATCH", "/nothing", "{}") // outside of the sub-path
	if status, header, _ := a.patch("/api/v1/repos/acme/garden", `{"name":"park"}`); status != 200 {
		t.Errorf("rename: %d %v", status, header)
	}
	if status, header, _ := a.get("/api/v1/repos/acme/garden/issues?x=1", ""); status != 301 || header.Get("Location") != "/git/api/v1/repos/acme/park/issues?x=1" {
		t.Errorf("renamed: %d %s", status, header.Get("Location"))
	}
}

// patch sends JSON as alice.
func (a *oauthApp) patch(path, body string) (int, http.Header, string) {
	a.t.Helper()
	r, err := http.NewRequest("PATCH", a.base+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return a.do(r, "token "+a.Token("alice"))
}

// TestNoSuchPages: what Gitea does not have, the double has not either.
func TestNoSuchPages(t *testing.T) {
	t.Parallel()
	a := newApp(t, true, fakegitea.Options{})
	for _, path := range []string{
		"/login/oauth/revoke", "/login/oauth/register", "/login/oauth/device_code", "/.well-known/oauth-authorization-server", "/user/sign_up",
	} {
		if status, _, _ := a.get(path, ""); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// TestSigningKey: a new key ends all tokens, and tokens of another server are foreign.
func TestSigningKey(t *testing.T) {
	t.Parallel()
	a, b := newApp(t, true, fakegitea.Options{}), newApp(t, true, fakegitea.Options{})
	got := a.login("alice", "read:user")
	b.login("alice", "read:user")
	if status, _, _ := b.get("/api/v1/user", "Bearer "+got.Access); status != 401 {
		t.Errorf("a token of another server: %d", status)
	}
	a.RotateSigningKey()
	if status, _, _ := a.get("/api/v1/user", "Bearer "+got.Access); status != 401 {
		t.Errorf("after a new key: %d", status)
	}
	if again := a.refresh(got.Refresh); again.Text != "unable to parse refresh token" {
		t.Errorf("%s", again.raw)
	}
}
