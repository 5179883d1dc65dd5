package fakegitea

import (
	"fmt"
	"html"
	"maps"
	"net/http"
	"slices"
)

// factsVersion is the version that the pinned description of the API names. The
// behaviour was measured on a build of it before its release, which called itself
// 1.28.0+dev-204-g298d73cde6: the first number went with 28.1.0.
const factsVersion = "28.1.0"

// handlers is the table of everything that the double answers.
func handlers() table {
	t := table{}
	for _, family := range []func(table){
		handleMisc, handleTemplates, handleUsers, handleSelf, handleOrgs, handleTeams, handleRepos, handleRepoPeople,
		handleContents, handleWrites, handleBranches, handleReleases, handleGit, handleStatuses,
		handleArchives, handleIssues, handleIssueExtras, handleComments, handleLabels, handlePulls, handleMerge,
		handleReviews,
		handleWiki, handleHooks, handleKeys, handleFeed, handlePackages, handleMirrors, handleApps, handleAdmin,
		handleTimes,
		handleRuns, handleActionsConfig,
	} {
		family(t)
	}
	return t
}

// handleMisc registers the version, the settings and rendering.
func handleMisc(t table) {
	t.on("GET /version", func(c *call) error { return c.ok(map[string]string{"version": c.s.opts.Version}) })
	t.on("GET /settings/api", func(c *call) error {
		return c.ok(obj{
			"max_response_items", c.s.opts.MaxItems, "default_paging_num", min(defaultPage, c.s.opts.MaxItems),
			"default_git_trees_per_page", treePage, "default_max_blob_size", maxBlob,
			"default_max_response_size", 104857600,
		})
	})
	t.on("GET /settings/repository", func(c *call) error {
		return c.ok(obj{
			"mirrors_disabled", false, "http_git_disabled", false, "migrations_disabled", false,
			"stars_disabled", false, "time_tracking_disabled", false, "lfs_disabled", false,
		})
	})
	t.on("GET /settings/ui", func(c *call) error {
		return c.ok(obj{
			"default_theme", "gitea-auto", "allowed_reactions", allowedReactions,
			"custom_emojis", []string{"git", "gitea", "codeberg", "gitlab", "github", "gogs"},
		})
	})
	t.on("GET /settings/attachment", func(c *call) error {
		return c.ok(obj{
			"enabled", true,
			"allowed_types",
			".csv,.docx,.gif,.gz,.jpeg,.jpg,.json,.log,.md,.mov,.mp4,.patch,.pdf,.png,.svg,.txt,.webp,.zip",
			"max_size", 100, "max_files", 5,
		})
	})
	t.on("POST /markdown", (*call).render, needToken)
	t.on("GET /repos/{owner}/{repo}/keys", func(c *call) error {
		return c.ok(linked(c, []any{}))
	}, needAdmin) // no deploy keys
}

// render answers the text of the body as one paragraph: the double knows no Markdown,
// and what comes back has to be safe HTML all the same.
func (c *call) render() error {
	var in struct {
		Text     string `json:"Text"`
		Mode     string `json:"Mode"`
		Context  string `json:"Context"`
		Wiki     bool   `json:"Wiki"`
		FilePath string `json:"FilePath"`
	}
	if err := c.bind(&in); err != nil {
		return err
	}
	if !slices.Contains([]string{"", "comment", "gfm", "markdown", "wiki", "file"}, in.Mode) {
		c.out.status = http.StatusUnprocessableEntity
		return c.text("unsupported render mode: " + in.Mode + "\n") // the one refusal that is not JSON
	}
	c.out.header.Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(&c.out.body, "<p dir=\"auto\">%s</p>\n", html.EscapeString(in.Text))
	return nil
}

// gitignoreTemplates are the .gitignore files that new repositories can have.
var gitignoreTemplates = map[string]string{
	"Go":     "# binaries and test output\n*.exe\n*.test\n*.out\n/vendor/\n",
	"Node":   "node_modules/\nnpm-debug.log\ndist/\n",
	"Python": "__pycache__/\n*.pyc\n.venv/\n",
}

// licenseNote is the text of every license here: a license that the demo writes into a
// repository must not look like the legal text.
const licenseNote = "\n\nPlaceholder of the demo instance: put the text of the license here.\n"

// licenseTemplates are the licenses that new repositories can have, by their SPDX name.
var licenseTemplates = []struct{ Key, Body string }{
	{"Apache-2.0", "Apache License, Version 2.0" + licenseNote},
	{"MIT", "MIT License (placeholder)" + licenseNote},
	{"Unlicense", "The Unlicense (placeholder)" + licenseNote},
}

// labelTemplates are the label sets that new repositories can have.
var labelTemplates = map[string][]label{
	"Default": {
		{Name: "bug", Color: "ee0701", Description: "Something does not work"},
		{Name: "enhancement", Color: "84b6eb", Description: "Something new"},
		{Name: "question", Color: "cc317c", Description: "More information is needed"},
	},
	"Advanced": {
		{Name: "Kind/Bug", Color: "ee0701", Description: "Something is not working", Exclusive: true},
		{Name: "Priority/High", Color: "d93f0b", Description: "The priority is high", Exclusive: true},
	},
}

// handleTemplates registers the templates for new repositories.
func handleTemplates(t table) {
	t.on("GET /gitignore/templates", func(c *call) error { return c.ok(slices.Sorted(maps.Keys(gitignoreTemplates))) })
	t.on("GET /licenses", func(c *call) error {
		list := []obj{}
		for _, l := range licenseTemplates {
			list = append(list, obj{"key", l.Key, "name", l.Key, "url", c.root + "/api/v1/licenses/" + l.Key})
		}
		return c.ok(list)
	})
	t.on("GET /label/templates", func(c *call) error { return c.ok(slices.Sorted(maps.Keys(labelTemplates))) })
}

// labelsOfTemplate makes the labels of a template.
func (w *world) labelsOfTemplate(name string) []*label {
	return mapped(labelTemplates[name], func(l label) *label {
		l.ID = w.next("label")
		return &l
	})
}
