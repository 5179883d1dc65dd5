package oauth_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy/oauth"
	"aegis/proxy/oauth/grant"
	"aegis/proxy/oauth/upstream"
)

func basic(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
}

// TestFailedAttemptsBurnNothing: whatever is wrong with a request, the code is
// good afterwards.
func TestFailedAttemptsBurnNothing(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	code := w.signIn(w.browser())
	good := func() url.Values {
		return url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {"https://known.example/cb"}, "code_verifier": {verifier}, "client_id": {"known"}}
	}
	without := func(name string) url.Values { f := good(); f.Del(name); return f }
	with := func(name, value string) url.Values { f := good(); f.Set(name, value); return f }
	twice := func(name, value string) url.Values { f := good(); f.Add(name, value); return f }
	for name, c := range map[string]struct {
		form   url.Values
		status int
		code   string
	}{
		"no client":        {without("client_id"), 401, "invalid_client"},
		"unknown client":   {with("client_id", "nobody"), 401, "invalid_client"},
		"a secret":         {with("client_secret", "x"), 401, "invalid_client"},
		"no grant type":    {without("grant_type"), 400, "invalid_request"},
		"password":         {with("grant_type", "password"), 400, "unsupported_grant_type"},
		"credentials":      {with("grant_type", "client_credentials"), 400, "unsupported_grant_type"},
		"no code":          {without("code"), 400, "invalid_request"},
		"no verifier":      {without("code_verifier"), 400, "invalid_request"},
		"empty verifier":   {with("code_verifier", ""), 400, "invalid_request"},
		"other resource":   {with("resource", "https://evil.example/mcp"), 400, "invalid_target"},
		"other endpoint":   {with("resource", team), 400, "invalid_target"},
		"two resources":    {func() url.Values { f := with("resource", endpoint); f.Add("resource", team); return f }(), 400, "invalid_target"},
		"two codes":        {twice("code", "x"), 400, "invalid_request"},
		"two clients":      {twice("client_id", "app"), 400, "invalid_request"},
		"two verifiers":    {twice("code_verifier", "x"), 400, "invalid_request"},
		"another's code":   {with("client_id", "app"), 400, "invalid_grant"},
		"another verifier": {with("code_verifier", verifier+"x"), 400, "invalid_grant"},
		"another redirect": {with("redirect_uri", "http://127.0.0.1/callback"), 400, "invalid_grant"},
	} {
		rec := w.post(base+"/token", c.form)
		if m := object(t, rec); rec.Code != c.status || m["error"] != c.code || m["access_token"] != nil {
			t.Errorf("%s: %d %v", name, rec.Code, m)
		}
		if (rec.Code == 401) != strings.HasPrefix(rec.Header().Get("WWW-Authenticate"), "Basic ") {
			t.Errorf("%s: %v", name, rec.Header())
		}
	}
	rec := w.redeem(code, "resource", endpoint+"/")
	if rec.Code != 200 || !strings.Contains(rec.Header().Get("Cache-Control"), "no-store") || rec.Header().Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%d %v %s", rec.Code, rec.Header(), rec.Body)
	}
	if rec := w.redeem(code); rec.Code != 400 || object(t, rec)["error"] != "invalid_grant" {
		t.Errorf("a second time: %d", rec.Code)
	}
}

func TestHowClientsProveThemselves(t *testing.T) {
	t.Parallel()
	const secret = "secret of+the%20client"
	w := build(t, nil)
	form := func(pairs ...string) url.Values {
		f := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"none"}}
		for i := 0; i+1 < len(pairs); i += 2 {
			f.Set(pairs[i], pairs[i+1])
		}
		return f
	}
	for name, c := range map[string]struct {
		form url.Values
		auth string
		want string
	}{
		"post":                   {form("client_id", "secretive", "client_secret", secret), "", "invalid_grant"},
		"basic, raw":             {form(), basic("secretive", secret), "invalid_grant"},
		"basic, encoded":         {form(), basic("secretive", url.QueryEscape(secret)), "invalid_grant"},
		"basic and client_id":    {form("client_id", "secretive"), basic("secretive", secret), "invalid_grant"},
		"public by basic":        {form(), basic("known", ""), "invalid_grant"},
		"public, empty secret":   {form("client_id", "known", "client_secret", ""), "", "invalid_grant"},
		"no secret":              {form("client_id", "secretive"), "", "invalid_client"},
		"wrong secret":           {form("client_id", "secretive", "client_secret", secret+"x"), "", "invalid_client"},
		"basic, wrong":           {form(), basic("secretive", "x"), "invalid_client"},
		"basic, empty":           {form(), basic("secretive", ""), "invalid_client"},
		"public with a secret":   {form(), basic("known", "x"), "invalid_client"},
		"two clients":            {form("client_id", "known"), basic("secretive", secret), "invalid_request"},
		"two secrets":            {form("client_secret", secret), basic("secretive", secret), "invalid_request"},
		"bearer":                 {form("client_id", "known"), "Bearer x", "invalid_client"},
		"basic without a colon":  {form("client_id", "known"), "Basic eA==", "invalid_client"},
		"basic that is not":      {form("client_id", "known"), "Basic %", "invalid_client"},
		"secret in the query":    {form("client_id", "secretive"), "", "invalid_client"},
		"another one's secret":   {form("client_id", "app", "client_secret", secret), "", "invalid_client"},
		"the upstream's own":     {form("client_id", "app", "client_secret", "secret-of-the-application"), "", "invalid_client"},
		"nobody":                 {form(), "", "invalid_client"},
		"a document not allowed": {form("client_id", "http://claude.example/x.json"), "", "invalid_client"},
	} {
		target := base + "/token"
		if name == "secret in the query" {
			target += "?client_secret=" + url.QueryEscape(secret)
		}
		rec := w.post(target, c.form, "Authorization", c.auth)
		if c.auth == "" {
			rec = w.post(target, c.form)
		}
		if m := object(t, rec); m["error"] != c.want || strings.Contains(rec.Body.String(), "%20client") {
			t.Errorf("%s: %d %v, want %s", name, rec.Code, m, c.want)
		}
		w.clock.add(time.Minute)
	}
}

func TestFormsOnly(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	for _, path := range []string{"/token", "/revoke"} {
		r := httptest.NewRequest(http.MethodPost, base+path, strings.NewReader(`{"grant_type":"authorization_code"}`))
		r.Header.Set("Content-Type", "application/json")
		if rec := w.send(r); rec.Code != 400 || object(t, rec)["error"] != "invalid_request" {
			t.Errorf("%s: JSON: %d", path, rec.Code)
		}
		if rec := w.post(base+path, url.Values{"client_id": {strings.Repeat("x", 20<<10)}}); rec.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: large: %d", path, rec.Code)
		}
		for method, want := range map[string]int{http.MethodGet: 405, http.MethodPut: 405, http.MethodOptions: 204} {
			rec := w.send(httptest.NewRequest(method, base+path+"?client_id=known&token=x", nil))
			if rec.Code != want || rec.Header().Get("Access-Control-Allow-Origin") != "*" || want == 204 && !strings.Contains(rec.Header().Get("Access-Control-Allow-Headers"), "MCP-Protocol-Version") {
				t.Errorf("%s %s: %d %v", method, path, rec.Code, rec.Header())
			}
		}
	}
}

// refreshing is a world with a grant, and a function that refreshes it.
func refreshing(t *testing.T, change func(*oauth.Options)) (*world, func(pairs ...string) *httptest.ResponseRecorder) {
	w := build(t, change)
	tokens := object(t, w.redeem(w.signIn(w.browser())))
	return w, func(pairs ...string) *httptest.ResponseRecorder {
		f := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens["refresh_token"].(string)}, "client_id": {"known"}}
		for i := 0; i+1 < len(pairs); i += 2 {
			f.Set(pairs[i], pairs[i+1])
		}
		return w.post(base+"/token", f)
	}
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	w, refresh := refreshing(t, nil)
	if rec := refresh("scope", "write:admin offline_access everything"); rec.Code != 200 {
		t.Errorf("more scopes: %d %s", rec.Code, rec.Body)
	}
	if rec := refresh("resource", endpoint+"/"); rec.Code != 200 {
		t.Errorf("resource: %d %s", rec.Code, rec.Body)
	}
	for name, c := range map[string][]string{
		"invalid_target": {"resource", "https://evil.example/"}, "invalid_grant": {"refresh_token", "aegis_rt_other"}, "invalid_request": {"refresh_token", ""},
	} {
		if rec := refresh(c...); rec.Code != 400 || object(t, rec)["error"] != name {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
	if rec := refresh("client_id", "app"); rec.Code != 400 || object(t, rec)["error"] != "invalid_grant" || len(w.grants.grants) != 1 {
		t.Errorf("another client: %d %s", rec.Code, rec.Body)
	}
}

// TestRefreshOfPeople: those who may not any more lose their grant; trouble of
// ours or of Gitea ends nobody's.
func TestRefreshOfPeople(t *testing.T) {
	t.Parallel()
	people := func(o *oauth.Options) { o.Config.Allow = config.People{Teams: []string{"acme/dev"}} }
	for name, c := range map[string]struct {
		spoil  func(*world)
		status int
		code   string
	}{
		"out of the team":  {func(w *world) { w.gitea.member = false }, 400, "invalid_grant"},
		"sign-in is over":  {func(w *world) { w.gitea.dead = true }, 400, "invalid_grant"},
		"revoked at Gitea": {func(w *world) { w.gitea.memberErr = &upstream.Error{Kind: upstream.Gone, Public: "gone"} }, 400, "invalid_grant"},
		"Gitea is down": {func(w *world) {
			w.gitea.memberErr = &upstream.Error{Kind: upstream.Unavailable, RetryAfter: 9 * time.Second}
		}, 503, "temporarily_unavailable"},
		"secret is wrong":   {func(w *world) { w.gitea.memberErr = &upstream.Error{Kind: upstream.Config} }, 503, "temporarily_unavailable"},
		"store is down":     {func(w *world) { w.gitea.state = errors.New("disk") }, 503, "temporarily_unavailable"},
		"grants are not to": {func(w *world) { w.grants.fail = errors.New("disk") }, 503, "temporarily_unavailable"},
	} {
		w, refresh := refreshing(t, people)
		c.spoil(w)
		rec := refresh()
		if m := object(t, rec); rec.Code != c.status || m["error"] != c.code || strings.Contains(fmt.Sprint(m), "disk") {
			t.Errorf("%s: %d %v", name, rec.Code, m)
		}
		if lost := len(w.grants.grants) == 0; lost != (c.code == "invalid_grant") {
			t.Errorf("%s: grant lost %v", name, lost)
		}
		if (rec.Header().Get("Retry-After") != "") != (c.status == 503) {
			t.Errorf("%s: %v", name, rec.Header())
		}
		if name == "Gitea is down" && rec.Header().Get("Retry-After") != "9" {
			t.Errorf("%s: %v", name, rec.Header())
		}
		for _, err := range w.grants.refused {
			if errors.Is(err, grant.ErrDenied) != (c.code == "invalid_grant") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	w, refresh := refreshing(t, nil)
	revoke := func(pairs ...string) *httptest.ResponseRecorder {
		f := url.Values{"client_id": {"known"}}
		for i := 0; i+1 < len(pairs); i += 2 {
			f.Set(pairs[i], pairs[i+1])
		}
		return w.post(base+"/revoke", f)
	}
	token := object(t, refresh())["access_token"].(string)
	for name, rec := range map[string]*httptest.ResponseRecorder{"unknown": revoke("token", "aegis_rt_unknown"), "another client": revoke("token", token, "client_id", "app")} {
		if rec.Code != 200 || rec.Body.String() != "{}" || len(w.grants.grants) != 1 {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
	if rec := revoke(); rec.Code != 400 {
		t.Errorf("no token: %d", rec.Code)
	}
	if rec := revoke("token", token, "client_id", "nobody"); rec.Code != 401 || len(w.grants.grants) != 1 {
		t.Errorf("unknown client: %d", rec.Code)
	}
	w.grants.fail = errors.New("disk")
	if rec := revoke("token", token); rec.Code != 503 {
		t.Errorf("store trouble: %d", rec.Code)
	}
	w.grants.fail = nil
	if rec := revoke("token", token, "token_type_hint", "refresh_token"); rec.Code != 200 || len(w.grants.grants) != 0 {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	post := func(body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, base+"/register", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		return w.send(r)
	}
	rec := post(`{"client_name":"Cursor","redirect_uris":["cursor://anysphere.cursor-mcp/oauth/callback","https://www.cursor.com/agents/mcp/oauth/callback","http://localhost:8787/callback"],"token_endpoint_auth_method":"none"}`)
	m := object(t, rec)
	if rec.Code != http.StatusCreated || rec.Header().Get("Access-Control-Allow-Origin") != "*" || rec.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v %v", rec.Code, rec.Header(), m)
	}
	id := m["client_id"].(string)
	b := w.browser()
	code := w.signIn(b, "client_id", id, "redirect_uri", "http://localhost:50000/callback")
	if rec := w.redeem(code, "client_id", id, "redirect_uri", "http://localhost:50000/callback"); rec.Code != 200 {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if rec := post(`{"redirect_uris":["javascript:alert(1)"]}`); rec.Code != 400 || object(t, rec)["error"] != "invalid_redirect_uri" {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if rec := post(`"` + strings.Repeat("x", 20<<10) + `"`); rec.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("large: %d", rec.Code)
	}
	w = build(t, func(o *oauth.Options) { o.Config.Registration = "off" })
	if rec := post(`{"redirect_uris":["https://x.example/"]}`); rec.Code != 403 || object(t, rec)["error"] != "access_denied" {
		t.Errorf("off: %d %s", rec.Code, rec.Body)
	}
}

// TestRates: floods are slowed down, each address by itself; nothing is kept for
// addresses without a bound.
func TestRates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		send func(*world) *httptest.ResponseRecorder
		max  int
	}{
		"register": {func(w *world) *httptest.ResponseRecorder {
			return w.send(httptest.NewRequest(http.MethodPost, base+"/register", strings.NewReader(`{}`)))
		}, 40},
		"token": {func(w *world) *httptest.ResponseRecorder { return w.redeem("x") }, 200},
		"revoke": {func(w *world) *httptest.ResponseRecorder {
			return w.post(base+"/revoke", url.Values{"client_id": {"known"}})
		}, 200},
		"failures":  {func(w *world) *httptest.ResponseRecorder { return w.redeem("x", "client_id", "nobody") }, 30},
		"authorize": {func(w *world) *httptest.ResponseRecorder { return w.get(ask()) }, 100},
		"account":   {func(w *world) *httptest.ResponseRecorder { return w.get(base + "/account") }, 100},
	} {
		w := build(t, nil)
		var last *httptest.ResponseRecorder
		n := 0
		for ; n < c.max; n++ {
			if last = c.send(w); last.Code == http.StatusTooManyRequests {
				break
			}
		}
		if n < 15 || n == c.max || last.Header().Get("Retry-After") == "" {
			t.Errorf("%s: refused after %d: %d %v", name, n, last.Code, last.Header())
			continue
		}
		w.addr = "192.0.2.8"
		if rec := c.send(w); rec.Code == http.StatusTooManyRequests {
			t.Errorf("%s: another address is refused too", name)
		}
		w.addr = "192.0.2.7"
		w.clock.add(time.Hour)
		if rec := c.send(w); rec.Code == http.StatusTooManyRequests {
			t.Errorf("%s: refused an hour later", name)
		}
	}
	// One network of IPv6 is one caller.
	w := build(t, nil)
	refused := false
	for i := range 100 {
		w.addr = fmt.Sprintf("2001:db8::%x", i+1)
		refused = refused || w.get(ask()).Code == http.StatusTooManyRequests
	}
	if !refused {
		t.Error("a /64 network is not one caller")
	}
}

// TestFloodOfAddresses: what is remembered of callers has a bound, and so has the
// store, in which a registration leaves nothing.
func TestFloodOfAddresses(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	for i := range oauth.MaxAddrs + 500 {
		w.addr = fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)
		w.clock.add(6 * time.Second)
		w.send(httptest.NewRequest(http.MethodPost, base+"/register", strings.NewReader(`{"redirect_uris":["https://x.example/"]}`)))
	}
	if n := w.server.RegisterCallers(); n != oauth.MaxAddrs {
		t.Errorf("%d callers are remembered", n)
	}
	for key, err := range w.store.Keys(t.Context(), "") {
		t.Fatalf("something was stored: %s %v", key, err)
	}
}

func TestRegistrationsInAllAreBounded(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	made := 0
	for i := range 400 {
		w.addr = fmt.Sprintf("198.51.%d.%d", 100+i/250, i%250)
		rec := w.send(httptest.NewRequest(http.MethodPost, base+"/register", strings.NewReader(`{"redirect_uris":["https://x.example/"]}`)))
		if rec.Code == http.StatusCreated {
			made++
		}
	}
	if made < 100 || made > 300 {
		t.Errorf("%d registrations from as many addresses", made)
	}
}
