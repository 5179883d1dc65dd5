package fakegitea

import (
	"crypto/rand"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// oauthWorld is what the OAuth provider remembers. The Server's lock guards it.
type oauthWorld struct {
	options  OAuthOptions
	key      string // signs tokens; those of another Server are foreign
	grants   []*oauthGrant
	codes    []*oauthCode // oldest first
	sessions []*session   // oldest first
}

// maxKept bounds each list of what browsers leave behind; the oldest goes first.
// A browser that never comes back leaves its session and its codes behind.
const maxKept = 1000

// The lifetimes of a fresh Gitea that no test changes.
// The refresh lifetime is a setting in hours there. The answer of the token endpoint does not
// name it.
const (
	codeLifetime    = 10 * time.Minute
	refreshLifetime = 730 * time.Hour
)

// oauthGrant is the one consent that a user gave to an application.
type oauthGrant struct {
	id   int64
	user *user
	app  *oauthApp
	// Another wording of the same scopes counts as a different scope, so it is kept to the
	// letter.
	scope   string // as asked
	counter int64
	created time.Time
}

// oauthCode is an authorization code.
type oauthCode struct {
	secret            string
	grant             *oauthGrant
	redirectURI       string
	challenge, method string
	expires           time.Time
}

// session is a browser that logged in. The authorization that its consent page
// shows is kept here, so a browser has one at a time.
type session struct {
	id      string
	user    *user
	pending *authorization
	// They outlive the authorization; see authorize for what that breaks.
	challenge, method string // of the last authorization with PKCE
}

// newOAuthWorld returns a provider with the usual options.
// The key is random for each Server, so that no test can come to rely on one.
func newOAuthWorld() oauthWorld {
	return oauthWorld{options: OAuthOptions{}.filled(), key: rand.Text()}
}

// filled replaces what is not set by what a fresh Gitea has.
func (o OAuthOptions) filled() OAuthOptions {
	if o.AccessLifetime <= 0 {
		o.AccessLifetime = time.Hour
	}
	return o
}

// appByClientID finds an application; nil when there is none.
// Client ids are compared to the letter.
func (w *world) appByClientID(id string) *oauthApp {
	a, _ := find(w.apps, func(a *oauthApp) bool { return a.ClientID == id })
	return a
}

// grantOf finds the grant of a user for an application.
// There is at most one: that is Gitea's model, and why a second sign-in with other scopes
// fails.
func (w *world) grantOf(u *user, a *oauthApp) *oauthGrant {
	g, _ := find(w.oauth.grants, func(g *oauthGrant) bool { return g.user == u && g.app == a })
	return g
}

// grantByID finds a grant.
func (w *world) grantByID(id int64) *oauthGrant {
	g, _ := find(w.oauth.grants, func(g *oauthGrant) bool { return g.id == id })
	return g
}

// addGrant stores a consent.
func (w *world) addGrant(u *user, a *oauthApp, scope string) *oauthGrant {
	g := &oauthGrant{id: w.next("grant"), user: u, app: a, scope: scope, created: w.now()}
	w.oauth.grants = append(w.oauth.grants, g)
	return g
}

// dropGrants takes back the grants that f accepts, with their codes. Tokens name
// their grant and die with it.
// A consent that is given anew makes a grant with another id, so tokens of the old one stay
// dead.
func (w *world) dropGrants(f func(*oauthGrant) bool) bool {
	before := len(w.oauth.grants)
	w.oauth.grants = slices.DeleteFunc(w.oauth.grants, f)
	w.oauth.codes = slices.DeleteFunc(w.oauth.codes, func(c *oauthCode) bool { return f(c.grant) })
	return len(w.oauth.grants) != before
}

// newCode makes an authorization code for the grant, in the server's own form.
func (w *world) newCode(g *oauthGrant, redirectURI, challenge, method string) string {
	// The prefix is for scanners of secrets. The real code has 52 letters of base32 behind it,
	// as this has.
	secret := "gta_" + strings.ToLower(rand.Text()+rand.Text())
	code := &oauthCode{secret, g, redirectURI, challenge, method, w.now().Add(codeLifetime)}
	w.oauth.codes = keep(w.oauth.codes, code)
	return secret
}

// newSession logs a browser in and returns what its cookie holds.
func (w *world) newSession(u *user) string {
	s := &session{id: randomHex(8), user: u}
	w.oauth.sessions = keep(w.oauth.sessions, s)
	return s.id
}

// keep appends to a bounded list.
func keep[T any](list []T, item T) []T {
	if len(list) >= maxKept {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, item)
}

// takesRedirect says whether the application registered the URI: in any letter
// case and without regard to one slash at the end. A public client may add a port to
// a loopback address that it registered without one.
// The port is cut from what is asked, not from what is registered: an address that was
// registered with a port takes no other.
func (a *oauthApp) takesRedirect(uri string) bool {
	normal := func(s string) string { return strings.TrimSuffix(strings.ToLower(s), "/") }
	return slices.ContainsFunc(a.RedirectURIs, func(want string) bool {
		return normal(want) == normal(uri) || !a.Confidential && normal(want) == normal(withoutLoopbackPort(uri))
	})
}

// withoutLoopbackPort cuts the port of an http URI with a loopback address; a name
// such as localhost does not count (RFC 8252 section 7.3).
func withoutLoopbackPort(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" || !net.ParseIP(u.Hostname()).IsLoopback() {
		return uri
	}
	// An IPv6 address loses its brackets here, as on the real server, and does not fit a URI
	// that was registered with them.
	u.Host = u.Hostname()
	return u.String()
}
