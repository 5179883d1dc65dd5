package fakegitea

import (
	"slices"
	"time"
)

// oauthApp is an OAuth2 application of a user. The secret is kept as it is, where Gitea
// stores a hash: nothing here outlives the process.
type oauthApp struct {
	ID                       int64
	user                     *user // nil when it is the instance's
	Name, ClientID           string
	Confidential, SkipSecond bool
	RedirectURIs             []string
	Created                  time.Time
	secret                   string
}

// addApp registers an application with an id and a secret of its own. The client id is
// a UUID, as Gitea's are.
func (w *world) addApp(a *oauthApp) {
	a.ID, a.ClientID, a.Created, a.secret = w.next("app"), newUUID(), w.now(), newAppSecret()
	w.apps = append(w.apps, a)
}

// handleApps registers OAuth2 applications. The login itself is not part of the API,
// but of the web pages. Reading one application and deleting one by the API are not in
// the demo. Redirect URIs are taken as they are; Gitea refuses malformed ones with 400.
func handleApps(t table) {
	const p = "/user/applications/oauth2"
	t.on("GET "+p, func(c *call) error {
		mine := filter(c.w.apps, func(a *oauthApp) bool { return a.user == c.doer })
		slices.SortFunc(mine, func(a, b *oauthApp) int { return int(b.ID - a.ID) })
		// The list never shows a secret: the field is there and empty.
		return c.ok(mapped(linked(c, mine), func(a *oauthApp) obj { return appView(a, "") }))
	}, needToken)
	t.on("POST "+p, reads(func(c *call, in *appInput) error {
		a := &oauthApp{user: c.doer}
		in.apply(a)
		c.w.addApp(a)
		return c.created(appView(a, a.secret))
	}), needToken)
	t.on("PATCH "+p+"/{id}", func(c *call) error {
		// Another user's application is the same 404 as one that does not exist.
		mine := func(a *oauthApp) bool { return a.ID == c.id("id") && a.user == c.doer }
		return onFirst(c, c.w.apps, mine, readsFor(editApp))
	}, needToken)
}

// newAppSecret makes the secret of an application, in the server's form. 26 bytes in
// hexadecimal are as long as Gitea's 32 in base32, but have digits that base32 lacks:
// the strict pattern that proxy/mask has for such secrets does not match these.
func newAppSecret() string { return "gto_" + randomHex(26) }

// appView renders an application; the secret shows when it was made.
func appView(a *oauthApp, secret string) obj {
	return obj{
		"id", a.ID, "name", a.Name, "client_id", a.ClientID, "client_secret", secret,
		"confidential_client", a.Confidential, "skip_secondary_authorization", a.SkipSecond,
		"redirect_uris", a.RedirectURIs, "created", a.Created,
	}
}

// appInput is the body of an application.
type appInput struct {
	Name         string   `json:"name" binding:"Required"`
	Confidential bool     `json:"confidential_client"`
	SkipSecond   bool     `json:"skip_secondary_authorization"`
	RedirectURIs []string `json:"redirect_uris" binding:"Required"`
}

// apply replaces everything that a body names.
func (in *appInput) apply(a *oauthApp) {
	a.Name, a.Confidential, a.SkipSecond, a.RedirectURIs = in.Name, in.Confidential, in.SkipSecond, in.RedirectURIs
}

// editApp replaces an application and its secret with it: there is no other way to
// get a new one.
func editApp(c *call, a *oauthApp, in *appInput) error {
	in.apply(a)
	a.secret = newAppSecret()
	return c.ok(appView(a, a.secret))
}
