package fakegitea_test

import (
	"cmp"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"aegis/proxy/gitea/fakegitea"
)

// TestFlowByHand walks the whole way as a browser does: bounce to the login, wrong
// password, login, consent page, code, tokens, API.
func TestFlowByHand(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]fakegitea.Options{
		"plain": {}, "sub-path": {SubPath: "/git"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t, true, opts)
			p := newPerson(t)
			site := strings.TrimSuffix(a.base, opts.SubPath)
			at := a.authorizeURL("scope", "read:repository read:user", "code_challenge", challenge(), "code_challenge_method", "S256")
			res, _ := p.open(at, nil)
			want := opts.SubPath + "/user/login?redirect_to=" + url.QueryEscape(strings.TrimPrefix(at, site))
			if res.StatusCode != 303 || res.Header.Get("Location") != want {
				t.Fatalf("%d %s, want %s", res.StatusCode, res.Header.Get("Location"), want)
			}
			res, body := p.open(site+res.Header.Get("Location"), nil)
			if res.StatusCode != 200 || !strings.Contains(body, `action="`+opts.SubPath+`/user/login"`) || strings.Contains(body, "_csrf") {
				t.Fatalf("login page: %d %s", res.StatusCode, body)
			}
			res, body = p.open(a.base+"/user/login", url.Values{"user_name": {"alice"}, "password": {"wrong"}})
			if res.StatusCode != 200 || !strings.Contains(body, "Username or password is incorrect") {
				t.Fatalf("wrong password: %d", res.StatusCode)
			}
			res, _ = p.open(a.base+"/user/login", url.Values{"user_name": {"Alice"}, "password": {"demo-password"}})
			if res.StatusCode != 303 || site+res.Header.Get("Location") != at {
				t.Fatalf("after the login: %d %s", res.StatusCode, res.Header.Get("Location"))
			}
			for _, k := range res.Cookies() {
				if k.Name == "i_like_gitea" && (!k.HttpOnly || k.SameSite != http.SameSiteLaxMode || k.Path != cmp.Or(opts.SubPath, "/")) {
					t.Errorf("session cookie: %s", k)
				}
			}
			_, body = p.open(at, nil)
			form := fields(body)
			if !strings.Contains(body, "gateway") || form.Get("scope") != "read:repository read:user" || strings.Contains(body, "read and write everything") {
				t.Fatalf("consent page: %v %s", form, body)
			}
			form.Set("granted", "true")
			res, _ = p.open(a.base+"/login/oauth/grant", form)
			to, err := url.Parse(res.Header.Get("Location"))
			if err != nil || res.StatusCode != 303 || !regexp.MustCompile(`^gta_[a-z2-7]{52}$`).MatchString(to.Query().Get("code")) ||
				to.Query().Get("state") != "st8" || len(to.Query()) != 2 {
				t.Fatalf("code: %d %s", res.StatusCode, to)
			}
			got := a.redeem(to.Query().Get("code"), "code_verifier", verifier)
			if got.status != 200 || got.Type != "bearer" || got.Expires != 3600 || strings.Contains(got.raw, "scope") {
				t.Fatalf("%d %s", got.status, got.raw)
			}
			if status, _, body := a.get("/api/v1/user", "Bearer "+got.Access); status != 200 || !strings.Contains(body, `"login":"alice"`) {
				t.Errorf("the API: %d %s", status, body)
			}
		})
	}
}

// TestAuthorizeRefusals lists what the endpoint pages and what it redirects.
func TestAuthorizeRefusals(t *testing.T) {
	t.Parallel()
	pub, conf := newApp(t, false, fakegitea.Options{}), newApp(t, true, fakegitea.Options{})
	for _, tt := range []struct {
		name   string
		app    *oauthApp
		pairs  []string
		status int
		page   string // on the page
		query  string // of the redirect
	}{
		{"unknown client", conf, []string{"client_id", "nope"}, 400, "Client ID not registered", ""},
		{"no client", conf, []string{"client_id", ""}, 400, "Client ID not registered", ""},
		{"foreign redirect", conf, []string{"redirect_uri", "http://127.0.0.1:9999/other"}, 400, "Unregistered Redirect URI", ""},
		{"foreign host", conf, []string{"redirect_uri", "http://127.0.0.1.evil.example:9999/callback"}, 400, "Unregistered Redirect URI", ""},
		{"no redirect", conf, []string{"redirect_uri", ""}, 400, "Unregistered Redirect URI", ""},
		{"localhost", conf, []string{"redirect_uri", "http://localhost:9999/callback"}, 400, "Unregistered Redirect URI", ""},
		{"other port", pub, []string{"redirect_uri", "http://127.0.0.1:1/callback"}, 400, "Unregistered Redirect URI", ""},
		{"slash", conf, []string{"redirect_uri", callback + "/"}, 200, "Authorize gateway", ""},
		{"letter case", conf, []string{"redirect_uri", "HTTP://127.0.0.1:9999/CallBack"}, 200, "Authorize gateway", ""},
		{"two slashes", conf, []string{"redirect_uri", callback + "//"}, 400, "Unregistered", ""},
		{"response type", conf, []string{"response_type", "token"}, 303, "", "error=unsupported_response_type&error_description=Only+code+response+type+is+supported.&state=st8"},
		{"no response type, no state", conf, []string{"response_type", "", "state", ""}, 303, "", "error=unsupported_response_type&error_description=Only+code+response+type+is+supported.&state="},
		{"public without PKCE", pub, nil, 303, "", "error=invalid_request&error_description=PKCE+is+required+for+public+clients&state=st8"},
		{"public with plain", pub, []string{"code_challenge_method", "plain", "code_challenge", "x"}, 200, "Authorize gateway", ""},
		{"S512", conf, []string{"code_challenge_method", "S512"}, 303, "", "error=invalid_request&error_description=unsupported+code+challenge+method&state=st8"},
		{"S256 without challenge", pub, []string{"code_challenge_method", "S256"}, 200, "Authorize gateway", ""},
		{"resource and prompt are ignored", conf, []string{"resource", "https://x.example", "prompt", "none"}, 200, "Authorize gateway", ""},
		{"no scope", conf, nil, 200, "read and write everything", ""},
		{"one unknown word", conf, []string{"scope", "read:user offline_access"}, 200, "read and write everything", ""},
	} {
		p := newPerson(t)
		p.open(tt.app.base+"/user/login", url.Values{"user_name": {"bob@example.com"}, "password": {"demo-password"}})
		res, body := p.open(tt.app.authorizeURL(tt.pairs...), nil)
		loc := res.Header.Get("Location")
		if res.StatusCode != tt.status || !strings.Contains(body, tt.page) || tt.query != "" && loc != callback+"?"+tt.query {
			t.Errorf("%s: %d %q %.600s", tt.name, res.StatusCode, loc, body)
		}
	}
}

// TestLoopbackPort: only a public client may add a port, only to an address, and
// only when it registered none.
func TestLoopbackPort(t *testing.T) {
	t.Parallel()
	a := newApp(t, false, fakegitea.Options{})
	for _, tt := range []struct {
		confidential bool
		registered   string
		asked        string
		takes        bool
	}{
		{false, "http://127.0.0.1/callback", "http://127.0.0.1:5555/callback", true},
		{true, "http://127.0.0.1/callback", "http://127.0.0.1:5555/callback", false},
		{false, "http://127.0.0.1/callback", "http://[::1]:5555/callback", false},
		{false, "http://localhost/callback", "http://localhost:5555/callback", false},
		{false, "http://127.0.0.1/callback", "http://127.0.0.1:5555/other", false},
		{false, "http://127.0.0.1/callback", "https://127.0.0.1:5555/callback", false},
		{false, "http://127.0.0.1:1/callback", "http://127.0.0.1:5555/callback", false},
		{false, "http://10.0.0.1/callback", "http://10.0.0.1:5555/callback", false},
	} {
		id, _ := a.RegisterOAuthApp("x", tt.confidential, tt.registered)
		loc, err := a.Approve("alice", a.authorizeURL("client_id", id, "redirect_uri", tt.asked, "code_challenge_method", "plain", "code_challenge", "x"))
		if takes := err == nil && strings.Contains(loc, "code="); takes != tt.takes {
			t.Errorf("%+v: %q %v", tt, loc, err)
		}
	}
}

// TestSecondAsk: a confidential application gets its code at once and its new
// scope is ignored; a public one is asked again and refused.
func TestSecondAsk(t *testing.T) {
	t.Parallel()
	a := newApp(t, true, fakegitea.Options{})
	a.login("alice", "read:repository")
	p := newPerson(t)
	p.open(a.base+"/user/login", url.Values{"user_name": {"alice"}, "password": {"demo-password"}})
	res, _ := p.open(a.authorizeURL("scope", "write:repository write:issue"), nil)
	u, err := url.Parse(res.Header.Get("Location"))
	if err != nil || res.StatusCode != 303 || u.Query().Get("code") == "" {
		t.Fatalf("%d %s", res.StatusCode, u)
	}
	got := a.redeem(u.Query().Get("code"))
	if status, _, body := a.get("/api/v1/repos/acme/garden/issues", "Bearer "+got.Access); status != 403 ||
		!strings.Contains(body, "required=[read:issue], token scope=read:repository") {
		t.Errorf("the scope was widened: %d %s", status, body)
	}
	if q := a.approve("alice", "state", ""); q.Get("code") == "" || q.Has("state") {
		t.Errorf("without a state: %v", q)
	}
	if g := a.Grants("alice"); len(g) != 1 || g[0].Scope != "read:repository" || g[0].ClientID != a.id || g[0].App != "gateway" {
		t.Errorf("%+v", g)
	}
	if seen := a.OAuthCounts().AuthorizeScopes; len(seen) != 3 || seen[1] != "write:repository write:issue" {
		t.Errorf("scopes seen: %q", seen)
	}

	b := newApp(t, false, fakegitea.Options{})
	pkce := []string{"code_challenge_method", "S256", "code_challenge", challenge()}
	b.approve("alice", append(pkce, "scope", "read:user")...)
	if q := b.approve("alice", append(pkce, "scope", "read:user")...); q.Get("code") == "" || b.OAuthCounts().Grant != 2 {
		t.Errorf("the same scope again: %v, %+v", q, b.OAuthCounts())
	}
	q := b.approve("alice", append(pkce, "scope", "read:issue")...)
	if q.Get("error") != "server_error" || q.Get("error_description") != "a grant exists with different scope" || q.Get("state") != "st8" {
		t.Errorf("another scope: %v", q)
	}
}

// TestDecide checks the consent form: denial, forms that are not of the page that
// was opened last, and other sites.
func TestDecide(t *testing.T) {
	t.Parallel()
	a := newApp(t, true, fakegitea.Options{})
	loc, err := a.Deny("alice", a.authorizeURL())
	if err != nil || loc != callback+"?error=access_denied&error_description=the+request+is+denied&state=st8" || len(a.Grants("alice")) != 0 {
		t.Errorf("denied: %s %v", loc, err)
	}
	p := newPerson(t)
	if res, _ := p.open(a.base+"/login/oauth/grant", url.Values{"granted": {"true"}}); res.StatusCode != 303 ||
		res.Header.Get("Location") != "/user/login?redirect_to=%2Flogin%2Foauth%2Fgrant" {
		t.Errorf("not logged in: %d %s", res.StatusCode, res.Header.Get("Location"))
	}
	p.open(a.base+"/user/login", url.Values{"user_name": {"alice"}, "password": {"demo-password"}})
	if res, _ := p.open(a.base+"/login/oauth/grant", url.Values{"granted": {"true"}}); res.StatusCode != 400 {
		t.Errorf("without a page: %d", res.StatusCode)
	}
	_, first := p.open(a.authorizeURL("state", "one"), nil)
	_, second := p.open(a.authorizeURL("state", "two"), nil)
	form1, form2 := fields(first), fields(second)
	form1.Set("granted", "true")
	form2.Set("granted", "true")
	if res, _ := p.open(a.base+"/login/oauth/grant", form1); res.StatusCode != 400 {
		t.Errorf("the older of two pages: %d", res.StatusCode)
	}
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}} {
		if res, _ := p.open(a.base+"/login/oauth/grant", form2, header...); res.StatusCode != 403 {
			t.Errorf("%v: %d", header, res.StatusCode)
		}
	}
	if len(a.Grants("alice")) != 0 {
		t.Fatalf("%+v", a.Grants("alice"))
	}
	if res, _ := p.open(a.base+"/login/oauth/grant", form2, "Sec-Fetch-Site", "same-origin"); res.StatusCode != 303 {
		t.Errorf("the newer page: %d", res.StatusCode)
	}
	if len(a.Grants("alice")) != 1 {
		t.Error("no grant")
	}
}
