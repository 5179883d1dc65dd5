package fakegitea

import (
	"maps"
	"slices"
)

// factsVersion is the version that the pinned facts of the API name, of which a test
// holds it: the double imports nothing of this module that it could take it from.
// The behaviour was measured on 1.28.0+dev-204-g298d73cde6.
const factsVersion = "28.1.0"

// handlers is the table of everything that the double answers.
func handlers() table {
	t := table{}
	for _, family := range []func(table){
		handleMisc, handleTemplates, handleUsers, handleSelf, handleOrgs, handleTeams, handleRepos, handleRepoPeople,
		handleContents, handleWrites, handleBranches, handleReleases, handleGit, handleStatuses, handleIssues,
		handleIssueExtras, handleComments, handleLabels, handlePulls, handleMerge, handleReviews, handleWiki,
		handleHooks, handleKeys, handleFeed, handlePackages, handleMirrors, handleApps, handleAdmin, handleTimes,
		handleRuns, handleActionsConfig, handleEmpty,
	} {
		family(t)
	}
	return t
}

// handleMisc registers the version and the settings of the API. Clients learn from the
// settings how many items a page can have. Blobs above the size there come without
// their content; sizes are in bytes.
func handleMisc(t table) {
	t.on("GET /version", func(c *call) error { return c.ok(map[string]string{"version": c.s.opts.Version}) })
	t.on("GET /settings/api", func(c *call) error {
		return c.ok(obj{
			"max_response_items", c.s.opts.MaxItems, "default_paging_num", min(defaultPage, c.s.opts.MaxItems),
			"default_git_trees_per_page", treePage, "default_max_blob_size", maxBlob,
			"default_max_response_size", 104857600,
		})
	})
}

// gitignoreTemplates are the .gitignore files that new repositories can have.
var gitignoreTemplates = map[string]string{
	"Go":     "# binaries and test output\n*.exe\n*.test\n*.out\n/vendor/\n",
	"Node":   "node_modules/\nnpm-debug.log\ndist/\n",
	"Python": "__pycache__/\n*.pyc\n.venv/\n",
}

// licenseTemplate is a license that new repositories can have.
type licenseTemplate struct{ Key, Body string }

// licenseTemplates are short notes in our own words, not the legal texts.
var licenseTemplates = []licenseTemplate{
	{"Apache-2.0",
		"Apache License, Version 2.0\n\nPlaceholder of the demo instance: put the text of the license here.\n"},
	{"MIT", "MIT License (placeholder)\n\nPlaceholder of the demo instance: put the text of the license here.\n"},
	{"Unlicense",
		"The Unlicense (placeholder)\n\nPlaceholder of the demo instance: put the text of the license here.\n"},
}

// labelTemplates are the label sets that new repositories can have.
var labelTemplates = map[string][]label{
	"Default": {
		{Name: "bug", Color: "ee0701", Description: "Something does not work"},
		{Name: "duplicate", Color: "cccccc", Description: "Told before"},
		{Name: "enhancement", Color: "84b6eb", Description: "Something new"},
		{Name: "help wanted", Color: "128a0c", Description: "Who can help?"},
		{Name: "invalid", Color: "e6e6e6", Description: "Not as it seems"},
		{Name: "question", Color: "cc317c", Description: "Somebody has to say more"},
		{Name: "wontfix", Color: "ffffff", Description: "It stays as it is"},
	},
	"Advanced": {
		{Name: "Kind/Bug", Color: "ee0701", Description: "Something is not working", Exclusive: true},
		{Name: "Kind/Feature", Color: "0288d1", Description: "New functionality", Exclusive: true},
		{Name: "Priority/High", Color: "d93f0b", Description: "The priority is high", Exclusive: true},
	},
}

// handleEmpty registers lists of what cannot be made here: boards, deploy keys and GPG
// keys. Clients that list everything find [] and a total of 0 instead of 501.
func handleEmpty(t table) {
	none := func(c *call) error { return c.ok(linked(c, []any{})) }
	ofUser := onUser(func(c *call, _ *user) error { return none(c) })
	t.on("GET /repos/{owner}/{repo}/projects", none)
	t.on("GET /orgs/{org}/projects", none)
	t.on("GET /user/projects", none, needToken)
	t.on("GET /users/{username}/projects", ofUser)
	t.on("GET /repos/{owner}/{repo}/keys", none, needAdmin)
	t.on("GET /user/gpg_keys", none, needToken)
	t.on("GET /users/{username}/gpg_keys", ofUser)
}

// handleTemplates registers the templates for new repositories. The names are those of
// the maps here, far fewer than Gitea brings.
func handleTemplates(t table) {
	t.on("GET /gitignore/templates", func(c *call) error { return c.ok(slices.Sorted(maps.Keys(gitignoreTemplates))) })
	t.on("GET /licenses", func(c *call) error {
		return c.ok(mapped(licenseTemplates, func(l licenseTemplate) any {
			return obj{"key", l.Key, "name", l.Key, "url", c.root + "/api/v1/licenses/" + l.Key}
		}))
	})
	t.on("GET /label/templates", func(c *call) error { return c.ok(slices.Sorted(maps.Keys(labelTemplates))) })
}

// labelsOfTemplate makes the labels of a template. Each repository gets copies, with
// ids of their own.
func (w *world) labelsOfTemplate(name string) []*label {
	return mapped(labelTemplates[name], func(l label) *label {
		l.ID = w.next("label")
		return &l
	})
}
