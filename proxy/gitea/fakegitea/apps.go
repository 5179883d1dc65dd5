package fakegitea

import (
	"slices"
	"time"
)

// oauthApp is an OAuth2 application of a user.
type oauthApp struct {
	ID                       int64
	user                     *user
	Name, ClientID           string
	Confidential, SkipSecond bool
	RedirectURIs             []string
	Created                  time.Time
	secret                   string
}

// handleApps registers OAuth2 applications. The login itself is not part of the
// API, but of the web pages.
func handleApps(t table) {
	const p = "/user/applications/oauth2"
	t.on("GET "+p, func(c *call) error {
		mine := filter(c.w.apps, func(a *oauthApp) bool { return a.user == c.doer })
		slices.SortFunc(mine, func(a, b *oauthApp) int { return int(b.ID - a.ID) })
		return c.ok(mapped(linked(c, mine), func(a *oauthApp) obj { return appView(a, "") }))
	}, needToken)
	t.on("POST "+p, func(c *call) error {
		a := &oauthApp{user: c.doer, Created: c.now, ClientID: newUUID()}
		if err := c.readApp(a); err != nil {
			return err
		}
		a.ID = c.w.next("app")
		a.secret = newAppSecret()
		c.w.apps = append(c.w.apps, a)
		return c.created(appView(a, a.secret))
	}, needToken)
	t.on("PATCH "+p+"/{id}", func(c *call) error { // a new secret comes with every change
		a, ok := find(c.w.apps, func(a *oauthApp) bool { return a.ID == c.id("id") && a.user == c.doer })
		if !ok {
			return errNotFound
		}
		if err := c.readApp(a); err != nil {
			return err
		}
		a.secret = newAppSecret()
		return c.ok(appView(a, a.secret))
	}, needToken)
}

// newAppSecret makes the secret of an application, in the server's form.
func newAppSecret() string { return "gto_" + randomHex(26) }

// appView renders an application; the secret shows when it was made.
func appView(a *oauthApp, secret string) obj {
	return obj{
		"id", a.ID, "name", a.Name, "client_id", a.ClientID, "client_secret", secret,
		"confidential_client", a.Confidential, "skip_secondary_authorization", a.SkipSecond,
		"redirect_uris", a.RedirectURIs, "created", a.Created,
	}
}

// readApp decodes the body of an application.
func (c *call) readApp(a *oauthApp) error {
	var in struct {
		Name         string   `json:"name" binding:"Required"`
		Confidential bool     `json:"confidential_client"`
		SkipSecond   bool     `json:"skip_secondary_authorization"`
		RedirectURIs []string `json:"redirect_uris" binding:"Required"`
	}
	if err := c.bind(&in); err != nil {
		return err
	}
	a.Name, a.Confidential, a.SkipSecond, a.RedirectURIs = in.Name, in.Confidential, in.SkipSecond, in.RedirectURIs
	return nil
}
