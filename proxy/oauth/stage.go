package oauth

import (
	"context"
	"errors"
	"strings"

	"aegis/proxy"
	"aegis/proxy/oauth/scope"
	"aegis/proxy/oauth/upstream"
)

// Stage refuses calls that need more than the caller's grant has. [Guard.Permits] has
// judged the message before; this judges the call that came of it, whatever
// decoded it in between. It comes after the catalog, which finds the tool.
// Static identities have no grant, and pass.
//
// It also hears when Gitea refuses the credential of a call: the person may have
// taken the permission back there, of which Gitea gives no notice.
func (s *Server) Stage() proxy.Stage {
	return func(next proxy.Handler) proxy.Handler {
		return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
			if c.Identity.Grant == nil {
				return next.Handle(ctx, c)
			}
			if lacks := scope.Missing(c.Identity.Grant.Scopes, s.needs(c.Tool)); len(lacks) > 0 {
				return nil, proxy.NewError(proxy.KindForbidden,
					"the tool needs the Gitea scope "+strings.Join(lacks, " ")+
						", which the person did not allow this client; they can allow it by signing in again", nil)
			}
			result, err := next.Handle(ctx, c)
			basicOnly := c.Tool != nil && c.Tool.BasicAuthOnly // Gitea refuses every token on its route
			pe, ok := errors.AsType[*proxy.Error](err)
			if ok && pe.Kind == proxy.KindUnauthorized && !basicOnly {
				return nil, s.rejected(ctx, c, err)
			}
			return result, err
		})
	}
}

// rejected returns what a call ends with whose credential Gitea refused.
func (s *Server) rejected(ctx context.Context, c *proxy.Call, cause error) error {
	s.recent.Take(c.Identity.UserID)
	err := s.o.Upstream.Rejected(ctx, c.Identity.UserID, c.Identity.Credential)
	if err == nil {
		return proxy.NewError(proxy.KindUnauthorized,
			"Gitea refused the sign-in, which was renewed meanwhile; make the call again", cause)
	}
	ue, ok := errors.AsType[*upstream.Error](err)
	switch {
	case !ok:
		return cause
	case ue.Kind == upstream.Gone:
		return proxy.NewError(proxy.KindUnauthorized, ue.Public, err)
	}
	return noGitea(ue, err)
}

// noGitea is trouble with Gitea in which a person's sign-in is as good as before.
func noGitea(ue *upstream.Error, cause error) error {
	if ue.Kind == upstream.Config {
		return proxy.NewError(proxy.KindUpstreamError, ue.Public, cause)
	}
	pe := proxy.NewError(proxy.KindUpstreamUnavailable, ue.Public, cause)
	pe.RetryAfter = ue.RetryAfter
	return pe
}

// needs returns the scopes of a tool. A route that no operation is known for may
// do anything, so it needs everything that there is to allow.
func (s *Server) needs(t *proxy.Tool) []string {
	if t == nil || t.OperationID == "" {
		return s.o.Config.Scopes
	}
	return t.Scopes
}
