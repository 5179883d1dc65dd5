package fakegitea

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// line writes v as JSON with a line feed, the way the pages do.
// The API ends its JSON without one.
func (c *call) line(status int, v any) {
	if err := c.json(status, v); err != nil {
		c.plain(http.StatusInternalServerError, "Internal Server Error\n")
		return
	}
	c.out.body.WriteByte('\n')
}

// plain answers a short text.
func (c *call) plain(status int, text string) {
	c.out.header.Set("Content-Type", "text/plain; charset=utf-8")
	c.out.status = status
	c.out.body.Reset()
	c.out.body.WriteString(text)
}

// formOf reads the parameters of a request: the query, and before it a form or
// JSON body. What cannot be read is left out.
// A value of the body wins over one of the query by coming first. Only text counts in JSON; the
// token endpoint takes both kinds of body.
func formOf(r *http.Request, body []byte) url.Values {
	out, _ := url.ParseQuery(r.URL.RawQuery) // what could be read counts
	if r.Method != http.MethodPost {
		return out
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "application/json":
		var fields map[string]any
		_ = json.Unmarshal(body, &fields) // as above
		for name, v := range fields {
			if text, ok := v.(string); ok {
				out.Set(name, text)
			}
		}
	case "application/x-www-form-urlencoded":
		sent, _ := url.ParseQuery(string(body)) // as above
		for name, values := range sent {
			out[name] = append(values, out[name]...)
		}
	}
	return out
}

// accessToken is POST /login/oauth/access_token. The server answers every error of
// it with 400 (RFC 6749 section 5.2), also invalid_client, where the RFC asks for
// 401 when the client used HTTP Basic.
func accessToken(c *call) {
	g, refusal := c.entitled()
	if refusal != nil {
		c.line(http.StatusBadRequest, refusal)
		return
	}
	c.line(http.StatusOK, c.w.issue(g))
}

// refused is an error of the token endpoint.
func refused(code, format string, args ...any) (*oauthGrant, obj) {
	return nil, obj{"error", code, "error_description", fmt.Sprintf(format, args...)}
}

// entitled authenticates the client and finds the grant that it gets tokens of. The
// two ways differ in how they name an unknown client and a wrong secret.
func (c *call) entitled() (*oauthGrant, obj) {
	id, secret := c.form.Get("client_id"), c.form.Get("client_secret")
	// The header is looked at only when the body lacks one of the two. A client that sends both
	// in the body may send any header with them, which is then ignored.
	if c.r.Header.Get("Authorization") != "" && (id == "" || secret == "") {
		basicID, basicSecret, ok := c.r.BasicAuth()
		const inconsistent = "%s in request body inconsistent with Authorization header"
		switch {
		case !ok:
			return refused("invalid_request", "cannot parse basic auth header")
		case id != "" && id != basicID:
			return refused("invalid_request", inconsistent, "client_id")
		case secret != "" && secret != basicSecret:
			return refused("invalid_request", inconsistent, "client_secret")
		}
		id, secret = basicID, basicSecret
	}
	// The grant type is checked before the client: an unknown type is named even to a client
	// that is unknown too. A wrong secret is unauthorized_client for a code and invalid_client
	// for a refresh, so no single word tells Aegis that its own secret is wrong.
	grant, unknown, wrong := c.refresh, "cannot load client with client id: %q", "invalid_client"
	switch c.form.Get("grant_type") {
	case "refresh_token":
	case "authorization_code":
		grant, unknown, wrong = c.redeem, "cannot load client with client id: '%s'", "unauthorized_client"
	default:
		return refused("unsupported_grant_type", "Only refresh_token or authorization_code grant type is supported")
	}
	app := c.w.appByClientID(id)
	switch {
	case app == nil:
		return refused("invalid_client", unknown, id)
	// A public client's secret is never looked at, so a wrong one does no harm.
	case !app.Confidential || app.knows(secret):
		return grant(app)
	case secret == "":
		return refused(wrong, "invalid empty client secret")
	}
	return refused(wrong, "invalid client secret")
}

// knows compares the application's secret. One without a secret knows none.
// The real server keeps a bcrypt hash; the double keeps the secret, as it has to be fast and
// protects nothing.
func (a *oauthApp) knows(secret string) bool {
	return a.secret != "" && subtle.ConstantTimeCompare([]byte(a.secret), []byte(secret)) == 1
}

// refresh is grant_type=refresh_token. The kind of the token is not looked at: while
// refresh tokens are not used up, an access token is as good.
func (c *call) refresh(app *oauthApp) (*oauthGrant, obj) {
	// Expired, forged and malformed tokens are not told apart.
	claims, ok := c.w.oauth.parse(c.form.Get("refresh_token"), c.now)
	g := c.w.grantByID(claims.Grant)
	switch {
	case !ok:
		return refused("unauthorized_client", "unable to parse refresh token")
	case g == nil:
		return refused("invalid_grant", "grant does not exist")
	case g.app != app:
		return refused("invalid_grant", "refresh token belongs to a different client")
	// An access token has no counter, and a token from before the option was set has 0; both
	// are refused. The replay ends nothing else: the newest refresh token goes on working.
	case c.w.oauth.options.InvalidateRefreshTokens && (claims.Counter == 0 || claims.Counter != g.counter):
		return refused("unauthorized_client", "token was already used")
	}
	return g, nil
}

// redeem is grant_type=authorization_code, with the checks in the server's order.
// Only success and expiry use a code up.
func (c *call) redeem(app *oauthApp) (*oauthGrant, obj) {
	// The comparison with the authorization request comes only after the code was found and
	// verified.
	redirect := c.form.Get("redirect_uri")
	if redirect != "" && !app.takesRedirect(redirect) {
		return refused("unauthorized_client", "unexpected redirect URI")
	}
	code, _ := find(c.w.oauth.codes, func(k *oauthCode) bool { return k.secret == c.form.Get("code") })
	switch {
	// A used code is deleted, so it looks the same as one that never was.
	case code == nil:
		return refused("unauthorized_client", "client is not authorized")
	case !code.expires.After(c.now):
		c.w.oauth.codes = without(c.w.oauth.codes, code)
		return refused("invalid_grant", "authorization code expired")
	// A wrong verifier leaves the code alive, so whoever stole a code may go on guessing, and
	// the rightful client still gets its tokens.
	case !code.verified(c.form.Get("code_verifier")):
		return refused("unauthorized_client", "failed PKCE code challenge")
	case code.redirectURI != "" && redirect != code.redirectURI:
		return refused("invalid_grant", "redirect_uri differs from the original authorization request")
	// That the code is another client's is noticed last.
	case code.grant.app != app:
		return refused("invalid_grant", "invalid grant")
	}
	c.w.oauth.codes = without(c.w.oauth.codes, code)
	return code.grant, nil
}

// verified checks the PKCE verifier (RFC 7636 section 4.6).
// A code without a challenge accepts any verifier. One whose request named a method but no
// challenge accepts none.
func (k *oauthCode) verified(verifier string) bool {
	if k.method == "" && k.challenge == "" {
		return true
	}
	have := verifier
	if k.method == "S256" {
		sum := sha256.Sum256([]byte(verifier))
		have = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	return verifier != "" && k.method != "" && subtle.ConstantTimeCompare([]byte(have), []byte(k.challenge)) == 1
}

// introspect is POST /login/oauth/introspect (RFC 7662), for the client's own
// tokens. The answer does not say when the token ends.
// Old servers answer differently; loginByToken and admitBearer have the rest of that.
func introspect(c *call) {
	id, secret, _ := c.r.BasicAuth()
	app := c.w.appByClientID(id)
	if app == nil || !app.knows(secret) {
		c.out.header.Set("WWW-Authenticate", `Basic realm="Gitea OAuth2"`)
		c.plain(http.StatusUnauthorized, "no valid authorization")
		return
	}
	// A refresh token is active too: its kind is not looked at. Personal access tokens are no
	// JWTs and are inactive.
	claims, ok := c.w.oauth.parse(c.form.Get("token"), c.now)
	g := c.w.grantByID(claims.Grant)
	if !ok || g == nil || g.app != app && !c.w.oauth.options.OldIntrospection {
		c.line(http.StatusOK, obj{"active", false})
		return
	}
	c.line(http.StatusOK, obj{
		"active", true, "scope", opt(g.scope), "username", g.user.Login, "iss", opt(c.root),
		"sub", strconv.FormatInt(g.user.ID, 10), "aud", []string{g.app.ClientID},
	})
}

// discovery is GET /.well-known/openid-configuration.
// It is named OpenID's and not RFC 8414's: Gitea answers 404 at oauth-authorization-server. It
// names neither a revocation nor a registration endpoint, as there is none.
func discovery(c *call) {
	at := c.root + "/login/oauth/"
	c.line(http.StatusOK, obj{
		"issuer", c.root, "authorization_endpoint", at + "authorize", "token_endpoint", at + "access_token",
		"jwks_uri", at + "keys", "userinfo_endpoint", at + "userinfo", "introspection_endpoint", at + "introspect",
		"response_types_supported", []string{"code", "id_token"},
		// It differs from a fresh Gitea's RS256 because the double signs with HS256; see
		// tokenHead.
		"id_token_signing_alg_values_supported", []string{"HS256"},
		"subject_types_supported", []string{"public"}, "scopes_supported", identityScopes,
		"claims_supported", []string{
			"aud", "exp", "iat", "iss", "sub", "name", "preferred_username", "profile", "picture", "website",
			"locale", "updated_at", "email", "email_verified", "groups",
		},
		"code_challenge_methods_supported", []string{"plain", "S256"},
		"grant_types_supported", []string{"authorization_code", "refresh_token"},
	})
	// Alone among the JSON answers it has no charset.
	c.out.header.Set("Content-Type", "application/json")
}

// pageNotInDemo answers for what OpenID Connect has beyond OAuth: ID tokens, the key
// that signs them, and who the user is.
// Aegis asks the API who the user is and has no use for them.
func pageNotInDemo(c *call) { c.plain(http.StatusNotImplemented, "not in the demo\n") }
