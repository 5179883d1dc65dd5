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
	sessionCookie  = "i_like_gitea"
	redirectCookie = "redirect_to"
)

// setCookie sets a cookie of the pages; an empty value removes it.
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
func (c *call) link() string {
	u, err := url.Parse(c.root)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(u.EscapedPath(), "/")
}

// openSession finds the session that the browser's cookie names.
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
	c.setCookie(sessionCookie, c.w.newSession(u))
	c.setCookie(redirectCookie, "")
	c.seeOther(c.onSite(to))
}

// barred says whether the user may use nothing at all.
func (u *user) barred() bool { return u.ProhibitLogin || !u.Active }

// onSite is a link of this site as it is, and the home page instead of any other.
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
		c.w.dropGrants(func(g *oauthGrant) bool { return g.id == id && g.user == c.doer })
	}
	to := c.link() + "/user/settings/applications"
	if c.wantsPage() {
		c.seeOther(to)
		return
	}
	c.line(http.StatusOK, map[string]string{"redirect": to})
}
