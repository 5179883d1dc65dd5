package grant

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"aegis/proxy/kv"
	"aegis/proxy/oauth/scope"
)

// Refresh is what a token request with a refresh token says (RFC 6749 section
// 6). The client has been authenticated.
type Refresh struct {
	ClientID string
	// Scopes are what the new access token shall be good for; what of it was not
	// granted is left out. Empty, or nothing left: all that was granted.
	Scopes []string
	// Resource is compared when it is there.
	Resource string
	// Allow decides whether the person may still use Aegis; nil: yes. An error
	// that wraps [ErrDenied] ends the grant, any other is returned as it is and
	// ends nothing. It is asked once, after the token was found good.
	Allow func(ctx context.Context, g Grant) error
}

// maxTries bounds how often a refresh begins anew since others were faster. One
// of those who race gets on each time, so many would have to race.
const maxTries = 64

// Refresh uses up a refresh token and returns its successor and a new access
// token. The error wraps [ErrInvalid] or [ErrTarget]; after any other the same
// token may be used again.
func (g *Grants) Refresh(ctx context.Context, token string, r Refresh) (*Tokens, error) {
	t, ok := parseRefresh(token)
	if !ok {
		return nil, invalid("the refresh token is malformed")
	}
	allowed := false
	for range maxTries {
		f, version, err := g.family(ctx, t.id)
		if err != nil {
			return nil, err
		}
		next, err := g.judge(ctx, t, f, &r)
		if err != nil {
			return nil, err
		}
		if !allowed {
			if err := g.allow(ctx, t.id, f, &r); err != nil {
				return nil, err
			}
			allowed = true
			continue // it took its time; look again what there is
		}
		tokens, err := g.renew(ctx, t, f, version, next, scope.Narrow(f.Scopes, r.Scopes))
		if !errors.Is(err, kv.ErrConflict) {
			return tokens, err
		}
	}
	return nil, errors.New("grants: the grant keeps changing under the refresh")
}

// judge decides whether the token is the current one (next is ""), or one that
// was used a moment ago; then next is the secret of the one that is current.
func (g *Grants) judge(ctx context.Context, t refreshToken, f *family, r *Refresh) (next string, err error) {
	if f.Client != r.ClientID {
		return "", invalid("the refresh token is another client's")
	}
	d := digest(t.secret)
	if !equal(f.Current, d) {
		at := find(f.Past, d)
		switch {
		case at < 0 && !g.genuine(t):
			return "", invalid("the refresh token is unknown")
		case at < 0 || g.o.Now().Sub(f.Past[at].At) >= g.o.Config.RefreshGrace.Std():
			return "", g.reused(ctx, t.id)
		}
		if next, err = g.follow(t, f, at); err != nil {
			return "", err
		}
	}
	if r.Resource != "" && !same(f.Resource, r.Resource) {
		return "", ErrTarget
	}
	return next, nil
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// find returns where among the past tokens the digest is, or -1.
func find(p []past, digest string) int {
	found := -1
	for i := range p {
		if equal(p[i].Digest, digest) {
			found = i
		}
	}
	return found
}

// follow derives the current secret from a past one, step by step: the keys may
// have changed in between, and each step's digest says which one it was.
func (g *Grants) follow(t refreshToken, f *family, at int) (string, error) {
	s := t.secret
	for i := at; i < len(f.Past); i++ {
		want := f.Current
		if i+1 < len(f.Past) {
			want = f.Past[i+1].Digest
		}
		next := ""
		for _, key := range g.keys {
			if n := successor(key, t.id, s); equal(digest(n), want) {
				next = n
			}
		}
		if next == "" {
			return "", invalid("the refresh token was used, and the key of its successor is gone")
		}
		s = next
	}
	return s, nil
}

// reused ends a grant whose old refresh token came again.
func (g *Grants) reused(ctx context.Context, id string) error {
	if _, err := g.end(ctx, Reused, id); err != nil {
		return err
	}
	return invalid("the refresh token was used before; the grant has ended")
}

// allow asks whether the person may go on.
func (g *Grants) allow(ctx context.Context, id string, f *family, r *Refresh) error {
	if r.Allow == nil {
		return nil
	}
	err := r.Allow(ctx, f.grant(id))
	if !errors.Is(err, ErrDenied) {
		return err
	}
	if _, err := g.end(ctx, Denied, id); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrInvalid, err)
}

// renew writes a new access token and, unless that has been done (next is then
// the secret), puts the successor in the refresh token's place. The error is
// [kv.ErrConflict] when the grant has changed since it was read.
func (g *Grants) renew(
	ctx context.Context, t refreshToken, f *family, version uint64, next string, scopes []string,
) (*Tokens, error) {
	now := g.o.Now()
	fresh := next == ""
	if fresh {
		next = successor(g.keys[0], t.id, t.secret)
		f.Past = append(recent(f.Past, now.Add(-g.o.Config.RefreshGrace.Std())), past{Digest: f.Current, At: now})
		f.Current, f.Used, f.Expires = digest(next), now, g.expiry(f, now)
		if err := g.list(ctx, f, t.id); err != nil {
			return nil, err
		}
	}
	// Before the swap: a client that gets no answer could use its old token once
	// more, but not if there is no grace.
	token, life, err := g.issue(ctx, f, t.id, scopes)
	if err != nil {
		return nil, err
	}
	if fresh {
		if err := g.swap(ctx, familyKey(t.id), version, f, f.Expires.Sub(g.o.Now())); err != nil {
			return nil, err
		}
		g.report(Refreshed, t.id, f)
	}
	return &Tokens{
		Access: token, Refresh: g.refresh(t.id, next), ExpiresIn: life, Scopes: scopes, Grant: f.grant(t.id),
	}, nil
}

// recent returns the tokens that were used up after then, and at most one fewer
// than a record remembers.
func recent(p []past, then time.Time) []past {
	for len(p) > 0 && (!p[0].At.After(then) || len(p) >= maxPast) {
		p = p[1:]
	}
	return append([]past{}, p...)
}
