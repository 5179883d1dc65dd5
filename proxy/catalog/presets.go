package catalog

import (
	"maps"
	"path"
	"slices"

	"aegis/proxy"
	"aegis/spec"
)

// preset is a named choice of tools for a kind of work. docs/toolsets.md explains each. By
// domain first and by name only for the rest, so that operations of a later version fall
// into place by themselves.
type preset struct {
	// domains are taken as far as maxRisk and readOnly allow.
	domains  []string
	maxRisk  proxy.Risk
	readOnly bool
	// add and remove are globs of wire names, applied in this order.
	add, remove []string
}

// presets returns the presets by name. A function, so that no caller can change the choice
// of others.
func presets() map[string]preset {
	code := []string{"contents", "issue", "miscellaneous", "package", "project", "pull", "release", "repository"}
	return map[string]preset{
		// Everything that may be read, but administration, secrets and what shows how
		// the server is set up.
		"reader": {
			domains: append(slices.Clone(code), "actions", "notification", "organization", "settings", "user"),
			maxRisk: proxy.R1, readOnly: true,
			remove: noise("*_admin_*", "*_secrets", "*_hook", "*_hooks", "*_git_hook*", "*_deploy_key*", "*_oauth_app*",
				"*_my_emails", "gitea_user_list_tokens", "gitea_actions_*runner*"),
		},
		// Work on branches: issues, files, pull requests, and what one looks at for it.
		"contributor": {
			domains: []string{"contents", "issue", "pull"}, maxRisk: proxy.R2,
			add: []string{
				"gitea_repository_get", "gitea_repository_search", "gitea_repository_*_branch", "gitea_repository_list_branches",
				"gitea_repository_list_tags", "gitea_repository_get_tag", "gitea_repository_fork", "gitea_repository_sync_fork",
				"gitea_repository_get_combined_status", "gitea_repository_list_ref_statuses", "gitea_user_get_me", "gitea_user_search",
				"gitea_notification_list", "gitea_notification_mark_thread", "gitea_miscellaneous_render_markdown",
				"gitea_actions_list_runs", "gitea_actions_get_run", "gitea_actions_list_run_jobs", "gitea_actions_get_job_log",
				"gitea_contents_delete_file", "gitea_contents_change_files",
			},
			remove: noise("gitea_repository_update_branch", "gitea_repository_rename_branch", "gitea_repository_delete_branch", "*_org_label*",
				"*_stopwatch*", "gitea_issue_*_time", "gitea_issue_*_times", "gitea_issue_*_comment_attachment*", "gitea_issue_*pin*"),
		},
		// Reading, and the few writes that a review is made of.
		"reviewer": {
			domains: []string{"contents", "issue", "pull"}, maxRisk: proxy.R1, readOnly: true,
			add: []string{
				"gitea_pull_*review*", "gitea_pull_edit", "gitea_issue_create_comment", "gitea_issue_edit_comment", "gitea_issue_*_reaction",
				"gitea_issue_add_labels", "gitea_issue_remove_label", "gitea_repository_get", "gitea_repository_search",
				"gitea_repository_list_branches", "gitea_repository_get_branch", "gitea_repository_get_combined_status",
				"gitea_repository_list_ref_statuses", "gitea_actions_list_runs", "gitea_actions_get_run", "gitea_actions_list_run_jobs",
				"gitea_actions_get_job_log", "gitea_user_get_me", "gitea_notification_list",
			},
			remove: noise("gitea_pull_delete_review"),
		},
		// What people with write access to repositories do, but what ends a repository
		// or an organization.
		"maintainer": {
			domains: append(slices.Clone(code), "actions", "notification", "organization", "settings", "user"), maxRisk: proxy.R3,
			remove: noise("gitea_organization_delete", "gitea_organization_delete_all_repos", "gitea_organization_rename",
				"gitea_repository_delete", "gitea_repository_transfer", "*_admin_*", "*_oauth_app*", "gitea_user_*_token*", "gitea_user_*_my_*key*"),
		},
		// Making a release, from the list of commits to the attachments.
		"release": {
			domains: []string{"release"}, maxRisk: proxy.R3,
			add: []string{
				"gitea_repository_get", "gitea_repository_search", "gitea_repository_*_tag", "gitea_repository_list_tags",
				"gitea_repository_list_branches", "gitea_repository_get_branch", "gitea_repository_create_branch",
				"gitea_repository_get_combined_status", "gitea_contents_get", "gitea_contents_get_raw", "gitea_contents_update_file",
				"gitea_contents_compare", "gitea_contents_list_commits", "gitea_contents_get_commit", "gitea_pull_list", "gitea_pull_get",
				"gitea_issue_list", "gitea_issue_list_milestones", "gitea_issue_edit_milestone", "gitea_package_list*", "gitea_package_get*",
				"gitea_user_get_me",
			},
			remove: noise(),
		},
		// Looking after runs of workflows, and saying what came of them.
		"ci": {
			domains: []string{"actions"}, maxRisk: proxy.R2,
			add: []string{
				"gitea_repository_get", "gitea_repository_list_branches", "gitea_repository_get_branch", "gitea_repository_*_status*",
				"gitea_repository_get_combined_status", "gitea_contents_get", "gitea_contents_get_raw", "gitea_contents_list_commits",
				"gitea_contents_get_commit", "gitea_pull_list", "gitea_pull_get", "gitea_pull_list_files", "gitea_issue_create_comment",
				"gitea_release_list", "gitea_release_get_latest", "gitea_package_list*", "gitea_user_get_me",
			},
			remove: noise("*_admin_*"),
		},
		// The server itself: accounts, organizations, runners, hooks.
		"admin": {
			domains: []string{"admin", "settings"}, maxRisk: proxy.R4,
			add: []string{
				"gitea_actions_*_admin_*", "gitea_organization_*", "gitea_user_search", "gitea_user_get", "gitea_user_get_me",
				"gitea_repository_search", "gitea_repository_get", "gitea_miscellaneous_get_version",
			},
			remove: noise(),
		},
	}
}

// noise returns globs with those of tools that no preset wants: deprecated ones
// and those that cannot work with a token.
func noise(globs ...string) []string {
	return append(globs, "*_old", "gitea_issue_list_user_times", "gitea_user_list_tokens", "gitea_user_create_token", "gitea_user_delete_token")
}

// Toolsets returns the names that config.Tools.Toolsets may hold: the domains
// and the presets, sorted. "admin" and "release" are both; there the preset
// counts, which holds the whole domain and what the work needs besides.
func Toolsets() []string {
	names := append(spec.Domains(), slices.Sorted(maps.Keys(presets()))...)
	slices.Sort(names)
	return slices.Compact(names)
}

// has reports whether the preset takes a tool.
func (p *preset) has(t *proxy.Tool) bool {
	// Removals win, so that a glob of additions need not name its exceptions.
	if matchAny(p.remove, t.Name) {
		return false
	}
	if matchAny(p.add, t.Name) {
		return true
	}
	return slices.Contains(p.domains, t.Domain) && t.Risk <= p.maxRisk && (!p.readOnly || t.ReadOnly)
}

// matchAny reports whether a name matches one of some globs. Those of the configuration
// have been checked, so an error counts as no match.
func matchAny(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(g string) bool {
		ok, _ := path.Match(g, name) // false with an error
		return ok
	})
}
