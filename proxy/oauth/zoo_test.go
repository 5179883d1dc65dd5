package oauth_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"aegis/config"
)

// species is how one client behaves, as far as it differs from others.
type species struct {
	first      string // method of its first request to the endpoint
	register   string // what it registers; "": it has an id already
	id, secret string
	redirect   string // that it uses
	state      string // "-": it sends none
	scope      string // "-": it sends none
	resource   string // below the server's address; "-": it sends none
	extra      string // further parameters of /authorize
	basic      string // "raw", "encoded" or "": how it shows its secret
	noRedirect bool   // redirect_uri is not in the token request
	refresh    string // scope of its refresh
	want       string // scope that it gets; "": the default
}

// TestZoo lets each client through, with the shapes of its requests.
func TestZoo(t *testing.T) {
	t.Parallel()
	everything := strings.Join(append(config.Default().Auth.OAuth.Scopes, "offline_access"), " ")
	for name, s := range map[string]species{
		"Claude on the web": {first: "POST", register: `{"client_name":"Claude","redirect_uris":["https://claude.ai/api/mcp/auth_callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none","scope":"read:issue"}`,
			redirect: "https://claude.ai/api/mcp/auth_callback", state: "abc", scope: "read:issue offline_access", resource: "/mcp", want: "read:issue"},
		"Claude Code": {first: "POST", register: `{"client_name":"Claude Code (aegis)","redirect_uris":["http://localhost/callback"],"token_endpoint_auth_method":"none"}`,
			redirect: "http://localhost:54545/callback", state: "abc", scope: "-", resource: "/mcp"},
		"ChatGPT": {first: "POST", register: `{"client_name":"ChatGPT","redirect_uris":["https://chatgpt.com/connector/oauth/AbC123"],"token_endpoint_auth_method":"client_secret_post"}`,
			redirect: "https://chatgpt.com/connector/oauth/AbC123", state: "abc", scope: "-", resource: "/mcp"},
		"Codex CLI": {first: "GET", register: `{"client_name":"Codex","redirect_uris":["http://127.0.0.1:40001/callback/abcdefghijkl"],"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"],"response_types":["code"],"scope":""}`,
			redirect: "http://127.0.0.1:40001/callback/abcdefghijkl", state: "abc", scope: everything, resource: "/mcp", refresh: everything},
		"VS Code": {first: "POST", register: `{"client_name":"Visual Studio Code","client_uri":"https://code.visualstudio.com","grant_types":["authorization_code","refresh_token","urn:ietf:params:oauth:grant-type:device_code"],"response_types":["code"],"redirect_uris":["https://insiders.vscode.dev/redirect","https://vscode.dev/redirect","http://127.0.0.1/","http://127.0.0.1:33418/"],"token_endpoint_auth_method":"none","application_type":"native"}`,
			redirect: "http://127.0.0.1:61234/", state: "abc", scope: "read:issue", resource: "/mcp", want: "read:issue"},
		"Cursor": {first: "POST", register: `{"client_name":"Cursor","redirect_uris":["cursor://anysphere.cursor-mcp/oauth/callback","https://www.cursor.com/agents/mcp/oauth/callback","http://localhost:8787/callback"],"token_endpoint_auth_method":"none"}`,
			redirect: "cursor://anysphere.cursor-mcp/oauth/callback", state: "-", scope: "-", resource: "/mcp"},
		"Gemini CLI": {first: "HEAD", register: `{"client_name":"Gemini CLI MCP Client","redirect_uris":["http://localhost:7777/oauth/callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none","scope":""}`,
			redirect: "http://localhost:7777/oauth/callback", state: "abc", scope: everything, resource: "/mcp", refresh: everything},
		"mcp-remote": {first: "POST", register: `{"client_name":"MCP CLI Proxy","redirect_uris":["http://localhost:3334/oauth/callback"],"token_endpoint_auth_method":"none","software_id":"2e6dc280-f3c3-4e01-99a7-8181dbd1d23d"}`,
			redirect: "http://localhost:3334/oauth/callback", state: "abc", scope: "openid email profile", resource: "/mcp"},
		"TypeScript SDK": {first: "POST", id: "confidential", secret: "a secret of+more%20words", redirect: "https://app.example/cb", state: "abc", scope: "read:issue offline_access", resource: "/mcp/", extra: "&prompt=consent", basic: "raw", want: "read:issue"},
		"Python SDK":     {first: "POST", id: "confidential", secret: "a secret of+more%20words", redirect: "https://app.example/cb", state: "abc", scope: "read:issue", resource: "/mcp", basic: "encoded", want: "read:issue"},
		"conformance":    {first: "POST", id: "plain", redirect: "http://127.0.0.1:5555/callback", state: "abc", scope: "-", resource: "-"},
		"OAuth 2.1":      {first: "DELETE", id: "plain", redirect: "http://127.0.0.1:5555/callback", state: "x", scope: "-", resource: "-", noRedirect: true},
	} {
		t.Run(name, func(t *testing.T) { s.live(t) })
	}
}

func (s species) live(t *testing.T) {
	r := start(t, func(c *config.OAuth) {
		c.Clients = []config.OAuthClient{
			{ID: "plain", Name: "Plain", RedirectURIs: []string{"http://127.0.0.1/callback"}},
			{ID: "confidential", Name: "Confidential", Secret: config.NewSecret("a secret of+more%20words"), RedirectURIs: []string{"https://app.example/cb"}},
		}
	})
	q, err := http.NewRequest(s.first, r.url+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := direct.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 401 || !strings.Contains(resp.Header.Get("WWW-Authenticate"), `resource_metadata="`) {
		t.Fatalf("first request: %d %v", resp.StatusCode, resp.Header)
	}
	if s.register != "" {
		status, _, m := r.send("/register", s.register, "Content-Type", "application/json")
		if status != http.StatusCreated {
			t.Fatalf("register: %d %v", status, m)
		}
		s.id = m["client_id"].(string)
		s.secret, _ = m["client_secret"].(string)
	}
	code := s.authorize(t, r)
	status, _, m := s.token(r, url.Values{"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {s.redirect}})
	want := s.want
	if want == "" {
		want = strings.Join(r.server.Scopes(), " ")
	}
	if status != 200 || m["scope"] != want {
		t.Fatalf("token: %d %v, want %s", status, m, want)
	}
	refresh := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {m["refresh_token"].(string)}}
	if s.refresh != "" {
		refresh.Set("scope", s.refresh)
	}
	// Two processes of a client race with one token: both go on.
	for range 2 {
		if status, _, m = s.token(r, refresh); status != 200 || m["scope"] != want {
			t.Fatalf("refresh: %d %v", status, m)
		}
	}
	if status, _, m := r.call(m["access_token"].(string), "read_issue"); status != 200 || m["login"] != "alice" {
		t.Errorf("call: %d %v", status, m)
	}
}

func (s species) authorize(t *testing.T, r *real) string {
	v := url.Values{"client_id": {s.id}, "redirect_uri": {s.redirect}, "response_type": {"code"}, "code_challenge": {challenge()}, "code_challenge_method": {"S256"}}
	for name, value := range map[string]string{"state": s.state, "scope": s.scope} {
		if value != "-" {
			v.Set(name, value)
		}
	}
	if s.resource != "-" {
		v.Set("resource", r.url+s.resource)
	}
	p := r.person()
	p.open(r.url + "/authorize?" + v.Encode() + s.extra)
	p.press("/consent", "access", "all", "say", "allow")
	p.login("alice")
	to := p.press("/login/oauth/grant", "granted", "true")
	if to == nil {
		t.Fatalf("no way back: %s", p.page)
	}
	got := to.Query()
	if before, _, _ := strings.Cut(to.String(), "?"); before != s.redirect || got.Has("state") != (s.state != "-") || got.Get("code") == "" {
		t.Fatalf("sent to %s", to)
	}
	return got.Get("code")
}

// token sends a token request in the client's way.
func (s species) token(r *real, v url.Values) (int, http.Header, map[string]any) {
	if s.resource != "-" {
		v.Set("resource", r.url+s.resource)
	}
	if s.noRedirect {
		v.Del("redirect_uri")
	}
	switch s.basic {
	case "raw":
		return r.send("/token", v.Encode(), "Authorization", basic(s.id, s.secret))
	case "encoded":
		return r.send("/token", v.Encode(), "Authorization", basic(url.QueryEscape(s.id), url.QueryEscape(s.secret)))
	}
	v.Set("client_id", s.id)
	if s.secret != "" {
		v.Set("client_secret", s.secret)
	}
	return r.send("/token", v.Encode())
}
