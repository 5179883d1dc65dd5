package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"aegis/proxy/server"
)

// TestRedirects: case 1. A wrong address is shown to the person, who is sent nowhere.
func TestRedirects(t *testing.T) {
	h := newHouse(t, houseOptions{})
	local := app{h: h, id: h.register(`{"client_name":"L","redirect_uris":["http://localhost/callback"],"token_endpoint_auth_method":"none"}`)}
	ip := app{h: h, id: h.register(`{"client_name":"I","redirect_uris":["http://127.0.0.1:33418/"],"token_endpoint_auth_method":"none"}`)}
	p := h.person("alice")
	for _, c := range []struct {
		app      app
		redirect string
		ok       bool
	}{
		{local, "http://localhost:4711/callback", true}, {local, "http://localhost/callback", true}, {ip, "http://127.0.0.1:61000/", true}, {ip, "http://127.0.0.1/", true},
		{local, "http://localhost:4711/other", false}, {local, "https://localhost:4711/callback", false}, {local, "http://127.0.0.1:4711/callback", false},
		{ip, "http://localhost:33418/", false}, {ip, "http://127.0.0.1.evil.example:33418/", false}, {ip, "http://127.0.0.1:33418/?x=1", false},
		{ip, "http://user@127.0.0.1:33418/", false}, {ip, "http://127.0.0.1:33418/#x", false}, {ip, "http://127.1:33418/", false}, {ip, "javascript:alert(1)", false}, {ip, "//evil.example/", false},
	} {
		c.app.redirect = c.redirect
		to := p.open(c.app.address())
		if shown := strings.Contains(p.page, `action="/consent"`); to != nil || shown != c.ok || !c.ok && p.status != http.StatusBadRequest {
			t.Errorf("%s: %d, consent %v, sent to %v", c.redirect, p.status, shown, to)
		}
	}
}

// TestRegistration: case 2.
func TestRegistration(t *testing.T) {
	h := newHouse(t, houseOptions{})
	post := func(body string) reply {
		return h.ask(http.MethodPost, "/register", body, "Content-Type", "application/json")
	}
	r := post(`{"client_name":"Cursor","redirect_uris":["cursor://anysphere.cursor-mcp/oauth/callback","https://www.cursor.com/agents/mcp/oauth/callback","http://localhost:8787/callback","javascript:alert(1)","evil://x/y"]}`)
	var m struct {
		ID       string   `json:"client_id"`
		Issued   int64    `json:"client_id_issued_at"`
		Secret   *string  `json:"client_secret"`
		Expires  *int64   `json:"client_secret_expires_at"`
		Name     string   `json:"client_name"`
		URIs     []string `json:"redirect_uris"`
		Grants   []string `json:"grant_types"`
		Types    []string `json:"response_types"`
		AuthMeth string   `json:"token_endpoint_auth_method"`
	}
	if err := json.Unmarshal([]byte(r.body), &m); err != nil || r.status != http.StatusCreated || strings.Contains(r.body, "null") {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if len(m.URIs) != 3 || m.ID == "" || m.Issued == 0 || m.Name != "Cursor" || len(m.Grants) != 2 || len(m.Types) != 1 || m.AuthMeth == "" || (m.Secret != nil) != (m.Expires != nil) {
		t.Errorf("the answer lacks something: %s", r.body)
	}
	for _, uri := range []string{"javascript:alert(1)", "data:text/html,x", "file:///etc/passwd"} {
		if r := post(`{"redirect_uris":["` + uri + `"]}`); r.status != http.StatusBadRequest || r.field("error") != "invalid_redirect_uri" {
			t.Errorf("%s: %d %s", uri, r.status, r.body)
		}
	}
}

// TestRefreshWithinAndAfterTheGrace: case 4, the client's side. The replay after
// the grace ends the whole family, and the audit log says so.
func TestRefreshWithinAndAfterTheGrace(t *testing.T) {
	h := newHouse(t, houseOptions{})
	a := h.newApp()
	first := a.connect("alice", "scope", "read:repository read:user")
	one, two := a.refresh(first.field("refresh_token")), a.refresh(first.field("refresh_token"), "resource", h.endpoint)
	for _, r := range []reply{one, two} {
		if r.status != 200 || r.field("refresh_token") != one.field("refresh_token") {
			t.Fatalf("within the grace: %d %s", r.status, r.body)
		}
		h.works(r.field("access_token"), "alice")
	}
	if r := a.refresh(one.field("refresh_token"), "scope", "read:repository write:repository read:user admin nonsense"); r.status != 200 || r.field("scope") != "read:repository read:user" {
		t.Errorf("with more scopes than granted: %d %s", r.status, r.body)
	}

	h = newHouse(t, houseOptions{oauth: "refresh_grace: 0s\n"})
	a = h.newApp()
	first = a.connect("alice")
	next := a.refresh(first.field("refresh_token"))
	h.works(next.field("access_token"), "alice")
	if r := a.refresh(first.field("refresh_token")); r.status != http.StatusBadRequest || r.field("error") != "invalid_grant" {
		t.Errorf("a replay: %d %s", r.status, r.body)
	}
	if r := a.refresh(next.field("refresh_token")); r.status != http.StatusBadRequest {
		t.Errorf("the successor lives on: %d %s", r.status, r.body)
	}
	if r, _ := h.whoami(next.field("access_token")); r.status != http.StatusUnauthorized || !strings.Contains(r.header.Get("WWW-Authenticate"), `error="invalid_token"`) {
		t.Errorf("the access token lives on: %d", r.status)
	}
	eventually(t, func() error { // records come behind
		if events := h.auditEvents("refresh_reused"); len(events) == 0 {
			return fmt.Errorf("the audit log says nothing of it; it has %v", h.auditEvents(""))
		}
		return nil
	})
}

// tamper changes the double's answers to token requests of a grant type.
func tamper(grantType string, change func(map[string]any)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/login/oauth/access_token" {
				next.ServeHTTP(w, r)
				return
			}
			body, _ := io.ReadAll(r.Body) // what is lost here, the double misses
			r.Body = io.NopCloser(bytes.NewReader(body))
			rec := httptest.NewRecorder()
			next.ServeHTTP(rec, r)
			var m map[string]any
			_ = json.Unmarshal(rec.Body.Bytes(), &m) // the double answers JSON here
			if form, _ := url.ParseQuery(string(body)); form.Get("grant_type") == grantType {
				change(m)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(rec.Code)
			_ = json.NewEncoder(w).Encode(m)
		})
	}
}

// TestUpstreamRefresh: case 4, Gitea's side. Many calls with a credential that has
// ended make one refresh, and an answer without a new refresh token keeps the old
// one, which a new process uses next.
func TestUpstreamRefresh(t *testing.T) {
	var at clock
	const life = 40 * time.Minute
	first := tamper("authorization_code", func(m map[string]any) { m["expires_in"] = life.Seconds() })
	then := tamper("refresh_token", func(m map[string]any) {
		delete(m, "refresh_token")
		m["expires_in"] = life.Seconds()
	})
	h := newHouse(t, houseOptions{oauth: "access_ttl: 24h\n", tune: func(s *server.Process) { server.SetClock(s, at.now) }, front: func(next http.Handler) http.Handler {
		a, b := first(next), then(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if bytes.Contains(body, []byte("grant_type=refresh_token")) {
				b.ServeHTTP(w, r)
				return
			}
			a.ServeHTTP(w, r)
		})
	}})
	access := h.newApp().connect("alice").field("access_token")
	h.double.ResetOAuthCounts()
	together := func() {
		t.Helper()
		at.add(life)
		parallel(8, func(int) { h.works(access, "alice") })
	}
	together() // the answer has no refresh token
	if n := h.double.OAuthCounts().Refresh; n != 1 {
		t.Errorf("%d refreshes for 8 calls at once", n)
	}
	h.restart()
	together()
	if n := h.double.OAuthCounts().Refresh; n != 2 {
		t.Errorf("%d refreshes after all, with the refresh token that was kept", n)
	}
}

// TestOtherBrowser: case 5.
func TestOtherBrowser(t *testing.T) {
	h := newHouse(t, houseOptions{})
	a := h.newApp()
	victim, thief := h.person("alice"), h.person("bob")
	thief.open(a.address())
	// The thief allows, and sends the address at Gitea to the victim.
	thief.http.CheckRedirect = noRedirect
	q := thief.fields()
	q.Set("access", "all")
	q.Set("say", "allow")
	res, err := thief.http.PostForm(h.url+"/consent", q)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	m := refreshMeta.FindStringSubmatch(string(body))
	if m == nil {
		t.Fatalf("no way to Gitea: %s", body)
	}
	if to := victim.goOn(victim.open(strings.ReplaceAll(m[1], "&amp;", "&"))); to != nil || victim.status != http.StatusForbidden || !strings.Contains(victim.page, "another browser") {
		t.Errorf("finished in the other browser: %d to %v: %s", victim.status, to, bodyOf(victim.page))
	}
	// It is over for the first one, too; and so are states that nobody gave out.
	for _, state := range []string{"nothing", ""} {
		if to := thief.open(h.url + "/oauth/callback?code=x&state=" + state); to != nil || thief.status != http.StatusBadRequest {
			t.Errorf("state %q: %d to %v", state, thief.status, to)
		}
	}
}

// TestDiscoveryIsFromTheConfiguration: case 6.
func TestDiscoveryIsFromTheConfiguration(t *testing.T) {
	for _, advertise := range []bool{true, false} {
		h := newHouse(t, houseOptions{oauth: fmt.Sprintf("advertise_issuer: %v\n", advertise)})
		_, port, _ := strings.Cut(h.addr, ":")
		for _, path := range []string{resourceDoc, resourceDoc + "/mcp", resourceDoc + "/mcp/", serverDoc} {
			plain := h.ask(http.MethodGet, path, "")
			spoofed := h.ask(http.MethodGet, path, "", "Host", "localhost:"+port, "X-Forwarded-Host", "evil.example", "X-Forwarded-Proto", "https", "Forwarded", "host=evil.example;proto=https", "X-Forwarded-Port", "443")
			if plain.status != 200 || plain.body != spoofed.body || !strings.Contains(plain.body, `"`+h.url) {
				t.Errorf("%s: %d %s, with other headers %d %s", path, plain.status, plain.body, spoofed.status, spoofed.body)
			}
		}
		r := h.ask(http.MethodGet, serverDoc, "")
		if got := r.field("authorization_response_iss_parameter_supported") == "true"; got != advertise {
			t.Errorf("iss advertised: %v", got)
		}
		if got := h.person("alice").allow(h.newApp().address()); got.Has("iss") != advertise || advertise && got.Get("iss") != r.field("issuer") {
			t.Errorf("iss sent: %v", got)
		}
		for _, method := range []string{"HEAD", "GET", "POST", "DELETE", "PUT"} {
			r := h.ask(method, "/mcp", "")
			want := `Bearer resource_metadata="` + h.url + resourceDoc + `/mcp", scope="`
			if challenges := r.header.Values("WWW-Authenticate"); r.status != 401 || len(challenges) != 1 || !strings.HasPrefix(challenges[0], want) || strings.Contains(challenges[0], "error=") {
				t.Errorf("%s: %d %q", method, r.status, challenges)
			}
		}
		if r := h.ask(http.MethodGet, resourceDoc, "", "Host", "evil.example"); r.status != http.StatusForbidden {
			t.Errorf("a foreign Host: %d", r.status)
		}
	}
}

// TestStates: case 7.
func TestStates(t *testing.T) {
	h := newHouse(t, houseOptions{})
	a := h.newApp()
	for _, state := range []string{"-", "", "x", strings.Repeat("s", 2000), "ü &=+%/\"<\t"} {
		got := h.person("alice").allow(a.address("state", state))
		if state == "-" && got.Has("state") || state != "-" && got.Get("state") != state {
			t.Errorf("state %.20q comes back as %.20q", state, got["state"])
		}
	}
}

// TestScopesThatGiteaMustNotSee: case 8.
func TestScopesThatGiteaMustNotSee(t *testing.T) {
	h := newHouse(t, houseOptions{})
	a := h.newApp()
	r := a.connect("alice", "scope", "offline_access openid foo read:issue sudo all public-only write:admin")
	if r.field("scope") != "read:issue" {
		t.Errorf("granted %q", r.field("scope"))
	}
	asked := h.double.OAuthCounts().AuthorizeScopes
	if len(asked) == 0 {
		t.Fatal("Gitea was not asked")
	}
	for _, scopes := range asked {
		for s := range strings.FieldsSeq(strings.ReplaceAll(scopes, ",", " ")) {
			if !slices.Contains(strings.Fields(offered), s) {
				t.Errorf("Gitea was asked for %q", s)
			}
		}
	}
	for _, g := range h.double.Grants("alice") {
		if g.Effective == "all" {
			t.Error("Gitea granted everything")
		}
	}
}

// TestOutage: case 9.
func TestOutage(t *testing.T) {
	var down atomic.Bool
	h := newHouse(t, houseOptions{front: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if down.Load() {
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, r)
		})
	}})
	a := h.newApp()
	tokens := a.connect("alice")
	down.Store(true)
	if r, got := h.whoami(tokens.field("access_token")); r.status != 200 || got.Error.Kind != "upstream_unavailable" {
		t.Errorf("a call: %d %s", r.status, r.body)
	}
	// The token endpoint has no need of Gitea.
	fresh := a.refresh(tokens.field("refresh_token"))
	if fresh.status != 200 {
		t.Errorf("refresh: %d %s", fresh.status, fresh.body)
	}
	down.Store(false)
	h.works(fresh.field("access_token"), "alice")

	// Where only some people may sign in, a refresh asks Gitea who they are.
	down.Store(false)
	h = newHouse(t, houseOptions{oauth: "allow: {organizations: [acme]}\n", front: h.o.front})
	a = h.newApp()
	tokens = a.connect("alice")
	h.restart() // forgets who is a member
	down.Store(true)
	if r := a.refresh(tokens.field("refresh_token")); r.status != http.StatusServiceUnavailable || r.field("error") != "temporarily_unavailable" || r.header.Get("Retry-After") == "" {
		t.Errorf("refresh with a membership that nobody can check: %d %s", r.status, r.body)
	}
	down.Store(false)
	h.restart()
	if r := a.refresh(tokens.field("refresh_token")); r.status != 200 {
		t.Errorf("refresh after the outage: %d %s", r.status, r.body)
	}
}

// TestClientNames: case 12.
func TestClientNames(t *testing.T) {
	h := newHouse(t, houseOptions{})
	p := h.person("alice")
	for _, name := range []string{`<script>alert(1)</script>"'&`, "\u202egnol\u2066", strings.Repeat("n", 5000), "", "  ", "{{.Token}}"} {
		body, err := json.Marshal(map[string]any{"client_name": name, "redirect_uris": []string{"https://client.example/cb"}})
		if err != nil {
			t.Fatal(err)
		}
		a := app{h, h.register(string(body)), "https://client.example/cb"}
		p.open(a.address())
		page := bodyOf(p.page)
		if p.status != 200 || strings.Contains(page, "<script") || strings.ContainsAny(page, "\u202e\u2066") || strings.Contains(page, strings.Repeat("n", 61)) || !strings.Contains(page, "not verified") {
			t.Errorf("%.20q: %d %s", name, p.status, page)
		}
	}
}

// TestConsentTwice: case 11, through the whole server.
func TestConsentTwice(t *testing.T) {
	h := newHouse(t, houseOptions{})
	a := h.newApp()
	p := h.person("alice")
	p.open(a.address())
	form := p.fields()
	form.Set("access", "all")
	form.Set("say", "allow")
	at := *p.at
	for _, c := range []struct {
		name    string
		drop    string
		headers []string
	}{
		{"without the token", "token", nil},
		{"from another origin", "", []string{"Origin", "https://evil.example"}},
		{"from another site", "", []string{"Sec-Fetch-Site", "cross-site"}},
		{"in a frame", "", []string{"Sec-Fetch-Dest", "iframe"}},
	} {
		f := cloneForm(form)
		f.Del(c.drop)
		p.at = &at
		if to := p.send("/consent", f, c.headers...); to != nil || p.status != http.StatusForbidden {
			t.Errorf("%s: %d to %v", c.name, p.status, to)
		}
	}
	p.at = &at
	first := p.goOn(p.send("/consent", form))
	if first == nil || first.Query().Get("code") == "" {
		t.Fatalf("the form itself: %d %s", p.status, bodyOf(p.page))
	}
	p.at = &at
	if to := p.send("/consent", form); to != nil || p.status != http.StatusConflict {
		t.Errorf("twice: %d to %v", p.status, to)
	}
}
