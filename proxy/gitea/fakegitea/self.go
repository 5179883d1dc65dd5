package fakegitea

import (
	"net/http"
	"slices"
)

// handleSelf registers the caller's own things under /user.
func handleSelf(t table) {
	t.on("GET /user/repos", func(c *call) error {
		mine := filter(c.w.readable(c.doer), c.mine)
		slices.SortStableFunc(mine, repoOrders["alpha"])
		return c.ok(c.repos(linked(c, mine)))
	}, needToken)
	t.on("GET /user/orgs", func(c *call) error { return c.ok(mapped(linked(c, c.w.orgsOf(c.doer)), c.org)) }, needToken)
	t.on("GET /user/teams", listMyTeams, needToken)
	t.on("GET /user/settings", func(c *call) error { return c.ok(c.settings()) }, needToken)
	t.on("GET /user/emails", func(c *call) error { return c.ok(c.emails()) }, needToken)
	t.on("GET /user/followers", onSelf(listFollowers), needToken)
	t.on("GET /user/following", onSelf(listFollowing), needToken)
	handlePairs(t, "/user/following/{username}", needToken, func(c *call) (*[]*user, *user, error) {
		u, err := c.named("username")
		return &c.doer.Following, u, err
	})
	handleBlocks(t, "/user/blocks", needToken, func(c *call) *user { return c.doer })
	handleBlocks(t, "/orgs/{org}/blocks", needOrgOwner, func(c *call) *user { return c.owner })
	t.on("GET /user/starred", onSelf(listStarred), needToken)
	handlePairs(t, "/user/starred/{owner}/{repo}", needToken, func(c *call) (*[]*repo, *repo, error) {
		err := c.loadRepo(c.params["owner"], c.params["repo"])
		return &c.doer.Starred, c.repo, err
	})
	t.on("GET /user/subscriptions", onSelf(listWatched), needToken)
	for _, path := range []string{"/user", "/orgs/{org}", "/repos/{owner}/{repo}"} {
		n := map[string]need{"/user": needToken, "/orgs/{org}": needOrgOwner, "/repos/{owner}/{repo}": needAdmin}[path]
		t.on("POST "+path+"/avatar", reads(setAvatar), n)
		t.on("DELETE "+path+"/avatar", func(c *call) error { return c.done() }, n)
	}
}

// mine says whether the caller owns a repository, or works in it.
func (c *call) mine(r *repo) bool {
	return r.Owner == c.doer || r.Collaborators[c.doer.ID] > accessNone || c.w.isMember(r.Owner, c.doer)
}

// named finds a user by a path parameter.
func (c *call) named(param string) (*user, error) {
	u := c.w.userByLogin(c.params[param])
	if u == nil {
		return nil, fail(http.StatusNotFound, "user redirect does not exist [name: %s]", c.params[param])
	}
	return u, nil
}

// handlePairs registers asking, adding and removing one item of a list: GET is
// 204 or 404, PUT and DELETE are 204.
func handlePairs[T comparable](t table, path string, n need, of func(*call) (*[]T, T, error)) {
	on := func(method string, f func(*call, *[]T, T) error) {
		t.on(method+" "+path, func(c *call) error {
			list, item, err := of(c)
			if err != nil {
				return err
			}
			return f(c, list, item)
		}, n)
	}
	on("GET", func(c *call, list *[]T, item T) error {
		if !slices.Contains(*list, item) {
			return errNotFound
		}
		return c.done()
	})
	on("PUT", func(c *call, list *[]T, item T) error {
		*list = with(*list, item)
		return c.done()
	})
	on("DELETE", func(c *call, list *[]T, item T) error {
		*list = without(*list, item)
		return c.done()
	})
}

// handleBlocks registers the list of blocked users of a user or organisation.
func handleBlocks(t table, path string, n need, of func(*call) *user) {
	t.on("GET "+path, func(c *call) error { return c.ok(c.users(linked(c, of(c).Blocked))) }, n)
	handlePairs(t, path+"/{username}", n, func(c *call) (*[]*user, *user, error) {
		u, err := c.named("username")
		return &of(c).Blocked, u, err
	})
}

// listMyTeams lists the caller's teams in all organisations.
func listMyTeams(c *call) error {
	var out []*team
	for _, o := range c.w.orgs() {
		out = append(out, filter(o.Teams, func(t *team) bool { return slices.Contains(t.Members, c.doer) })...)
	}
	return c.ok(mapped(linked(c, out), c.team))
}

// settings renders the caller's settings.
func (c *call) settings() obj {
	u := c.doer
	return obj{
		"full_name", u.FullName, "website", u.Website, "description", u.Description, "location", u.Location,
		"language", u.Language, "theme", u.Theme, "diff_view_style", u.DiffStyle, "hide_email", u.HideEmail,
		"hide_activity", u.HideActivity,
	}
}

// emailJSON is an address.
type emailJSON struct {
	Email    string `json:"email"`
	Verified bool   `json:"verified"`
	Primary  bool   `json:"primary"`
	UserID   int64  `json:"user_id"`
	Username string `json:"username"`
}

// emails lists the caller's one address; it does not name her.
func (c *call) emails() []emailJSON {
	return []emailJSON{{Email: c.doer.Email, Verified: true, Primary: true}}
}

// setAvatarInput is the body of setAvatar.
type setAvatarInput struct {
	Image string `json:"image"`
}

// setAvatar takes an image and keeps nothing of it: addresses of avatars do not
// depend on it.
func setAvatar(c *call, in *setAvatarInput) error {
	return c.done()
}
