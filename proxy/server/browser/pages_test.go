package browser_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestMorePages are those that few people meet: a client that is known, an answer
// that leaves nothing, an older permission at Gitea, a person who may not come in,
// and an administrator's view of everybody's clients.
func TestMorePages(t *testing.T) {
	h, b := newHouse(t, false, "allow: {logins: [alice, bob]}\nadmins: [bob]\nclients:\n  - {id: known, name: Team bot, redirect_uris: [\"https://bot.example/callback\", \"http://127.0.0.1/callback\"]}\n", "teams: {web: {members: {logins: [bob]}}}", "members: {everyone: true}"), open(t)
	b.visit(h.authorizeURL("known", "https://bot.example/callback"))
	b.says("Allow Team bot")
	if text := b.text(); !strings.Contains(text, "known client") || strings.Contains(text, "not verified") || !strings.Contains(text, "bot.example") {
		t.Errorf("the consent page says %s", text)
	}
	b.picture("consent-known")

	// Choosing nothing is no answer; the page says so and keeps the choice.
	b.click(choose)
	nothing := `document.querySelectorAll("select.pick").forEach(s => s.value = "none"), true`
	get(b, chromedp.Evaluate[bool](nothing))
	b.click(allow)
	b.shows(`[role="alert"]`)
	if text := b.text(); !strings.Contains(text, "Nothing is left to allow") {
		t.Errorf("the consent page says %s", text)
	}
	if picked := get(b, chromedp.Evaluate[string](`document.querySelector("select.pick").value + " " + document.querySelector("#access-pick").checked`)); picked != "none true" {
		t.Errorf("the choice is lost: %s", picked)
	}
	b.picture("consent-nothing")

	// Somebody who is not in auth.oauth.allow, and then an older permission.
	b.visit(h.authorizeWith("known", h.callback(), "mallory"))
	b.click(allow)
	b.login("root1")
	b.click(grantIt)
	b.says("You are not among the people who may use this server")
	b.picture("error-people")

	// Somebody who may use this server, and not this endpoint.
	outside := open(t)
	outside.visit(h.authorizeFor("known", h.callback(), "outside", h.endpoint+"/web"))
	outside.click(allow)
	outside.login("alice")
	outside.click(grantIt)
	outside.says("You are not among the members of this endpoint")
	outside.picture("error-members")

	other := open(t)
	h.double.RevokeGrant("alice", h.app)
	h.double.AddGrant("alice", h.app, "read:user")
	other.visit(h.authorizeWith("known", h.callback(), "older"))
	other.click(allow)
	other.login("alice")
	other.says("Gitea has an older permission that does not fit")
	if at := get(other, chromedp.AttributeValue(chromedp.CSS("a.button.go"), "href")); !strings.HasSuffix(at.Value, "/user/settings/applications") {
		t.Errorf("the help leads to %s", at.Value)
	}
	other.picture("error-older")
	h.double.RevokeGrant("alice", h.app)
	other.visit(h.authorizeWith("known", h.callback(), "newer"))
	other.click(allow)
	other.click(grantIt)
	other.says("Back at the client")
	if status, m := h.redeem("known", h.callback(), h.answer().Get("code")); status != 200 {
		t.Fatalf("token: %d %v", status, m)
	}

	admin := open(t)
	admin.visit(h.url + "/account")
	admin.click(`button[value="sign_in"]`)
	admin.login("bob")
	admin.click(grantIt)
	admin.shows(disconnect)
	if text := admin.text(); !strings.Contains(text, "Everybody else's clients") || !strings.Contains(text, "of alice") {
		t.Errorf("the administrator sees %s", text)
	}
	admin.picture("account-admin")
	for _, tab := range []*tab{b, outside, other, admin} {
		tab.unblocked()
	}
}
