package fakegitea

import (
	"net/http"
	"slices"
)

// handleTeams registers teams by id.
func handleTeams(t table) {
	// The path names no organisation, so the handlers check what the needs of other routes do.
	const p = "/teams/{id}"
	t.on("GET "+p, onTeam(renders((*call).team)), needToken)
	t.on("DELETE "+p, onOwnTeam(deleteTeam), needToken)
	t.on("GET "+p+"/members", onTeam(func(c *call, tm *team) error {
		return c.ok(c.users(linked(c, tm.Members)))
	}), needToken)
	t.on("GET "+p+"/members/{username}", onTeam(withUser(getTeamMember)), needToken)
	t.on("PUT "+p+"/members/{username}", onOwnTeam(withUser(func(c *call, tm *team, u *user) error {
		tm.Members = with(tm.Members, u)
		return c.done()
	})), needToken)
	t.on("DELETE "+p+"/members/{username}", onOwnTeam(withUser(func(c *call, tm *team, u *user) error {
		if err := tm.drop(u); err != nil {
			return err
		}
		return c.done()
	})), needToken)
	t.on("GET "+p+"/repos", onTeam(listTeamRepos), needToken)
	t.on("PUT "+p+"/repos/{org}/{repo}", onTeam(addTeamRepo), needToken)
	t.on("GET /repos/{owner}/{repo}/teams", func(c *call) error {
		if !c.repo.Owner.Org {
			// 405, although the method is right.
			return fail(http.StatusMethodNotAllowed, "repo is not owned by an organization")
		}
		teams := filter(c.repo.Owner.Teams, func(tm *team) bool { return tm.has(c.repo) })
		return c.ok(mapped(teams, c.teamBare))
	}, needToken)
}

// onTeam finds the team of the path; members of the organisation may see it.
// For others the team is as unknown as one that is not there.
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

// addTeamRepo gives a team a repository of its organisation.
func addTeamRepo(c *call, t *team) error {
	err := c.loadRepo(c.params["org"], c.params["repo"])
	switch {
	// A renamed repository leaves it nil: loadRepo has answered with a redirect.
	case err != nil || c.repo == nil:
		return err
	case c.repo.Owner != t.Org:
		return errNotFound
	case c.perm < accessAdmin:
		return fail(http.StatusForbidden, "Must have admin-level access to the repository")
	}
	t.Repos = with(t.Repos, c.repo)
	return c.done()
}

// withUser finds the user of the path for routes about a member of a team.
func withUser(f func(*call, *team, *user) error) func(*call, *team) error {
	return func(c *call, t *team) error {
		u := c.w.userByLogin(c.params["username"])
		if u == nil {
			return errNoUser(http.StatusNotFound, c.params["username"])
		}
		return f(c, t, u)
	}
}

// deleteTeam deletes a team, but not the owners.
func deleteTeam(c *call, t *team) error {
	if t.Permission == "owner" {
		return fail(http.StatusForbidden, "the owners team cannot be deleted")
	}
	t.Org.Teams = without(t.Org.Teams, t)
	return c.done()
}

// getTeamMember answers a member.
// It answers the user, where the member of an organisation is 204 without a body.
func getTeamMember(c *call, t *team, u *user) error {
	if !slices.Contains(t.Members, u) {
		return errNotFound
	}
	return c.ok(c.user(u))
}

// drop removes a member, but not the last owner.
func (t *team) drop(u *user) error {
	if t.Permission == "owner" && len(t.Members) == 1 && t.Members[0] == u {
		return fail(http.StatusInternalServerError, "user is the last member of owner team [uid: %d]", u.ID)
	}
	t.Members = without(t.Members, u)
	return nil
}

// listTeamRepos lists the repositories of a team by name.
func listTeamRepos(c *call, t *team) error {
	items := filter(c.w.repos, t.has)
	slices.SortStableFunc(items, repoOrders["alpha"])
	return c.ok(c.repos(linked(c, items)))
}
