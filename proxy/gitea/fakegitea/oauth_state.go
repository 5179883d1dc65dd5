package fakegitea

import (
	"encoding/base32"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// oauthWorld is what the OAuth provider remembers. The Server's lock guards it.
type oauthWorld struct {
	options  OAuthOptions
	keyID    string // names the signing key, so that tokens of another Server are foreign
	grants   []*oauthGrant
	codes    []*oauthCode // oldest first
	sessions []*session   // oldest first
}

// The memory for what a browser leaves behind is bounded; the oldest goes first.
const (
	maxSessions = 1000
	maxCodes    = 1000
)

// The lifetimes of a fresh Gitea that no test changes.
const (
	codeLifetime    = 10 * time.Minute
	refreshLifetime = 730 * time.Hour
)

// oauthGrant is the one consent that a user gave to an application.
type oauthGrant struct {
	id      int64
	user    *user
	app     *oauthApp
	scope   string // as asked
	nonce   string
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
	id                           string
	user                         *user
	pending                      bool
	clientID, state, redirectURI string
	challenge, method            string // of the last authorization with PKCE
}

// newOAuthWorld returns a provider with the usual options.
func newOAuthWorld() oauthWorld {
	return oauthWorld{options: OAuthOptions{}.filled(), keyID: randomKeyID()}
}

// filled replaces what is not set by what a fresh Gitea has.
func (o OAuthOptions) filled() OAuthOptions {
	if o.AccessLifetime <= 0 {
		o.AccessLifetime = time.Hour
	}
	return o
}

// appByClientID finds an application; nil when there is none.
func (w *world) appByClientID(id string) *oauthApp {
	a, _ := find(w.apps, func(a *oauthApp) bool { return a.ClientID == id })
	return a
}

// grantOf finds the grant of a user for an application.
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
func (w *world) dropGrants(f func(*oauthGrant) bool) bool {
	before := len(w.oauth.grants)
	w.oauth.grants = slices.DeleteFunc(w.oauth.grants, f)
	w.oauth.codes = slices.DeleteFunc(w.oauth.codes, func(c *oauthCode) bool { return f(c.grant) })
	return len(w.oauth.grants) != before
}

// dropApp deletes an application and everything that was granted to it.
func (w *world) dropApp(a *oauthApp) {
	w.apps = without(w.apps, a)
	w.dropGrants(func(g *oauthGrant) bool { return g.app == a })
}

// newCode makes an authorization code for the grant.
func (w *world) newCode(g *oauthGrant, redirectURI, challenge, method string) *oauthCode {
	now := w.now()
	c := &oauthCode{
		secret: "gta_" + randomWord(), grant: g, redirectURI: redirectURI, challenge: challenge, method: method,
		expires: now.Add(codeLifetime),
	}
	if len(w.oauth.codes) >= maxCodes {
		w.oauth.codes = slices.Delete(w.oauth.codes, 0, 1)
	}
	w.oauth.codes = append(w.oauth.codes, c)
	return c
}

// newSession logs a browser in.
func (w *world) newSession(u *user) *session {
	s := &session{id: randomHex(8), user: u}
	if len(w.oauth.sessions) >= maxSessions {
		w.oauth.sessions = slices.Delete(w.oauth.sessions, 0, 1)
	}
	w.oauth.sessions = append(w.oauth.sessions, s)
	return s
}

// randomWord is 32 random bytes in the server's own alphabet, 52 letters.
func randomWord() string {
	enc := base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
	return enc.EncodeToString(randomBytes(32))
}

// identityScopes say what an application learns about the user; they do not
// restrict anything.
var identityScopes = []string{"openid", "profile", "email", "groups"}

// grantScopes is what tokens of a grant may do. It fails open as the real server
// does: without a scope for the API, and with a single unknown word, that is
// everything.
func grantScopes(asked string) scopeSet {
	var words []string
	access := false
	for word := range strings.SplitSeq(asked, " ") {
		if word == "" || slices.Contains(identityScopes, word) {
			continue
		}
		access = true
		for part := range strings.SplitSeq(word, ",") {
			if part != "" {
				words = append(words, part)
			}
		}
	}
	set, err := parseScopes(words)
	if !access || err != nil {
		return scopeSet{all: true}
	}
	for _, c := range categories {
		if set.level[c] < 2 {
			return set
		}
	}
	set.all = true
	return set
}

// scopeHas says whether a word was asked for; only spaces separate here.
func (g *oauthGrant) scopeHas(word string) bool {
	return slices.Contains(strings.Split(g.scope, " "), word)
}

// takesRedirect says whether the application registered the URI: in any letter
// case and without regard to one slash at the end. A public client may add a port to
// a loopback address that it registered without one.
func (a *oauthApp) takesRedirect(uri string) bool {
	candidates := []string{uri}
	if plain, ok := withoutLoopbackPort(uri); ok && !a.Confidential {
		candidates = append(candidates, plain)
	}
	normal := func(s string) string { return strings.TrimSuffix(lowerASCII(s), "/") }
	return slices.ContainsFunc(candidates, func(have string) bool {
		return slices.ContainsFunc(a.RedirectURIs, func(want string) bool { return normal(want) == normal(have) })
	})
}

// withoutLoopbackPort cuts the port of an http URI with a loopback address; a name
// such as localhost does not count (RFC 8252 section 7.3).
func withoutLoopbackPort(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" || u.Port() == "" {
		return "", false
	}
	ip := net.ParseIP(u.Hostname())
	if ip == nil || !ip.IsLoopback() {
		return "", false
	}
	u.Host = u.Hostname()
	return u.String(), true
}

// lowerASCII lowers A to Z and nothing else.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
