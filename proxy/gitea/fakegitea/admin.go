package fakegitea

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// badge is a badge of a user.
type badge struct {
	ID          int64  `json:"id"`
	Slug        string `json:"slug"`
	Description string `json:"description"`
	ImageURL    string `json:"image_url"`
}

// handleAdmin registers the administration of the instance.
func handleAdmin(t table) {
	const p = "/admin/users"
	t.on("GET "+p, listAllUsers, needSiteAdmin)
	t.on("POST "+p, createUser, needSiteAdmin)
	t.on("PATCH "+p+"/{username}", onUser(editUser), needSiteAdmin)
	t.on("DELETE "+p+"/{username}", onUser(deleteUser), needSiteAdmin)
	t.on("POST "+p+"/{username}/rename", onUser(func(c *call, u *user) error {
		var in struct {
			NewName string `json:"new_username" binding:"Required"`
		}
		if err := c.bind(&in); err != nil {
			return err
		}
		return c.renameUser(u, in.NewName)
	}), needSiteAdmin)
	t.on("GET "+p+"/{username}/badges", onUser(func(c *call, u *user) error { return c.ok(append([]badge{}, u.Badges...)) }), needSiteAdmin)
	t.on("POST "+p+"/{username}/badges", onUser(changeBadges(true)), needSiteAdmin)
	t.on("DELETE "+p+"/{username}/badges", onUser(changeBadges(false)), needSiteAdmin)
	t.on("GET /admin/orgs", func(c *call) error { return c.ok(mapped(linked(c, c.w.orgs()), c.org)) }, needSiteAdmin)
	t.on("GET /admin/emails", func(c *call) error { return c.listEmails("") }, needSiteAdmin)
	t.on("GET /admin/emails/search", func(c *call) error { return c.listEmails(c.query.Get("q")) }, needSiteAdmin)
	t.on("GET /admin/packages", func(c *call) error { return c.listPackages(nil) }, needSiteAdmin)
	t.on("GET /admin/cron", listCron, needSiteAdmin)
	t.on("POST /admin/cron/{task}", runCron, needSiteAdmin)
	t.on("GET /admin/unadopted", func(c *call) error { return c.ok(linked(c, []string{})) }, needSiteAdmin)
	for _, method := range []string{"POST", "DELETE"} {
		t.on(method+" /admin/unadopted/{owner}/{repo}", func(c *call) error { return errNotFound }, needSiteAdmin)
	}
}

// listAllUsers lists all people by name.
func listAllUsers(c *call) error {
	is := func(param string, have bool) bool { return c.query.Get(param) == "" || c.queryBool(param) == have }
	q := strings.ToLower(c.query.Get("q"))
	items := filter(c.w.people(), func(u *user) bool {
		return is("is_admin", u.Admin) && is("is_active", u.Active) && is("is_restricted", u.Restricted) &&
			is("is_prohibit_login", u.ProhibitLogin) && strings.Contains(strings.ToLower(u.Login), q)
	})
	slices.SortFunc(items, func(a, b *user) int { return strings.Compare(a.Login, b.Login) })
	return c.ok(c.users(linked(c, items)))
}

// createUser creates a user.
func createUser(c *call) error {
	var in struct {
		Username   string `json:"username" binding:"Required;Username;MaxSize(40)"`
		Email      string `json:"email" binding:"Required;Email;MaxSize(254)"`
		FullName   string `json:"full_name"`
		Password   string `json:"password"`
		Visibility string `json:"visibility" binding:"In(public,limited,private)"`
		Restricted bool   `json:"restricted"`
	}
	if err := c.bind(&in); err != nil {
		return err
	}
	switch {
	case len(in.Password) < 8:
		return fail(http.StatusBadRequest, "PasswordIsRequired")
	case c.w.userByLogin(in.Username) != nil:
		return fail(http.StatusUnprocessableEntity, "user already exists [name: %s]", in.Username)
	case c.w.emailTaken(in.Email):
		return fail(http.StatusUnprocessableEntity, "e-mail already in use [email: %s]", in.Email)
	}
	u := c.w.addUser(in.Username, in.Email)
	u.FullName, u.Password, u.Restricted = in.FullName, in.Password, in.Restricted
	if in.Visibility != "" {
		u.Visibility = in.Visibility
	}
	return c.created(c.user(u))
}

// editUser changes what the body names; the login name of the source has to be
// repeated.
func editUser(c *call, u *user) error {
	var in struct {
		LoginName     string  `json:"login_name" binding:"Required"`
		Email         *string `json:"email"`
		FullName      *string `json:"full_name"`
		Password      string  `json:"password"`
		Website       *string `json:"website"`
		Location      *string `json:"location"`
		Description   *string `json:"description"`
		Active        *bool   `json:"active"`
		Admin         *bool   `json:"admin"`
		ProhibitLogin *bool   `json:"prohibit_login"`
		Restricted    *bool   `json:"restricted"`
		Visibility    string  `json:"visibility" binding:"In(public,limited,private)"`
	}
	if err := c.bind(&in); err != nil {
		return err
	}
	set(&u.Email, in.Email)
	set(&u.FullName, in.FullName)
	set(&u.Website, in.Website)
	set(&u.Location, in.Location)
	set(&u.Description, in.Description)
	set(&u.Active, in.Active)
	set(&u.Admin, in.Admin)
	set(&u.ProhibitLogin, in.ProhibitLogin)
	set(&u.Restricted, in.Restricted)
	if in.Password != "" {
		u.Password = in.Password
	}
	if in.Visibility != "" {
		u.Visibility = in.Visibility
	}
	return c.ok(c.user(u))
}

// deleteUser deletes a user without repositories; purge takes those with her.
func deleteUser(c *call, u *user) error {
	owned := filter(c.w.repos, func(r *repo) bool { return r.Owner == u })
	switch {
	case u.Org:
		return fail(http.StatusUnprocessableEntity, "%s is an organization not a user", u.Login)
	case u == c.doer:
		return fail(http.StatusUnprocessableEntity, "you cannot delete yourself")
	case len(owned) > 0 && !c.queryBool("purge"):
		return fail(http.StatusUnprocessableEntity, "user still has ownership of repositories [uid: %d]", u.ID)
	}
	for _, o := range c.w.orgs() { // those that nobody else owns go with her
		if len(o.Teams[0].Members) == 1 && o.Teams[0].Members[0] == u && c.queryBool("purge") {
			owned = append(owned, filter(c.w.repos, func(r *repo) bool { return r.Owner == o })...)
			c.w.users = without(c.w.users, o)
		}
	}
	for _, r := range owned {
		c.w.dropRepo(r)
	}
	for _, t := range c.w.tokensOf(u) {
		delete(c.w.tokens, t.secret)
	}
	for _, o := range c.w.users {
		o.Following = without(o.Following, u)
		for _, t := range o.Teams {
			t.Members = without(t.Members, u)
		}
	}
	for _, r := range c.w.repos {
		r.Watchers = without(r.Watchers, u)
		delete(r.Collaborators, u.ID)
	}
	c.w.forgetOAuth(u)
	c.w.users = without(c.w.users, u)
	return c.done()
}

// changeBadges gives or takes badges; one that nobody had yet is made up by its
// slug.
func changeBadges(on bool) func(*call, *user) error {
	return func(c *call, u *user) error {
		var in struct {
			Slugs []string `json:"badge_slugs"`
		}
		if err := c.bind(&in); err != nil {
			return err
		}
		for _, slug := range in.Slugs {
			u.Badges = slices.DeleteFunc(u.Badges, func(b badge) bool { return b.Slug == slug })
			if on {
				u.Badges = append(u.Badges, badge{ID: c.w.next("badge"), Slug: slug})
			}
		}
		return c.done()
	}
}

// listEmails lists all addresses that contain q.
func (c *call) listEmails(q string) error {
	out := []emailJSON{}
	for _, u := range c.w.people() {
		for i, e := range append([]string{u.Email}, u.Emails...) {
			if strings.Contains(e, q) {
				out = append(out, emailJSON{e, true, i == 0, u.ID, u.Login})
			}
		}
	}
	return c.ok(linked(c, out))
}

// cronTasks are a few of the tasks that an instance runs.
var cronTasks = []struct{ name, schedule string }{
	{"update_mirrors", "@every 10m"}, {"repo_health_check", "@midnight"}, {"check_repo_stats", "@midnight"},
	{"archive_cleanup", "@midnight"}, {"sync_external_users", "@midnight"}, {"deleted_branches_cleanup", "@midnight"},
	{"update_migration_poster_id", "@midnight"}, {"cleanup_hook_task_table", "@midnight"}, {"cleanup_packages", "@midnight"},
	{"cleanup_actions", "@midnight"}, {"stop_zombie_tasks", "@every 5m"}, {"stop_endless_tasks", "@every 30m"},
	{"cancel_abandoned_jobs", "@every 6h"}, {"start_schedule_tasks", "@every 1m"}, {"delete_inactive_accounts", "@annually"},
	{"delete_repo_archives", "@annually"}, {"git_gc_repos", "@every 72h"}, {"resync_all_sshkeys", "@every 72h"},
	{"resync_all_sshprincipals", "@every 72h"}, {"resync_all_hooks", "@every 72h"}, {"reinit_missing_repos", "@every 72h"},
	{"delete_missing_repos", "@every 72h"}, {"delete_generated_repository_avatars", "@every 72h"}, {"delete_old_actions", "@every 168h"},
	{"update_checker", "@every 168h"}, {"delete_old_system_notices", "@every 168h"}, {"gc_lfs", "@every 24h"},
	{"rebuild_issue_indexer", "@annually"}, {"sync_repo_licenses", "@annually"},
}

// listCron lists the tasks. The double runs none of them.
func listCron(c *call) error {
	midnight := c.now.Truncate(24 * time.Hour).Add(24 * time.Hour)
	return c.ok(mapped(counted(c, cronTasks), func(t struct{ name, schedule string }) any {
		return struct {
			Name     string    `json:"name"`
			Schedule string    `json:"schedule"`
			Next     time.Time `json:"next"`
			Prev     time.Time `json:"prev"`
			Times    int       `json:"exec_times"`
		}{t.name, t.schedule, midnight, time.Time{}, 0}
	}))
}

// runCron takes a known task's name.
func runCron(c *call) error {
	if !slices.ContainsFunc(cronTasks, func(t struct{ name, schedule string }) bool { return t.name == c.params["task"] }) {
		return errNotFound
	}
	return c.done()
}
