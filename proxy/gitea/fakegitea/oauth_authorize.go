package fakegitea

import (
	"net/http"
	"net/url"
	"strconv"
)

// authorization is a request of the authorization endpoint.
type authorization struct {
	app                             *oauthApp
	redirectURI, state, scope       string
	responseType, challenge, method string
}

// authorization reads the request. The form of the consent page has no more than the
// first four of its parameters.
// Gitea ignores resource and prompt, and so does the double. The nonce, which only ID tokens
// carry, is left out.
func (c *call) authorization() *authorization {
	return &authorization{
		app: c.w.appByClientID(c.form.Get("client_id")), redirectURI: c.form.Get("redirect_uri"),
		state: c.form.Get("state"), scope: c.form.Get("scope"), responseType: c.form.Get("response_type"),
		challenge: c.form.Get("code_challenge"), method: c.form.Get("code_challenge_method"),
	}
}

// authorize is GET and POST /login/oauth/authorize, for a browser that logged in.
// A confidential application that has a grant already gets its code at once, and
// the scope that it asks for is not looked at.
func authorize(c *call) {
	a := c.authorization()
	// These two are shown to the person and never sent to the redirect URI, which nobody has
	// vouched for yet. The page has status 400.
	if a.app == nil {
		c.failedPage("Client ID not registered")
		return
	}
	if !a.app.takesRedirect(a.redirectURI) {
		c.failedPage("Unregistered Redirect URI")
		return
	}
	if code, text := a.wrong(); code != "" {
		c.sendError(a, code, text)
		return
	}
	// The session remembers the challenge until another replaces it, and a request without PKCE
	// does not. A first consent without PKCE in a browser that used PKCE before therefore gives
	// a code that no request without a verifier can redeem.
	if a.method != "" {
		c.sess.challenge, c.sess.method = a.challenge, a.method
	}
	g := c.w.grantOf(c.doer, a.app)
	// Here the code takes the challenge of the form, not that of the session, so the trap above
	// is not met.
	if g != nil && (a.app.Confidential || a.app.SkipSecond) {
		c.sendCode(a, c.w.newCode(g, a.redirectURI, a.challenge, a.method))
		return
	}
	c.sess.pending = a
	c.grantPage(a)
}

// wrong checks what is answered by a redirect (RFC 6749 section 4.1.2.1).
// The order is the server's: the response type comes first. A method without a challenge
// passes; the code that it leads to can never be redeemed. A challenge without a method counts
// as no PKCE.
func (a *authorization) wrong() (code, text string) {
	switch {
	case a.responseType != "code":
		return "unsupported_response_type", "Only code response type is supported."
	case a.method == "" && !a.app.Confidential:
		return "invalid_request", "PKCE is required for public clients"
	case a.method != "" && a.method != "S256" && a.method != "plain":
		return "invalid_request", "unsupported code challenge method"
	}
	return "", ""
}

// decide is POST /login/oauth/grant: the button on the consent page. The form has
// to be of the page that this browser opened last.
func decide(c *call) {
	a, shown := c.authorization(), c.sess.pending
	if shown == nil || shown.app.ClientID != c.form.Get("client_id") || shown.state != a.state ||
		shown.redirectURI != a.redirectURI {
		c.plain(http.StatusBadRequest, "Bad Request\n")
		return
	}
	// The refusal goes to the URI of the form, which was compared with that of the session
	// above.
	if yes, err := strconv.ParseBool(c.form.Get("granted")); err != nil || !yes {
		c.sendError(a, "access_denied", "the request is denied")
		return
	}
	if a.app == nil { // deleted while the page was open
		c.plain(http.StatusInternalServerError, "Internal Server Error\n")
		return
	}
	g := c.w.grantOf(c.doer, a.app)
	if g == nil {
		g = c.w.addGrant(c.doer, a.app, a.scope)
		// The texts are compared, not what they allow: other words for the same scopes, or the same
		// in another order, are a different scope. Only public clients get here, or a confidential
		// one whose person has two pages open.
	} else if g.scope != a.scope {
		c.sendError(a, "server_error", "a grant exists with different scope")
		return
	}
	c.sendCode(a, c.w.newCode(g, a.redirectURI, c.sess.challenge, c.sess.method))
}

// sendCode redirects to the client with a code; an empty state is left out.
// A client that insists on its state, as Aegis does, sends one always.
func (c *call) sendCode(a *authorization, code string) {
	q := url.Values{"code": {code}}
	if a.state != "" {
		q.Set("state", a.state)
	}
	c.sendBack(a, q)
}

// sendError redirects to the client with an error; the state is there even if it
// is empty.
func (c *call) sendError(a *authorization, code, text string) {
	c.sendBack(a, url.Values{"error": {code}, "error_description": {text}, "state": {a.state}})
}

// sendBack redirects to a registered URI with further parameters. It has no iss
// parameter.
// A client with several servers cannot tell from the answer which one it comes from (RFC 9207),
// and has to know by the state.
func (c *call) sendBack(a *authorization, add url.Values) {
	u, err := url.Parse(a.redirectURI)
	if err != nil {
		c.plain(http.StatusInternalServerError, "Internal Server Error\n")
		return
	}
	q := u.Query()
	for name, values := range add {
		q[name] = values
	}
	u.RawQuery = q.Encode()
	c.seeOther(u.String())
}

// seeOther redirects, and leaves the address as it is.
func (c *call) seeOther(to string) {
	c.out.header.Set("Location", to)
	c.out.status = http.StatusSeeOther
}
