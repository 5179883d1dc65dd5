package client_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"aegis/proxy/oauth/client"
)

// animal is a client of the field: what it registers or publishes, and where it
// then wants to be sent back to.
type animal struct {
	name string
	// register is the body of its registration; or
	register string
	// at is the URL of its document, with these members.
	at, document string
	sends        []string // redirect URIs of its authorization requests
	never        []string // near misses
	shown        string   // its name, when that is telling
	method       string   // "": none
}

var zoo = []animal{
	{
		name:     "Claude web, registered",
		register: `{"client_name":"Claude","redirect_uris":["https://claude.ai/api/mcp/auth_callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none","scope":"read:repository offline_access"}`,
		sends:    []string{"https://claude.ai/api/mcp/auth_callback"},
		never:    []string{"https://claude.com/api/mcp/auth_callback"},
		shown:    "Claude",
	},
	{
		name:     "Claude web, both hosts, no auth method",
		register: `{"client_name":"Claude","redirect_uris":["https://claude.ai/api/mcp/auth_callback","https://claude.com/api/mcp/auth_callback"]}`,
		sends:    []string{"https://claude.ai/api/mcp/auth_callback", "https://claude.com/api/mcp/auth_callback"},
		method:   client.AuthBasic,
	},
	{
		name:     "Claude Code, document",
		at:       "https://claude.ai/oauth/claude-code-client-metadata",
		document: `{"client_name":"Claude Code","client_uri":"https://claude.ai","redirect_uris":["http://localhost/callback","http://127.0.0.1/callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none"}`,
		sends:    []string{"http://localhost:54321/callback", "http://127.0.0.1:3118/callback", "http://localhost/callback"},
		never:    []string{"http://[::1]:54321/callback", "http://localhost:54321/", "http://localhost.evil.example:54321/callback"},
		shown:    "Claude Code",
	},
	{
		name:     "Claude Code, registered",
		register: `{"client_name":"Claude Code (gitea)","redirect_uris":["http://localhost:3118/callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none","scope":"read:issue"}`,
		sends:    []string{"http://localhost:3118/callback", "http://localhost:50000/callback"},
		shown:    "Claude Code (gitea)",
	},
	{
		name:     "ChatGPT connector, document that prefers private_key_jwt",
		at:       "https://chatgpt.com/oauth/AbC123/client.json",
		document: `{"client_name":"ChatGPT","client_uri":"https://chatgpt.com/","redirect_uris":["https://chatgpt.com/connector/oauth/AbC123"],"token_endpoint_auth_method":"private_key_jwt","token_endpoint_auth_methods_supported":["none","private_key_jwt"],"token_endpoint_auth_signing_alg":"RS256","jwks_uri":"https://chatgpt.com/oauth/jwks.json","grant_types":["authorization_code","refresh_token"],"response_types":["code"]}`,
		sends:    []string{"https://chatgpt.com/connector/oauth/AbC123"},
		never:    []string{"https://chatgpt.com/connector/oauth/Other"},
		shown:    "ChatGPT",
	},
	{
		name:     "ChatGPT, registered",
		register: `{"client_name":"ChatGPT","redirect_uris":["https://chatgpt.com/connector_platform_oauth_redirect","https://chatgpt.com/connector/oauth/x_Y-z"],"token_endpoint_auth_method":"client_secret_post","application_type":"web"}`,
		sends:    []string{"https://chatgpt.com/connector_platform_oauth_redirect", "https://chatgpt.com/connector/oauth/x_Y-z"},
		method:   client.AuthPost,
	},
	{
		name:     "Codex CLI, registered",
		register: `{"client_name":"Codex","redirect_uris":["http://127.0.0.1:41235/callback/q83vEjRWeJA"],"grant_types":["authorization_code","refresh_token"],"token_endpoint_auth_method":"none","response_types":["code"]}`,
		sends:    []string{"http://127.0.0.1:41235/callback/q83vEjRWeJA", "http://127.0.0.1:50001/callback/q83vEjRWeJA"},
		never:    []string{"http://127.0.0.1:41235/callback", "http://127.0.0.1:41235/callback/other"},
		shown:    "Codex",
	},
	{
		name:     "VS Code, registered",
		register: `{"client_name":"Visual Studio Code","client_uri":"https://code.visualstudio.com","grant_types":["authorization_code","refresh_token","urn:ietf:params:oauth:grant-type:device_code"],"response_types":["code"],"redirect_uris":["https://insiders.vscode.dev/redirect","https://vscode.dev/redirect","http://127.0.0.1/","http://127.0.0.1:33418/"],"token_endpoint_auth_method":"none","application_type":"native"}`,
		sends:    []string{"http://127.0.0.1:33418/", "http://127.0.0.1:61234/", "https://vscode.dev/redirect", "https://insiders.vscode.dev/redirect"},
		never:    []string{"http://localhost:33418/", "https://vscode.dev/redirect/", "vscode://vscode.microsoft-authentication"},
		shown:    "Visual Studio Code",
	},
	{
		name:     "VS Code, document",
		at:       "https://vscode.dev/oauth/client-metadata.json",
		document: `{"client_name":"Visual Studio Code","redirect_uris":["http://127.0.0.1:33418/","https://vscode.dev/redirect"],"token_endpoint_auth_method":"none","application_type":"native"}`,
		sends:    []string{"http://127.0.0.1:33418/", "http://127.0.0.1:1234/", "https://vscode.dev/redirect"},
	},
	{
		name:     "Copilot CLI, a random port where its document has one",
		at:       "https://github.com/copilot/cli/client-metadata.json",
		document: `{"client_name":"GitHub Copilot CLI","redirect_uris":["http://127.0.0.1:33418/"],"token_endpoint_auth_method":"none"}`,
		sends:    []string{"http://127.0.0.1:33418/", "http://127.0.0.1:60321/"},
		never:    []string{"http://localhost:33418/"},
	},
	{
		name:     "Cursor, three kinds of redirect at once",
		register: `{"client_name":"Cursor","redirect_uris":["cursor://anysphere.cursor-mcp/oauth/callback","https://www.cursor.com/agents/mcp/oauth/callback","http://localhost:8787/callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none"}`,
		sends:    []string{cursor, "https://www.cursor.com/agents/mcp/oauth/callback", "http://localhost:8787/callback"},
		never:    []string{"cursor://evil/oauth/callback"},
		shown:    "Cursor",
	},
	{
		name:     "Gemini CLI, an empty scope",
		register: `{"client_name":"Gemini CLI MCP Client","redirect_uris":["http://localhost:7777/oauth/callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none","scope":""}`,
		sends:    []string{"http://localhost:7777/oauth/callback", "http://localhost:45001/oauth/callback"},
	},
	{
		name:     "mcp-remote, scopes of OpenID",
		register: `{"client_name":"MCP CLI Proxy","client_uri":"https://github.com/modelcontextprotocol/mcp-cli","redirect_uris":["http://localhost:12345/oauth/callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none","scope":"openid email profile","software_id":"2e6dc280-f3c3-4e01-99a7-8181dbd1d23d","software_version":"0.1.30"}`,
		sends:    []string{"http://localhost:12345/oauth/callback", "http://localhost:3334/oauth/callback"},
		never:    []string{"http://127.0.0.1:12345/oauth/callback"},
	},
	{
		name:     "Inspector, web",
		register: `{"client_name":"MCP Inspector","redirect_uris":["http://localhost:6274/oauth/callback","http://localhost:6274/oauth/callback/debug"],"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"],"response_types":["code"],"client_uri":"https://github.com/modelcontextprotocol/inspector","scope":""}`,
		sends:    []string{"http://localhost:6274/oauth/callback", "http://localhost:6274/oauth/callback/debug"},
	},
	{
		name:     "Inspector, terminal",
		register: `{"client_name":"MCP Inspector","redirect_uris":["http://127.0.0.1:6276/oauth/callback"],"token_endpoint_auth_method":"none"}`,
		sends:    []string{"http://127.0.0.1:6276/oauth/callback"},
	},
	{
		name:     "opencode, registered",
		register: `{"client_name":"opencode","client_uri":"https://opencode.ai","redirect_uris":["http://127.0.0.1:19876/mcp/oauth/callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none"}`,
		sends:    []string{"http://127.0.0.1:19876/mcp/oauth/callback"},
	},
	{
		name:     "opencode, document with another path: theirs to mend, paths stay exact",
		at:       "https://opencode.ai/oauth/opencode/client.json",
		document: `{"client_name":"opencode","redirect_uris":["http://127.0.0.1/callback"],"token_endpoint_auth_method":"none"}`,
		sends:    []string{"http://127.0.0.1:19876/callback"},
		never:    []string{"http://127.0.0.1:19876/mcp/oauth/callback"},
	},
	{
		name:     "Python SDK, a secret in the body",
		register: `{"client_name":"Simple Client","redirect_uris":["http://localhost:3030/callback"],"token_endpoint_auth_method":"client_secret_post","grant_types":["authorization_code","refresh_token"],"response_types":["code"],"scope":"user","client_uri":null,"logo_uri":null,"contacts":null,"tos_uri":null,"policy_uri":null,"jwks_uri":null,"jwks":null,"software_id":null,"software_version":null}`,
		sends:    []string{"http://localhost:3030/callback"},
		method:   client.AuthPost,
	},
	{
		name:     "Go SDK",
		register: `{"redirect_uris":["http://localhost:8085/cb"],"client_name":"go client","token_endpoint_auth_method":"client_secret_basic","application_type":"native"}`,
		sends:    []string{"http://localhost:8085/cb"},
		method:   client.AuthBasic,
	},
}

func TestZoo(t *testing.T) {
	t.Parallel()
	n := newInternet(t)
	r := build(t, n.options(newClock()))
	for _, a := range zoo {
		t.Run(a.name, func(t *testing.T) {
			c := a.meet(t, r, n)
			if a.method == "" {
				a.method = client.AuthNone
			}
			if c.AuthMethod != a.method {
				t.Errorf("authenticates by %s", c.AuthMethod)
			}
			if a.shown != "" && c.Name != a.shown {
				t.Errorf("is shown as %q", c.Name)
			}
			for _, uri := range a.sends {
				if !c.Redirect(uri) {
					t.Errorf("%s is refused", uri)
				}
			}
			for _, uri := range append(a.never, "https://evil.example/", a.sends[0]+"/x", a.sends[0]+"#", a.sends[0]+"?x=1") {
				if c.Redirect(uri) {
					t.Errorf("%s is accepted", uri)
				}
			}
		})
	}
}

// meet makes the client known as it does so itself.
func (a animal) meet(t *testing.T, r *client.Resolver, n *internet) *client.Client {
	t.Helper()
	if a.at == "" {
		c, got := save(t, r, a.register)
		if scope, _ := got["scope"].(string); scope == "" || strings.Contains(scope, "openid") || strings.Contains(scope, "offline") {
			t.Errorf("scope %q", scope)
		}
		if c.Verified {
			t.Error("is verified")
		}
		return c
	}
	var members map[string]any
	if err := json.Unmarshal([]byte(a.document), &members); err != nil {
		t.Fatal(err)
	}
	members["client_id"] = a.at
	n.set(a.at, page(members, "Cache-Control", "public, max-age=3600"))
	c, err := r.Client(t.Context(), a.at)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Verified || c.Kind != client.Document || n.hit(a.at) != 1 {
		t.Errorf("%+v", c)
	}
	return c
}

// TestChatGPTWithoutAWayInCommon: a document with private_key_jwt alone gets an
// answer that says what is missing.
func TestChatGPTWithoutAWayInCommon(t *testing.T) {
	t.Parallel()
	n := newInternet(t)
	const at = "https://chatgpt.com/oauth/Old/client.json"
	n.set(at, page(map[string]any{"client_id": at, "redirect_uris": []string{"https://chatgpt.com/connector/oauth/Old"}, "token_endpoint_auth_method": "private_key_jwt"}))
	_, err := build(t, n.options(newClock())).Client(t.Context(), at)
	wantError(t, err, client.Refused, at)
	if err == nil || !strings.Contains(err.Error(), "token_endpoint_auth_method") {
		t.Error(err)
	}
	status, got := register(t, resolver(t, nil), `{"redirect_uris":["https://chatgpt.com/connector/oauth/Old"],"token_endpoint_auth_method":"private_key_jwt"}`)
	if text, _ := got["error_description"].(string); status != http.StatusBadRequest || !strings.Contains(text, "client_secret_basic") {
		t.Errorf("%d %v", status, got)
	}
}
