package upstream

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"aegis/config"
)

// pair is an answer of the token endpoint.
type pair struct {
	access, refresh config.Secret
	life            time.Duration
}

const (
	// shortLife is assumed for an access token that does not say when it ends.
	shortLife = 10 * time.Minute
	// longLife is the longest that is believed.
	longLife = 365 * 24 * time.Hour
)

// trade sends a code and its verifier to the token endpoint, as the application of conf. The
// error is a [failure] or a [refusal].
func (g *Gitea) trade(ctx context.Context, conf *oauth2.Config, code, verifier string) (*pair, error) {
	ctx, cancel := context.WithTimeout(ctx, g.pace.work)
	defer cancel()
	return g.pair(conf.Exchange(g.oauthContext(ctx), code, oauth2.VerifierOption(verifier)))
}

// renew sends a refresh token to the token endpoint. An answer without a new
// refresh token keeps the old one (RFC 6749 6); x/oauth2 sees to that.
func (g *Gitea) renew(ctx context.Context, refresh config.Secret) (*pair, error) {
	ctx, cancel := context.WithTimeout(ctx, g.pace.work)
	defer cancel()
	source := g.oauth().TokenSource(g.oauthContext(ctx), &oauth2.Token{RefreshToken: refresh.Reveal()})
	return g.pair(source.Token())
}

// pair checks an answer of the token endpoint. Expiry is counted by g's clock
// from expires_in, else taken from the token, else assumed to be near.
func (g *Gitea) pair(t *oauth2.Token, err error) (*pair, error) {
	if err != nil {
		return nil, trouble(err)
	}
	if !validToken(t.AccessToken) || !validToken(t.RefreshToken) {
		return nil, &failure{what: "the token answer lacks an access or a refresh token"}
	}
	if t.TokenType != "" && !strings.EqualFold(t.TokenType, "bearer") {
		return nil, &failure{what: "the token answer is of a type other than bearer"}
	}
	life := time.Duration(t.ExpiresIn) * time.Second
	if life <= 0 {
		life = time.Unix(lineageOf(t.AccessToken).Expires, 0).Sub(g.o.Now())
	}
	if life <= 0 {
		life = shortLife
	}
	return &pair{
		access: config.NewSecret(t.AccessToken), refresh: config.NewSecret(t.RefreshToken), life: min(life, longLife),
	}, nil
}

// validToken reports whether s fits into a header and a form.
func validToken(s string) bool {
	return s != "" && len(s) <= maxToken && isVisible(s)
}

// verdict is what an error of the token endpoint means for a credential.
type verdict uint8

const (
	outage  verdict = iota // says nothing: keep everything, try again later
	raced                  // another process got in between: look again
	used                   // the refresh token was used: look for a newer one, else sign in
	expired                // the refresh token is not readable any more: sign in
	revoked                // the grant is gone: sign in
	client                 // Aegis itself is refused: the operator must act
)

// The phrases by which Gitea words its refusals (handleAuthorizationCode,
// handleRefreshToken, NewAccessTokenResponse).
const (
	reasonNoGrant  = "grant does not exist"
	reasonOther    = "different client"
	reasonCounter  = "grant counter"
	reasonUsed     = "token was already used"
	reasonParse    = "unable to parse"
	reasonSecret   = "client secret"
	reasonRedirect = "unexpected redirect uri"
)

var reasons = []string{reasonNoGrant, reasonOther, reasonCounter, reasonUsed, reasonParse, reasonSecret, reasonRedirect}

// reasonIn returns the phrase of reasons that a description has, "" when it has
// none.
func reasonIn(description string) string {
	description = strings.ToLower(description)
	i := slices.IndexFunc(reasons, func(r string) bool { return strings.Contains(description, r) })
	if i < 0 {
		return ""
	}
	return reasons[i]
}

// classify reads an error of a refresh. A refusal of the token in words that are
// not known ends the credential too: RFC 6749 5.2 has these codes for nothing
// else, and a client that is told to wait would wait for ever. Every answer that
// is no refusal is an outage.
func classify(err error) verdict {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		return outage
	}
	switch {
	case r.code == codeClient, r.code == codeUnauthorized && r.reason == reasonSecret:
		return client
	case r.code == codeGrant && (r.reason == reasonNoGrant || r.reason == reasonOther):
		return revoked
	case r.code == codeGrant && r.reason == reasonCounter:
		return raced
	case r.code == codeUnauthorized && r.reason == reasonUsed:
		return used
	case r.code == codeGrant, r.code == codeUnauthorized:
		return expired
	}
	return outage
}

// refusedCode reads an error of a code exchange: who must act. Gitea says
// unauthorized_client for a wrong secret as well as for a code that is not (or no
// longer) good.
func refusedCode(err error) *Error {
	r, ok := errors.AsType[*refusal](err)
	switch {
	case !ok || !slices.Contains(codes, r.code):
		return unavailable(textDown, err)
	case r.code == codeClient, r.reason == reasonSecret:
		return misconfigured(textClient, err)
	case r.reason == reasonRedirect:
		return misconfigured(textRedirect, err)
	}
	return &Error{Kind: Denied, Public: textAgain, Err: err}
}

// claims reads a JWT's claims without verifying them.
func claims(token string, into any) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	return err == nil && json.Unmarshal(body, into) == nil
}
