package fakegitea

import (
	"slices"
	"strings"
	"time"
)

// handleAdmin registers the administration of the instance.
func handleAdmin(t table) {
	const p = "/admin/users"
	t.on("GET "+p, listAllUsers, needSiteAdmin)
	t.on("GET /admin/orgs", func(c *call) error { return c.ok(mapped(linked(c, c.w.orgs()), c.org)) }, needSiteAdmin)
	t.on("GET /admin/emails", func(c *call) error { return c.listEmails() }, needSiteAdmin)
	t.on("GET /admin/cron", listCron, needSiteAdmin)
	t.on("POST /admin/cron/{task}", runCron, needSiteAdmin)
	t.on("GET /admin/unadopted", func(c *call) error { return c.ok(linked(c, []string{})) }, needSiteAdmin)
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

// listEmails lists all addresses.
func (c *call) listEmails() error {
	out := []emailJSON{}
	for _, u := range c.w.people() {
		out = append(out, emailJSON{u.Email, true, true, u.ID, u.Login})
	}
	return c.ok(linked(c, out))
}

// cronTask is a task that runs on a schedule.
type cronTask struct{ name, schedule string }

// cronTasks are a few of the tasks that an instance runs.
var cronTasks = []cronTask{
	{"update_mirrors", "@every 10m"}, {"repo_health_check", "@midnight"}, {"check_repo_stats", "@midnight"},
	{"archive_cleanup", "@midnight"}, {"sync_external_users", "@midnight"}, {"deleted_branches_cleanup", "@midnight"},
	{"update_migration_poster_id", "@midnight"}, {"cleanup_hook_task_table", "@midnight"}, {"cleanup_packages",
		"@midnight"},
	{"cleanup_actions", "@midnight"}, {"stop_zombie_tasks", "@every 5m"}, {"stop_endless_tasks", "@every 30m"},
	{"cancel_abandoned_jobs", "@every 6h"}, {"start_schedule_tasks", "@every 1m"}, {"delete_inactive_accounts",
		"@annually"},
	{"delete_repo_archives", "@annually"}, {"git_gc_repos", "@every 72h"}, {"resync_all_sshkeys", "@every 72h"},
	{"resync_all_sshprincipals", "@every 72h"}, {"resync_all_hooks", "@every 72h"}, {"reinit_missing_repos",
		"@every 72h"},
	{"delete_missing_repos", "@every 72h"}, {"delete_generated_repository_avatars",
		"@every 72h"}, {"delete_old_actions", "@every 168h"},
	{"update_checker", "@every 168h"}, {"delete_old_system_notices", "@every 168h"}, {"gc_lfs", "@every 24h"},
	{"rebuild_issue_indexer", "@annually"}, {"sync_repo_licenses", "@annually"},
}

// listCron lists the tasks. The double runs none of them.
func listCron(c *call) error {
	midnight := c.now.Truncate(24 * time.Hour).Add(24 * time.Hour)
	return c.ok(mapped(counted(c, cronTasks), func(t cronTask) any {
		return obj{
			"name", t.name, "schedule", t.schedule, "next", midnight, "prev", time.Time{}, "exec_times", 0,
		}
	}))
}

// runCron takes a known task's name.
func runCron(c *call) error {
	named := func(t cronTask) bool { return t.name == c.params["task"] }
	return onFirst(c, cronTasks, named, func(c *call, _ cronTask) error { return c.done() })
}
