package browser_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// What people press.
const (
	allow      = `button[name="say"][value="allow"]`
	deny       = `button[name="say"][value="deny"]`
	onlyRead   = `#access-read`
	choose     = `#access-pick`
	grantIt    = `#authorize-app`
	disconnect = `button[name="do"][value="revoke"]`
)

// login signs in on Gitea's page.
func (b *tab) login(name string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(chromedp.CSS("#user_name")), chromedp.SendKeys(chromedp.CSS("#user_name"), name),
		chromedp.SendKeys(chromedp.CSS("#password"), "demo-password\r"))
}

// TestWholeWay is one person and one client, from the registration to the end.
func TestWholeWay(t *testing.T) {
	h, b := newHouse(t, false, "admins: [bob]\n"), open(t)
	id := h.register("Test client", h.callback())
	b.visit(h.authorizeURL(id, h.callback()))
	b.says("Allow Test client to use Gitea as you?")
	for _, want := range []string{"not verified", "this computer", h.client.Listener.Addr().String(), "Everything it asks for"} {
		if !strings.Contains(b.text(), want) {
			t.Errorf("the consent page does not say %q", want)
		}
	}
	b.picture("consent")
	b.click(choose)
	b.shows(`select[name="area.repository"]`)
	b.picture("consent-choose")
	b.click(onlyRead)
	b.hides(`select[name="area.repository"]`)
	b.click(allow)
	b.login("alice")
	b.click(grantIt)
	b.says("Back at the client")
	got := h.answer()
	if got.Get("state") != "the-state" || got.Get("iss") != h.url || got.Get("code") == "" {
		t.Fatalf("the client got %v", got)
	}
	b.unblocked()
	status, tokens := h.redeem(id, h.callback(), got.Get("code"))
	if status != 200 || strings.Contains(tokens["scope"].(string), "write:") {
		t.Fatalf("token: %d %v", status, tokens["scope"])
	}
	h.useAndRefresh(id, tokens)

	b.visit(h.url + "/account")
	b.says("Connected clients")
	b.picture("account-signed-out")
	b.click(`button[value="sign_in"]`)
	b.shows(disconnect)
	if text := b.text(); !strings.Contains(text, "Signed in as alice") || !strings.Contains(text, "Test client") || !strings.Contains(text, "Repositories: read") {
		t.Errorf("the account page says %s", text)
	}
	b.picture("account")
	b.click(disconnect)
	b.do(chromedp.WaitNotPresent(chromedp.CSS(disconnect)))
	b.picture("account-empty")
	if status, header, _ := h.call(tokens["access_token"].(string), "tools/list", "{}"); status != http.StatusUnauthorized || !strings.Contains(header.Get("WWW-Authenticate"), "invalid_token") {
		t.Errorf("after the disconnection: %d", status)
	}
	status, _, m := h.post("/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {id}, "refresh_token": {tokens["refresh_token"].(string)}}.Encode())
	if status != http.StatusBadRequest || m["error"] != "invalid_grant" {
		t.Errorf("refresh after the disconnection: %d %v", status, m)
	}
	b.unblocked()
}

// useAndRefresh reads as the person, is refused a write, and refreshes; tokens
// become the new ones.
func (h *house) useAndRefresh(id string, tokens map[string]any) {
	h.t.Helper()
	access := tokens["access_token"].(string)
	status, _, m := h.call(access, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
	if status != 200 || m["result"] == nil {
		h.t.Fatalf("initialize: %d %v", status, m)
	}
	status, _, m = h.call(access, "tools/call", `{"name":"gitea_user_get_me","arguments":{}}`)
	if status != 200 || !strings.Contains(resultText(m), `"login":"alice","mode":"oauth"`) {
		h.t.Fatalf("call: %d %v", status, m)
	}
	status, header, _ := h.call(access, "tools/call", `{"name":"gitea_issue_create","arguments":{"owner":"acme","repo":"garden","title":"no"}}`)
	if challenge := header.Get("WWW-Authenticate"); status != http.StatusForbidden || !strings.Contains(challenge, `error="insufficient_scope"`) || !strings.Contains(challenge, "write:issue") {
		h.t.Errorf("a write: %d %s", status, challenge)
	}
	status, _, m = h.post("/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {id}, "refresh_token": {tokens["refresh_token"].(string)}}.Encode())
	if status != 200 {
		h.t.Fatalf("refresh: %d %v", status, m)
	}
	for name, value := range m {
		tokens[name] = value
	}
	if status, _, _ := h.call(tokens["access_token"].(string), "tools/list", "{}"); status != 200 {
		h.t.Errorf("after the refresh: %d", status)
	}
}

// resultText is the text of a tool's result.
func resultText(m map[string]any) string {
	result, _ := m["result"].(map[string]any)
	content, _ := result["content"].([]any)
	if len(content) == 0 {
		return ""
	}
	first, _ := content[0].(map[string]any)
	text, _ := first["text"].(string)
	return text
}

func TestDeny(t *testing.T) {
	h, b := newHouse(t, false, ""), open(t)
	id := h.register("Test client", h.callback())
	b.visit(h.authorizeURL(id, h.callback()))
	b.click(deny)
	b.says("Back at the client")
	if got := h.answer(); got.Get("error") != "access_denied" || got.Get("state") != "the-state" || got.Has("code") {
		t.Errorf("the client got %v", got)
	}
	// At Gitea, too, the person can say no.
	b.visit(h.authorizeWith(id, h.callback(), "another"))
	b.click(allow)
	b.login("alice")
	b.click(`button[name="granted"][value="false"]`)
	b.says("Back at the client")
	if got := h.answer(); got.Get("error") != "access_denied" || got.Get("state") != "another" || got.Has("code") {
		t.Errorf("the client got %v", got)
	}
	if n := len(h.double.Grants("alice")); n != 0 {
		t.Errorf("%d grants at Gitea", n)
	}
	b.unblocked()
}

// TestErrorPages: what is wrong is said, and nobody is sent anywhere.
func TestErrorPages(t *testing.T) {
	h, b := newHouse(t, false, ""), open(t)
	id := h.register("Test client", h.callback())
	for _, c := range []struct{ name, address, heading, says string }{
		{"error-client", h.authorizeURL("aegis_cl_nobody", h.callback()), "Aegis does not know this client", "add it again"},
		{"error-redirect", h.authorizeURL(id, "https://evil.example/callback"), "This sign-in request is not right", "not one of this client's"},
		{"error-over", h.url + "/oauth/callback?state=nothing&code=nothing", "This sign-in is over", "Start again"},
		{"error-browser", h.url + "/consent", "This address is part of signing in", "Start in your MCP client"},
	} {
		b.visit(c.address)
		b.says(c.heading)
		if !strings.Contains(b.text(), c.says) || !strings.HasPrefix(b.at(), h.url+"/") {
			t.Errorf("%s: at %s: %s", c.name, b.at(), b.text())
		}
		b.picture(c.name)
	}
	b.unblocked()
}

// TestNames: a client's name does no harm, however long or odd.
func TestNames(t *testing.T) {
	h, b := newHouse(t, false, ""), open(t)
	for name, client := range map[string]string{
		"name-long":   strings.Repeat("Wiederaufnahmeverfahren", 9),
		"name-markup": `<img src=x onerror=alert(1)><b>Bold</b> & "quoted"`,
		"name-turned": "Client \u202egnirts desrever\u202c of الأمان",
		"name-none":   "",
	} {
		id := h.register(client, "https://"+strings.Repeat("a-long-label.", 12)+"example/callback?"+strings.Repeat("x", 200))
		b.visit(h.authorizeURL(id, "https://"+strings.Repeat("a-long-label.", 12)+"example/callback?"+strings.Repeat("x", 200)))
		b.shows(allow)
		b.click("summary")
		b.picture(name)
		if n := get(b, chromedp.Evaluate[int](`document.querySelectorAll("img, b, script").length`)); n != 0 {
			t.Errorf("%s: the name became markup", name)
		}
	}
	b.unblocked()
}
