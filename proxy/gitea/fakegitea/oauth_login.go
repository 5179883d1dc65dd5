package fakegitea

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// The cookies of the web pages.
const (
	// The names are those of a fresh Gitea.
	sessionCookie  = "i_like_gitea"
	redirectCookie = "redirect_to"
)

// setCookie sets a cookie of the pages; an empty value removes it.
// Secure follows the root URL and not the connection, as behind a proxy that ends TLS. With a
// sub-path they are sent below it only.
func (c *call) setCookie(name, value string) {
	k := &http.Cookie{
		Name: name, Value: value, Path: cmp.Or(c.link(), "/"), HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: strings.HasPrefix(c.root, "https:"),
	}
	if value == "" {
		k.MaxAge = -1
	}
	c.out.header.Add("Set-Cookie", k.String())
}

// link is the path of the root URL, which begins every link and redirect.
// A redirect has no host in it: the double answers at addresses that are not its root URL, and
// a browser that came by one of them has to stay there.
func (c *call) link() string {
	u, err := url.Parse(c.root)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(u.EscapedPath(), "/")
}

// openSession finds the session that the browser's cookie names.
// An unknown cookie is no login rather than an error. Sessions have no lifetime here; they end
// by logging out or when more than maxKept are open.
func (c *call) openSession() {
	k, err := c.r.Cookie(sessionCookie)
	if err != nil {
		return
	}
	s, ok := find(c.w.oauth.sessions, func(s *session) bool { return s.id == k.Value })
	if ok {
		c.sess, c.doer = s, s.user
	}
}

// showLogin is GET /user/login. Where to go afterwards is kept in a cookie.
// The form itself carries no target, so the cookie is what brings a person back to the consent
// page after the login.
func showLogin(c *call) {
	to := c.form.Get("redirect_to")
	if c.doer != nil {
		c.seeOther(c.onSite(to))
		return
	}
	if to != "" {
		c.setCookie(redirectCookie, url.QueryEscape(to))
	}
	c.loginPage("", false)
}

// doLogin is POST /user/login. A user who was deactivated gets in, and then sees
// nothing but the page that says so, as on the real server.
func doLogin(c *call) {
	if c.doer != nil {
		c.seeOther(c.onSite(c.form.Get("redirect_to")))
		return
	}
	name := strings.TrimSpace(c.form.Get("user_name"))
	u, ok := find(c.w.people(), func(u *user) bool {
		return strings.EqualFold(u.Login, name) || u.Email != "" && strings.EqualFold(u.Email, name)
	})
	// Someone without a password, as one made by a test may be, cannot log in. The page has
	// status 200 and does not say which of the two was wrong.
	if !ok || u.Password == "" || u.Password != c.form.Get("password") {
		c.loginPage(name, true)
		return
	}
	if u.ProhibitLogin {
		c.prohibitedPage()
		return
	}
	to := c.form.Get("redirect_to")
	if k, err := c.r.Cookie(redirectCookie); err == nil && to == "" {
		to, _ = url.QueryUnescape(k.Value) // nonsense leads home
	}
	u.LastLogin = c.now
	// A session belongs to one person from its beginning to its end, so the challenge that it
	// remembers is never that of somebody else.
	c.setCookie(sessionCookie, c.w.newSession(u))
	c.setCookie(redirectCookie, "")
	c.seeOther(c.onSite(to))
}

// barred says whether the user may use nothing at all.
// The API and the pages ask the same question, though they answer in different words.
func (u *user) barred() bool { return u.ProhibitLogin || !u.Active }

// onSite is a link of this site as it is, and the home page instead of any other.
// It is the guard against an open redirect. A browser reads both a double slash and a backslash
// as the beginning of another host.
func (c *call) onSite(to string) string {
	u, err := url.Parse(to)
	home := c.link() + "/"
	switch {
	case err != nil || strings.HasPrefix(to, "//") || strings.Contains(u.Path, `\`):
		return home
	case u.Scheme == "" && u.Host == "" && strings.HasPrefix(to, home) || strings.HasPrefix(to, c.root+"/"):
		return to
	}
	return home
}

// logout is GET /user/logout.
// Grants and tokens are not touched: an application goes on working for a person who has logged
// out.
func logout(c *call) {
	if c.sess != nil {
		c.w.oauth.sessions = without(c.w.oauth.sessions, c.sess)
	}
	c.setCookie(sessionCookie, "")
	c.seeOther(c.link() + "/")
}

// showHome is the front page for browsers. Other clients find nothing here, as
// the double has no other pages.
func showHome(c *call) {
	if !c.wantsPage() {
		c.plain(http.StatusNotFound, "Not found.\n")
		return
	}
	c.homePage()
}

// wantsPage says whether a browser asks.
// Programs that look at the front page, to see whether a Gitea is there, get the same 404 as on
// every path that the double does not know.
func (c *call) wantsPage() bool { return strings.Contains(c.r.Header.Get("Accept"), "text/html") }

// showApplications is GET /user/settings/applications.
func showApplications(c *call) {
	c.applicationsPage(filter(c.w.oauth.grants, func(g *oauthGrant) bool { return g.user == c.doer }))
}

// revoke is the button on that page. Only the number of the grant counts; another
// user's is left alone, with the same answer.
func revoke(c *call) {
	id, err := strconv.ParseInt(c.params["grant"], 10, 64)
	if err == nil {
		// The id of the application in the path is not compared; the real server does not read
		// it either.
		c.w.dropGrants(func(g *oauthGrant) bool { return g.id == id && g.user == c.doer })
	}
	to := c.link() + "/user/settings/applications"
	if c.wantsPage() {
		c.seeOther(to)
		return
	}
	// The real page sends the form by a script, which follows this address.
	c.line(http.StatusOK, map[string]string{"redirect": to})
}
