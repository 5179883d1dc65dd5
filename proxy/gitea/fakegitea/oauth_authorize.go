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
	nonce                           string
	responseType, challenge, method string
}

// authorize is GET and POST /login/oauth/authorize, for a browser that logged in.
// A confidential application that has a grant already gets its code at once, and
// the scope that it asks for is not looked at.
func authorize(c *call) {
	a := &authorization{
		app: c.w.appByClientID(c.form.Get("client_id")), redirectURI: c.form.Get("redirect_uri"),
		state: c.form.Get("state"), scope: c.form.Get("scope"), nonce: c.form.Get("nonce"),
		responseType: c.form.Get("response_type"),
		challenge:    c.form.Get("code_challenge"), method: c.form.Get("code_challenge_method"),
	}
	if a.app == nil {
		c.failedPage("Client ID not registered")
		return
	}
	if !a.app.takesRedirect(a.redirectURI) {
		c.failedPage("Unregistered Redirect URI")
		return
	}
	if code, text := a.wrong(); code != "" {
		c.sendError(a.redirectURI, a.state, code, text)
		return
	}
	if a.method != "" {
		c.sess.challenge, c.sess.method = a.challenge, a.method
	}
	g := c.w.grantOf(c.doer, a.app)
	if g != nil && (a.app.Confidential || a.app.SkipSecond) {
		if a.nonce != "" {
			g.nonce = a.nonce
		}
		c.sendCode(a, c.w.newCode(g, a.redirectURI, a.challenge, a.method))
		return
	}
	c.sess.pending, c.sess.clientID, c.sess.state, c.sess.redirectURI = true, a.app.ClientID, a.state, a.redirectURI
	c.grantPage(consent{
		App: a.app.Name, ClientID: a.app.ClientID, By: a.app.creator(), State: a.state, Scope: a.scope, Nonce: a.nonce,
		RedirectURI: a.redirectURI, Everything: grantScopes(a.scope).all,
	})
}

// creator is the user who registered the application, "" when it is the instance's.
func (a *oauthApp) creator() string {
	if a.user == nil {
		return ""
	}
	return a.user.Login
}

// wrong checks what is answered by a redirect (RFC 6749 section 4.1.2.1).
func (a *authorization) wrong() (code, text string) {
	if a.responseType != "code" {
		return "unsupported_response_type", "Only code response type is supported."
	}
	switch a.method {
	case "S256", "plain":
	case "":
		if !a.app.Confidential {
			return "invalid_request", "PKCE is required for public clients"
		}
	default:
		return "invalid_request", "unsupported code challenge method"
	}
	return "", ""
}

// consent is what the consent page shows.
type consent struct {
	App, ClientID, By, State, Scope, Nonce, RedirectURI string
	Everything                                          bool
}

// decide is POST /login/oauth/grant: the button on the consent page. The form has
// to be of the page that this browser opened last.
func decide(c *call) {
	a := &authorization{redirectURI: c.form.Get("redirect_uri"), state: c.form.Get("state"), scope: c.form.Get("scope")}
	if !c.sess.pending || c.sess.clientID != c.form.Get("client_id") || c.sess.state != a.state ||
		c.sess.redirectURI != a.redirectURI {
		c.plain(http.StatusBadRequest, "Bad Request\n")
		return
	}
	if yes, err := strconv.ParseBool(c.form.Get("granted")); err != nil || !yes {
		c.sendError(a.redirectURI, a.state, "access_denied", "the request is denied")
		return
	}
	a.app = c.w.appByClientID(c.sess.clientID)
	if a.app == nil { // deleted while the page was open
		c.plain(http.StatusInternalServerError, "Internal Server Error\n")
		return
	}
	g := c.w.grantOf(c.doer, a.app)
	if g == nil {
		g = c.w.addGrant(c.doer, a.app, a.scope)
	} else if g.scope != a.scope {
		c.sendError(a.redirectURI, a.state, "server_error", "a grant exists with different scope")
		return
	}
	if nonce := c.form.Get("nonce"); nonce != "" {
		g.nonce = nonce
	}
	c.sendCode(a, c.w.newCode(g, a.redirectURI, c.sess.challenge, c.sess.method))
}

// sendCode redirects to the client with a code; an empty state is left out.
func (c *call) sendCode(a *authorization, code *oauthCode) {
	c.sendBack(a.redirectURI, func(q url.Values) {
		if a.state != "" {
			q.Set("state", a.state)
		}
		q.Set("code", code.secret)
	})
}

// sendError redirects to the client with an error; the state is there even if it
// is empty.
func (c *call) sendError(redirectURI, state, code, text string) {
	c.sendBack(redirectURI, func(q url.Values) {
		q.Set("error", code)
		q.Set("error_description", text)
		q.Set("state", state)
	})
}

// sendBack redirects to a registered URI with further parameters. It has no iss
// parameter.
func (c *call) sendBack(redirectURI string, add func(url.Values)) {
	u, err := url.Parse(redirectURI)
	if err != nil {
		c.plain(http.StatusInternalServerError, "Internal Server Error\n")
		return
	}
	q := u.Query()
	add(q)
	u.RawQuery = q.Encode()
	c.seeOther(u.String())
}

// seeOther redirects, and leaves the address as it is.
func (c *call) seeOther(to string) {
	c.out.header.Set("Location", to)
	c.out.status = http.StatusSeeOther
}
