package fakegitea

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// handleOrgs registers organisations and teams.
func handleOrgs(t table) {
	t.on("GET /orgs", func(c *call) error {
		return c.ok(mapped(linked(c, filter(c.w.orgs(), c.lists)), c.org))
	})
	t.on("POST /orgs", reads(createOrg), needToken)
	const p = "/orgs/{org}"
	t.on("GET "+p, func(c *call) error { return c.ok(c.org(c.owner)) })
	t.on("PATCH "+p, editOrg, needOrgOwner)
	t.on("DELETE "+p, deleteOrg, needOrgOwner)
	t.on("GET "+p+"/repos", func(c *call) error { return c.ok(c.repos(linked(c, c.reposOf(c.owner)))) })
	// The real server deletes them in the background and answers 202, and 204 only when there
	// are none. Here they are gone at once.
	t.on("DELETE "+p+"/repos", func(c *call) error {
		for _, r := range filter(c.w.repos, func(r *repo) bool { return r.Owner == c.owner }) {
			c.w.dropRepo(r)
		}
		return c.done()
	}, needOrgOwner)
	t.on("GET "+p+"/members", func(c *call) error {
		return c.ok(c.users(linked(c, filter(c.w.members(c.owner), c.seesMember))))
	})
	t.on("GET "+p+"/members/{username}", func(c *call) error {
		u, err := c.named("username")
		switch {
		case err != nil:
			return err
		case !c.w.isMember(c.owner, u) || !c.seesMember(u):
			return errNotFound
		}
		return c.done()
	})
	t.on("DELETE "+p+"/members/{username}", dropMember, needOrgOwner)
	t.on("GET "+p+"/teams", func(c *call) error {
		return c.ok(mapped(linked(c, c.owner.Teams), c.teamBare))
	}, needMember)
	t.on("POST "+p+"/teams", reads(createTeam), needOrgOwner)
	t.on("GET "+p+"/teams/search", searchTeams, needMember)
}

// profile is what the page of a user or organisation shows, and the body of editOrg.
type profile struct {
	FullName string `json:"full_name" binding:"MaxSize(100)"`
	// For an organisation it is a contact, which is shown to everyone.
	Email       string `json:"email" binding:"MaxSize(255)"`
	Description string `json:"description" binding:"MaxSize(255)"`
	Website     string `json:"website" binding:"MaxSize(255)"`
	Location    string `json:"location" binding:"MaxSize(50)"`
	Visibility  string `json:"visibility" binding:"In(public,limited,private)"`
	TeamAccess  bool   `json:"repo_admin_change_team_access"`
}

// orgInput is the body of an organisation.
// Members of the profile that it leaves out keep the defaults of a new organisation.
type orgInput struct {
	UserName string `json:"username" binding:"Required;Username;MaxSize(40)"`
	profile
}

// createOrg creates an organisation owned by the caller.
func createOrg(c *call, in *orgInput) error {
	// Both refusals are 422, where a repository's name that is taken is 409. Users and
	// organisations share one space of names.
	if reservedUser(in.UserName) {
		return fail(http.StatusUnprocessableEntity, "name is reserved [name: %s]", in.UserName)
	}
	if c.w.userByLogin(in.UserName) != nil {
		return fail(http.StatusUnprocessableEntity, "user already exists [name: %s]", in.UserName)
	}
	o := c.w.addOrg(in.UserName, c.doer)
	in.Visibility = cmp.Or(in.Visibility, o.Visibility)
	o.profile = in.profile
	return c.created(c.org(o))
}

// reservedUser says whether a name of a user or organisation would hide pages of
// the server.
// The patterns that the server refuses as well, such as names that end in .keys, are left out.
func reservedUser(name string) bool {
	return slices.Contains(strings.Fields("api assets attachments avatar avatars captcha explore favicon.ico ghost "+
		"gitea-actions issues login manifest.json metrics milestones notifications org pulls repo repo-avatars "+
		"robots.txt sitemap.xml ssh_info swagger.v1.json user v2"), strings.ToLower(name))
}

// editOrg changes what the body names: it is read over what is there.
func editOrg(c *call) error {
	// That way the boolean, too, stays when the body leaves it out.
	now := c.owner.profile
	if err := c.bind(&now); err != nil {
		return err
	}
	now.Visibility = cmp.Or(now.Visibility, c.owner.Visibility)
	c.owner.profile = now
	return c.ok(c.org(c.owner))
}

// deleteOrg deletes an organisation without repositories and packages.
func deleteOrg(c *call) error {
	// The two are client mistakes that the server answers with 500, which shows its message to
	// administrators only.
	if slices.ContainsFunc(c.w.repos, func(r *repo) bool { return r.Owner == c.owner }) {
		return fail(http.StatusInternalServerError, "user still has ownership of repositories [uid: %d]", c.owner.ID)
	}
	if slices.ContainsFunc(c.w.packages, func(p *pkg) bool { return p.Owner == c.owner }) {
		return fail(http.StatusInternalServerError, "user still has ownership of packages [uid: %d]", c.owner.ID)
	}
	c.w.users = without(c.w.users, c.owner)
	return c.done()
}

// seesMember says whether the caller may know that u is a member: no membership here
// is public.
// For anyone else the list is empty rather than refused.
func (c *call) seesMember(u *user) bool {
	return c.doer != nil && (c.doer == u || c.doer.Admin || c.w.isMember(c.owner, c.doer))
}

// dropMember takes a member out of all teams; the last owner stays.
// The error of the last owner comes from the owners' team, which is first, so that nothing has
// been changed by then.
func dropMember(c *call) error {
	u, err := c.named("username")
	for _, t := range c.owner.Teams { // the first is that of the owners
		if err == nil {
			err = t.drop(u)
		}
	}
	if err != nil {
		return err
	}
	return c.done()
}

// teamInput is the body of a team.
// Visibility is kept as it comes, where the server replaces words that it does not know.
type teamInput struct {
	Name          string            `json:"name" binding:"Required;AlphaDashDot"`
	Description   string            `json:"description"`
	AllRepos      bool              `json:"includes_all_repositories"`
	Permission    string            `json:"permission" binding:"In(read,write,admin)"`
	Units         []string          `json:"units"`
	UnitsMap      map[string]string `json:"units_map"`
	CanCreateRepo bool              `json:"can_create_org_repo"`
	Visibility    string            `json:"visibility"`
}

// createTeam creates a team; it has to have units. An administrating team has all of
// them; units given one by one make the team's own permission "none".
func createTeam(c *call, in *teamInput) error {
	if slices.ContainsFunc(c.owner.Teams, func(t *team) bool { return strings.EqualFold(t.Name, in.Name) }) {
		return fail(http.StatusUnprocessableEntity,
			"team already exists [org_id: %d, name: %s]", c.owner.ID, strings.ToLower(in.Name))
	}
	t := &team{
		Name: in.Name, Description: in.Description, AllRepos: in.AllRepos, CanCreateRepo: in.CanCreateRepo,
		Visibility: cmp.Or(in.Visibility, "private"), Permission: "none", Units: in.UnitsMap,
	}
	switch {
	case in.Permission == "admin":
		t.Permission, t.Units = "admin", unitsAt("admin", allUnits)
	// Another client mistake that is a 500. The map wins when both are given.
	case len(in.Units) == 0 && len(in.UnitsMap) == 0:
		return fail(http.StatusInternalServerError, "units permission should not be empty")
	case len(in.UnitsMap) == 0:
		t.Units = unitsAt(in.Permission, in.Units)
	}
	return c.created(c.team(c.w.addTeam(c.owner, t)))
}

// searchTeams searches the caller's teams in an organisation.
func searchTeams(c *call) error {
	q := strings.ToLower(c.query.Get("q"))
	// It is on unless the query says no, unlike includeDesc of the repository search.
	deep := c.query.Get("include_desc") == "" || c.queryBool("include_desc")
	items := filter(c.owner.Teams, func(t *team) bool {
		return (c.doer.Admin || slices.Contains(t.Members, c.doer)) && (strings.Contains(strings.ToLower(t.Name),
			q) || deep && strings.Contains(strings.ToLower(t.Description), q))
	})
	return c.ok(searchResult[obj]{true, mapped(linked(c, items), c.teamBare)})
}
