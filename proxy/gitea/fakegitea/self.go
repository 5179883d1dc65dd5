package fakegitea

import (
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
	t.on("GET /user/followers", func(c *call) error {
		return c.ok(c.users(linked(c, c.w.followers(c.doer))))
	}, needToken)
	t.on("GET /user/starred", onSelf(listStarred), needToken)
	handleStars(t)
	t.on("GET /user/subscriptions", onSelf(listWatched), needToken)
}

// mine says whether the caller owns a repository, or works in it.
func (c *call) mine(r *repo) bool {
	return r.Owner == c.doer || r.Collaborators[c.doer.ID] > accessNone || c.w.isMember(r.Owner, c.doer)
}

// handleStars registers asking for, giving and taking back a star.
func handleStars(t table) {
	on := func(method string, f func(*call) error) {
		t.on(method+" /user/starred/{owner}/{repo}", func(c *call) error {
			if err := c.loadRepo(c.params["owner"], c.params["repo"]); err != nil {
				return err
			}
			return f(c)
		}, needToken)
	}
	on("GET", func(c *call) error {
		if !slices.Contains(c.doer.Starred, c.repo) {
			return errNotFound
		}
		return c.done()
	})
	on("PUT", func(c *call) error {
		c.doer.Starred = with(c.doer.Starred, c.repo)
		return c.done()
	})
	on("DELETE", func(c *call) error {
		c.doer.Starred = without(c.doer.Starred, c.repo)
		return c.done()
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

// settingsJSON are the caller's settings.
type settingsJSON struct {
	FullName     string `json:"full_name"`
	Website      string `json:"website"`
	Description  string `json:"description"`
	Location     string `json:"location"`
	Language     string `json:"language"`
	Theme        string `json:"theme"`
	DiffStyle    string `json:"diff_view_style"`
	HideEmail    bool   `json:"hide_email"`
	HideActivity bool   `json:"hide_activity"`
}

// settings renders the caller's settings.
func (c *call) settings() settingsJSON {
	u := c.doer
	return settingsJSON{u.FullName, u.Website, u.Description, u.Location, u.Language, u.Theme, u.DiffStyle,
		u.HideEmail, u.HideActivity}
}

// emailJSON is an address.
type emailJSON struct {
	Email    string `json:"email"`
	Verified bool   `json:"verified"`
	Primary  bool   `json:"primary"`
	UserID   int64  `json:"user_id"`
	Username string `json:"username"`
}

// emails lists the caller's one address; it does not name the user.
func (c *call) emails() []emailJSON {
	return []emailJSON{{Email: c.doer.Email, Verified: true, Primary: true}}
}
