package server_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// step is one of the requests that a client makes before it signs in, and what it
// needs to see.
type step struct {
	method, path string
	status       int
	says         string // in the body, or in the challenge of a 401
}

// species is how one client behaves, as far as it differs from others.
type species struct {
	discovery []step
	register  string // what it registers; "": id is its own
	id        string
	secret    string // of a client that is known beforehand
	redirect  string
	state     string // "-": it sends none
	scope     string // "-": it sends none
	resource  string // below the public address; "-": it sends none
	extra     string // further parameters of /authorize
	basic     func(id, secret string) string
	refreshed string // scope of its refresh; "-": it sends none
	resource2 string // resource of its token requests; "-": none
	parallel  int    // processes that refresh with the same token
	noRefresh bool   // it never refreshes
	want      string // scope that it gets; "": all that is configured
}

const (
	resourceDoc = "/.well-known/oauth-protected-resource"
	serverDoc   = "/.well-known/oauth-authorization-server"
	openidDoc   = "/.well-known/openid-configuration"
)

// The ways to find out where to sign in.
var (
	// Most read the challenge, then the two documents.
	byChallenge = []step{{"POST", "/mcp", 401, "resource_metadata="}, {"GET", resourceDoc + "/mcp", 200, `"resource":`}, {"GET", serverDoc, 200, `"issuer":`}}
	// The TypeScript SDK and what is built on it also ask below the path and for OpenID.
	byTrying = append(slices.Clone(byChallenge), step{"GET", serverDoc + "/mcp", 404, "not_found"}, step{"GET", openidDoc + "/mcp", 404, "not_found"}, step{"GET", "/mcp" + openidDoc, 404, "not_found"}, step{"GET", openidDoc, 404, "not_found"})
)

func basicPlain(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
}

func basicEscaped(id, secret string) string {
	return basicPlain(url.QueryEscape(id), url.QueryEscape(secret))
}

const (
	offered      = "write:repository write:issue write:notification write:package write:organization write:user write:misc"
	clientSecret = "a-secret+of%20more/words"
)

// zoo are the clients.
var zoo = map[string]species{
	"Claude web, Desktop, mobile": {discovery: byChallenge, redirect: "https://claude.ai/api/mcp/auth_callback", state: "abc", scope: "read:issue read:user offline_access", resource: "/mcp", noRefresh: true, want: "read:issue read:user",
		register: `{"client_name":"Claude","redirect_uris":["https://claude.ai/api/mcp/auth_callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none","scope":"read:issue"}`},
	"Claude web, confidential": {discovery: byChallenge, redirect: "https://claude.com/api/mcp/auth_callback", state: "abc", scope: "-", resource: "/mcp",
		register: `{"client_name":"Claude","redirect_uris":["https://claude.com/api/mcp/auth_callback"],"token_endpoint_auth_method":"client_secret_post"}`},
	"Claude Code, registered": {discovery: byTrying, redirect: "http://localhost:54545/callback", state: "abc", scope: "-", resource: "/mcp", parallel: 6,
		register: `{"client_name":"Claude Code (aegis)","redirect_uris":["http://localhost/callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none"}`},
	"Claude Code, document": {discovery: byTrying, id: "https://claude.ai/oauth/claude-code-client-metadata", redirect: "http://127.0.0.1:61001/callback", state: "abc", scope: "-", resource: "/mcp", parallel: 6},
	"ChatGPT": {discovery: byChallenge, redirect: "https://chatgpt.com/connector/oauth/AbC123", state: "abc", scope: "-", resource: "/mcp",
		register: `{"client_name":"ChatGPT","redirect_uris":["https://chatgpt.com/connector/oauth/AbC123"],"grant_types":["authorization_code","refresh_token"],"token_endpoint_auth_method":"client_secret_post"}`},
	"ChatGPT, before 2026": {discovery: byChallenge, redirect: "https://chatgpt.com/connector_platform_oauth_redirect", state: "abc", scope: "-", resource: "/mcp",
		register: `{"client_name":"ChatGPT","redirect_uris":["https://chatgpt.com/connector_platform_oauth_redirect"],"token_endpoint_auth_method":"client_secret_basic"}`, basic: basicPlain},
	"Codex CLI": {discovery: append([]step{{"GET", "/mcp", 401, "resource_metadata="}}, byChallenge...), redirect: "http://127.0.0.1:40001/callback/abcdefghijkl", state: "abc", scope: offered + " offline_access", resource: "/mcp", refreshed: offered + " offline_access",
		register: `{"client_name":"Codex","redirect_uris":["http://127.0.0.1:40001/callback/abcdefghijkl"],"grant_types":["authorization_code","refresh_token"],"token_endpoint_auth_method":"none","response_types":["code"],"scope":""}`},
	"VS Code": {discovery: byTrying, redirect: "http://127.0.0.1:61234/", state: "abc", scope: "read:issue", resource: "/mcp", want: "read:issue",
		register: `{"client_name":"Visual Studio Code","client_uri":"https://code.visualstudio.com","grant_types":["authorization_code","refresh_token","urn:ietf:params:oauth:grant-type:device_code"],"response_types":["code"],"redirect_uris":["https://insiders.vscode.dev/redirect","https://vscode.dev/redirect","http://127.0.0.1/","http://127.0.0.1:33418/"],"token_endpoint_auth_method":"none","application_type":"native"}`},
	"VS Code, document": {discovery: byTrying, id: "https://vscode.dev/oauth/client-metadata.json", redirect: "http://127.0.0.1:33418/", state: "abc", scope: "-", resource: "/mcp"},
	"Copilot CLI":       {discovery: byTrying, id: "https://github.com/copilot/cli/client-metadata.json", redirect: "http://127.0.0.1:51515/", state: "abc", scope: "-", resource: "/mcp"},
	"Cursor": {discovery: byTrying, redirect: "cursor://anysphere.cursor-mcp/oauth/callback", state: "-", scope: "-", resource: "/mcp",
		register: `{"client_name":"Cursor","redirect_uris":["cursor://anysphere.cursor-mcp/oauth/callback","https://www.cursor.com/agents/mcp/oauth/callback","http://localhost:8787/callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none"}`},
	"Gemini CLI": {discovery: []step{{"HEAD", "/mcp", 401, `resource_metadata="`}, {"GET", resourceDoc + "/mcp", 200, `"resource":`}, {"GET", serverDoc, 200, `"scopes_supported":`}}, redirect: "http://localhost:7777/oauth/callback", state: "abc", scope: offered + " offline_access", resource: "/mcp", refreshed: offered + " offline_access",
		register: `{"client_name":"Gemini CLI MCP Client","redirect_uris":["http://localhost:7777/oauth/callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none","scope":""}`},
	"mcp-remote": {discovery: []step{{"GET", resourceDoc, 200, `"resource":`}, {"GET", serverDoc, 200, `"issuer":`}}, redirect: "http://localhost:3334/oauth/callback", state: "abc", scope: "openid email profile", resource: "/mcp",
		register: `{"client_name":"MCP CLI Proxy","redirect_uris":["http://localhost:3334/oauth/callback"],"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"],"response_types":["code"],"software_id":"2e6dc280-f3c3-4e01-99a7-8181dbd1d23d","software_version":"0.1.0"}`},
	"Inspector": {discovery: byTrying, redirect: "http://localhost:6274/oauth/callback", state: "abc", scope: "-", resource: "/mcp/",
		register: `{"client_name":"MCP Inspector","client_uri":"https://github.com/modelcontextprotocol/inspector","redirect_uris":["http://localhost:6274/oauth/callback"],"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"],"response_types":["code"]}`},
	"opencode": {discovery: byTrying, redirect: "http://127.0.0.1:19876/mcp/oauth/callback", state: "abc", scope: "-", resource: "/mcp",
		register: `{"client_name":"OpenCode","redirect_uris":["http://127.0.0.1:19876/mcp/oauth/callback"],"client_uri":"https://opencode.ai","grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none"}`},
	"TypeScript SDK": {discovery: byTrying, id: "confidential", secret: clientSecret, redirect: "https://app.example/cb", state: "abc", scope: "read:issue offline_access", resource: "/mcp", extra: "&prompt=consent", basic: basicPlain, want: "read:issue"},
	"Python SDK":     {discovery: byTrying, id: "confidential", secret: clientSecret, redirect: "https://app.example/cb", state: "abc", scope: "read:issue", resource: "/mcp", basic: basicEscaped, want: "read:issue"},
	"old defaults":   {discovery: []step{{"DELETE", "/mcp", 401, "Bearer"}}, id: "plain", redirect: "http://127.0.0.1:5555/callback", state: "x", scope: "-", resource: "-", resource2: "-"},
}

// TestZoo lets each client through the whole server, with the shapes of its requests.
func TestZoo(t *testing.T) {
	n := newInternet(t, map[string]string{
		"claude.ai/oauth/claude-code-client-metadata": `{"client_id":"https://claude.ai/oauth/claude-code-client-metadata","client_name":"Claude Code","client_uri":"https://claude.ai","redirect_uris":["http://localhost/callback","http://127.0.0.1/callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none"}`,
		"vscode.dev/oauth/client-metadata.json":       `{"client_id":"https://vscode.dev/oauth/client-metadata.json","client_name":"Visual Studio Code","grant_types":["authorization_code","refresh_token"],"response_types":["code"],"redirect_uris":["http://127.0.0.1:33418/","https://vscode.dev/redirect"],"token_endpoint_auth_method":"none","application_type":"native"}`,
		"github.com/copilot/cli/client-metadata.json": `{"client_id":"https://github.com/copilot/cli/client-metadata.json","client_name":"GitHub Copilot CLI","redirect_uris":["http://127.0.0.1:33418/"],"token_endpoint_auth_method":"none"}`,
	})
	h := newHouse(t, houseOptions{fetch: n.fetch, top: "server: {trusted_proxies: [127.0.0.1/32]}\n", oauth: "clients:\n  - {id: plain, name: Plain, redirect_uris: [\"http://127.0.0.1/callback\"]}\n  - {id: confidential, name: Confidential, secret: \"" + clientSecret + "\", redirect_uris: [\"https://app.example/cb\"]}\n"})
	count := 0
	for name, s := range zoo {
		count++
		t.Run(name, func(t *testing.T) {
			own := *h
			own.t, own.from = t, fmt.Sprintf("198.51.100.%d", count) // each has a pace of its own
			s.live(t, &own)
		})
	}
}

func (s species) live(t *testing.T, h *house) {
	for _, d := range s.discovery {
		body, headers := "", []string{"Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2025-11-25"}
		if d.method == http.MethodPost {
			body, headers = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, append(headers, "Content-Type", "application/json")
		}
		r := h.ask(d.method, d.path, body, headers...)
		if seen := r.body + r.header.Get("WWW-Authenticate"); r.status != d.status || !strings.Contains(seen, d.says) || strings.Contains(r.header.Get("Content-Type"), "html") {
			t.Fatalf("%s %s: %d %s", d.method, d.path, r.status, seen)
		}
	}
	if s.register != "" {
		r := h.ask(http.MethodPost, "/register", s.register, "Content-Type", "application/json")
		if r.status != http.StatusCreated || strings.Contains(r.body, "null") {
			t.Fatalf("register: %d %s", r.status, r.body)
		}
		s.id, s.secret = r.field("client_id"), r.field("client_secret")
	}
	got := h.person("alice").goAll(s.authorize(h))
	r := s.token(h, url.Values{"grant_type": {"authorization_code"}, "code": {got.Get("code")}, "code_verifier": {pkceVerifier}, "redirect_uri": {s.redirect}})
	want := s.want
	if want == "" {
		want = offered
	}
	if r.status != 200 || r.field("scope") != want || r.field("token_type") != "Bearer" || strings.Contains(r.body, "null") {
		t.Fatalf("token: %d %s, want %s", r.status, r.body, want)
	}
	access := r.field("access_token")
	if !s.noRefresh {
		access = s.refreshAll(t, h, r.field("refresh_token"), want)
	}
	if r, a := h.tool(access, "gitea_issue_list", `{"owner":"acme","repo":"garden"}`); r.status != 200 || a.Identity.Login != "alice" && want == offered || a.Error.Kind != "" {
		t.Errorf("call: %d %s", r.status, r.body)
	}
}

// refreshAll lets several processes of a client refresh with one token at once;
// each must go on. It returns the last one's access token.
func (s species) refreshAll(t *testing.T, h *house, token, want string) (access string) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}}
	if s.refreshed != "" && s.refreshed != "-" {
		form.Set("scope", s.refreshed)
	}
	replies := make([]reply, max(s.parallel, 2))
	var wg sync.WaitGroup
	for i := range replies {
		wg.Go(func() { replies[i] = s.token(h, cloneForm(form)) })
	}
	wg.Wait()
	for _, r := range replies {
		if r.status != 200 || r.field("scope") != want || r.field("refresh_token") != replies[0].field("refresh_token") {
			t.Fatalf("refresh: %d %s", r.status, r.body)
		}
	}
	return replies[len(replies)-1].field("access_token")
}

func cloneForm(form url.Values) url.Values {
	out := url.Values{}
	for name, v := range form {
		out[name] = slices.Clone(v)
	}
	return out
}

// authorize returns the address that the client opens.
func (s species) authorize(h *house) string {
	resource := "-"
	if s.resource != "-" {
		resource = h.url + s.resource
	}
	return app{h, s.id, s.redirect}.address("state", s.state, "scope", s.scope, "resource", resource) + s.extra
}

// token sends a token request in the client's way.
func (s species) token(h *house, form url.Values) reply {
	if s.resource2 != "-" {
		form.Set("resource", h.url+s.resource)
	}
	if s.basic != nil {
		return h.ask(http.MethodPost, "/token", form.Encode(), "Authorization", s.basic(s.id, s.secret))
	}
	form.Set("client_id", s.id)
	if s.secret != "" {
		form.Set("client_secret", s.secret)
	}
	return h.ask(http.MethodPost, "/token", form.Encode())
}

// goAll is allow for a client whose answer is checked: it gets back exactly what
// it sent, and the issuer.
func (p *person) goAll(address string) url.Values {
	p.h.t.Helper()
	asked, err := url.Parse(address)
	if err != nil {
		p.h.t.Fatal(err)
	}
	to := p.goOn(p.open(address))
	if to == nil {
		p.h.t.Fatalf("no way back: %d %s", p.status, bodyOf(p.page))
	}
	got, sent := to.Query(), asked.Query()
	if before, _, _ := strings.Cut(to.String(), "?"); before != sent.Get("redirect_uri") || !slices.Equal(got["state"], sent["state"]) || got.Get("iss") != p.h.url || got.Get("code") == "" {
		p.h.t.Fatalf("sent to %s", to)
	}
	return got
}
