package fakegitea

import (
	"net/http"
	"path"
	"slices"
)

// handleIssueExtras registers subscriptions, dependencies, assignees and
// templates.
func handleIssueExtras(t table) {
	const p = "/repos/{owner}/{repo}"
	t.on("GET "+p+"/issues/{index}/subscriptions", onIssue(func(c *call, _ *issue) error {
		return c.ok(linked(c, []any{})) // subscribing is not in the demo
	}))
	t.on("GET "+p+"/issues/{index}/subscriptions/check", onIssue(checkIssueSubscription), needToken)
	for _, kind := range []string{"dependencies", "blocks"} {
		t.on("GET "+p+"/issues/{index}/"+kind, onNamedIssue(listLinks(kind == "blocks")))
		t.on("POST "+p+"/issues/{index}/"+kind, onNamedIssue(changeLink(kind == "blocks", true)), needToken, needActive)
		t.on("DELETE "+p+"/issues/{index}/"+kind, onNamedIssue(changeLink(kind == "blocks", false)), needToken,
			needActive)
	}
	t.on("POST "+p+"/issues/{index}/assignees", onIssue(changeAssignees(true)), needToken, needWrite)
	t.on("DELETE "+p+"/issues/{index}/assignees", onIssue(changeAssignees(false)), needToken, needWrite)
	t.on("GET "+p+"/issue_templates", listTemplates)
}

// checkIssueSubscription says how the caller follows an issue.
func checkIssueSubscription(c *call, is *issue) error {
	on := is.follows(c.doer)
	return c.ok(map[string]any{
		"subscribed": on, "ignored": !on, "reason": nil, "created_at": is.Created,
		"url": c.api(is.Repo, "issues", c.params["index"], "subscriptions"), "repository_url": c.api(is.Repo),
	})
}

// follows says whether u hears of an issue: as a watcher of the repository, or for
// having taken part.
func (is *issue) follows(u *user) bool {
	return u == is.Poster || slices.Contains(is.Repo.Watchers, u) || slices.Contains(is.Assignees, u) ||
		slices.ContainsFunc(is.talk(), func(m *comment) bool { return m.Poster == u })
}

// listLinks lists what an issue depends on, or what it blocks.
func listLinks(blocks bool) func(*call, *issue) error {
	return func(c *call, is *issue) error {
		items := is.DependsOn
		if blocks {
			items = nil
			for _, r := range c.w.repos {
				items = append(items, filter(r.issues, func(o *issue) bool {
					return slices.Contains(o.DependsOn, is)
				})...)
			}
		}
		items = filter(items, func(o *issue) bool { return c.w.access(c.doer, o.Repo) >= accessRead })
		if blocks { // this list alone has no total
			return c.ok(mapped(cut(c.window(), items), c.issueView))
		}
		return c.ok(mapped(counted(c, items), c.issueView))
	}
}

// changeLink adds or removes a dependency; the body names the other issue. What
// is wrong with a new one is not told to the caller.
func changeLink(blocks, on bool) func(*call, *issue) error {
	return func(c *call, is *issue) error {
		var in struct {
			Index int64  `json:"index"`
			Owner string `json:"owner"`
			Repo  string `json:"repo"`
		}
		if err := c.bind(&in); err != nil {
			return err
		}
		r := c.w.repoByName(in.Owner, in.Repo)
		if r == nil || c.w.access(c.doer, r) < accessRead {
			return fail(http.StatusNotFound,
				"repository does not exist [id: 0, uid: 0, owner_name: %s, name: %s]", in.Owner, in.Repo)
		}
		if r.issueByIndex(in.Index) == nil {
			return errNoIssue(r, in.Index)
		}
		other := r.issueByIndex(in.Index)
		from, to := is, other
		if blocks {
			from, to = other, is
		}
		if c.w.access(c.doer, from.Repo) < accessWrite {
			return fail(http.StatusForbidden, "write permission is required")
		}
		switch {
		case !on && !slices.Contains(from.DependsOn, to):
			return errNotFound
		case !on:
			from.DependsOn = without(from.DependsOn, to)
			c.w.addEvent(from, c.doer, comment{Kind: "remove_dependency", dependent: to})
			return c.created(c.issueView(is))
		case slices.Contains(from.DependsOn, to):
			return fail(http.StatusInternalServerError,
				"issue dependency does already exist [issue id: %d, dependency id: %d]", from.ID, to.ID)
		case from != to && slices.Contains(to.DependsOn, from):
			return fail(http.StatusInternalServerError, "circular dependencies exists "+
				"(two issues blocking each other) [issue id: %d, dependency id: %d]", from.ID, to.ID)
		}
		from.DependsOn = append(from.DependsOn, to)
		c.w.addEvent(from, c.doer, comment{Kind: "add_dependency", dependent: to})
		return c.created(c.issueView(is))
	}
}

// changeAssignees adds or removes assignees.
func changeAssignees(on bool) func(*call, *issue) error {
	return func(c *call, is *issue) error {
		var in struct {
			Assignees []string `json:"assignees"`
		}
		if err := c.bind(&in); err != nil {
			return err
		}
		for _, name := range in.Assignees {
			if name != "" && c.w.userByLogin(name) == nil {
				return errNoUser(http.StatusUnprocessableEntity, name)
			}
		}
		people, err := c.assigneesOf("", in.Assignees)
		if err != nil {
			return err
		}
		next := slices.Clone(is.Assignees)
		for _, u := range people {
			if on {
				next = with(next, u)
			} else {
				next = without(next, u)
			}
		}
		c.assign(is, next)
		if on {
			return c.created(c.issueView(is))
		}
		return c.ok(c.issueView(is))
	}
}

// listTemplates answers null for a repository without issue templates, as the
// real server does. Reading templates is not in the demo.
func listTemplates(c *call) error {
	if head := c.repo.git.branch(c.repo.DefaultBranch); head != nil {
		for p := range head.files {
			if dir := path.Dir(p); dir == ".gitea/ISSUE_TEMPLATE" || dir == ".github/ISSUE_TEMPLATE" {
				return notInDemo(c)
			}
		}
	}
	return c.ok(nil)
}
