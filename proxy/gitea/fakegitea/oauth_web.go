package fakegitea

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
)

// webPage is what answers one path of the web pages and how a request for it logs in.
type webPage struct {
	// The zero value of the others is a page for anyone of the same site.
	handle func(*call)
	bearer bool // for programs: by an API token, if at all; any origin
	signIn bool // for a browser that logged in; others are sent to the login page
	login  bool // the login itself: any origin, and open to users who are barred
}

// webPages are the pages of the OAuth provider by method and path.
// All other pages of a Gitea are left out: a path that is not here is 404.
var webPages = map[string]webPage{
	"GET /":                                 {handle: showHome},
	"GET /user/login":                       {handle: showLogin, login: true},
	"POST /user/login":                      {handle: doLogin, login: true},
	"GET /user/logout":                      {handle: logout, login: true},
	"GET /user/settings/applications":       {handle: showApplications, signIn: true},
	"POST " + revokePath:                    {handle: revoke, signIn: true},
	"GET /login/oauth/authorize":            {handle: authorize, signIn: true},
	"POST /login/oauth/authorize":           {handle: authorize, signIn: true},
	"POST /login/oauth/grant":               {handle: decide, signIn: true},
	"POST /login/oauth/access_token":        {handle: accessToken, bearer: true},
	"POST /login/oauth/introspect":          {handle: introspect, bearer: true},
	"GET /login/oauth/userinfo":             {handle: pageNotInDemo},
	"GET /login/oauth/keys":                 {handle: pageNotInDemo},
	"GET /.well-known/openid-configuration": {handle: discovery, bearer: true},
}

// revokePath is the path of the button that takes a grant back.
// The id is the application's, the grant is the grant's; only the latter is looked at.
const revokePath = "/user/settings/applications/oauth2/{id}/revoke/{grant}"

// mount cuts the sub-path that the double lives under. A request elsewhere is
// not found, as behind a reverse proxy that forwards that path only.
// The log keeps the request as it came, so that a test sees what Aegis sent.
func (s *Server) mount(r *http.Request) (*http.Request, bool) {
	sub := strings.TrimSuffix(s.opts.SubPath, "/")
	if sub == "" {
		return r, true
	}
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), sub)
	if !ok || rest != "" && rest[0] != '/' {
		return nil, false
	}
	// The caller's request stays as it is: a hook or the HTTP server may still use it.
	inner, u := *r, *r.URL
	u.RawPath = cmp.Or(rest, "/")
	u.Path, _ = url.PathUnescape(u.RawPath) // well-formed, as net/http parsed it
	inner.URL = &u
	return &inner, true
}

// answerPage answers the provider's pages; false leaves the request to others.
func (s *Server) answerPage(r *http.Request, body []byte, segs []string, out *response) bool {
	path, params := pagePath(segs)
	page, found, allow := webPage{}, false, []string(nil)
	for key, p := range webPages {
		// The table is small enough to be read through; so the methods for Allow come out as
		// well.
		if method, at, _ := strings.Cut(key, " "); at == path {
			allow = append(allow, method)
			if method == r.Method || method == http.MethodGet && r.Method == http.MethodHead {
				page, found = p, true
			}
		}
	}
	if !found {
		if len(allow) > 0 {
			noRoute(out, allow)
		}
		return len(allow) > 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.newCall(r, body, out)
	c.form, c.params = formOf(r, body), params
	// The API says the same without no-transform.
	out.header.Set("Cache-Control", "max-age=0, private, must-revalidate, no-transform")
	if c.admit(page) {
		page.handle(c)
	}
	return true
}

// pagePath joins the segments; the two numbers of a revocation become parameters.
func pagePath(segs []string) (string, map[string]string) {
	if len(segs) == 7 && strings.Join(segs[:4], "/") == "user/settings/applications/oauth2" && segs[5] == "revoke" {
		return revokePath, map[string]string{"id": segs[4], "grant": segs[6]}
	}
	return "/" + strings.Join(segs, "/"), nil
}

// admit logs the request in and checks what the page asks for; false means that
// it was answered.
// The order is the server's: a barred user learns that before anything is said about the
// origin, and the origin is checked before the login.
func (c *call) admit(p webPage) bool {
	if p.bearer {
		return c.admitBearer()
	}
	c.openSession()
	if p.login {
		return true
	}
	if c.doer != nil && c.doer.barred() {
		c.prohibitedPage()
		return false
	}
	// It reads Sec-Fetch-Site and Origin, as Gitea does, in place of a token in the form.
	// Requests without both, from programs, pass.
	if err := http.NewCrossOriginProtection().Check(c.r); err != nil {
		c.plain(http.StatusForbidden, err.Error()+"\n")
		return false
	}
	// The whole request goes into redirect_to, so that the authorization goes on after the
	// login.
	if p.signIn && c.doer == nil {
		c.seeOther(c.link() + "/user/login?redirect_to=" + url.QueryEscape(c.link()+c.r.URL.RequestURI()))
		return false
	}
	return true
}

// admitBearer logs a program in when it sends an API token. Basic is left to the
// page, where it is the client's.
// A bad token is refused before the page looks at its own parameters, and a barred user gets a
// page with status 200 even from the token endpoint.
func (c *call) admitBearer() bool {
	err := c.loginByToken()
	switch {
	case err != nil:
		c.plain(http.StatusUnauthorized, "Failed to authenticate user\n")
	case c.doer != nil && c.doer.barred():
		c.prohibitedPage()
	default:
		return true
	}
	return false
}

// loginByToken takes a token of the query or the header. Old servers also take the
// form field "token" for one, which is the one that introspection is about.
func (c *call) loginByToken() error {
	if token := c.form.Get("token"); token != "" && c.w.oauth.options.OldIntrospection && !c.s.opts.DisableQueryToken {
		return c.useToken(token)
	}
	inQuery := !c.s.opts.DisableQueryToken && (c.query.Get("token") != "" || c.query.Get("access_token") != "")
	scheme, _, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "basic") && !inQuery {
		return nil
	}
	return c.login()
}
