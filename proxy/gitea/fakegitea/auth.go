package fakegitea

import (
	"cmp"
	"net/http"
	"strings"
	"time"
)

// token is a personal access token. The secret is kept in the clear and is the key of
// its map, so tests can set one that they know.
type token struct {
	id      int64
	user    *user
	name    string
	secret  string
	scopes  scopeSet
	created time.Time
}

// credential is how a request logged in. Scopes restrict tokens only: a password may
// do everything that its user may.
type credential struct {
	scoped bool // by a token
	scopes scopeSet
	token  *token
}

// need is what a route asks for before its handler runs. Needs are checked in a fixed
// order, whatever the order in which a route names them: see prepare. What is no check
// of the route as a whole, such as who wrote a comment, is up to the handler.
type need uint

const (
	needToken     need = 1 << iota // a login
	needSiteAdmin                  // the instance's administrator
	needWrite                      // write access to the repository
	needAdmin                      // administration of the repository
	needOwner                      // ownership of the repository
	needBranch                     // write access to a branch
	needActive                     // a repository that is not archived
	needMember                     // membership of the organisation
	needOrgOwner                   // ownership of the organisation
)

// addToken stores a token of u.
func (w *world) addToken(u *user, name, secret string, scopes scopeSet) *token {
	t := &token{id: w.next("token"), user: u, name: name, secret: secret, scopes: scopes, created: w.now()}
	w.tokens[secret] = t
	return t
}

// errBadLogin is one refusal for an unknown user, a wrong password and a bad token. It
// has no WWW-Authenticate header, so a client cannot learn from it how to log in.
var errBadLogin = &apiError{http.StatusUnauthorized, "invalid username, password or token"}

// authenticate finds out who calls: query token, token header, Basic. A wrong
// credential is refused on every route, also on public ones. So a client with a stale
// token gets less than an anonymous one.
func (c *call) authenticate() error {
	if err := c.login(); err != nil {
		return err
	}
	// It is the account that logged in which may be barred. The one that an
	// administrator acts as is not asked.
	if c.doer != nil && c.doer.barred() {
		return errBarred
	}
	return c.sudo()
}

// login sets the doer from the request's credentials. A header with another scheme, or
// with a bare token, counts as no login at all: the caller is anonymous, and only a
// route that needs a login refuses.
func (c *call) login() error {
	// The query wins over the header. The real server says in a warning that this way
	// is gone, yet it works.
	secret := cmp.Or(c.query.Get("token"), c.query.Get("access_token"))
	if secret != "" && !c.s.opts.DisableQueryToken {
		c.out.header.Set("X-Gitea-Warning",
			"token and access_token API authentication is deprecated and may be switched off")
		return c.useToken(secret)
	}
	scheme, value, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
	switch strings.ToLower(scheme) {
	case "token", "bearer":
		return c.useToken(strings.TrimSpace(value))
	case "basic":
		return c.useBasic()
	}
	return nil
}

// useToken logs in by a personal access token, compared byte by byte, or by an OAuth
// access token. Hexadecimal in upper case is therefore another token.
func (c *call) useToken(secret string) error {
	t := c.w.tokens[secret]
	if t == nil {
		return c.useAccessToken(secret)
	}
	c.doer = t.user
	c.cred.scoped, c.cred.scopes, c.cred.token = true, t.scopes, t
	return nil
}

// useBasic logs in by user and password, or by a token in either place; the
// user name beside a token does not matter.
func (c *call) useBasic() error {
	name, password, ok := c.r.BasicAuth()
	if !ok {
		return errBadLogin
	}
	// git clients put a token in the place of the password, others in that of the user
	// with nothing or x-oauth-basic as the password.
	secret := password
	if password == "" || password == "x-oauth-basic" {
		secret = name
	}
	// A token comes first, so a password that is somebody's token logs in as that
	// person. Only a login by password is without scopes.
	if c.useToken(secret) == nil {
		return nil
	}
	// A user without a password cannot log in by an empty one.
	u := c.w.userByLogin(name)
	if u == nil || u.Org || u.Password == "" || u.Password != password {
		return errBadLogin
	}
	c.doer = u
	return nil
}

// sudo lets an administrator act as another user. The name may be in the header, the
// query or a form body; a caller who is no administrator is refused for sending one,
// even when it is the caller's own. The scopes stay those of the administrator's token.
// A name in a JSON body means nothing.
func (c *call) sudo() error {
	// PostFormValue may read the request's body; handlers read the copy in c.body.
	login := cmp.Or(c.query.Get("sudo"), c.r.PostFormValue("sudo"), c.r.Header.Get("Sudo"))
	if login == "" {
		return nil
	}
	if c.doer == nil || !c.doer.Admin {
		return errSudo
	}
	u := c.w.userByLogin(login)
	if u == nil {
		return errNotFound
	}
	c.doer = u
	return nil
}

// errSudo and errBarred are the refusals whose body has no url field.
var (
	errSudo   = &apiError{http.StatusForbidden, "Only administrators allowed to sudo."}
	errBarred = &apiError{http.StatusForbidden,
		"This account is prohibited from signing in, please contact your site administrator."}
)

// prepare checks scopes, loads what the path names, and checks the needs in the order
// of the real server: the object first, so that the invisible is 404 before it is 401
// or 403. Scopes come before the object: a token without the category gets 403 for a
// repository that does not exist, too.
func (c *call) prepare(n need) error {
	if err := c.checkScopes(); err != nil {
		return err
	}
	if strings.HasPrefix(c.path, "/repos/{owner}/{repo}") {
		if err := c.loadRepo(c.params["owner"], c.params["repo"]); err != nil {
			return err
		}
	}
	if c.out.status == http.StatusMovedPermanently {
		return nil
	}
	switch {
	// Every need but an active repository implies a login, so routes need not name
	// both.
	case n&^needActive != 0 && c.doer == nil:
		return fail(http.StatusUnauthorized, "token is required")
	case n&needSiteAdmin != 0 && !c.doer.Admin:
		return fail(http.StatusForbidden, "user should be the site admin")
	}
	if err := c.loadOwner(n); err != nil {
		return err
	}
	return c.checkRepo(n)
}

// checkRepo applies the needs that concern the repository. The archived repository
// comes last: who may not write learns that first, 403 and not 423.
func (c *call) checkRepo(n need) error {
	switch {
	case n&needOwner != 0 && c.perm < accessOwner:
		return fail(http.StatusForbidden, "user should be the owner of the repo")
	case n&needAdmin != 0 && c.perm < accessAdmin:
		return fail(http.StatusForbidden, "user should be an owner or a collaborator with admin write of a repository")
	case n&needWrite != 0 && c.perm < accessWrite:
		return fail(http.StatusForbidden, "user should have a permission to write to a repo")
	case n&needBranch != 0 && c.perm < accessWrite:
		return fail(http.StatusForbidden, "user should have a permission to write to the target branch")
	case n&needActive != 0 && c.repo.Archived:
		return fail(http.StatusLocked, "repo is archived")
	}
	return nil
}

// loadRepo finds a repository. An unknown one and one that the caller may not
// see are the same 404; a renamed one redirects, whatever the method.
func (c *call) loadRepo(owner, name string) error {
	r := c.w.repoByName(owner, name)
	if r == nil {
		// A new repository under the old name is found above and ends the redirect.
		if to := c.w.renamed[repoKey(owner, name)]; to != nil {
			c.redirect(to)
			return nil
		}
		return errNotFound
	}
	c.repo, c.owner, c.perm = r, r.Owner, c.w.access(c.doer, r)
	// A token for public things only does not see its owner's private repositories
	// either.
	if c.perm < accessRead || c.cred.scopes.publicOnly && r.Private {
		return errNotFound
	}
	return nil
}

// redirect answers 301 with the path under the repository's new name. The Location has
// no host. A client that follows it turns POST into GET and reads a list instead of
// writing. Aegis follows none.
func (c *call) redirect(to *repo) {
	segs := segments(c.r.URL.EscapedPath())
	// After api, v1 and repos. A sub-path of the server is not among the segments.
	segs[3], segs[4] = escape(to.Owner.Login), escape(to.Name)
	target := c.link() + "/" + strings.Join(segs, "/")
	if c.r.URL.RawQuery != "" {
		target += "?" + c.r.URL.RawQuery
	}
	http.Redirect(c.out, c.r, target, http.StatusMovedPermanently)
}

// loadOwner finds the organisation that the path names, and applies the needs that
// concern it.
func (c *call) loadOwner(n need) error {
	name, ok := c.params["org"]
	// In the routes of teams the organisation is only the owner of a repository, which
	// their handlers look up.
	if !ok || strings.HasPrefix(c.path, "/teams/") {
		return nil
	}
	org := c.w.userByLogin(name)
	switch {
	case org == nil || !org.Org:
		return errNoRedirect(name)
	// A hidden organisation has other words than an unknown one, unlike repositories.
	case !c.sees(org):
		return errNotFound
	case n&needOrgOwner != 0 && !c.w.isOrgOwner(org, c.doer):
		return fail(http.StatusForbidden, "Must be an organization owner")
	case n&needMember != 0 && !c.w.isMember(org, c.doer) && !c.doer.Admin:
		return fail(http.StatusForbidden, "Must be an organization member")
	}
	c.owner = org
	return nil
}
