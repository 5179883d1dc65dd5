package fakegitea

import (
	"net/http"
	"slices"
)

// handleTeams registers teams by id.
func handleTeams(t table) {
	const p = "/teams/{id}"
	t.on("GET "+p, onTeam(func(c *call, tm *team) error { return c.ok(c.team(tm)) }), needToken)
	t.on("GET "+p+"/members", onTeam(func(c *call, tm *team) error {
		return c.ok(c.users(linked(c, tm.Members)))
	}), needToken)
	t.on("PUT "+p+"/members/{username}", onOwnTeam(addTeamMember), needToken)
	t.on("GET "+p+"/repos", onTeam(listTeamRepos), needToken)
	t.on("PUT "+p+"/repos/{org}/{repo}", onTeamRepo(func(c *call, tm *team) error {
		if c.perm < accessAdmin {
			return fail(http.StatusForbidden, "Must have admin-level access to the repository")
		}
		tm.Repos = with(tm.Repos, c.repo)
		return c.done()
	}), needToken)

	const r = "/repos/{owner}/{repo}/teams"
	t.on("GET "+r, func(c *call) error {
		if !c.repo.Owner.Org {
			return fail(http.StatusMethodNotAllowed, "repo is not owned by an organization")
		}
		teams := filter(c.repo.Owner.Teams, func(tm *team) bool { return tm.has(c.repo) })
		return c.ok(mapped(teams, c.teamBare))
	}, needToken)
}

// onTeam finds the team of the path; members of the organisation may see it.
func onTeam(f func(*call, *team) error) handler {
	return func(c *call) error {
		for _, o := range c.w.orgs() {
			t, ok := find(o.Teams, func(t *team) bool { return t.ID == c.id("id") })
			if ok && (c.doer.Admin || c.w.isMember(o, c.doer)) {
				c.owner = o
				return f(c, t)
			}
		}
		return errNotFound
	}
}

// onOwnTeam is onTeam for owners of the organisation.
func onOwnTeam(f func(*call, *team) error) handler {
	return onTeam(func(c *call, t *team) error {
		if !c.w.isOrgOwner(t.Org, c.doer) {
			return fail(http.StatusForbidden, "Must be an organization owner")
		}
		return f(c, t)
	})
}

// onTeamRepo is onTeam with a repository of the organisation.
func onTeamRepo(f func(*call, *team) error) handler {
	return onTeam(func(c *call, t *team) error {
		if err := c.loadRepo(c.params["org"], c.params["repo"]); err != nil || c.repo == nil {
			return err
		}
		if c.repo.Owner != t.Org {
			return errNotFound
		}
		return f(c, t)
	})
}

// addTeamMember adds a member.
func addTeamMember(c *call, t *team) error {
	u := c.w.userByLogin(c.params["username"])
	if u == nil {
		return errNoUser(http.StatusNotFound, c.params["username"])
	}
	t.Members = with(t.Members, u)
	return c.done()
}

// listTeamRepos lists the repositories of a team by name.
func listTeamRepos(c *call, t *team) error {
	items := filter(c.w.repos, t.has)
	slices.SortStableFunc(items, repoOrders["alpha"])
	return c.ok(c.repos(linked(c, items)))
}
