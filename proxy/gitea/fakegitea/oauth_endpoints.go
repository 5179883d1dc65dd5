package fakegitea

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// refuseToken answers an error of the token endpoint (RFC 6749 section 5.2). The
// server always answers it with 400, also invalid_client, where the RFC asks for
// 401 when the client used HTTP Basic.
func (c *call) refuseToken(code, format string, args ...any) {
	c.line(http.StatusBadRequest, obj{"error", code, "error_description", fmt.Sprintf(format, args...)})
}

// line writes v as JSON with a line feed, the way the pages do.
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
func formOf(r *http.Request, body []byte) url.Values {
	out, _ := url.ParseQuery(r.URL.RawQuery) // what could be read counts
	if r.Method != http.MethodPost {
		return out
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "application/json":
		var fields map[string]any
		if json.Unmarshal(body, &fields) != nil {
			return out
		}
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

// tokenRequest is a request of the token endpoint.
type tokenRequest struct {
	form             url.Values
	clientID, secret string
}

// accessToken is POST /login/oauth/access_token.
func accessToken(c *call) {
	q := &tokenRequest{form: c.form, clientID: c.form.Get("client_id"), secret: c.form.Get("client_secret")}
	if header := c.r.Header.Get("Authorization"); header != "" && (q.clientID == "" || q.secret == "") {
		id, secret, ok := c.r.BasicAuth()
		switch {
		case !ok:
			c.refuseToken("invalid_request", "cannot parse basic auth header")
			return
		case q.clientID != "" && q.clientID != id:
			c.refuseToken("invalid_request", "client_id in request body inconsistent with Authorization header")
			return
		case q.secret != "" && q.secret != secret:
			c.refuseToken("invalid_request", "client_secret in request body inconsistent with Authorization header")
			return
		}
		q.clientID, q.secret = id, secret
	}
	switch c.form.Get("grant_type") {
	case "refresh_token":
		c.refresh(q)
	case "authorization_code":
		c.redeem(q)
	default:
		c.refuseToken("unsupported_grant_type", "Only refresh_token or authorization_code grant type is supported")
	}
}

// wrongSecret says what is wrong with a confidential client's secret, or "".
func (a *oauthApp) wrongSecret(secret string) string {
	switch {
	case !a.Confidential || a.secret != "" && subtle.ConstantTimeCompare([]byte(a.secret), []byte(secret)) == 1:
		return ""
	case secret == "":
		return "invalid empty client secret"
	}
	return "invalid client secret"
}

// refresh answers grant_type=refresh_token. The kind of the token is not looked
// at: while refresh tokens are not used up, an access token is as good.
func (c *call) refresh(q *tokenRequest) {
	app := c.w.appByClientID(q.clientID)
	if app == nil {
		c.refuseToken("invalid_client", "cannot load client with client id: %q", q.clientID)
		return
	}
	if wrong := app.wrongSecret(q.secret); wrong != "" {
		c.refuseToken("invalid_client", "%s", wrong)
		return
	}
	claims, err := c.w.oauth.parse(q.form.Get("refresh_token"), c.now)
	if err != nil {
		c.refuseToken("unauthorized_client", "unable to parse refresh token")
		return
	}
	g := c.w.grantByID(claims.Grant)
	switch {
	case g == nil:
		c.refuseToken("invalid_grant", "grant does not exist")
	case g.app != app:
		c.refuseToken("invalid_grant", "refresh token belongs to a different client")
	case c.w.oauth.options.InvalidateRefreshTokens && (claims.Counter == 0 || claims.Counter != g.counter):
		c.refuseToken("unauthorized_client", "token was already used")
	default:
		c.sendTokens(g)
	}
}

// redeem answers grant_type=authorization_code, with the checks in the server's
// order. Only success uses a code up.
func (c *call) redeem(q *tokenRequest) {
	app := c.w.appByClientID(q.clientID)
	if app == nil {
		c.refuseToken("invalid_client", "cannot load client with client id: '%s'", q.clientID)
		return
	}
	if wrong := app.wrongSecret(q.secret); wrong != "" {
		c.refuseToken("unauthorized_client", "%s", wrong)
		return
	}
	redirect := q.form.Get("redirect_uri")
	if redirect != "" && !app.takesRedirect(redirect) {
		c.refuseToken("unauthorized_client", "unexpected redirect URI")
		return
	}
	code, _ := find(c.w.oauth.codes, func(k *oauthCode) bool { return k.secret == q.form.Get("code") })
	switch {
	case code == nil:
		c.refuseToken("unauthorized_client", "client is not authorized")
	case !code.expires.After(c.now):
		c.w.oauth.codes = without(c.w.oauth.codes, code)
		c.refuseToken("invalid_grant", "authorization code expired")
	case !code.verified(q.form.Get("code_verifier")):
		c.refuseToken("unauthorized_client", "failed PKCE code challenge")
	case code.redirectURI != "" && redirect != code.redirectURI:
		c.refuseToken("invalid_grant", "redirect_uri differs from the original authorization request")
	case code.grant.app != app:
		c.refuseToken("invalid_grant", "invalid grant")
	default:
		c.w.oauth.codes = without(c.w.oauth.codes, code)
		c.sendTokens(code.grant)
	}
}

// verified checks the PKCE verifier (RFC 7636 section 4.6).
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

// sendTokens answers a new pair of tokens.
func (c *call) sendTokens(g *oauthGrant) {
	answer, err := c.issue(g)
	if err != nil {
		c.refuseToken("invalid_request", "cannot sign token")
		return
	}
	c.line(http.StatusOK, answer)
}

// introspect is POST /login/oauth/introspect (RFC 7662), for the client's own
// tokens. The answer does not say when the token ends.
func introspect(c *call) {
	id, secret, _ := c.r.BasicAuth()
	app := c.w.appByClientID(id)
	if app == nil || app.secret == "" || subtle.ConstantTimeCompare([]byte(app.secret), []byte(secret)) != 1 {
		c.out.header.Set("WWW-Authenticate", `Basic realm="Gitea OAuth2"`)
		c.plain(http.StatusUnauthorized, "no valid authorization")
		return
	}
	out := obj{"active", false}
	if claims, err := c.w.oauth.parse(c.form.Get("token"), c.now); err == nil {
		g := c.w.grantByID(claims.Grant)
		if g != nil && (g.app == app || c.w.oauth.options.OldIntrospection) {
			out = obj{
				"active", true, "scope", opt(g.scope), "username", g.user.Login, "iss", opt(c.root),
				"sub", strconv.FormatInt(g.user.ID, 10), "aud", []string{g.app.ClientID},
			}
		}
	}
	c.line(http.StatusOK, out)
}

// userInfo is GET and POST /login/oauth/userinfo, for any bearer.
func userInfo(c *call) {
	if c.doer == nil {
		c.out.header.Set("WWW-Authenticate", `Bearer realm="Gitea OAuth2"`)
		c.plain(http.StatusUnauthorized, "no valid authorization")
		return
	}
	if scopes := c.cred.scopes; c.cred.scoped && !scopes.all && scopes.level["user"] < 1 {
		c.plain(http.StatusForbidden, "token does not have required scope: read:user")
		return
	}
	u := c.doer
	c.line(http.StatusOK, obj{
		"sub", strconv.FormatInt(u.ID, 10), "name", u.displayName(), "preferred_username", u.Login,
		"email", u.Email, "picture", c.avatar(u), "groups", c.w.groupsOf(u, c.cred.scopes.publicOnly),
	})
}

// signingKeys is GET /login/oauth/keys.
func signingKeys(c *call) {
	key, err := c.w.oauth.jwk()
	if err != nil {
		c.plain(http.StatusInternalServerError, "Internal Server Error\n")
		return
	}
	c.line(http.StatusOK, map[string]any{"keys": []any{key}})
	c.out.header.Set("Content-Type", "application/json")
}

// discovery is GET /.well-known/openid-configuration.
func discovery(c *call) {
	c.line(http.StatusOK, obj{
		"issuer", c.root, "authorization_endpoint", c.root + "/login/oauth/authorize",
		"token_endpoint", c.root + "/login/oauth/access_token", "jwks_uri", c.root + "/login/oauth/keys",
		"userinfo_endpoint", c.root + "/login/oauth/userinfo",
		"introspection_endpoint", c.root + "/login/oauth/introspect",
		"response_types_supported", []string{"code", "id_token"},
		"id_token_signing_alg_values_supported", []string{"RS256"},
		"subject_types_supported", []string{"public"}, "scopes_supported", slices.Clone(identityScopes),
		"claims_supported", []string{
			"aud", "exp", "iat", "iss", "sub", "name", "preferred_username", "profile", "picture", "website",
			"locale", "updated_at", "email", "email_verified", "groups",
		},
		"code_challenge_methods_supported", []string{"plain", "S256"},
		"grant_types_supported", []string{"authorization_code", "refresh_token"},
	})
	c.out.header.Set("Content-Type", "application/json")
}
