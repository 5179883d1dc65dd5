package fakegitea

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// OAuthOptions are the settings of the OAuth provider. The zero value is a fresh
// Gitea.
type OAuthOptions struct {
	// InvalidateRefreshTokens makes every answer of the token endpoint end the
	// grant's earlier refresh tokens, as INVALIDATE_REFRESH_TOKENS does.
	InvalidateRefreshTokens bool
	// AccessLifetime is the lifetime of access tokens; 0 means one hour.
	AccessLifetime time.Duration
	// OldIntrospection answers introspection as Gitea up to 1.26 does: a dead
	// token is 401 with a text, that of a barred user a page with status 200,
	// and that of another client active.
	OldIntrospection bool
}

// Grant is what a user allowed an application.
type Grant struct {
	// ID is the grant's number, which its tokens carry.
	ID int64
	// Login and UserID are the user.
	Login  string
	UserID int64
	// App and ClientID are the application.
	App, ClientID string
	// Scope is what was asked for, as it was.
	Scope string
	// Effective is what tokens may do, such as "all" or
	// "write:issue,read:repository".
	Effective string
	// Counter counts the answers of the token endpoint while refresh tokens are
	// invalidated.
	Counter int64
}

// SetOAuthOptions changes the settings. Tokens that are out keep their lifetime.
func (s *Server) SetOAuthOptions(o OAuthOptions) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.oauth.options = o.filled()
}

// SetClock changes the clock of the whole double; nil means time.Now.
func (s *Server) SetClock(now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now == nil {
		now = time.Now
	}
	s.world.clock = now
}

// RotateSigningKey makes every token that is out unreadable, as a new key of the
// server does.
func (s *Server) RotateSigningKey() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.oauth.keyID = randomKeyID()
}

// RegisterOAuthApp registers an application of the instance and returns its
// client id and secret. Public clients have a secret too, and need not show it.
func (s *Server) RegisterOAuthApp(name string, confidential bool, redirectURIs ...string) (clientID, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &oauthApp{
		ID: s.world.next("app"), Name: name, ClientID: newUUID(), Confidential: confidential,
		RedirectURIs: slices.Clone(redirectURIs), Created: s.world.now(), secret: newAppSecret(),
	}
	s.world.apps = append(s.world.apps, a)
	return a.ClientID, a.secret
}

// RotateOAuthSecret gives an application a new secret and returns it; "" when
// there is no such application. Tokens live on.
func (s *Server) RotateOAuthSecret(clientID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.world.appByClientID(clientID)
	if a == nil {
		return ""
	}
	a.secret = newAppSecret()
	return a.secret
}

// DeleteOAuthApp deletes an application with its grants, which ends its tokens.
// It is false when there is no such application.
func (s *Server) DeleteOAuthApp(clientID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.world.appByClientID(clientID)
	if a != nil {
		s.world.dropApp(a)
	}
	return a != nil
}

// Grants lists the grants of a user, oldest first.
func (s *Server) Grants(login string) []Grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.world.userByLogin(login)
	mine := filter(s.world.oauth.grants, func(g *oauthGrant) bool { return g.user == u })
	return mapped(mine, func(g *oauthGrant) Grant {
		return Grant{
			ID: g.id, Login: g.user.Login, UserID: g.user.ID, App: g.app.Name, ClientID: g.app.ClientID,
			Scope: g.scope, Effective: strings.Join(grantScopes(g.scope).list(), ","), Counter: g.counter,
		}
	})
}

// AddGrant makes a grant without a browser, with a scope as it would be asked
// for. It is false when user or application are unknown, or when there is a
// grant already, which then stays as it is.
func (s *Server) AddGrant(login, clientID, scope string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, a := s.world.userByLogin(login), s.world.appByClientID(clientID)
	if u == nil || u.Org || a == nil || s.world.grantOf(u, a) != nil {
		return false
	}
	s.world.addGrant(u, a, scope)
	return true
}

// RevokeGrant takes back what the user allowed the application, as the button on
// the page of her applications does. It is false when there was nothing.
func (s *Server) RevokeGrant(login, clientID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, a := s.world.userByLogin(login), s.world.appByClientID(clientID)
	return u != nil && a != nil && s.world.dropGrants(func(g *oauthGrant) bool { return g.user == u && g.app == a })
}

// IssueOAuthTokens makes a pair of tokens of an existing grant, just as one more
// answer of the token endpoint.
func (s *Server) IssueOAuthTokens(login, clientID string) (access, refresh string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, a := s.world.userByLogin(login), s.world.appByClientID(clientID)
	if u == nil || a == nil {
		return "", "", errors.New("no such user or application")
	}
	g := s.world.grantOf(u, a)
	if g == nil {
		return "", "", errors.New("the user has no grant for the application; call AddGrant or Approve first")
	}
	c := &call{s: s, w: s.world, now: s.world.now(), root: s.opts.RootURL}
	answer, err := c.issue(g)
	if err != nil {
		return "", "", err
	}
	return answer.Access, answer.Refresh, nil
}

// RenameUser gives a user another name; the number stays. It is false when there
// is no such user or the name is taken.
func (s *Server) RenameUser(login, to string) bool {
	return s.changeUser(login, func(u *user) bool {
		if other := s.world.userByLogin(to); to == "" || other != nil && other != u {
			return false
		}
		u.Login = to
		return true
	})
}

// SetUserActive activates or deactivates a user. The API refuses the deactivated,
// and the pages show them nothing else.
func (s *Server) SetUserActive(login string, active bool) bool {
	return s.changeUser(login, func(u *user) bool { u.Active = active; return true })
}

// ProhibitUser forbids a user to log in, or allows it again.
func (s *Server) ProhibitUser(login string, prohibited bool) bool {
	return s.changeUser(login, func(u *user) bool { u.ProhibitLogin = prohibited; return true })
}

// changeUser runs f on a person; false when there is no such person.
func (s *Server) changeUser(login string, f func(*user) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.world.userByLogin(login)
	return u != nil && !u.Org && f(u)
}

// SetTeamMember puts a user into a team of an organisation, or takes her out. It
// is false when one of the three does not exist.
func (s *Server) SetTeamMember(org, teamName, login string, member bool) bool {
	return s.changeUser(login, func(u *user) bool {
		o := s.world.userByLogin(org)
		if o == nil || !o.Org {
			return false
		}
		t, ok := find(o.Teams, func(t *team) bool { return strings.EqualFold(t.Name, teamName) })
		if !ok {
			return false
		}
		if member {
			t.Members = with(t.Members, u)
		} else {
			t.Members = without(t.Members, u)
		}
		return true
	})
}
