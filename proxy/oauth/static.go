package oauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"aegis/config"
	"aegis/proxy"
)

// Resolver says whose credential it is: the login, and whether that user
// administers the instance. Errors are [*proxy.Error].
type Resolver interface {
	Login(ctx context.Context, cred proxy.Credential) (proxy.Person, error)
}

const (
	// resolveTimeout bounds asking Gitea whose token it is.
	resolveTimeout = 10 * time.Second
	// resolveAgain is how long a failure is remembered, so that a Gitea that is
	// down is not asked by every request.
	resolveAgain = 2 * time.Second
)

// Static knows the bearer tokens of auth.tokens. It keeps their SHA-256, not
// the tokens. Safe for concurrent use.
type Static struct {
	resolver Resolver
	entries  []*entry
	now      func() time.Time
}

// entry is one configured token. The identity is made when it is first needed,
// so that Aegis can start before Gitea does.
type entry struct {
	digest [sha256.Size]byte
	token  config.Token
	ready  atomic.Pointer[proxy.Identity]

	mu      sync.Mutex
	failure error
	retryAt time.Time
}

// NewStatic returns the verifier of the given tokens.
func NewStatic(tokens []config.Token, resolver Resolver) *Static {
	s := &Static{resolver: resolver, now: time.Now}
	for _, t := range tokens {
		s.entries = append(s.entries, &entry{digest: sha256.Sum256([]byte(t.Token.Reveal())), token: t})
	}
	return s
}

// With returns the verifier of other tokens for the same Gitea, which resolver asks.
// Entries that are the same in both are shared, with the identities that s has made or
// will make, so that a reload does not ask Gitea for what is known. s stays as it is.
func (s *Static) With(tokens []config.Token, resolver Resolver) *Static {
	n := NewStatic(tokens, resolver)
	for i, e := range n.entries {
		for _, o := range s.entries {
			if e.sameAs(o) {
				n.entries[i] = o
			}
		}
	}
	return n
}

// sameAs reports whether both entries make the same identity for the same token.
func (e *entry) sameAs(o *entry) bool {
	return e.digest == o.digest && e.token.Name == o.token.Name && e.token.AllowSudo == o.token.AllowSudo &&
		e.token.GiteaToken.Equal(o.token.GiteaToken)
}

// find returns the entry of a bearer token, nil when there is none. Every
// entry is compared, in constant time, over digests: the time taken tells
// neither which entry matched nor how much of a token is right.
func (s *Static) find(token string) *entry {
	digest := sha256.Sum256([]byte(token))
	var found *entry
	for _, e := range s.entries {
		if subtle.ConstantTimeCompare(digest[:], e.digest[:]) == 1 {
			found = e
		}
	}
	return found
}

// Knows reports whether a text is one of the tokens, in constant time, and asks
// Gitea nothing.
func (s *Static) Knows(token string) bool {
	return len(token) <= maxBearer && s.find(token) != nil
}

// Verify returns the identity of a bearer token. The error wraps errUnknown
// when there is none, or is what kept Gitea from saying whose token it is.
func (s *Static) Verify(ctx context.Context, token string) (*proxy.Identity, error) {
	e := s.find(token)
	if e == nil {
		return nil, errUnknown
	}
	return s.identity(ctx, e)
}

// identity returns the identity of an entry, and makes it when it is first needed. Of the
// requests that need it at once, one asks Gitea and the others wait for its answer.
func (s *Static) identity(ctx context.Context, e *entry) (*proxy.Identity, error) {
	if id := e.ready.Load(); id != nil {
		return id, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if id := e.ready.Load(); id != nil {
		return id, nil
	}
	if e.failure != nil && s.now().Before(e.retryAt) {
		return nil, e.failure
	}
	// The identity belongs to the entry, not to the request that happens to
	// need it first: that client's going away must not fail the others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resolveTimeout)
	defer cancel()
	id, err := s.resolve(ctx, e.token)
	if err != nil {
		e.failure, e.retryAt = err, s.now().Add(resolveAgain)
		return nil, err
	}
	e.ready.Store(id)
	return id, nil
}

// resolve asks Gitea whose token it is. What is wrong with the configuration is said to the
// caller too, by the name of the entry, as the operator hears of it through them.
func (s *Static) resolve(ctx context.Context, t config.Token) (*proxy.Identity, error) {
	cred := proxy.NewCredential(proxy.ModeStatic, t.GiteaToken.Reveal())
	who, err := s.resolver.Login(ctx, cred)
	var pe *proxy.Error
	switch {
	case errors.As(err, &pe) && pe.Kind == proxy.KindUnauthorized:
		return nil, proxy.NewError(proxy.KindUnauthorized,
			fmt.Sprintf("Gitea does not accept the gitea_token of auth.tokens entry %q; "+
				"its operator must replace it", t.Name), err)
	case errors.As(err, &pe) && pe.Kind == proxy.KindForbidden:
		return nil, proxy.NewError(proxy.KindForbidden,
			fmt.Sprintf("the gitea_token of auth.tokens entry %q lacks the scope read:user, "+
				"which Aegis needs to learn its login; its operator must add it", t.Name), err)
	case err != nil:
		return nil, proxy.NewError(proxy.KindUpstreamUnavailable,
			"Gitea cannot be asked whose token this is; try again shortly", err)
	case t.AllowSudo && !who.Admin:
		return nil, proxy.NewError(proxy.KindForbidden,
			fmt.Sprintf("auth.tokens entry %q sets allow_sudo, but %s is not a site administrator of Gitea; "+
				"its operator must remove allow_sudo or use an administrator's token", t.Name, who.Login), nil)
	}
	return &proxy.Identity{
		Login: who.Login, UserID: who.ID, Mode: proxy.ModeStatic, TokenName: t.Name,
		Credential: cred, AllowSudo: t.AllowSudo,
	}, nil
}

// Resolve makes all identities now and returns the failures by token name, so
// that an operator reads about a wrong Gitea token at the start and not from a
// user.
func (s *Static) Resolve(ctx context.Context) map[string]error {
	failures := map[string]error{}
	for _, e := range s.entries {
		if _, err := s.identity(ctx, e); err != nil {
			failures[e.token.Name] = err
		}
	}
	return failures
}
