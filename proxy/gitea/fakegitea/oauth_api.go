package fakegitea

import (
	"crypto/rand"
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
	s.change(func(w *world) bool { w.oauth.options = o.filled(); return true })
}

// SetClock changes the clock of the whole double; nil means time.Now.
func (s *Server) SetClock(now func() time.Time) {
	if now == nil {
		now = time.Now
	}
	s.change(func(w *world) bool { w.clock = now; return true })
}

// RotateSigningKey makes every token that is out unreadable, as a new key of the
// server does.
// Access and refresh tokens alike fail from then on; grants stay, so that a person only has to
// sign in again.
func (s *Server) RotateSigningKey() {
	s.change(func(w *world) bool { w.oauth.key = rand.Text(); return true })
}

// RegisterOAuthApp registers an application of the instance and returns its
// client id and secret. Public clients have a secret too, and need not show it.
func (s *Server) RegisterOAuthApp(name string, confidential bool, redirectURIs ...string) (clientID, secret string) {
	a := &oauthApp{Name: name, Confidential: confidential, RedirectURIs: slices.Clone(redirectURIs)}
	s.change(func(w *world) bool { w.addApp(a); return true })
	return a.ClientID, a.secret
}

// RotateOAuthSecret gives an application a new secret and returns it; "" when
// there is no such application. Tokens live on.
func (s *Server) RotateOAuthSecret(clientID string) (secret string) {
	s.changeApp(clientID, func(_ *world, a *oauthApp) bool {
		a.secret = newAppSecret()
		secret = a.secret
		return true
	})
	return secret
}

// DeleteOAuthApp deletes an application with its grants, which ends its tokens.
// It is false when there is no such application.
// A real Gitea answers 401 to such a token at once, since a token names its grant and the grant
// is gone.
func (s *Server) DeleteOAuthApp(clientID string) bool {
	return s.changeApp(clientID, func(w *world, a *oauthApp) bool {
		w.apps = without(w.apps, a)
		w.dropGrants(func(g *oauthGrant) bool { return g.app == a })
		return true
	})
}

// Grants lists the grants of a user, oldest first.
func (s *Server) Grants(login string) (grants []Grant) {
	s.change(func(w *world) bool {
		u := w.userByLogin(login)
		mine := filter(w.oauth.grants, func(g *oauthGrant) bool { return g.user == u })
		grants = mapped(mine, func(g *oauthGrant) Grant {
			return Grant{
				ID: g.id, Login: u.Login, UserID: u.ID, App: g.app.Name, ClientID: g.app.ClientID,
				Scope: g.scope, Effective: strings.Join(grantScopes(g.scope).list(), ","), Counter: g.counter,
			}
		})
		return true
	})
	return grants
}

// AddGrant makes a grant without a browser, with a scope as it would be asked
// for. It is false when user or application are unknown, or when there is a
// grant already, which then stays as it is.
// Gitea keeps one grant for a user and an application, whose scope no later request changes.
func (s *Server) AddGrant(login, clientID, scope string) bool {
	return s.changeGrant(login, clientID, func(w *world, u *user, a *oauthApp) bool {
		return w.grantOf(u, a) == nil && w.addGrant(u, a, scope) != nil
	})
}

// RevokeGrant takes back what the user allowed the application, as the button on
// the page of her applications does. It is false when there was nothing.
// Aegis learns of it only when it next asks with a token of the grant.
func (s *Server) RevokeGrant(login, clientID string) bool {
	return s.changeGrant(login, clientID, func(w *world, u *user, a *oauthApp) bool {
		return w.dropGrants(func(g *oauthGrant) bool { return g.user == u && g.app == a })
	})
}

// IssueOAuthTokens makes a pair of tokens of an existing grant, just as one more
// answer of the token endpoint.
// With InvalidateRefreshTokens it therefore ends the refresh tokens that a client holds, as a
// second login of the same person does.
func (s *Server) IssueOAuthTokens(login, clientID string) (access, refresh string, err error) {
	if !s.changeGrant(login, clientID, func(w *world, u *user, a *oauthApp) bool {
		g := w.grantOf(u, a)
		if g != nil {
			answer := w.issue(g)
			access, refresh = answer.Access, answer.Refresh
		}
		return g != nil
	}) {
		err = errors.New("the user has no grant for the application; call AddGrant first")
	}
	return access, refresh, err
}

// RenameUser gives a user another name; the number stays. It is false when there
// is no such user or the name is taken.
// Grants and tokens hold the user, not the name, so they live on. This is what lets a test tell
// a client that keys people by name from one that keys them by number.
func (s *Server) RenameUser(login, to string) bool {
	return s.changeUser(login, func(w *world, u *user) bool {
		if other := w.userByLogin(to); to == "" || other != nil && other != u {
			return false
		}
		u.Login = to
		return true
	})
}

// SetUserActive activates or deactivates a user. The API refuses the deactivated,
// and the pages show them nothing else.
// Tokens and grants of the user stay and work again afterwards.
func (s *Server) SetUserActive(login string, active bool) bool {
	return s.changeUser(login, func(_ *world, u *user) bool { u.Active = active; return true })
}

// ProhibitUser forbids a user to log in, or allows it again.
func (s *Server) ProhibitUser(login string, prohibited bool) bool {
	return s.changeUser(login, func(_ *world, u *user) bool { u.ProhibitLogin = prohibited; return true })
}

// SetTeamMember puts a user into a team of an organisation, or takes her out. It
// is false when one of the three does not exist.
// No API call is made, so that a membership can change behind the back of a client that has
// cached it.
func (s *Server) SetTeamMember(org, teamName, login string, member bool) bool {
	return s.changeUser(login, func(w *world, u *user) bool {
		o := w.userByLogin(org)
		if o == nil { // a person has no teams
			return false
		}
		t, ok := find(o.Teams, func(t *team) bool { return strings.EqualFold(t.Name, teamName) })
		switch {
		case ok && member:
			t.Members = with(t.Members, u)
		case ok:
			t.Members = without(t.Members, u)
		}
		return ok
	})
}

// change runs f on the world, and returns what it returns.
// All methods for tests go through it: they may be called while requests are served.
func (s *Server) change(f func(*world) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f(s.world)
}

// changeUser runs f on a person; false when there is no such person.
// Organisations have no logins of their own and are passed over.
func (s *Server) changeUser(login string, f func(*world, *user) bool) bool {
	return s.change(func(w *world) bool {
		u := w.userByLogin(login)
		return u != nil && !u.Org && f(w, u)
	})
}

// changeApp runs f on an application; false when there is none of that id.
func (s *Server) changeApp(clientID string, f func(*world, *oauthApp) bool) bool {
	return s.change(func(w *world) bool {
		a := w.appByClientID(clientID)
		return a != nil && f(w, a)
	})
}

// changeGrant runs f on a person and an application; false when one is unknown.
func (s *Server) changeGrant(login, clientID string, f func(*world, *user, *oauthApp) bool) bool {
	return s.changeUser(login, func(w *world, u *user) bool {
		a := w.appByClientID(clientID)
		return a != nil && f(w, u, a)
	})
}
