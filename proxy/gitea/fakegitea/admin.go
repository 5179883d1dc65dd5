package fakegitea

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// handleAdmin registers the administration of the instance.
func handleAdmin(t table) {
	const p = "/admin/users"
	t.on("GET "+p, listAllUsers, needSiteAdmin)
	t.on("GET /admin/orgs", func(c *call) error { return c.ok(mapped(linked(c, c.w.orgs()), c.org)) }, needSiteAdmin)
	t.on("GET /admin/cron", listCron, needSiteAdmin)
	t.on("POST /admin/cron/{task}", runCron, needSiteAdmin)
}

// listAllUsers lists all people by name. The words of q are looked for in login names
// only; Gitea also looks in full names and addresses. Other orders than by name, and
// filters on login sources and visibility, are not in the demo.
func listAllUsers(c *call) error {
	// A filter that is absent admits everybody; one that is no boolean counts as false.
	is := func(param string, have bool) bool { return c.query.Get(param) == "" || c.queryBool(param) == have }
	q := strings.ToLower(c.query.Get("q"))
	items := filter(c.w.people(), func(u *user) bool {
		return is("is_admin", u.Admin) && is("is_active", u.Active) && is("is_restricted", u.Restricted) &&
			is("is_prohibit_login", u.ProhibitLogin) && strings.Contains(strings.ToLower(u.Login), q)
	})
	slices.SortFunc(items, func(a, b *user) int { return strings.Compare(a.Login, b.Login) })
	return c.ok(c.users(linked(c, items)))
}

// cronTasks are the tasks that an instance runs, by their schedule. Names that share a
// schedule stand in one string, separated by spaces.
var cronTasks = map[string]string{
	"@every 1m":  "start_schedule_tasks",
	"@every 5m":  "stop_zombie_tasks",
	"@every 10m": "update_mirrors",
	"@every 30m": "stop_endless_tasks",
	"@every 6h":  "cancel_abandoned_jobs",
	"@every 24h": "gc_lfs",
	"@every 72h": "git_gc_repos resync_all_sshkeys resync_all_sshprincipals resync_all_hooks reinit_missing_repos " +
		"delete_missing_repos delete_generated_repository_avatars",
	"@every 168h": "delete_old_actions update_checker delete_old_system_notices",
	"@midnight": "repo_health_check check_repo_stats archive_cleanup sync_external_users deleted_branches_cleanup " +
		"update_migration_poster_id cleanup_hook_task_table cleanup_packages cleanup_actions",
	"@annually": "delete_inactive_accounts delete_repo_archives rebuild_issue_indexer sync_repo_licenses",
}

// listCron lists the tasks. The double runs none of them.
func listCron(c *call) error {
	// Whatever the schedule, the next run is said to be at midnight UTC: nothing waits
	// for it. The zero time and the count of 0 say that no task has ever run.
	midnight := c.now.Truncate(24 * time.Hour).Add(24 * time.Hour)
	var out []obj
	for _, schedule := range slices.Sorted(maps.Keys(cronTasks)) {
		for name := range strings.FieldsSeq(cronTasks[schedule]) {
			out = append(out, obj{
				"name", name, "schedule", schedule, "next", midnight, "prev", time.Time{}, "exec_times", 0,
			})
		}
	}
	return c.ok(counted(c, out))
}

// runCron takes a known task's name. The answer is 204 without a body, as if the task
// had been started; an unknown name is 404.
func runCron(c *call) error {
	for _, names := range cronTasks {
		if slices.Contains(strings.Fields(names), c.params["task"]) {
			return c.done()
		}
	}
	return errNotFound
}
