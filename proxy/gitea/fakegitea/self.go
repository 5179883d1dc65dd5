package fakegitea

import (
	"net/http"
	"slices"
)

// handleSelf registers the caller's own things under /user.
func handleSelf(t table) {
	t.on("GET /user/repos", func(c *call) error {
		// The rights of a site administrator do not make a repository hers.
		mine := filter(c.w.readable(c.doer), c.mine)
		slices.SortStableFunc(mine, repoOrders["alpha"])
		return c.ok(c.repos(linked(c, mine)))
	}, needToken)
	t.on("GET /user/orgs", func(c *call) error { return c.ok(mapped(linked(c, c.w.orgsOf(c.doer)), c.org)) }, needToken)
	t.on("GET /user/teams", listMyTeams, needToken)
	t.on("GET /user/settings", func(c *call) error { return c.ok(c.settings()) }, needToken)
	t.on("GET /user/emails", func(c *call) error { return c.ok(c.emails()) }, needToken)
	handlePairs(t, "/user/following/{username}", needToken, func(c *call) (*[]*user, *user, error) {
		u, err := c.named("username")
		return &c.doer.Following, u, err
	})
	handlePairs(t, "/user/starred/{owner}/{repo}", needToken, func(c *call) (*[]*repo, *repo, error) {
		err := c.loadRepo(c.params["owner"], c.params["repo"])
		return &c.doer.Starred, c.repo, err
	})
}

// mine says whether the caller owns a repository, or works in it.
func (c *call) mine(r *repo) bool {
	return r.Owner == c.doer || r.Collaborators[c.doer.ID] > accessNone || c.w.isMember(r.Owner, c.doer)
}

// named finds a user by a path parameter.
func (c *call) named(param string) (*user, error) {
	u := c.w.userByLogin(c.params[param])
	if u == nil {
		return nil, errNoRedirect(c.params[param])
	}
	return u, nil
}

// errNoRedirect is the refusal for a user by the name in a path: renamed ones redirect.
// The server looks for a redirect last, so its failure is the one that is told.
func errNoRedirect(name string) error {
	return fail(http.StatusNotFound, "user redirect does not exist [name: %s]", name)
}

// handlePairs registers asking, adding and removing one item of a list: GET is
// 204 or 404, PUT and DELETE are 204.
// Adding twice and removing what is not there are both 204.
func handlePairs[T comparable](t table, path string, n need, of func(*call) (*[]T, T, error)) {
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		t.on(method+" "+path, func(c *call) error {
			list, item, err := of(c)
			switch {
			case err != nil:
				return err
			case method == http.MethodPut:
				*list = with(*list, item)
			case method == http.MethodDelete:
				*list = without(*list, item)
			case !slices.Contains(*list, item):
				return errNotFound
			}
			return c.done()
		}, n)
	}
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
		"language", u.Language, "theme", "gitea-auto", "diff_view_style", "", "hide_email", u.HideEmail,
		"hide_activity", false,
	}
}

// emails lists the caller's one address; it does not name her.
func (c *call) emails() []obj {
	// The search of addresses, which names the user, is another route.
	return []obj{{"email", c.doer.Email, "verified", true, "primary", true, "user_id", 0, "username", ""}}
}
