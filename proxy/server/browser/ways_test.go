package browser_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestHTTPS: over TLS the cookies have the prefix that ties them to this host.
func TestHTTPS(t *testing.T) {
	h, b := newHouse(t, true, ""), open(t)
	id := h.register("Test client", h.callback())
	b.visit(h.authorizeURL(id, h.callback()))
	b.click(allow)
	b.login("alice")
	b.click(grantIt)
	b.says("Back at the client")
	status, tokens := h.redeem(id, h.callback(), h.answer().Get("code"))
	if status != 200 {
		t.Fatalf("token: %d %v", status, tokens)
	}
	b.visit(h.url + "/account")
	b.click(`button[value="sign_in"]`)
	b.shows(disconnect)
	seen := 0
	for _, c := range send(b, network.GetCookies, network.GetCookiesParams{URLs: []string{h.url + "/"}}).Cookies {
		if !strings.Contains(c.Name, "aegis") {
			continue
		}
		seen++
		if !strings.HasPrefix(c.Name, "__Host-") || !c.Secure || !c.HTTPOnly || c.Path != "/" || c.SameSite != network.CookieSameSiteLax || strings.HasPrefix(c.Domain, ".") {
			t.Errorf("cookie %s: %+v", c.Name, c)
		}
	}
	if seen < 2 {
		t.Errorf("%d cookies of Aegis", seen)
	}
	if got := get(b, chromedp.Evaluate[string](`document.cookie`)); got != "" {
		t.Errorf("a script sees cookies")
	}
	b.unblocked()
}

// TestKeyboard: everything can be done without a mouse, and what has the focus is
// marked.
func TestKeyboard(t *testing.T) {
	h, b := newHouse(t, false, ""), open(t)
	id := h.register("Test client", h.callback())
	b.visit(h.authorizeURL(id, h.callback()))
	b.shows(allow)
	press := func(keys string) { t.Helper(); b.do(chromedp.KeyEvent(keys)) }
	focused := func() string {
		return get(b, chromedp.Evaluate[string](`(e => e.id || e.name + ":" + e.value)(document.activeElement)`))
	}
	press(kb.Tab)
	if got := focused(); got != "access-all" {
		t.Fatalf("the first Tab goes to %s", got)
	}
	press(kb.ArrowDown)
	if got := focused(); got != "access-read" {
		t.Fatalf("an arrow goes to %s", got)
	}
	for range 12 {
		press(kb.Tab)
		if focused() == "say:allow" {
			break
		}
	}
	if got := focused(); got != "say:allow" {
		t.Fatalf("Tab never comes to Allow, but to %s", got)
	}
	if ring := get(b, chromedp.Evaluate[string](`(s => s.outlineStyle + " " + s.outlineWidth)(getComputedStyle(document.activeElement))`)); ring != "solid 3px" {
		t.Errorf("the focus is marked by %q", ring)
	}
	b.picture("consent-focus")
	press(kb.Enter)
	b.shows("#user_name")
	press("alice" + kb.Tab + "demo-password" + kb.Enter)
	b.shows(grantIt)
	for range 12 {
		press(kb.Tab)
		if focused() == "authorize-app" {
			break
		}
	}
	press(kb.Enter)
	b.says("Back at the client")
	status, tokens := h.redeem(id, h.callback(), h.answer().Get("code"))
	if status != 200 || strings.Contains(tokens["scope"].(string), "write:") {
		t.Errorf("token: %d %v", status, tokens["scope"])
	}
}

// TestWithoutJavaScript: no page needs any.
func TestWithoutJavaScript(t *testing.T) {
	h, b := newHouse(t, false, ""), open(t)
	send(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	id := h.register("Test client", h.callback())
	b.visit(h.authorizeURL(id, h.callback()))
	b.click(choose)
	b.do(chromedp.WaitVisible(chromedp.CSS(`select[name="area.repository"]`)))
	b.do(chromedp.SendKeys(chromedp.CSS(`select[name="area.repository"]`), "read only"))
	b.click(allow)
	b.login("alice")
	b.click(grantIt)
	b.says("Back at the client")
	status, tokens := h.redeem(id, h.callback(), h.answer().Get("code"))
	if scope, _ := tokens["scope"].(string); status != 200 || !strings.Contains(scope, "read:repository") || !strings.Contains(scope, "write:issue") {
		t.Errorf("token: %d %v", status, tokens["scope"])
	}
	b.visit(h.url + "/account")
	b.click(`button[value="sign_in"]`)
	b.click(disconnect)
	b.do(chromedp.WaitNotPresent(chromedp.CSS(disconnect)))
}

// TestPrivateScheme: a program with a scheme of its own is opened from a page, and
// no policy stands in the way, also when Gitea shows no page any more.
func TestPrivateScheme(t *testing.T) {
	h, b := newHouse(t, false, ""), open(t)
	const cursor = "cursor://anysphere.cursor-mcp/oauth/callback"
	id := h.register("Cursor", cursor, "https://www.cursor.com/agents/mcp/oauth/callback", "http://localhost:8787/callback")
	for i, state := range []string{"first", "second"} {
		b.leave(h.authorizeWith(id, cursor, state))
		if i == 0 && !strings.Contains(b.text(), "cursor://") {
			t.Errorf("the consent page does not say where it leads: %s", b.text())
		}
		b.press(allow)
		if i == 0 {
			b.login("alice")
			b.click(grantIt)
		}
		b.says("Back to Cursor")
		b.opened(cursor+"?code=", state)
		if i == 0 {
			b.picture("handover")
		}
	}
	// What the link holds works.
	href := get(b, chromedp.Evaluate[string](`document.querySelector("a.button").href`))
	code := strings.TrimPrefix(strings.Split(href, "&")[0], cursor+"?code=")
	if status, m := h.redeem(id, cursor, code); status != 200 {
		t.Errorf("token: %d %v", status, m)
	}
	b.leave(h.authorizeWith(id, cursor, "third"))
	b.press(deny)
	b.says("Denied")
	b.opened(cursor+"?error=access_denied", "third")
	b.unblocked()
}

// press presses a button from the page itself: the browser's question whether it
// may open a program lies over the page and takes the mouse.
func (b *tab) press(selector string) {
	b.t.Helper()
	get(b, chromedp.Evaluate[bool]("(document.querySelector("+strconv.Quote(selector)+").click(), true)"))
}

// leave opens an address from a page that waits for a program to open, where the
// browser reports no end of loading.
func (b *tab) leave(address string) {
	b.t.Helper()
	send(b, page.Navigate, page.NavigateParams{URL: address})
	b.says("Allow ")
}

// opened waits until the page has asked for an address with this state.
func (b *tab) opened(prefix, state string) {
	b.t.Helper()
	b.until("the page asks for "+prefix+"…", func() bool {
		return slices.ContainsFunc(b.requested(prefix), func(u string) bool { return strings.Contains(u, "state="+state) })
	})
}

// TestSecondSignIn: when Gitea goes straight back, the consent form is followed by
// redirects to other hosts, which form-action must not stop.
func TestSecondSignIn(t *testing.T) {
	h, b := newHouse(t, false, ""), open(t)
	id := h.register("Test client", h.callback())
	for i, state := range []string{"first", "second"} {
		b.visit(h.authorizeWith(id, h.callback(), state))
		b.click(allow)
		if i == 0 {
			b.login("alice")
			b.click(grantIt)
		}
		b.says("Back at the client")
		if got := h.answer(); got.Get("state") != state || got.Get("code") == "" {
			t.Errorf("the client got %v", got)
		}
	}
	b.unblocked()
}

// TestNoFrames: the pages show in no frame.
func TestNoFrames(t *testing.T) {
	h, b := newHouse(t, false, ""), open(t)
	id := h.register("Test client", h.callback())
	around := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<h1>Around</h1><iframe id="f" src="` + strings.ReplaceAll(h.authorizeURL(id, h.callback()), "&", "&amp;") + `"></iframe>`))
	}))
	defer around.Close()
	b.visit(around.URL)
	b.says("Around")
	if n := get(b, chromedp.Evaluate[int](`(f => { try { return f.contentDocument ? f.contentDocument.forms.length : 0 } catch { return 0 } })(document.getElementById("f"))`)); n != 0 {
		t.Error("the consent form is in a frame")
	}
	b.until("the policy stops the frame", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return strings.Contains(strings.Join(b.blocked, " "), "frame-ancestors")
	})
}

// TestClientInABrowser: a client that is itself a page, as MCP Inspector's direct
// mode is, reads everything that it needs from another origin.
func TestClientInABrowser(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<title>inspector</title><h1>Inspector</h1>"))
	}))
	defer other.Close()
	h, b := newHouse(t, false, "", "server: {allowed_origins: [\""+other.URL+"\"]}"), open(t)
	b.visit(other.URL)
	b.says("Inspector")
	got := get(b, chromedp.Evaluate[map[string]string](`(async () => {
	  const base = `+strconv.Quote(h.url)+`, out = {};
	  const mcp = {method: "POST", headers: {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}, body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'};
	  let r = await fetch(base + "/mcp", mcp);
	  out.status = "" + r.status; out.challenge = r.headers.get("WWW-Authenticate") || "";
	  const meta = out.challenge.match(/resource_metadata="([^"]+)"/)[1];
	  const resource = await (await fetch(meta, {headers: {"MCP-Protocol-Version": "2025-11-25"}})).json();
	  out.resource = resource.resource;
	  const as = await (await fetch(resource.authorization_servers[0] + "/.well-known/oauth-authorization-server", {headers: {"MCP-Protocol-Version": "2025-11-25"}})).json();
	  r = await fetch(as.registration_endpoint, {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({client_name: "Inspector", redirect_uris: ["http://localhost:6274/oauth/callback"], token_endpoint_auth_method: "none"})});
	  out.client = (await r.json()).client_id || "";
	  r = await fetch(as.token_endpoint, {method: "POST", body: new URLSearchParams({grant_type: "authorization_code", code: "wrong", client_id: out.client, code_verifier: "v".repeat(43), redirect_uri: "http://localhost:6274/oauth/callback"})});
	  out.token = (await r.json()).error;
	  r = await fetch(as.revocation_endpoint, {method: "POST", body: new URLSearchParams({token: "aegis_rt_none", client_id: out.client})});
	  out.revoke = "" + r.status;
	  r = await fetch(base + "/mcp", {...mcp, headers: {...mcp.headers, Authorization: "Bearer aegis_at_wrong"}});
	  out.bearer = r.status + " " + (r.headers.get("WWW-Authenticate") || "");
	  try { await fetch(as.authorization_endpoint); out.authorize = "readable" } catch { out.authorize = "closed" }
	  return out;
	})()`, chromedp.EvalAwaitPromise))
	for name, want := range map[string]string{"status": "401", "challenge": "Bearer ", "resource": h.endpoint, "client": "aegis_", "token": "invalid_grant", "revoke": "200", "bearer": `401 Bearer error="invalid_token"`, "authorize": "closed"} {
		if !strings.HasPrefix(got[name], want) {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
}
