package fakegitea

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// tokenKind distinguishes access and refresh tokens.
// A refresh token is refused where an access token is asked for, but not the other way round.
type tokenKind int

const (
	accessKind  tokenKind = 0
	refreshKind tokenKind = 1
)

// tokenClaims is the content of both kinds of token.
type tokenClaims struct {
	Grant int64     `json:"gnt"`
	Kind  tokenKind `json:"tt"`
	// It is 0, and left out, while refresh tokens may be used again and in every access token.
	Counter int64 `json:"cnt,omitempty"`
	Expires int64 `json:"exp"` // seconds since 1970
	Issued  int64 `json:"iat"`
}

// tokenAnswer is a successful answer of the token endpoint. It has no scope.
// A client can only learn what it was granted by asking the introspection endpoint, or by
// trying. The ID token of a grant with openid is left out.
type tokenAnswer struct {
	Access  string `json:"access_token"`
	Type    string `json:"token_type"`
	Expires int64  `json:"expires_in"`
	Refresh string `json:"refresh_token"`
}

// tokenHead begins every token. A fresh Gitea signs with RS256; HS256 is the choice of
// its JWT_SIGNING_ALGORITHM that needs no key pair, and whose key is not published.
var tokenHead = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "."

// signature signs a text with the key of this server.
func (o *oauthWorld) signature(text string) string {
	mac := hmac.New(sha256.New, []byte(o.key))
	mac.Write([]byte(text)) // a hash takes everything
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// sign makes a JWT (RFC 7519) of the claims.
func (o *oauthWorld) sign(claims tokenClaims) string {
	body, _ := json.Marshal(claims) // numbers always have a JSON form
	text := tokenHead + base64.RawURLEncoding.EncodeToString(body)
	return text + "." + o.signature(text)
}

// parse reads a token of this server and checks signature and expiry. The kind is
// left to the caller.
// The signature covers the head, so a token that asks for another algorithm is refused.
func (o *oauthWorld) parse(text string, now time.Time) (claims tokenClaims, ok bool) {
	end := max(strings.LastIndexByte(text, '.'), 0)
	if !hmac.Equal([]byte(text[end:]), []byte("."+o.signature(text[:end]))) {
		return claims, false
	}
	body, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text[:end], tokenHead))
	return claims, err == nil && json.Unmarshal(body, &claims) == nil && claims.Expires > now.Unix()
}

// issue makes a new pair of tokens for the grant. When refresh tokens are used up,
// every answer counts the grant on, which ends all earlier refresh tokens.
// Nothing of a token is stored: it is good while its grant is there, its time has not come and
// the key is the same.
func (w *world) issue(g *oauthGrant) tokenAnswer {
	o := &w.oauth
	if o.options.InvalidateRefreshTokens {
		g.counter++
	}
	now, seconds := w.now().Unix(), int64(o.options.AccessLifetime/time.Second)
	return tokenAnswer{
		Access: o.sign(tokenClaims{g.id, accessKind, 0, now + seconds, now}), Type: "bearer", Expires: seconds,
		Refresh: o.sign(tokenClaims{g.id, refreshKind, g.counter, now + int64(refreshLifetime/time.Second), now}),
	}
}

// useAccessToken logs in by an OAuth access token; the grant says who it is and
// what she allowed.
func (c *call) useAccessToken(text string) error {
	claims, ok := c.w.oauth.parse(text, c.now)
	g := c.w.grantByID(claims.Grant)
	// A token from the future is refused, which a test that turns the clock back will meet.
	if !ok || g == nil || claims.Kind != accessKind || claims.Issued > c.now.Unix() {
		return errBadLogin
	}
	c.doer = g.user
	// The scopes are read from the grant at each request, not from the token.
	c.cred.scoped, c.cred.scopes = true, grantScopes(g.scope)
	return nil
}

// identityScopes say what an application learns about the user; they do not
// restrict anything.
var identityScopes = []string{"openid", "profile", "email", "groups"}

// grantScopes is what tokens of a grant may do. It fails open as the real server
// does: without a scope for the API, and with a single unknown word, that is
// everything.
func grantScopes(asked string) scopeSet {
	var words []string
	access := false
	for word := range strings.SplitSeq(asked, " ") {
		if word != "" && !slices.Contains(identityScopes, word) {
			access = true
			words = append(words, strings.FieldsFunc(word, func(r rune) bool { return r == ',' })...)
		}
	}
	// This is why Aegis has no scopes of its own and asks in Gitea's words only.
	set, err := parseScopes(words)
	if !access || err != nil {
		return scopeSet{all: true}
	}
	// Every category with write is spelled "all" by the server, too.
	set.all = set.all || !slices.ContainsFunc(categories, func(c string) bool { return set.level[c] < 2 })
	return set
}
