package oauth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"aegis/proxy"
	"aegis/proxy/kv"
	"aegis/proxy/oauth/grant"
	"aegis/proxy/oauth/scope"
	"aegis/proxy/oauth/upstream"
)

// accessPrefix begins every access token of ours.
const accessPrefix = "aegis_at_"

// Reasons for having no identity, for the log.
var (
	errEnded    = errors.New("the access token is unknown, expired or revoked")
	errAudience = errors.New("the access token is for another endpoint")
	errSignIn   = errors.New("the person must sign in to Gitea again")
)

// Verifier returns the verifier of an endpoint: it takes access tokens that were
// issued for it (RFC 8707) and, if static is not nil, the configured tokens. The
// prefix decides which of the two a token is.
func (s *Server) Verifier(resource string, static Verifier) Verifier {
	return &access{server: s, resource: resource, audience: grant.CanonicalResource(resource), static: static}
}

// access verifies the tokens of one endpoint.
type access struct {
	server   *Server
	resource string
	audience string // resource in canonical form
	static   Verifier
}

// Verify returns the identity of a bearer token. It asks the store, and Gitea only
// when the person's credential is about to end.
func (v *access) Verify(ctx context.Context, token string) (*proxy.Identity, error) {
	if !strings.HasPrefix(token, accessPrefix) {
		if v.static == nil {
			return nil, errUnknown
		}
		return v.static.Verify(ctx, token)
	}
	g, err := v.server.o.Grants.Verify(ctx, token)
	switch {
	case errors.Is(err, grant.ErrInvalid):
		return nil, fmt.Errorf("%w: %w", errEnded, err)
	case err != nil:
		return nil, proxy.NewError(proxy.KindInternal,
			"the store of sign-ins cannot be read; try again shortly", err)
	// A token for another endpoint must not work here (RFC 8707): its person may not be a
	// member.
	case g.Resource != v.resource && grant.CanonicalResource(g.Resource) != v.audience:
		return nil, errAudience
	}
	c, err := v.server.credential(ctx, g.UserID)
	if err != nil {
		return nil, noCredential(err)
	}
	return &proxy.Identity{
		Login: c.Login, Mode: proxy.ModeOAuth, UserID: g.UserID, Credential: c.Token,
		Grant: &proxy.Grant{
			ID: g.ID, ClientID: g.ClientID, ClientName: g.ClientName, Verified: g.Verified,
			// What the person allowed, as far as the configuration and Gitea still do.
			Scopes: v.server.effective(g.Scopes, c.Scopes),
		},
	}, nil
}

const (
	// recentFor is how long a Gitea credential is used without asking the store
	// for it again, which has to be unsealed there.
	recentFor = time.Second
	// maxRecent bounds the people that are remembered.
	maxRecent = 4096
)

// recentCredential is the Gitea credential of a moment ago.
type recentCredential struct {
	upstream.Credential
	until time.Time
}

// credential returns what a person's calls are made with.
func (s *Server) credential(ctx context.Context, userID int64) (upstream.Credential, error) {
	now := s.o.Now()
	if last, ok := s.recent.Get(userID); ok && now.Before(last.until) {
		return last.Credential, nil
	}
	c, err := s.o.Upstream.Credential(ctx, userID)
	switch {
	case err == nil:
		s.recent.Put(userID, recentCredential{c, now.Add(recentFor)})
	case errors.Is(err, kv.ErrUnavailable):
		// The token was verified, so the credential was there a moment ago. It is looked up
		// anew: meanwhile Gitea may have refused it, and then it is gone from here.
		if last, ok := s.recent.Get(userID); ok && now.Before(last.until.Add(s.o.Outage)) {
			return last.Credential, nil
		}
	default:
		s.recent.Take(userID)
	}
	return c, err
}

// effective returns what is left of a grant's scopes.
func (s *Server) effective(granted, gitea []string) []string {
	return scope.Within(scope.Within(granted, s.allowed), scope.Of(gitea))
}

// noCredential sorts the reasons for having no Gitea credential. Only the loss of
// the sign-in itself is an invalid token: on that, clients send people to sign in
// again.
func noCredential(err error) error {
	ue, ok := errors.AsType[*upstream.Error](err)
	if !ok {
		return proxy.NewError(proxy.KindUpstreamUnavailable,
			"the Gitea credential cannot be had now; try again shortly", err)
	}
	switch ue.Kind {
	case upstream.Gone, upstream.Denied, upstream.Narrow, upstream.Wide:
		return fmt.Errorf("%w: %w", errSignIn, err)
	}
	return noGitea(ue, err)
}
