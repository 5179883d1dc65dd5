package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"aegis/proxy/server"
)

// TestForeignTokens: what is no token of Aegis' own is refused, and Gitea never
// hears of it.
func TestForeignTokens(t *testing.T) {
	h := newHouse(t, houseOptions{})
	good := h.newApp().connect("alice").field("access_token")
	h.works(good, "alice")
	jwt := h.giteaToken()
	h.double.AddGrant("bob", h.app, "write:repository")
	bobs, _, err := h.double.IssueOAuthTokens("bob", h.app)
	if err != nil {
		t.Fatal(err)
	}
	last := "x"
	if strings.HasSuffix(good, last) {
		last = "y"
	}
	settled(t, h.live.Server())
	seen := len(h.double.Requests())
	for name, token := range map[string]string{
		"Gitea's own token of this person": jwt, "Gitea's token of another": bobs, "a personal access token": h.double.Token("alice"),
		"nothing like a token": "x", "a changed token": good[:len(good)-1] + last, "a cut token": good[:len(good)-1], "a token and more": good + "x", "another case": strings.ToUpper(good),
	} {
		r, _ := h.whoami(token)
		if r.status != http.StatusUnauthorized || !strings.Contains(r.header.Get("WWW-Authenticate"), `error="invalid_token"`) {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if n := len(h.double.Requests()); n != seen {
		t.Errorf("Gitea got %d requests for foreign tokens", n-seen)
	}
	for _, headers := range [][]string{{"Authorization", "Basic eDp5"}, {"Authorization", "Bearer"}, {"Authorization", "Bearer " + good + " " + good}, {"Authorization", "token " + good}} {
		if r := h.ask(http.MethodPost, "/mcp", "{}", headers...); r.status != http.StatusUnauthorized {
			t.Errorf("%q: %d", headers[1][:6], r.status)
		}
	}
}

// TestAudienceOfTeams: a token is for one endpoint.
func TestAudienceOfTeams(t *testing.T) {
	h := newHouse(t, houseOptions{top: "members: {everyone: true}\nteams:\n  web: {members: {logins: [alice]}}\n  ops: {members: {logins: [bob]}}\n"})
	a := h.newApp()
	web := app{h, a.id, a.redirect}
	code := h.person("alice").allow(web.address("resource", h.endpoint+"/web")).Get("code")
	r := h.ask(http.MethodPost, "/token", url.Values{"grant_type": {"authorization_code"}, "code": {code}, "client_id": {a.id}, "redirect_uri": {a.redirect}, "code_verifier": {pkceVerifier}, "resource": {h.endpoint + "/web"}}.Encode())
	if r.status != 200 {
		t.Fatalf("token: %d %s", r.status, r.body)
	}
	knock := func(path, token string) reply {
		return h.ask(http.MethodPost, path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Authorization", "Bearer "+token, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
	}
	forDefault := a.connect("alice", "state", "default").field("access_token")
	for _, c := range []struct {
		path, token string
		status      int
	}{
		{"/mcp/web", r.field("access_token"), 200}, {"/mcp", r.field("access_token"), 401}, {"/mcp/ops", r.field("access_token"), 401},
		{"/mcp", forDefault, 200}, {"/mcp/web", forDefault, 401},
	} {
		got := knock(c.path, c.token)
		if got.status != c.status {
			t.Errorf("%s: %d, want %d: %s", c.path, got.status, c.status, got.body)
		}
		if c.status == 401 && !strings.Contains(got.header.Get("WWW-Authenticate"), resourceDoc+c.path+`"`) {
			t.Errorf("%s: %s", c.path, got.header.Get("WWW-Authenticate"))
		}
	}
	for path, want := range map[string]string{resourceDoc + "/mcp/web": h.endpoint + "/web", resourceDoc + "/mcp/ops": h.endpoint + "/ops"} {
		if got := h.ask(http.MethodGet, path, "").field("resource"); got != want {
			t.Errorf("%s is about %s", path, got)
		}
	}
}

// TestMembersAtSignIn: whoever is not among the members of an endpoint learns it from a
// page, and the client gets no code; who is not refused elsewhere can go there.
func TestMembersAtSignIn(t *testing.T) {
	h := newHouse(t, houseOptions{top: "members: {everyone: true}\nteams:\n  web: {members: {logins: [alice]}}\n  acme: {members: {organizations: [acme]}}\n  far: {members: {organizations: [far-away]}}\n"})
	a := h.newApp()
	for _, c := range []struct {
		who, team string
		in        bool
	}{{"alice", "/web", true}, {"bob", "/web", false}, {"bob", "", true}, {"alice", "/acme", true}, {"bob", "/far", false}} {
		p := h.person(c.who)
		to := p.goOn(p.open(a.address("resource", h.endpoint+c.team+"/")))
		if c.in {
			if to == nil || to.Query().Get("code") == "" {
				t.Errorf("%s at %q: %v, %d %s", c.who, c.team, to, p.status, p.page)
			}
			continue
		}
		if to != nil || p.status != http.StatusForbidden {
			t.Errorf("%s at %q: sent to %v, %d", c.who, c.team, to, p.status)
		}
		for _, want := range []string{"You are not among the members of this endpoint", "signed in to Gitea as " + c.who, h.endpoint + c.team, "error=access_denied"} {
			if !strings.Contains(p.page, want) {
				t.Errorf("%s at %q: the page does not say %q: %s", c.who, c.team, want, p.page)
			}
		}
	}
	eventually(t, func() error { // records come behind
		refused := slices.DeleteFunc(h.auditEvents("login"), func(reason string) bool { return !strings.Contains(reason, "not among the members of the endpoint") })
		if len(refused) != 2 {
			return fmt.Errorf("the audit log tells of %d", len(refused))
		}
		return nil
	})
}

// TestCodesWorkOnce, however many try at the same moment; and a code that comes
// again ends what came of it.
func TestCodesWorkOnce(t *testing.T) {
	h := newHouse(t, houseOptions{})
	a := h.newApp()
	code := h.person("alice").allow(a.address()).Get("code")
	replies := make([]reply, 32)
	var wg sync.WaitGroup
	for i := range replies {
		wg.Go(func() { replies[i] = a.redeem(code) })
	}
	wg.Wait()
	var won []reply
	for _, r := range replies {
		switch {
		case r.status == http.StatusOK:
			won = append(won, r)
		case r.status != http.StatusBadRequest || r.field("error") != "invalid_grant":
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	if len(won) != 1 {
		t.Fatalf("%d of %d got tokens", len(won), len(replies))
	}
	if r, _ := h.whoami(won[0].field("access_token")); r.status != http.StatusUnauthorized {
		t.Errorf("the tokens of a code that was tried again still work: %d", r.status)
	}
}

// TestParallelRefreshes: many processes of one client get one successor.
func TestParallelRefreshes(t *testing.T) {
	h := newHouse(t, houseOptions{})
	a := h.newApp()
	token := a.connect("alice").field("refresh_token")
	for generation := range 3 {
		replies := make([]reply, 24)
		var wg sync.WaitGroup
		for i := range replies {
			wg.Go(func() { replies[i] = a.refresh(token) })
		}
		wg.Wait()
		token = replies[0].field("refresh_token")
		for _, r := range replies {
			if r.status != http.StatusOK || r.field("refresh_token") != token {
				t.Fatalf("generation %d: %d %s", generation, r.status, r.body)
			}
		}
	}
	h.works(a.refresh(token).field("access_token"), "alice")
}

// TestHeadersOfPages: whatever stands before them, every page leaves with its own
// headers, once each.
func TestHeadersOfPages(t *testing.T) {
	h := newHouse(t, houseOptions{top: "server: {allowed_origins: [\"https://friend.example\"]}\n"})
	a := h.newApp()
	for _, path := range []string{strings.TrimPrefix(a.address(), h.url), "/authorize", "/consent", "/oauth/callback?state=x&code=y", "/account"} {
		r := h.ask(http.MethodGet, path, "", "Origin", "https://friend.example")
		if !strings.Contains(r.header.Get("Content-Type"), "text/html") {
			t.Errorf("%.20s: %d %s", path, r.status, r.header.Get("Content-Type"))
		}
		for name, want := range map[string]string{"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"} {
			if got := r.header.Values(name); !slices.Equal(got, []string{want}) {
				t.Errorf("%.20s: %s is %q", path, name, got)
			}
		}
		policy := r.header.Values("Content-Security-Policy")
		if len(policy) != 1 || !strings.Contains(policy[0], "frame-ancestors 'none'") || !strings.Contains(policy[0], "default-src 'none'") || !strings.Contains(policy[0], "form-action 'self'") || strings.Contains(policy[0], "unsafe") {
			t.Errorf("%.20s: the policy is %q", path, policy)
		}
		if got := r.header.Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("%.20s: open to %s", path, got)
		}
	}
	for _, path := range []string{"/token", "/register", "/revoke"} {
		r := h.ask(http.MethodPost, path, "x=y", "Origin", "https://anywhere.example")
		if r.header.Get("Access-Control-Allow-Origin") != "*" || r.header.Get("Access-Control-Allow-Credentials") != "" || r.header.Get("Cache-Control") != "no-store" || r.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v", path, r.status, r.header)
		}
	}
}

// TestBigForms are refused before they take memory.
func TestBigForms(t *testing.T) {
	h := newHouse(t, houseOptions{})
	for _, path := range []string{"/token", "/register", "/revoke", "/consent", "/account"} {
		r := h.ask(http.MethodPost, path, "x="+strings.Repeat("y", 1<<20), "Sec-Fetch-Site", "same-origin")
		if r.status < 400 || r.status >= 500 || len(r.body) > 20<<10 {
			t.Errorf("%s: %d, %d bytes", path, r.status, len(r.body))
		}
	}
	if r := h.ask(http.MethodGet, "/authorize?state="+strings.Repeat("s", 30<<10), ""); r.status < 400 || r.status >= 500 {
		t.Errorf("a long address: %d", r.status)
	}
}

// TestEveryScope: a client with reading alone reads, and is told what it lacks for
// writing, together with what it has.
func TestEveryScope(t *testing.T) {
	h := newHouse(t, houseOptions{})
	a := h.newApp()
	token := a.connect("alice", "scope", "read:repository read:issue read:user read:notification").field("access_token")
	for tool, c := range map[string]struct{ args, lacks string }{
		"gitea_repository_get":    {`{"owner":"acme","repo":"garden"}`, ""},
		"gitea_issue_list":        {`{"owner":"acme","repo":"garden"}`, ""},
		"gitea_repository_delete": {`{"owner":"acme","repo":"garden"}`, "write:repository"},
		"gitea_issue_create":      {`{"owner":"acme","repo":"garden","title":"x"}`, "write:issue"},
		"gitea_api_request":       {`{"method":"POST","path":"/repos/acme/garden/issues","body":{"title":"x"}}`, "write:issue"},
	} {
		r, got := h.tool(token, tool, c.args)
		switch {
		case c.lacks == "" && (r.status != 200 || got.Error.Kind != ""):
			t.Errorf("%s: %d %s", tool, r.status, r.body)
		case c.lacks != "":
			challenge := r.header.Get("WWW-Authenticate")
			if r.status != 403 || !strings.Contains(challenge, `error="insufficient_scope"`) || !strings.Contains(challenge, c.lacks) || !strings.Contains(challenge, "read:user") {
				t.Errorf("%s: %d %s %s", tool, r.status, challenge, fmt.Sprintf("%.200s", r.body))
			}
		}
	}
}

// TestStaleClients: an id that is not known any more makes clients register anew
// where they can, and tells people what to do where they cannot.
func TestStaleClients(t *testing.T) {
	h := newHouse(t, houseOptions{})
	a := h.newApp()
	tokens := a.connect("alice")
	h.stop()
	for _, name := range []string{"store.keys", "aegis.db"} { // as a new machine has neither
		if err := os.Remove(filepath.Join(h.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	h.serve(h.listen(h.addr))
	if r := a.refresh(tokens.field("refresh_token")); r.status != http.StatusUnauthorized || r.field("error") != "invalid_client" || !strings.HasPrefix(r.header.Get("WWW-Authenticate"), "Basic") {
		t.Errorf("refresh: %d %s", r.status, r.body)
	}
	p := h.person("alice")
	if to := p.open(a.address()); to != nil || p.status != http.StatusBadRequest || !strings.Contains(p.page, "remove this server and add it again") {
		t.Errorf("authorize: %d to %v: %s", p.status, to, bodyOf(p.page))
	}
	if r, _ := h.whoami(tokens.field("access_token")); r.status != http.StatusUnauthorized {
		t.Errorf("a call: %d", r.status)
	}
	h.works(h.newApp().connect("alice").field("access_token"), "alice")
}

// TestLostKeys: a store whose keys are gone is not served, and not overwritten.
func TestLostKeys(t *testing.T) {
	h := newHouse(t, houseOptions{})
	h.newApp().connect("alice")
	h.stop()
	keys := filepath.Join(h.dir, "store.keys")
	if err := os.Rename(keys, keys+".away"); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(h.dir, "aegis.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = server.Build(h.load(), zerolog.Nop())
	if err == nil || !strings.Contains(err.Error(), "key") {
		t.Fatalf("served without the keys: %v", err)
	}
	t.Log(err)
	if after, err := os.ReadFile(filepath.Join(h.dir, "aegis.db")); err != nil || len(after) != len(before) {
		t.Errorf("the store has changed: %d bytes, then %d", len(before), len(after))
	}
	if err := os.Rename(keys+".away", keys); err != nil {
		t.Fatal(err)
	}
	h.serve(h.listen(h.addr))
	if list, err := server.Operator(h.load()).List(t.Context()); len(list) != 1 || err != nil {
		t.Errorf("with the keys back: %d grants, %v", len(list), err)
	}
}
