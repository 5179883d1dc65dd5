package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"aegis/proxy/oauth/client"
	"aegis/proxy/oauth/grant"
	"aegis/proxy/oauth/scope"
	"aegis/proxy/oauth/upstream"
)

// tokenAnswer is a successful answer (RFC 6749 section 5.1). scope is always
// there: some clients take its absence for no scope at all.
type tokenAnswer struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in"`
	RefreshToken string `json:"refresh_token,omitempty"`
	Scope        string `json:"scope"`
}

// token answers /token (RFC 6749 section 3.2). The client proves itself before
// its code or token is touched, so that a failed attempt burns nothing: of
// golang.org/x/oauth2 the first one, with the secret in the wrong place, always fails.
func (s *Server) token(w http.ResponseWriter, r *http.Request) error {
	if err := tooMany(s.rates.token.take(addrKey(r))); err != nil {
		return err
	}
	form, f := readForm(w, r, maxForm, "grant_type", "code", "redirect_uri", "code_verifier", "refresh_token",
		"scope", "client_id", "client_secret")
	if f != nil {
		return f
	}
	// RFC 8707 section 2 has a code of its own for this.
	if form.twice("resource") {
		return bad(codeTarget, "ask for one resource")
	}
	c, err := s.authenticate(r, form)
	if err != nil {
		return err
	}
	var tokens *grant.Tokens
	switch form.get("grant_type") {
	case "authorization_code":
		tokens, err = s.redeem(r.Context(), c, form)
	case "refresh_token":
		tokens, err = s.refresh(r.Context(), c, form)
	case "":
		return invalid("grant_type is missing")
	default:
		return bad(codeGrantType, "use authorization_code or refresh_token")
	}
	if err != nil {
		return tokenFailure(err)
	}
	s.json(w, http.StatusOK, tokenAnswer{
		AccessToken: tokens.Access, TokenType: "Bearer", ExpiresIn: int64(tokens.ExpiresIn.Seconds()),
		RefreshToken: tokens.Refresh, Scope: strings.Join(tokens.Scopes, " "),
	})
	return nil
}

// redeem exchanges a code (RFC 6749 section 4.1.3, RFC 7636 section 4.5). A request
// without a verifier is refused here: there is no code without PKCE that it could be for.
func (s *Server) redeem(ctx context.Context, c *client.Client, form fields) (*grant.Tokens, error) {
	if form.get("code") == "" {
		return nil, invalid("code is missing")
	}
	if form.get("code_verifier") == "" {
		return nil, invalid("code_verifier is missing; PKCE is needed")
	}
	resource, f := s.oneResource(form)
	if f != nil {
		return nil, f
	}
	return s.o.Grants.Redeem(ctx, form.get("code"), grant.Redeem{
		ClientID: c.ID, RedirectURI: form.get("redirect_uri"), Verifier: form.get("code_verifier"), Resource: resource,
	})
}

// refresh exchanges a refresh token (RFC 6749 section 6). More scopes than were
// granted are no error: some clients always ask for all that they know.
func (s *Server) refresh(ctx context.Context, c *client.Client, form fields) (*grant.Tokens, error) {
	if form.get("refresh_token") == "" {
		return nil, invalid("refresh_token is missing")
	}
	resource, f := s.oneResource(form)
	if f != nil {
		return nil, f
	}
	var scopes []string
	if asked := form.get("scope"); asked != "" {
		scopes = scope.Union(strings.Fields(asked), nil)
	}
	return s.o.Grants.Refresh(ctx, form.get("refresh_token"), grant.Refresh{
		ClientID: c.ID, Scopes: scopes, Resource: resource, Allow: s.stillAllowed,
	})
}

// stillAllowed decides whether a grant may go on. Gitea is asked only about
// membership, and what was learned is kept for a while: an outage of Gitea must
// not end anybody's grant.
func (s *Server) stillAllowed(ctx context.Context, g grant.Grant) error {
	live, err := s.o.Upstream.State(ctx, g.UserID)
	if err != nil {
		return fmt.Errorf("credential: %w", err)
	}
	if !live {
		return fmt.Errorf("%w: the sign-in at Gitea is over", grant.ErrDenied)
	}
	in, err := s.member(ctx, g.UserID)
	ue, ok := errors.AsType[*upstream.Error](err)
	switch {
	case ok && ue.Kind == upstream.Gone:
		return fmt.Errorf("%w: %w", grant.ErrDenied, err)
	case err != nil:
		return fmt.Errorf("membership: %w", err)
	case !in:
		return fmt.Errorf("%w: not in auth.oauth.allow", grant.ErrDenied)
	}
	return nil
}

// tokenFailure sorts what grants answer into the codes of RFC 6749 section 5.2. All that
// is wrong with a code or token has one text: why would help someone who tries some.
func tokenFailure(err error) error {
	f, ok := errors.AsType[*failure](err)
	switch {
	case ok:
		return f
	case errors.Is(err, grant.ErrInvalid):
		return bad(codeGrant, "the code or token is unknown, used, expired or revoked, or belongs to another client; "+
			"start a new sign-in")
	case errors.Is(err, grant.ErrTarget):
		return bad(codeTarget, "the grant is for another endpoint of this server")
	}
	f = ours(err)
	if ue, ok := errors.AsType[*upstream.Error](err); ok && ue.RetryAfter > 0 {
		f.retry = ue.RetryAfter
	}
	return f
}

// authenticate returns the client that a request comes from (RFC 6749 section
// 2.3.1): by Basic, by client_id and client_secret in the form, or, for public
// clients, by client_id alone. Failures alone are counted by address, so that busy clients
// behind one address do not hold up each other.
func (s *Server) authenticate(r *http.Request, form fields) (*client.Client, error) {
	key := addrKey(r)
	if err := tooMany(s.rates.failures.empty(key)); err != nil {
		return nil, err
	}
	id, secrets, err := credentials(r, form)
	if err != nil {
		return nil, err
	}
	// As it was known last: an outage of its document's host must not end its grants.
	c, err := s.o.Clients.Returning(r.Context(), id)
	if err != nil {
		return nil, s.noClient(key, err)
	}
	right := slices.ContainsFunc(secrets, c.Secret)
	if c.AuthMethod == client.AuthNone { // it has none, and one that it shows is another's
		right = len(secrets) == 0
	}
	if right {
		return c, nil
	}
	s.rates.failures.take(key)
	return nil, notAuthenticated("client authentication failed; check the secret, or register again")
}

// noClient sorts the reasons for having no client. Only invalid_client makes
// clients register anew.
func (s *Server) noClient(key string, err error) error {
	ce, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok:
		return ours(err)
	case ce.Kind == client.Unavailable:
		f := ours(err)
		f.says = ce.Public
		return f
	}
	s.rates.failures.take(key)
	f := notAuthenticated(ce.Public)
	f.cause = ce.Err
	return f
}

// credentials returns the client_id of a request and the secrets that it may
// mean, none when it shows none. Basic asks for percent-encoding of both, which
// some clients do (the Python SDK) and some do not (the one for TypeScript): a secret is
// read in both ways.
func credentials(r *http.Request, form fields) (id string, secrets []string, err error) {
	id, secret := form.get("client_id"), form.get("client_secret")
	rawID, rawSecret, basic := r.BasicAuth()
	switch shown := r.Header.Values("Authorization"); {
	case r.Header.Get("Authorization") == "" && id == "":
		return "", nil, notAuthenticated("client_id is missing")
	case r.Header.Get("Authorization") == "":
		return id, present(secret), nil
	case !basic || len(shown) > 1:
		return "", nil, notAuthenticated("the Authorization header is not Basic with client_id and secret")
	}
	basicID, err := url.QueryUnescape(rawID)
	if err != nil {
		basicID = rawID
	}
	if id != "" && id != basicID {
		if id != rawID {
			return "", nil, invalid("the Authorization header and the form name different clients")
		}
		basicID = rawID
	}
	if secret != "" && rawSecret != "" {
		return "", nil, invalid("show the client_secret in one place")
	}
	secrets = present(secret, rawSecret)
	if decoded, err := url.QueryUnescape(rawSecret); err == nil && decoded != rawSecret {
		secrets = append(secrets, decoded)
	}
	return basicID, secrets, nil
}

// present returns the texts that are not empty.
func present(texts ...string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return s == "" })
}

// revoke answers /revoke (RFC 7009). A token of another client, or an unknown one,
// gets the same answer as one's own: it is not valid for this client either way.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) error {
	if err := tooMany(s.rates.token.take(addrKey(r))); err != nil {
		return err
	}
	form, f := readForm(w, r, maxForm, "token", "token_type_hint", "client_id", "client_secret")
	if f != nil {
		return f
	}
	c, err := s.authenticate(r, form)
	if err != nil {
		return err
	}
	if form.get("token") == "" {
		return invalid("token is missing")
	}
	if _, err := s.o.Grants.Revoke(r.Context(), form.get("token"), c.ID); err != nil {
		return ours(err)
	}
	s.json(w, http.StatusOK, struct{}{})
	return nil
}

// register answers /register (RFC 7591).
func (s *Server) register(w http.ResponseWriter, r *http.Request) error {
	wait := max(s.rates.register.take(addrKey(r)), s.rates.everyRegister.empty(everyone))
	if err := tooMany(wait); err != nil {
		return err
	}
	body, f := readBody(w, r, maxForm)
	if f != nil {
		return f
	}
	// What is refused leaves nothing behind and takes nothing of the limit for all.
	status, answer := s.o.Clients.Register(r.Context(), body)
	if status == http.StatusCreated {
		s.rates.everyRegister.take(everyone)
	}
	raw(w, status, answer)
	return nil
}
