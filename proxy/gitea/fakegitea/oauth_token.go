package fakegitea

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// signingKey is made once in a process, when the first token is signed: making
// one takes longer than most tests. Each Server names it differently.
var signingKey = sync.OnceValues(func() (*rsa.PrivateKey, error) {
	return rsa.GenerateKey(rand.Reader, 2048)
})

// tokenKind distinguishes access and refresh tokens.
type tokenKind int

const (
	accessKind  tokenKind = 0
	refreshKind tokenKind = 1
)

// tokenClaims is the content of both kinds of token.
type tokenClaims struct {
	Grant   int64     `json:"gnt"`
	Kind    tokenKind `json:"tt"`
	Counter int64     `json:"cnt,omitempty"`
	Expires int64     `json:"exp"` // seconds since 1970
	Issued  int64     `json:"iat"`
}

// tokenAnswer is a successful answer of the token endpoint. It has no scope.
type tokenAnswer struct {
	Access  string `json:"access_token"`
	Type    string `json:"token_type"`
	Expires int64  `json:"expires_in"`
	Refresh string `json:"refresh_token"`
	ID      string `json:"id_token,omitempty"`
}

// jwtHeader is the header of every token.
type jwtHeader struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	Type      string `json:"typ"`
}

// randomBytes returns n random bytes.
func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // crypto/rand.Read never fails
	return b
}

// randomKeyID looks like the digest of a key.
func randomKeyID() string { return base64.RawURLEncoding.EncodeToString(randomBytes(32)) }

// sign makes a JWT (RS256) of the claims.
func (o *oauthWorld) sign(claims any) (string, error) {
	key, err := signingKey()
	if err != nil {
		return "", fmt.Errorf("make a signing key: %w", err)
	}
	head, err := json.Marshal(jwtHeader{"RS256", o.keyID, "JWT"})
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	enc := base64.RawURLEncoding
	text := enc.EncodeToString(head) + "." + enc.EncodeToString(body)
	digest := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, digest[:])
	if err != nil {
		return "", err
	}
	return text + "." + enc.EncodeToString(sig), nil
}

var errNoToken = errors.New("not a valid token")

// parse reads a token of this server and checks signature and expiry. The kind is
// left to the caller.
func (o *oauthWorld) parse(text string, now time.Time) (*tokenClaims, error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return nil, errNoToken
	}
	var raw [3][]byte
	for i, p := range parts {
		b, err := base64.RawURLEncoding.Strict().DecodeString(p)
		if err != nil {
			return nil, errNoToken
		}
		raw[i] = b
	}
	var head jwtHeader
	if json.Unmarshal(raw[0], &head) != nil || head.Algorithm != "RS256" || head.KeyID != o.keyID {
		return nil, errNoToken
	}
	key, err := signingKey()
	if err != nil {
		return nil, errNoToken
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, digest[:], raw[2]) != nil {
		return nil, errNoToken
	}
	claims := new(tokenClaims) // those of an ID token name no grant
	if json.Unmarshal(raw[1], claims) != nil || claims.Expires <= now.Unix() {
		return nil, errNoToken
	}
	return claims, nil
}

// jwk is the public half of the signing key (RFC 7517).
func (o *oauthWorld) jwk() (map[string]string, error) {
	key, err := signingKey()
	if err != nil {
		return nil, fmt.Errorf("make a signing key: %w", err)
	}
	enc := base64.RawURLEncoding
	return map[string]string{
		"alg": "RS256", "kid": o.keyID, "kty": "RSA", "use": "sig",
		"e": enc.EncodeToString(big.NewInt(int64(key.E)).Bytes()), "n": enc.EncodeToString(key.N.Bytes()),
	}, nil
}

// issue makes a new pair of tokens for the grant. When refresh tokens are used up,
// every answer counts the grant on, which ends all earlier refresh tokens.
func (c *call) issue(g *oauthGrant) (*tokenAnswer, error) {
	o := &c.w.oauth
	if o.options.InvalidateRefreshTokens {
		g.counter++
	}
	iat := c.now.Unix()
	out := &tokenAnswer{Type: "bearer", Expires: int64(o.options.AccessLifetime / time.Second)}
	exp := iat + out.Expires
	var err error
	if out.Access, err = o.sign(tokenClaims{g.id, accessKind, 0, exp, iat}); err != nil {
		return nil, err
	}
	refresh := tokenClaims{g.id, refreshKind, g.counter, iat + int64(refreshLifetime/time.Second), iat}
	if out.Refresh, err = o.sign(refresh); err != nil {
		return nil, err
	}
	if g.scopeHas("openid") {
		out.ID, err = o.sign(c.idToken(g, iat, exp))
	}
	return out, err
}

// idToken is the content of an ID token (OpenID Connect Core section 2), with the
// claims that the grant's scope asks for.
func (c *call) idToken(g *oauthGrant, iat, exp int64) obj {
	u := g.user
	out := obj{
		"iss", c.root, "sub", strconv.FormatInt(u.ID, 10), "aud", []string{g.app.ClientID}, "exp", exp, "iat", iat,
		"nonce", opt(g.nonce),
	}
	if g.scopeHas("profile") {
		out = append(out, "name", u.displayName(), "preferred_username", u.Login, "profile", c.root+"/"+escape(u.Login),
			"picture", c.avatar(u), "website", opt(u.Website), "locale", opt(u.Language),
			"updated_at", u.Created.Unix())
	}
	if g.scopeHas("email") {
		out = append(out, "email", opt(u.Email), "email_verified", opt(u.Active))
	}
	if groups := c.w.groupsOf(u, grantScopes(g.scope).publicOnly); g.scopeHas("groups") && len(groups) > 0 {
		out = append(out, "groups", groups)
	}
	return out
}

// displayName is the full name, when there is one.
func (u *user) displayName() string {
	if u.FullName != "" {
		return u.FullName
	}
	return u.Login
}

// groupsOf lists "org" and "org:team" for every team of the user.
func (w *world) groupsOf(u *user, publicOnly bool) []string {
	var out []string
	for _, o := range w.orgsOf(u) {
		if publicOnly && o.Visibility != "public" {
			continue
		}
		out = append(out, o.Login)
		for _, t := range o.Teams {
			if slices.Contains(t.Members, u) {
				out = append(out, o.Login+":"+strings.ToLower(t.Name))
			}
		}
	}
	return out
}

// useAccessToken logs in by an OAuth access token; the grant says who it is and
// what she allowed.
func (c *call) useAccessToken(text string) error {
	claims, err := c.w.oauth.parse(text, c.now)
	if err != nil || claims.Kind != accessKind || claims.Issued > c.now.Unix() {
		return errBadLogin
	}
	g := c.w.grantByID(claims.Grant)
	if g == nil {
		return errBadLogin
	}
	c.doer = g.user
	c.cred.scoped, c.cred.scopes, c.cred.grant = true, grantScopes(g.scope), g
	return nil
}
