package grant

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"aegis/proxy/kv"
)

// IssueCode returns a new code, which can be redeemed once within 60 seconds.
func (g *Grants) IssueCode(ctx context.Context, c Code) (code string, err error) {
	if c.ClientID == "" || c.RedirectURI == "" || c.UserID <= 0 {
		return "", errors.New("grants: a code needs a client, a redirect URI and a person")
	}
	if raw, err := base64.RawURLEncoding.Strict().DecodeString(c.Challenge); err != nil || len(raw) != sha256.Size {
		return "", errors.New("grants: the code challenge is not one of method S256")
	}
	code = mint(codePrefix, secret())
	until := g.o.Now().Add(codeLife)
	if err := g.save(ctx, codeKey(code), codeRecord{Code: c, Expires: until}, until); err != nil {
		return "", err
	}
	return code, nil
}

// Redeem is what a token request with a code says (RFC 6749 section 4.1.3). The
// client has been authenticated.
type Redeem struct {
	ClientID string
	// RedirectURI is compared when it is there; OAuth 2.1 asks for none (section
	// 10.2), since the verifier proves more.
	RedirectURI string
	// Verifier is the code_verifier; always needed.
	Verifier string
	// Resource is compared when it is there.
	Resource string
}

// Redeem exchanges a code for tokens. A failed attempt of the code's own client
// uses it up, except when the resource is wrong; an attempt of another client
// does not. A code that was used before ends the grant that came of it. The error
// wraps [ErrInvalid] or [ErrTarget]; after any other the code may be tried again,
// with luck.
func (g *Grants) Redeem(ctx context.Context, code string, r Redeem) (*Tokens, error) {
	if _, ok := body(codePrefix, code, secretSize); !ok {
		return nil, invalid("the code is malformed")
	}
	key := codeKey(code)
	var c codeRecord
	version, err := g.load(ctx, key, &c)
	if err != nil {
		return nil, err
	}
	if c.Spent {
		return nil, g.replayed(ctx, c.Family)
	}
	if !g.o.Now().Before(c.Expires) {
		return nil, invalid("the code has expired")
	}
	if c.ClientID != r.ClientID {
		return nil, invalid("the code is another client's")
	}
	if r.Resource != "" && !same(c.Resource, r.Resource) {
		return nil, ErrTarget
	}
	if why := mismatch(&c, &r); why != "" {
		return nil, g.refuse(ctx, key, version, &c, why)
	}
	return g.begin(ctx, key, version, &c)
}

// mismatch says what of the request does not fit the code; "": nothing.
func mismatch(c *codeRecord, r *Redeem) string {
	switch {
	case r.RedirectURI != "" && r.RedirectURI != c.RedirectURI:
		return "the redirect URI is not the one of the authorization request"
	case !verifies(r.Verifier, c.Challenge):
		return "the code verifier is missing or wrong"
	}
	return ""
}

// verifies reports whether the verifier is a proper one (RFC 7636 section 4.1)
// and the S256 challenge is made from it.
func verifies(verifier, challenge string) bool {
	const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
	if len(verifier) < 43 || len(verifier) > 128 || strings.Trim(verifier, unreserved) != "" {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return equal(base64.RawURLEncoding.EncodeToString(sum[:]), challenge)
}

// refuse uses up a code that was presented wrongly.
func (g *Grants) refuse(ctx context.Context, key string, version uint64, c *codeRecord, why string) error {
	err := g.swap(ctx, key, version, codeRecord{Spent: true}, codeMark)
	if errors.Is(err, kv.ErrConflict) {
		return invalid(why) // another request has just used it
	}
	if err != nil {
		return err
	}
	g.o.Event(Event{
		Kind: CodeRefused, ClientID: c.ClientID, ClientName: c.ClientName,
		UserID: c.UserID, Login: c.Login, At: g.o.Now(),
	})
	return invalid(why)
}

// begin writes the grant and its tokens, and then uses up the code.
func (g *Grants) begin(ctx context.Context, key string, version uint64, c *codeRecord) (*Tokens, error) {
	id, first := newID(), secret()
	f := g.newFamily(c, first)
	// The code last: until then a failure leaves it as it was.
	t, err := g.write(ctx, id, f)
	if err == nil {
		err = g.cleared(ctx, c)
	}
	if err == nil {
		err = g.swap(ctx, key, version, codeRecord{Spent: true, Family: id}, codeMark)
	}
	if err != nil {
		undo, cancel := detached(ctx)
		defer cancel()
		// Its tokens went to no client; if it stays, it is listed until it expires.
		_, _, _ = g.drop(undo, id)
		if errors.Is(err, kv.ErrConflict) {
			return nil, g.overtaken(ctx, key)
		}
		if errors.Is(err, ErrInvalid) {
			return nil, err
		}
		return nil, fmt.Errorf("grants: the code could not be exchanged: %w", err)
	}
	g.report(Issued, id, f)
	t.Refresh = g.refresh(id, first)
	return t, nil
}

// newFamily returns the record of a grant that begins now, with its first refresh
// token's secret.
func (g *Grants) newFamily(c *codeRecord, first string) *family {
	now := g.o.Now()
	f := &family{
		Client: c.ClientID, Name: c.ClientName, Verified: c.Verified, User: c.UserID, Login: c.Login,
		Scopes: c.Scopes, Resource: c.Resource, Created: now, Used: now, Current: digest(first),
	}
	if g.o.Config.MaxTTL.Std() > 0 {
		f.Ends = now.Add(g.o.Config.MaxTTL.Std())
	}
	f.Expires = g.expiry(f, now)
	return f
}

// expiry returns when a grant that is refreshed now expires.
func (g *Grants) expiry(f *family, now time.Time) time.Time {
	t := now.Add(g.o.Config.RefreshTTL.Std())
	if !f.Ends.IsZero() && t.After(f.Ends) {
		return f.Ends
	}
	return t
}

// write writes all of a new grant, the record that makes it valid last.
func (g *Grants) write(ctx context.Context, id string, f *family) (*Tokens, error) {
	if err := g.list(ctx, f, id); err != nil {
		return nil, err
	}
	token, life, err := g.issue(ctx, f, id, f.Scopes)
	if err != nil {
		return nil, err
	}
	if err := g.swap(ctx, familyKey(id), 0, f, f.Expires.Sub(g.o.Now())); err != nil {
		return nil, err
	}
	return &Tokens{Access: token, ExpiresIn: life, Scopes: clone(f.Scopes), Grant: f.grant(id)}, nil
}

// cleared fails when everything of the person was ended after the code was
// issued. It looks once the grant is written: an end that begins later finds it.
func (g *Grants) cleared(ctx context.Context, c *codeRecord) error {
	var at time.Time
	if _, err := g.load(ctx, clearedKey(c.UserID), &at); err != nil {
		return unlessInvalid(err)
	}
	if c.Expires.Add(-codeLife).After(at) {
		return nil
	}
	return invalid("all grants of the person were ended after the code was issued")
}

// overtaken answers a redemption that came second by a moment.
func (g *Grants) overtaken(ctx context.Context, key string) error {
	var c codeRecord
	if _, err := g.load(ctx, key, &c); err != nil {
		return err
	}
	return g.replayed(ctx, c.Family)
}

// replayed ends the grant of a code that came again.
func (g *Grants) replayed(ctx context.Context, id string) error {
	if id == "" {
		return invalid("the code was used up")
	}
	if _, err := g.end(ctx, CodeReplayed, id); err != nil {
		return err
	}
	return invalid("the code was used before; the grant that came of it has ended")
}
