package oauth_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/gitea/fakegitea"
	"aegis/proxy/internal/seal"
	"aegis/proxy/kv"
	"aegis/proxy/oauth"
	"aegis/proxy/oauth/client"
	"aegis/proxy/oauth/grant"
	"aegis/proxy/oauth/upstream"
)

// direct shares no connection with another request: httptest closes the idle ones of
// http.DefaultTransport whenever a test's server is closed, and a test beside it fails.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// real is Aegis' authorization server with all its real parts, on a port of its
// own, in front of the Gitea double.
type real struct {
	t      testing.TB
	url    string // of Aegis
	double *fakegitea.Server
	gitea  string // of the double
	app    string // client_id at Gitea
	server *oauth.Server
	grants *grant.Grants
	clock  *clock
	log    lockedBuffer
	store  kv.Store
}

// lockedBuffer collects a log.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t testing.TB, change func(*config.OAuth)) *real {
	t.Helper()
	r := &real{t: t, clock: &clock{at: time.Now()}}
	r.double = fakegitea.New(fakegitea.Options{Seed: fakegitea.SeedDemo})
	gitea := httptest.NewServer(r.double)
	t.Cleanup(gitea.Close)
	r.gitea = gitea.URL

	var handler http.Handler
	aegis := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		handler.ServeHTTP(w, q)
	}))
	t.Cleanup(aegis.Close)
	r.url = aegis.URL
	r.double.SetClock(r.clock.now)

	id, secret := r.double.RegisterOAuthApp("Aegis", true, r.url+"/oauth/callback")
	c := config.Default().Auth.OAuth
	c.Enabled, c.ClientID, c.ClientSecret = true, id, config.NewSecret(secret)
	r.app = id
	if change != nil {
		change(&c)
	}
	handler = r.build(c)
	return r
}

// build wires everything as the server does.
func (r *real) build(c config.OAuth) http.Handler {
	r.t.Helper()
	must := func(err error) {
		r.t.Helper()
		if err != nil {
			r.t.Fatal(err)
		}
	}
	ring, err := seal.New([]byte("a key of at least thirty-two bytes"))
	must(err)
	r.store = kv.Sealed(kv.NewMemory(r.clock.now), ring)
	at, err := url.Parse(r.gitea)
	must(err)
	base, err := url.Parse(r.url)
	must(err)
	up, err := upstream.New(upstream.Options{Config: c, Gitea: at, RedirectURL: r.url + "/oauth/callback",
		HTTP: &http.Client{Transport: direct.Transport, Timeout: 2 * time.Minute}, Store: r.store, Now: r.clock.now})
	must(err)
	r.grants, err = grant.New(grant.Options{Store: r.store, Keys: ring.Derive, Now: r.clock.now, Config: c})
	must(err)
	clients, err := client.NewResolver(client.Options{Config: c, Store: r.store, Keys: ring.Derive, Now: r.clock.now,
		Lookup: func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no names here") }})
	must(err)
	endpoint := r.url + "/mcp"
	r.server, err = oauth.New(oauth.Options{Config: c, Base: base, Grants: r.grants, Clients: clients, Upstream: up,
		Store: r.store, Keys: ring.Derive,
		Resources: []string{endpoint}, Log: zerolog.New(&r.log), Now: r.clock.now})
	must(err)
	guard := &oauth.Guard{Verifier: r.server.Verifier(endpoint, nil), MetadataURL: r.server.MetadataURL(endpoint),
		Scopes: r.server.Scopes(), Offered: c.Scopes, Needs: tools, Log: zerolog.New(&r.log)}
	mux := http.NewServeMux()
	r.server.Register(mux)
	mux.Handle("/mcp", guard.Wrap(permitted(guard,
		func(w http.ResponseWriter, q *http.Request, _ []byte) { r.whoami(w, q) })))
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mux.ServeHTTP(w, q.WithContext(proxy.WithRequestInfo(q.Context(),
			&proxy.RequestInfo{RequestID: "req", Addr: "127.0.0.1"})))
	})
}

// whoami stands for a tool: it asks Gitea who the caller is.
func (r *real) whoami(w http.ResponseWriter, q *http.Request) {
	id := proxy.RequestInfoFrom(q.Context()).Identity
	out, err := http.NewRequestWithContext(q.Context(), http.MethodGet, r.gitea+"/api/v1/user", nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	out.Header.Set("Authorization", id.Credential.Authorization())
	resp, err := direct.Do(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body) // the test reads what came
}

// person is somebody with a browser.
type person struct {
	r    *real
	http *http.Client
	page string // that is shown
	at   *url.URL
}

func (r *real) person() *person {
	jar, err := cookiejar.New(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	p := &person{r: r}
	p.http = &http.Client{Transport: direct.Transport, Jar: jar, CheckRedirect: func(q *http.Request, _ []*http.Request) error {
		if !strings.HasPrefix(q.URL.String(), r.url+"/") && !strings.HasPrefix(q.URL.String(), r.gitea+"/") {
			return http.ErrUseLastResponse // the client's own address
		}
		return nil
	}}
	return p
}

// visit opens an address, follows redirects and pages that go on by themselves,
// and returns the address of the client when it ends there.
func (p *person) visit(q *http.Request) *url.URL {
	p.r.t.Helper()
	for range 10 {
		resp, err := p.http.Do(q)
		if err != nil {
			p.r.t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			p.r.t.Fatal(err)
		}
		p.page, p.at = string(body), resp.Request.URL
		to := resp.Header.Get("Location")
		if to == "" {
			to = refreshOf(p.page)
		}
		if to == "" {
			return nil
		}
		u, err := url.Parse(to)
		if err != nil {
			p.r.t.Fatal(err)
		}
		if resp.Header.Get("Location") != "" || !strings.HasPrefix(to, p.r.url+"/") &&
			!strings.HasPrefix(to, p.r.gitea+"/") {
			return u
		}
		q, _ = http.NewRequest(http.MethodGet, to, nil) // the address was parsed
	}
	p.r.t.Fatal("the pages go round in circles")
	return nil
}

func (p *person) open(address string) *url.URL {
	p.r.t.Helper()
	q, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		p.r.t.Fatal(err)
	}
	return p.visit(q)
}

// press sends the form of the page that is shown.
func (p *person) press(path string, pairs ...string) *url.URL {
	p.r.t.Helper()
	f := formOf(p.page)
	for i := 0; i+1 < len(pairs); i += 2 {
		f.Set(pairs[i], pairs[i+1])
	}
	q, err := http.NewRequest(http.MethodPost, p.at.Scheme+"://"+p.at.Host+path, strings.NewReader(f.Encode()))
	if err != nil {
		p.r.t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	q.Header.Set("Sec-Fetch-Site", "same-origin")
	return p.visit(q)
}

// send sends a form or JSON as a program and reads the JSON answer.
func (r *real) send(path, body string, headers ...string) (int, http.Header, map[string]any) {
	r.t.Helper()
	q, err := http.NewRequest(http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	resp, err := direct.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	var m map[string]any
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		r.t.Fatalf("%s: %d %s", path, resp.StatusCode, text)
	}
	return resp.StatusCode, resp.Header, m
}

func (r *real) call(token, tool string) (int, http.Header, map[string]any) {
	return r.send("/mcp", call(tool), "Authorization", "Bearer "+token)
}

// register makes a client known and returns its id.
func (r *real) register(redirect string) string {
	r.t.Helper()
	status, _, m := r.send("/register", `{"client_name":"Test client","redirect_uris":["`+redirect+`"],"token_endpoint_auth_method":"none"}`, "Content-Type", "application/json")
	if status != http.StatusCreated {
		r.t.Fatalf("register: %d %v", status, m)
	}
	return m["client_id"].(string)
}

func (r *real) authorizeURL(id, redirect, scope string) string {
	return r.url + "/authorize?" + url.Values{"client_id": {id}, "redirect_uri": {redirect},
		"response_type": {"code"}, "code_challenge": {challenge()},
		"code_challenge_method": {"S256"}, "state": {"s"}, "scope": {scope}, "resource": {r.url + "/mcp"}}.Encode()
}

// login types name and password into Gitea's page.
func (p *person) login(name string) *url.URL {
	p.r.t.Helper()
	if !strings.Contains(p.page, "password") {
		p.r.t.Fatalf("not Gitea's login page: %s", p.page)
	}
	return p.press("/user/login", "user_name", name, "password", "demo-password")
}

const localRedirect = "http://127.0.0.1:4711/callback"

// TestEndToEnd is the whole way of one client and one person, all parts real.
func TestEndToEnd(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	// 1. The client learns where to go.
	status, h, _ := r.send("/mcp", call("read_issue"))
	if status != 401 || !strings.Contains(h.Get("WWW-Authenticate"),
		`resource_metadata="`+r.url+`/.well-known/oauth-protected-resource/mcp"`) {
		t.Fatalf("%d %v", status, h)
	}
	id := r.register("http://127.0.0.1/callback")

	// 2. The person narrows, signs in to Gitea and agrees there.
	p := r.person()
	if p.open(r.authorizeURL(id, localRedirect, "write:issue read:user offline_access not_a_scope")) != nil ||
		!strings.Contains(p.page, "Test client") {
		t.Fatalf("no consent page: %s", p.page)
	}
	if counts := r.double.OAuthCounts(); counts.Authorize != 0 {
		t.Error("Gitea was asked before the person agreed")
	}
	p.press("/consent", "access", "read", "say", "allow")
	p.login("alice")
	to := p.press("/login/oauth/grant", "granted", "true")
	if to == nil || to.Host != "127.0.0.1:4711" || to.Query().Get("state") != "s" || to.Query().Get("iss") != r.url {
		t.Fatalf("sent to %v, shown %s", to, p.page)
	}
	for _, asked := range r.double.OAuthCounts().AuthorizeScopes { // never the client's words
		for _, word := range strings.Fields(asked) {
			if !strings.Contains(" "+strings.Join(config.Default().Auth.OAuth.Scopes, " ")+" ", " "+word+" ") {
				t.Errorf("Gitea was asked for %q", word)
			}
		}
	}

	// 3. The client gets tokens, calls, and is told what it lacks.
	tokens := r.redeem(id, to.Query().Get("code"))
	if tokens["scope"] != "read:issue read:user" {
		t.Errorf("scope: %v", tokens["scope"])
	}
	access, old := tokens["access_token"].(string), tokens["refresh_token"].(string)
	if status, _, m := r.call(access, "read_issue"); status != 200 || m["login"] != "alice" {
		t.Errorf("call: %d %v", status, m)
	}
	if status, h, _ := r.call(access, "write_issue"); status != 403 ||
		!strings.Contains(h.Get("WWW-Authenticate"), `scope="read:issue write:issue read:user"`) {
		t.Errorf("step-up: %d %v", status, h)
	}

	// 4. Stepping up: Gitea does not ask again, Aegis does.
	if p.open(r.authorizeURL(id, localRedirect, "read:issue write:issue read:user")) != nil {
		t.Fatal("no consent page at the second time")
	}
	to = p.press("/consent", "access", "all", "say", "allow")
	if to == nil || to.Query().Get("code") == "" {
		t.Fatalf("sent to %v, shown %s", to, p.page)
	}
	more := r.redeem(id, to.Query().Get("code"))
	if status, _, _ := r.call(more["access_token"].(string), "write_issue"); status != 200 {
		t.Errorf("call after stepping up: %d", status)
	}

	// 5. Refreshing, hours later: Gitea's token is renewed in silence.
	r.clock.add(2 * time.Hour)
	if status, h, _ := r.call(access, "read_issue"); status != 401 ||
		!strings.Contains(h.Get("WWW-Authenticate"), "invalid_token") {
		t.Errorf("an access token lives for two hours: %d", status)
	}
	status, _, fresh := r.send("/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {id},
		"refresh_token": {old}, "scope": {"write:admin read:issue read:user"}}.Encode())
	if status != 200 || fresh["refresh_token"] == old || fresh["scope"] != "read:issue read:user" {
		t.Fatalf("refresh: %d %v", status, fresh)
	}
	access = fresh["access_token"].(string)
	if status, _, m := r.call(access, "read_issue"); status != 200 || m["login"] != "alice" {
		t.Errorf("call after the refresh: %d %v", status, m)
	}
	if n := r.double.OAuthCounts().Refresh; n != 1 {
		t.Errorf("Gitea's token was renewed %d times", n)
	}

	// 6. Revoking.
	if status, _, _ = r.send("/revoke", url.Values{"client_id": {id},
		"token": {fresh["refresh_token"].(string)}}.Encode()); status != 200 {
		t.Errorf("revoke: %d", status)
	}
	r.clock.add(10 * time.Second)
	if status, _, _ := r.call(access, "read_issue"); status != 401 {
		t.Errorf("a revoked token works: %d", status)
	}

	// Nothing secret is in the log, and Gitea never saw a token of ours.
	secrets := []string{access, old, more["access_token"].(string), more["refresh_token"].(string),
		fresh["refresh_token"].(string), to.Query().Get("code")}
	for _, s := range secrets {
		if strings.Contains(r.log.String(), s) {
			t.Error("a token is in the log")
		}
		if r.double.Saw(s) {
			t.Error("Gitea saw a token of ours")
		}
	}
	if r.double.Saw("offline_access") || r.double.Saw("not_a_scope") {
		t.Error("Gitea saw the client's words")
	}
}

// redeem exchanges a code of localRedirect.
func (r *real) redeem(id, code string) map[string]any {
	r.t.Helper()
	status, _, m := r.send("/token", url.Values{"grant_type": {"authorization_code"}, "client_id": {id},
		"code": {code}, "code_verifier": {verifier}, "redirect_uri": {localRedirect}}.Encode())
	if status != 200 {
		r.t.Fatalf("token: %d %v", status, m)
	}
	return m
}

// connect goes the whole way for a person and returns a client's tokens.
func (r *real) connect(login string) (id string, p *person, tokens map[string]any) {
	r.t.Helper()
	id, p = r.register("http://127.0.0.1/callback"), r.person()
	p.open(r.authorizeURL(id, localRedirect, ""))
	p.press("/consent", "access", "all", "say", "allow")
	p.login(login)
	to := p.press("/login/oauth/grant", "granted", "true")
	if to == nil {
		r.t.Fatalf("%s could not sign in: %s", login, p.page)
	}
	return id, p, r.redeem(id, to.Query().Get("code"))
}

func TestAccountEndToEnd(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *config.OAuth) { c.Admins = []string{"bob"} })
	_, alice, tokens := r.connect("alice")
	alice.open(r.url + "/account")
	if alice.press("/account", "do", "sign_in") != nil || alice.at.Path != "/account" ||
		!strings.Contains(alice.page, "Test client") || strings.Contains(alice.page, "Everybody") {
		t.Fatalf("at %v: %s", alice.at, alice.page)
	}
	bob := r.person()
	bob.open(r.url + "/account")
	bob.press("/account", "do", "sign_in")
	bob.login("bob")
	bob.press("/login/oauth/grant", "granted", "true")
	if bob.at.Path != "/account" || !strings.Contains(bob.page, "Everybody") ||
		!strings.Contains(bob.page, "<strong>alice</strong>") {
		t.Fatalf("at %v: %s", bob.at, bob.page)
	}
	if bob.press("/account", "do", "revoke") != nil || strings.Contains(bob.page, "<strong>alice</strong>") {
		t.Errorf("at %v: %s", bob.at, bob.page)
	}
	r.clock.add(10 * time.Second)
	if status, _, _ := r.call(tokens["access_token"].(string), "read_issue"); status != 401 {
		t.Errorf("the client of alice still works: %d", status)
	}
	left := 0
	for key, err := range r.store.Keys(t.Context(), "cred/") {
		if left++; err != nil {
			t.Fatal(key, err)
		}
	}
	if left != 1 {
		t.Errorf("%d credentials are left, of which one is needed", left)
	}
}

// TestOutageOfGitea: nobody is logged out by it.
func TestOutageOfGitea(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	id, _, tokens := r.connect("alice")
	r.double.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultStatus, Status: 502})
	r.clock.add(90 * time.Minute)
	status, _, fresh := r.send("/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {id},
		"refresh_token": {tokens["refresh_token"].(string)}}.Encode())
	if status != 200 {
		t.Fatalf("refresh during an outage: %d %v", status, fresh)
	}
	access := fresh["access_token"].(string)
	status, h, m := r.call(access, "read_issue")
	if e, _ := m["error"].(map[string]any); status != 503 || e["kind"] != "upstream_unavailable" ||
		h.Get("Retry-After") == "" || h.Get("WWW-Authenticate") != "" {
		t.Errorf("call during an outage: %d %v", status, m)
	}
	r.double.ClearOAuthFaults()
	r.clock.add(5 * time.Minute)
	if status, _, m := r.call(access, "read_issue"); status != 200 {
		t.Errorf("call after the outage: %d %v", status, m)
	}
}

// TestWhatHappensInGitea: a rename goes unnoticed, a wrong secret is the
// operator's, and a revoked grant ends in a new sign-in.
func TestWhatHappensInGitea(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	id, _, tokens := r.connect("alice")
	refresh := func() (int, map[string]any) {
		status, _, m := r.send("/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {id},
			"refresh_token": {tokens["refresh_token"].(string)}}.Encode())
		if status == 200 {
			tokens = m
		}
		return status, m
	}
	if !r.double.RenameUser("alice", "alicia") {
		t.Fatal("no rename")
	}
	r.clock.add(90 * time.Minute)
	if status, m := refresh(); status != 200 {
		t.Fatalf("refresh after the rename: %d %v", status, m)
	}
	if status, _, m := r.call(tokens["access_token"].(string), "read_issue"); status != 200 || m["login"] != "alicia" {
		t.Errorf("call after the rename: %d %v", status, m)
	}
	if !r.double.RevokeGrant("alicia", r.app) {
		t.Fatal("no grant to revoke")
	}
	r.clock.add(90 * time.Minute)
	if status, m := refresh(); status != 200 { // nobody has told us yet
		t.Fatalf("refresh after the revocation: %d %v", status, m)
	}
	if status, h, _ := r.call(tokens["access_token"].(string), "read_issue"); status != 401 ||
		!strings.Contains(h.Get("WWW-Authenticate"), "invalid_token") {
		t.Errorf("call after the revocation: %d", status)
	}
	if status, m := refresh(); status != 400 || m["error"] != "invalid_grant" {
		t.Errorf("refresh after Gitea said so: %d %v", status, m)
	}
}

func TestOnlySomePeople(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *config.OAuth) { c.Allow = config.People{Logins: []string{"bob"}} })
	id, p := r.register("http://127.0.0.1/callback"), r.person()
	p.open(r.authorizeURL(id, localRedirect, ""))
	p.press("/consent", "access", "all", "say", "allow")
	p.login("alice")
	if to := p.press("/login/oauth/grant", "granted", "true"); to != nil ||
		!strings.Contains(p.page, "not among the people") {
		t.Errorf("sent to %v, shown %s", to, p.page)
	}
	r.connect("bob")
}

// BenchmarkVerify is what each request of an OAuth identity costs before MCP.
func BenchmarkVerify(b *testing.B) {
	r := start(b, nil)
	_, _, tokens := r.connect("alice")
	v := r.server.Verifier(r.url+"/mcp", nil)
	token := tokens["access_token"].(string)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(b.Context(), token); err != nil {
			b.Fatal(err)
		}
	}
}
