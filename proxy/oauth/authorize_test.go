package oauth_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"aegis/proxy/oauth"
	"aegis/proxy/oauth/client"
)

func TestWholeSignIn(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	b := w.browser()
	code := w.signIn(b)
	q := b.location()
	if q.Get("state") != "the state" || q.Get("iss") != base || !strings.HasPrefix(b.last.Header().Get("Location"), "https://known.example/cb?code=") {
		t.Errorf("answer: %s", b.last.Header().Get("Location"))
	}
	answer := object(t, w.redeem(code))
	if answer["token_type"] != "Bearer" || answer["expires_in"] != 3600.0 || answer["refresh_token"] == nil {
		t.Errorf("token answer: %v", answer)
	}
	if got, want := sorted(strings.Fields(answer["scope"].(string))), sorted(settings().Scopes); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("scope: %v, want %v", got, want)
	}
	var names []string
	for _, e := range w.events {
		names = append(names, e.Name+" "+e.Login)
	}
	if strings.Join(names, ", ") != "login alice, consent alice" {
		t.Errorf("events: %v", names)
	}
	if len(b.cookies) != 1 { // the mark of the browser stays, the flow's cookie goes
		t.Errorf("cookies are left: %v", b.cookies)
	}
}

// TestNothingBeforeTheYes: asking stores nothing, sets off nothing at Gitea, and
// gives no code, however often and by whichever client, also by one that a person
// has allowed before.
func TestNothingBeforeTheYes(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	b := w.browser()
	w.signIn(b)
	before := w.gitea.logins
	for range 5 {
		rec := b.open(ask("client_id", "app", "redirect_uri", "cursor://anysphere.cursor-mcp/oauth/callback"))
		if rec.Code != http.StatusOK || rec.Header().Get("Location") != "" || refreshOf(rec.Body.String()) != "" {
			t.Fatalf("asking led on by itself: %d %v", rec.Code, rec.Header())
		}
	}
	if w.gitea.logins != before {
		t.Error("Gitea was involved before the person agreed")
	}
	for key, err := range w.store.Keys(context.Background(), "flow/") {
		t.Errorf("something was stored before the person agreed: %s %v", key, err)
	}
}

func TestStateComesBackAsSent(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"x", strings.Repeat("s", 2000), strings.Repeat("s", 15_000), "a b+c&d=e%20é/?#\"<>", "\xff\xfe raw", ""} {
		w := build(t, nil)
		b := w.browser()
		w.signIn(b, "state", state)
		if got, sent := b.location()["state"]; !sent || len(got) != 1 || got[0] != state {
			t.Errorf("state %.20q came back as %.20q", state, got)
		}
	}
	w := build(t, nil)
	b := w.browser()
	w.signIn(b, "state", "-")
	if got, there := b.location()["state"]; there {
		t.Errorf("a state that was not sent came back: %q", got)
	}
}

// TestIssuer: iss is in success, error and denial, once and byte for byte, and
// nowhere when it is not advertised.
func TestIssuer(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{true, false} {
		w := build(t, func(o *oauth.Options) { o.Config.AdvertiseIssuer = on })
		check := func(what, location string) {
			u, err := url.Parse(location)
			if err != nil {
				t.Fatal(err)
			}
			iss := u.Query()["iss"]
			if on && (len(iss) != 1 || iss[0] != base) || !on && iss != nil {
				t.Errorf("advertised %v, %s: iss %q", on, what, iss)
			}
		}
		b := w.browser()
		w.signIn(b)
		check("success", b.last.Header().Get("Location"))
		b.open(ask("code_challenge", "-"))
		check("error", b.last.Header().Get("Location"))
		b = w.browser()
		b.open(ask())
		b.allow("say", "deny")
		check("denial", b.next())
		_, advertised := object(t, w.get(base+"/.well-known/oauth-authorization-server"))["authorization_response_iss_parameter_supported"]
		if advertised != on {
			t.Errorf("advertised: %v, want %v", advertised, on)
		}
	}
}

// TestMistakesThatPeopleSee: without a client and an address that belongs to it
// there is nobody to tell but the person, and never a redirect.
func TestMistakesThatPeopleSee(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	for name, target := range map[string]string{
		"no client":          ask("client_id", "-"),
		"unknown client":     ask("client_id", "nobody"),
		"no redirect":        ask("redirect_uri", "-"),
		"foreign redirect":   ask("redirect_uri", "https://evil.example/cb"),
		"other path":         ask("redirect_uri", "https://known.example/cb/x"),
		"other query":        ask("redirect_uri", "https://known.example/cb?x=1"),
		"suffix host":        ask("redirect_uri", "https://known.example.evil.example/cb"),
		"user":               ask("redirect_uri", "https://known.example@evil.example/cb"),
		"fragment":           ask("redirect_uri", "https://known.example/cb#x"),
		"backslash":          ask("redirect_uri", `https://evil.example\@known.example/cb`),
		"no scheme":          ask("redirect_uri", "//evil.example/cb"),
		"javascript":         ask("redirect_uri", "javascript:alert(1)//known.example/cb"),
		"data":               ask("redirect_uri", "data:text/html,x"),
		"lines":              ask("redirect_uri", "https://known.example/cb\r\nX: y"),
		"localhost for IP":   ask("redirect_uri", "http://localhost/callback"),
		"loopback https":     ask("redirect_uri", "https://127.0.0.1/callback"),
		"loopback and more":  ask("redirect_uri", "http://127.0.0.1.evil.example/callback"),
		"loopback, path":     ask("redirect_uri", "http://127.0.0.1:4000/other"),
		"two clients":        ask() + "&client_id=app",
		"two redirects":      ask() + "&redirect_uri=https%3A%2F%2Fevil.example",
		"bad escape":         ask() + "&x=%zz",
		"semicolon":          ask() + ";x=1",
		"endless":            ask("state", strings.Repeat("s", 20000)),
		"a hundred and more": ask() + strings.Repeat("&x=1", 120),
	} {
		b := w.browser()
		rec := b.open(target)
		if rec.Code != http.StatusBadRequest || rec.Header().Get("Location") != "" || b.next() != "" || strings.Contains(rec.Body.String(), "evil.example") {
			t.Errorf("%s: %d %v %s", name, rec.Code, rec.Header(), rec.Body)
		}
		w.clock.add(time.Minute)
	}
	if rec := w.get(ask("client_id", "nobody")); !strings.Contains(rec.Body.String(), "remove this server and add it again") {
		t.Errorf("the page does not say what to do: %s", rec.Body)
	}
}

func TestMistakesThatClientsHear(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	for name, c := range map[string]struct{ target, code string }{
		"no response type":    {ask("response_type", "-"), "invalid_request"},
		"token":               {ask("response_type", "token"), "unsupported_response_type"},
		"fragment mode":       {ask("response_mode", "fragment"), "invalid_request"},
		"no challenge":        {ask("code_challenge", "-"), "invalid_request"},
		"empty challenge":     {ask("code_challenge", ""), "invalid_request"},
		"short challenge":     {ask("code_challenge", challenge()[:42]), "invalid_request"},
		"long challenge":      {ask("code_challenge", challenge()+"A"), "invalid_request"},
		"strange challenge":   {ask("code_challenge", challenge()[:42]+"="), "invalid_request"},
		"plain":               {ask("code_challenge_method", "plain"), "invalid_request"},
		"no method":           {ask("code_challenge_method", "-"), "invalid_request"},
		"other host":          {ask("resource", "https://other.example/mcp"), "invalid_target"},
		"other path":          {ask("resource", base+"/other"), "invalid_target"},
		"query":               {ask("resource", endpoint+"?x=1"), "invalid_target"},
		"fragment":            {ask("resource", endpoint+"#x"), "invalid_target"},
		"user":                {ask("resource", "https://x@aegis.example/mcp"), "invalid_target"},
		"two resources":       {ask() + "&resource=" + url.QueryEscape(team), "invalid_target"},
		"two states":          {ask() + "&state=other", "invalid_request"},
		"two scopes":          {ask("scope", "read:user") + "&scope=read:issue", "invalid_request"},
		"two challenges":      {ask() + "&code_challenge=" + challenge(), "invalid_request"},
		"a request object":    {ask("request", "e30.e30."), "request_not_supported"},
		"a request object by": {ask("request_uri", "https://known.example/r"), "request_uri_not_supported"},
	} {
		b := w.browser()
		b.open(c.target)
		q := b.location()
		if q.Get("error") != c.code || q.Get("code") != "" || q.Get("error_description") == "" || !strings.HasPrefix(b.last.Header().Get("Location"), "https://known.example/cb?error=") {
			t.Errorf("%s: %s", name, b.last.Header().Get("Location"))
		}
		if want := "the state"; name != "two states" && q.Get("state") != want {
			t.Errorf("%s: state %q", name, q.Get("state"))
		}
		w.clock.add(time.Minute)
	}
}

// TestSafeRedirect holds for addresses that the rules of a client let through.
func TestSafeRedirect(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]bool{
		"https://known.example/cb": true, "https://known.example:8443/cb?x=1": true, "http://127.0.0.1:1/": true, "http://[::1]:1/cb": true, "cursor://anysphere.cursor-mcp/oauth/callback": true,
		"javascript:alert(1)": false, "JavaScript://x/%0aalert(1)": false, "data:text/html,x": false, "vbscript://x": false, "file:///etc/passwd": false, "blob:https://x/y": false, "about:blank": false,
		"//evil.example/cb": false, "/cb": false, "": false, "https:/cb": false, "https://": false, "https://u@known.example/cb": false, "https://known.example/cb#f": false, "https://known.example\\@evil.example": false,
		"https://known.example/cb\r\n": false, "https://known.example/ cb": false, "https://kn\u00f6wn.example/cb": false, "https:known.example": false, "https://known.example/%zz": false, "view-source://x": false,
	} {
		if got := oauth.SafeRedirect(uri); got != want {
			t.Errorf("%q: %v", uri, got)
		}
	}
}

func TestWhatIsIgnored(t *testing.T) {
	t.Parallel()
	for _, extra := range [][2]string{{"prompt", "none"}, {"prompt", "login"}, {"login_hint", "bob"}, {"nonce", "x"}, {"max_age", "0"}, {"display", "popup"}, {"response_mode", "query"}, {"resource", "-"}, {"foo", "bar"}} {
		w := build(t, nil)
		w.signIn(w.browser(), extra[0], extra[1])
	}
}

func TestResourceVariants(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]string{
		"-": endpoint, "": endpoint, endpoint: endpoint, endpoint + "/": endpoint, "HTTPS://AEGIS.example/mcp": endpoint, "https://aegis.example:443/mcp": endpoint,
		team: team, team + "/": team,
	} {
		w := build(t, nil)
		code := w.signIn(w.browser(), "resource", asked)
		if got := w.grants.codes[code].Resource; got != want {
			t.Errorf("%q means %q, want %q", asked, got, want)
		}
	}
}

func TestLoopbackPorts(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	b := w.browser()
	w.signIn(b, "redirect_uri", "http://127.0.0.1:49152/callback")
	if l := b.last.Header().Get("Location"); !strings.HasPrefix(l, "http://127.0.0.1:49152/callback?code=") {
		t.Errorf("sent to %s", l)
	}
}

// TestPrivateScheme: a program of one's own is opened by a page, so that the tab
// does not stay empty, and the redirect URI's own query is kept.
func TestPrivateScheme(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	b := w.browser()
	b.open(ask("client_id", "app", "redirect_uri", "cursor://anysphere.cursor-mcp/oauth/callback"))
	b.allow()
	b.back(b.stateOf())
	if b.last.Code != http.StatusOK || !strings.HasPrefix(b.next(), "cursor://anysphere.cursor-mcp/oauth/callback?code=aegis_ac_") || !strings.Contains(b.last.Body.String(), `href="cursor://`) {
		t.Errorf("%d %s", b.last.Code, b.last.Body)
	}
	w.signIn(b, "client_id", "secretive", "redirect_uri", "https://secretive.example/cb?x=1")
	if l := b.last.Header().Get("Location"); !strings.HasPrefix(l, "https://secretive.example/cb?x=1&code=") {
		t.Errorf("sent to %s", l)
	}
}

func TestScopesAsked(t *testing.T) {
	t.Parallel()
	narrow := func(o *oauth.Options) {
		o.Config.Scopes = []string{"write:issue", "read:repository", "read:user"}
		o.Config.DefaultScopes = []string{"read:issue", "read:repository"}
	}
	for asked, want := range map[string]string{
		"":                                  "read:repository read:issue",
		"-":                                 "read:repository read:issue",
		"offline_access openid foo":         "read:repository read:issue",
		"write:issue offline_access":        "write:issue",
		"write:repository":                  "read:repository",
		"read:issue write:issue read:issue": "read:issue write:issue",
		"write:admin all * read: :issue READ:USER": "read:repository read:issue",
		"read:user\twrite:issue":                   "write:issue read:user",
	} {
		w := build(t, narrow)
		w.gitea.user.Scopes = []string{"write:issue", "read:repository", "read:user"}
		code := w.signIn(w.browser(), "scope", asked)
		if got := strings.Join(w.grants.codes[code].Scopes, " "); got != want {
			t.Errorf("asked %q, got %q, want %q", asked, got, want)
		}
	}
}

// TestGiteaGrantsLess: nobody gets more than Gitea granted.
func TestGiteaGrantsLess(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	w.gitea.user.Scopes = []string{"read:issue", "write:user"}
	code := w.signIn(w.browser(), "scope", "write:issue read:user write:repository")
	if got := strings.Join(w.grants.codes[code].Scopes, " "); got != "read:issue read:user" {
		t.Errorf("scopes: %s", got)
	}
}

// clients answers with one client, or an error.
type clients struct {
	client.Resolver
	one *client.Client
	err error
}

func (c *clients) Client(context.Context, string) (*client.Client, error)    { return c.one, c.err }
func (c *clients) Returning(context.Context, string) (*client.Client, error) { return c.one, c.err }
func (c *clients) Keep(context.Context, *client.Client) error                { return nil }

func TestClientNamesAreHarmless(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'; url=https://evil.example`, "</style><script>", "evil\u202egnp.exe", "a\u200b\u2066b\x00c\r\n",
		strings.Repeat("long ", 1000), "", "   ", "{{.Token}}", "\xff\xfe",
	} {
		w := build(t, func(o *oauth.Options) {
			o.Clients = &clients{one: &client.Client{ID: "x", Name: name, Kind: client.Registered, AuthMethod: "none", RedirectURIs: []string{"https://known.example/cb"}}}
		})
		b := w.browser()
		page := b.open(ask()).Body.String()
		for _, bad := range []string{"<script", "<img", "\u202e", "\u200b", "\u2066", "\x00", "</style><", "\ufffd", strings.Repeat("long ", 13)} {
			if strings.Contains(page, bad) {
				t.Errorf("%.30q: the page holds %q", name, bad)
			}
		}
		if strings.Count(page, "<meta http-equiv") != 0 || !strings.Contains(page, "not verified") || !strings.Contains(page, "<bdi>") {
			t.Errorf("%.30q: %s", name, page)
		}
		if b.allow("say", "deny"); strings.Contains(b.last.Body.String(), "<script") || !strings.HasPrefix(b.next(), "https://known.example/cb?error=access_denied") {
			t.Errorf("%.30q: %s", name, b.last.Body)
		}
	}
}

func TestConsentPageSaysWhatMatters(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	page := w.get(ask("client_id", "known", "redirect_uri", "http://127.0.0.1:8080/callback", "scope", "read:repository write:admin write:user")).Body.String()
	for _, want := range []string{"Known client", "known client", "this computer", "127.0.0.1:8080", "See code", "Your account", "sensitive", "git.example", "/account"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "Administer") || strings.Contains(page, "runs on your own computer") {
		t.Errorf("too much: %s", page)
	}
	registered := &client.Client{ID: "x", Name: "CLI", Kind: client.Registered, LoopbackOnly: true, AuthMethod: "none", RedirectURIs: []string{"http://localhost/callback"}}
	w = build(t, func(o *oauth.Options) { o.Clients = &clients{one: registered} })
	if page = w.get(ask("redirect_uri", "http://localhost:1234/callback")).Body.String(); !strings.Contains(page, "runs on your own computer") || !strings.Contains(page, "not verified") {
		t.Errorf("no warning: %s", page)
	}
	document := &client.Client{ID: "https://claude.example/client.json", Name: "Claude", Kind: client.Document, Verified: true, Host: "claude.example", AuthMethod: "none", RedirectURIs: []string{"https://claude.example/cb"}}
	w = build(t, func(o *oauth.Options) { o.Clients = &clients{one: document} })
	if page = w.get(ask("redirect_uri", "https://claude.example/cb")).Body.String(); !strings.Contains(page, "Described by claude.example") || !strings.Contains(page, "<strong>claude.example</strong>") {
		t.Errorf("no host: %s", page)
	}
}

func TestClientsThatCannotBeHad(t *testing.T) {
	t.Parallel()
	for kind, want := range map[client.ErrorKind]struct {
		page, token int
		code        string
	}{
		client.Unknown: {400, 401, "invalid_client"}, client.Refused: {400, 401, "invalid_client"}, client.Unavailable: {503, 503, "temporarily_unavailable"},
	} {
		w := build(t, func(o *oauth.Options) {
			o.Clients = &clients{err: &client.Error{Kind: kind, Public: "the client is not there"}}
		})
		if rec := w.get(ask()); rec.Code != want.page || !strings.Contains(rec.Body.String(), "The client is not there.") || rec.Header().Get("Location") != "" {
			t.Errorf("%s: %d %s", kind, rec.Code, rec.Body)
		}
		rec := w.redeem("code")
		if m := object(t, rec); rec.Code != want.token || m["error"] != want.code || (rec.Header().Get("WWW-Authenticate") != "") != (want.token == 401) {
			t.Errorf("%s: %d %v", kind, rec.Code, m)
		}
	}
	w := build(t, func(o *oauth.Options) { o.Clients = &clients{err: fmt.Errorf("the disk is gone")} })
	if rec := w.get(ask()); rec.Code != 503 || strings.Contains(rec.Body.String(), "disk") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// TestPageHeaders holds for every page, whatever it says.
func TestPageHeaders(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	b := w.browser()
	pages := []*httptest.ResponseRecorder{b.open(ask()), b.allow(), b.open(base + "/oauth/callback?state=none"), b.open(base + "/account"), b.open(ask("client_id", "nobody")),
		b.open(base + "/consent"), b.submit(base+"/consent", url.Values{}), b.open(ask("code_challenge", "-"))}
	for i, p := range pages {
		h := p.Header()
		csp := h.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || !strings.Contains(csp, "form-action 'self'") || !strings.Contains(csp, "base-uri 'none'") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "script-src") {
			t.Errorf("page %d: policy %q", i, csp)
		}
		if h.Get("X-Frame-Options") != "DENY" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("page %d: %v", i, h)
		}
		if body := p.Body.String(); strings.Contains(body, "<script") || strings.Contains(body, " onclick") || strings.Contains(body, "style=\"") || strings.Contains(body, "ZgotmplZ") {
			t.Errorf("page %d: %s", i, body)
		}
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	for _, dest := range []string{"iframe", "frame", "object", "embed", "fencedframe"} {
		r := httptest.NewRequest(http.MethodGet, ask(), nil)
		r.Header.Set("Sec-Fetch-Dest", dest)
		if rec := w.send(r); rec.Code != http.StatusForbidden {
			t.Errorf("%s: %d", dest, rec.Code)
		}
	}
}

func TestMetadataDocuments(t *testing.T) {
	t.Parallel()
	w := build(t, func(o *oauth.Options) { o.Config.DefaultScopes = []string{"read:issue", "read:repository"} })
	read := func(path string) map[string]any {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "evil.example"
		r.Header.Set("X-Forwarded-Host", "evil.example")
		r.Header.Set("X-Forwarded-Proto", "http")
		r.Header.Set("Forwarded", "host=evil.example")
		r.Header.Set("Origin", "https://anywhere.example")
		rec := w.send(r)
		if rec.Code != http.StatusOK || rec.Header().Get("Access-Control-Allow-Origin") != "*" || rec.Header().Get("Access-Control-Allow-Credentials") != "" || strings.Contains(rec.Body.String(), "evil") {
			t.Errorf("%s: %d %v %s", path, rec.Code, rec.Header(), rec.Body)
		}
		return object(t, rec)
	}
	for path, resource := range map[string]string{"": endpoint, "/mcp": endpoint, "/mcp/": endpoint + "/", "/mcp/red": team, "/mcp/red/": team + "/"} {
		m := read("/.well-known/oauth-protected-resource" + path)
		if m["resource"] != resource || fmt.Sprint(m["authorization_servers"]) != "["+base+"]" || fmt.Sprint(m["scopes_supported"]) != "[read:repository read:issue]" {
			t.Errorf("%q: %v", path, m)
		}
	}
	m := read("/.well-known/oauth-authorization-server")
	for key, want := range map[string]string{
		"issuer": base, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token", "registration_endpoint": base + "/register", "revocation_endpoint": base + "/revoke",
		"scopes_supported": "[read:repository read:issue offline_access]", "response_types_supported": "[code]", "response_modes_supported": "[query]",
		"grant_types_supported": "[authorization_code refresh_token]", "token_endpoint_auth_methods_supported": "[none client_secret_post client_secret_basic]",
		"code_challenge_methods_supported": "[S256]", "authorization_response_iss_parameter_supported": "true", "client_id_metadata_document_supported": "true",
	} {
		if fmt.Sprint(m[key]) != want {
			t.Errorf("%s: %v, want %s", key, m[key], want)
		}
	}
	for _, path := range []string{"oauth-authorization-server/mcp", "oauth-authorization-server/", "openid-configuration", "openid-configuration/mcp", "oauth-protected-resource/other", "oauth-protected-resource/mcp/blue", "security.txt", ""} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			rec := w.send(httptest.NewRequest(method, "/.well-known/"+path, nil))
			if m := object(t, rec); rec.Code != http.StatusNotFound || m["error"] != "not_found" {
				t.Errorf("%s %s: %d", method, path, rec.Code)
			}
		}
	}
	for method, want := range map[string]int{http.MethodHead: 200, http.MethodOptions: 204, http.MethodPost: 405} {
		if rec := w.send(httptest.NewRequest(method, "/.well-known/oauth-authorization-server", nil)); rec.Code != want {
			t.Errorf("%s: %d, want %d", method, rec.Code, want)
		}
	}
}

// TestAdvertisedEndpointsAnswer: what the metadata names is there.
func TestAdvertisedEndpointsAnswer(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	m := object(t, w.get(base+"/.well-known/oauth-authorization-server"))
	n := 0
	for key, v := range m {
		if !strings.HasSuffix(key, "_endpoint") {
			continue
		}
		n++
		method := http.MethodPost
		if key == "authorization_endpoint" {
			method = http.MethodGet
		}
		if rec := w.send(httptest.NewRequest(method, v.(string), nil)); rec.Code == http.StatusNotFound || rec.Code == http.StatusMethodNotAllowed {
			t.Errorf("%s %s: %d", key, v, rec.Code)
		}
	}
	if n != 4 {
		t.Errorf("%d endpoints are advertised", n)
	}
	w = build(t, func(o *oauth.Options) { o.Config.Registration = "off" })
	if _, there := object(t, w.get(base+"/.well-known/oauth-authorization-server"))["registration_endpoint"]; there {
		t.Error("registration is off and advertised")
	}
}

// TestSubPath: below a path, the documents are where RFC 8414 and RFC 9728 put
// them, and nowhere else.
func TestSubPath(t *testing.T) {
	t.Parallel()
	w := build(t, func(o *oauth.Options) {
		o.Base, _ = url.Parse(base + "/tools/aegis/")
		o.Resources = []string{base + "/tools/aegis/mcp"}
	})
	m := object(t, w.get("/.well-known/oauth-authorization-server/tools/aegis"))
	if m["issuer"] != base+"/tools/aegis" || m["token_endpoint"] != base+"/tools/aegis/token" {
		t.Errorf("%v", m)
	}
	if rec := w.get("/.well-known/oauth-authorization-server"); rec.Code != 404 {
		t.Errorf("the root form answers %d", rec.Code)
	}
	if m := object(t, w.get("/.well-known/oauth-protected-resource/tools/aegis/mcp")); m["resource"] != base+"/tools/aegis/mcp" {
		t.Errorf("%v", m)
	}
	if got := w.server.MetadataURL(base + "/tools/aegis/mcp"); got != base+"/.well-known/oauth-protected-resource/tools/aegis/mcp" {
		t.Errorf("metadata at %s", got)
	}
	page := w.get("/tools/aegis/authorize?" + strings.SplitN(ask("resource", "-"), "?", 2)[1])
	if page.Code != 200 || !strings.Contains(page.Body.String(), `action="/tools/aegis/consent"`) {
		t.Errorf("%d %s", page.Code, page.Body)
	}
	for path, want := range map[string]bool{"/tools/aegis/token": true, "/token": false, "/.well-known/x": true, "/tools/aegis/mcp": false, "/tools/aegis/tokens": false} {
		if got := w.server.ChecksOrigin(httptest.NewRequest(http.MethodPost, path, nil)); got != want {
			t.Errorf("ChecksOrigin(%s) = %v", path, got)
		}
	}
}

// TestChecksOriginKnowsEveryRoute: the edge leaves the Origin of these to us.
func TestChecksOriginKnowsEveryRoute(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	for pattern := range w.server.Routes() {
		if !w.server.ChecksOrigin(httptest.NewRequest(http.MethodGet, pattern, nil)) {
			t.Errorf("%s is a route whose Origin somebody else would check", pattern)
		}
	}
	for _, path := range []string{"/", "/mcp", "/mcp/red", "/authorize/x", "/accounts", "/healthz", "/well-known/x"} {
		if w.server.ChecksOrigin(httptest.NewRequest(http.MethodGet, path, nil)) {
			t.Errorf("nobody would check the Origin of %s", path)
		}
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	u, _ := url.Parse(base)
	good := oauth.Options{Config: settings(), Base: u, Grants: w.grants, Clients: &clients{}, Upstream: w.gitea, Store: w.store, Resources: []string{endpoint},
		Keys: func(string) [][]byte { return [][]byte{[]byte("k")} }}
	if _, err := oauth.New(good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*oauth.Options){
		"no base":        func(o *oauth.Options) { o.Base = nil },
		"no keys":        func(o *oauth.Options) { o.Keys = func(string) [][]byte { return nil } },
		"no store":       func(o *oauth.Options) { o.Store = nil },
		"no endpoints":   func(o *oauth.Options) { o.Resources = nil },
		"foreign":        func(o *oauth.Options) { o.Resources = []string{"https://aegis.example.evil/mcp"} },
		"no scope":       func(o *oauth.Options) { o.Config.Scopes = nil },
		"unknown scopes": func(o *oauth.Options) { o.Config.Scopes, o.Config.DefaultScopes = []string{"all"}, nil },
	} {
		o := good
		spoil(&o)
		if _, err := oauth.New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
