package fakegitea

import (
	"net/http"
	"slices"
)

// handleIssueExtras registers dependencies and assignees. Assignees need write access
// at the route, the others look at it in their handlers.
func handleIssueExtras(t table) {
	const p = "/repos/{owner}/{repo}/issues/{index}"
	t.on("GET "+p+"/dependencies", onNamedIssue(listDependencies))
	t.on("POST "+p+"/dependencies", onDependency(addDependency), needToken, needActive)
	t.on("DELETE "+p+"/dependencies", onDependency(removeDependency), needToken, needActive)
	t.on("POST "+p+"/assignees", onIssue(readsFor(changeAssignees(http.StatusCreated, with))), needToken, needWrite)
	t.on("DELETE "+p+"/assignees", onIssue(readsFor(changeAssignees(http.StatusOK, without))), needToken, needWrite)
}

// editIssue edits an issue; its poster and writers may. The answer is 201, not 200.
func editIssue(c *call, is *issue, in *issueFields) error {
	if err := c.applyEdit(is, in); err != nil {
		return err
	}
	return c.created(c.issueView(is))
}

// applyEdit applies what issues and pull requests share.
func (c *call) applyEdit(is *issue, in *issueFields) error {
	if !c.mayChange(is.Poster) {
		return errForbidden
	}
	// States are checked first, so that a refused edit changes nothing. Gitea has
	// changed the title and the text by then.
	if in.State != nil && *in.State != "open" && *in.State != "closed" {
		return fail(http.StatusPreconditionFailed, "unknown state: %s", *in.State)
	}
	if in.State != nil && is.pull != nil && is.pull.Merged {
		return fail(http.StatusPreconditionFailed, "cannot change state of this pull request, it was already merged")
	}
	// An empty title counts as none: a title cannot be removed.
	if in.Title != "" && in.Title != is.Title {
		c.w.addEvent(is, c.doer, comment{Kind: "change_title", oldTitle: is.Title, newTitle: in.Title})
		is.Title = in.Title
	}
	if in.Body != nil && *in.Body != is.Body {
		is.Body = *in.Body
		// It is the content_version that clients see, and counts changes of the text
		// alone.
		is.Version++
	}
	set(&is.Ref, in.Ref)
	is.Updated = c.now
	if c.perm >= accessWrite {
		if err := c.applyTriage(is, in); err != nil {
			return err
		}
	}
	if in.State == nil {
		return nil
	}
	// Everything above is done even if this refuses, as there.
	if *in.State == "closed" && slices.ContainsFunc(is.DependsOn, func(o *issue) bool { return !o.Closed }) {
		return fail(http.StatusPreconditionFailed,
			"cannot close this issue or pull request because it still has open dependencies")
	}
	c.setState(is, *in.State == "closed")
	return nil
}

// applyTriage applies what only writers may change. For others these fields are passed
// over without a word, as when an issue is created. An unknown milestone is 500 on the
// real server, as is an unknown assignee of an issue.
func (c *call) applyTriage(is *issue, in *issueFields) error {
	if in.Assignee != nil || in.Assignees != nil {
		people, err := c.assigneesOf(in)
		if err != nil && is.pull == nil { // unlike creating, editing an issue does not say why
			return fail(http.StatusInternalServerError, "%v", err)
		}
		if err != nil {
			return err
		}
		c.assign(is, people)
	}
	if in.Milestone != nil {
		m := c.repo.milestoneByID(*in.Milestone)
		if m == nil && *in.Milestone != 0 {
			return fail(http.StatusInternalServerError,
				"milestone does not exist [id: %d, repo_id: %d]", *in.Milestone, c.repo.ID)
		}
		if m != is.Milestone {
			c.w.addEvent(is, c.doer, comment{Kind: "milestone", milestone: m, oldMilestone: is.Milestone})
		}
		is.Milestone = m
	}
	if in.Due != nil {
		is.Due = in.Due
	}
	// Unsetting wins over a date in the same body. Gitea moves the date to the end of
	// its day; the double keeps it as it was sent.
	if in.Unset {
		is.Due = nil
	}
	return nil
}

// deleteIssue removes an issue for good. Its number is not used again. Only an
// administrator of the repository may, not its poster.
func deleteIssue(c *call, is *issue) error {
	c.repo.issues = without(c.repo.issues, is)
	c.w.times = slices.DeleteFunc(c.w.times, func(tt *trackedTime) bool { return tt.issue == is })
	c.w.threads = slices.DeleteFunc(c.w.threads, func(t *thread) bool { return t.issue == is })
	return c.done()
}

// maxPins is how many issues, and how many pull requests, can be pinned. It is the
// default of Gitea's setting.
const maxPins = 3

// pinned lists the pinned issues or pull requests in their order.
func (c *call) pinned(pulls bool) []*issue {
	out := filter(c.repo.issues, func(is *issue) bool { return is.PinOrder > 0 && (is.pull != nil) == pulls })
	slices.SortFunc(out, func(a, b *issue) int { return a.PinOrder - b.PinOrder })
	return out
}

// listPinned lists the pinned issues.
func listPinned(c *call) error { return c.ok(mapped(c.pinned(false), c.issueView)) }

// pinIssue pins at the end. Pinning twice breaks a constraint of the real server's
// database, and a client gets its 500.
func pinIssue(c *call, is *issue) error {
	pins := c.pinned(is.pull != nil)
	if is.PinOrder == 0 && len(pins) >= maxPins {
		return fail(http.StatusBadRequest, "You have reached the max number of pinned issues")
	}
	if is.PinOrder > 0 {
		return fail(http.StatusInternalServerError, "UNIQUE constraint failed: issue_pin.repo_id, issue_pin.issue_id")
	}
	is.PinOrder = len(pins) + 1
	c.w.addEvent(is, c.doer, comment{Kind: "pin"})
	return c.done()
}

// unpinIssue unpins and closes the gap. What is not pinned is 204, too, without an
// event.
func unpinIssue(c *call, is *issue) error {
	if is.PinOrder > 0 {
		is.PinOrder = 0
		for i, o := range c.pinned(is.pull != nil) {
			o.PinOrder = i + 1
		}
		c.w.addEvent(is, c.doer, comment{Kind: "unpin"})
	}
	return c.done()
}

// listDependencies lists what an issue depends on, as far as the caller may see it. The
// total leaves out what is hidden.
func listDependencies(c *call, is *issue) error {
	items := filter(is.DependsOn, func(o *issue) bool { return c.w.access(c.doer, o.Repo) >= accessRead })
	return c.ok(mapped(counted(c, items), c.issueView))
}

// issueMeta names an issue in a body.
type issueMeta struct {
	Index int64  `json:"index"`
	Owner string `json:"owner"`
	Repo  string `json:"repo"`
}

// onDependency finds the issue of the path and the one that the body names. The other
// issue may be in any repository that the caller sees; a hidden one has the words of an
// unknown one. The answer shows the issue of the path and is 201, also for a removal.
func onDependency(f func(c *call, is, to *issue) error) handler {
	return onNamedIssue(readsFor(func(c *call, is *issue, in *issueMeta) error {
		r := c.w.repoByName(in.Owner, in.Repo)
		if r == nil || c.w.access(c.doer, r) < accessRead {
			return fail(http.StatusNotFound,
				"repository does not exist [id: 0, uid: 0, owner_name: %s, name: %s]", in.Owner, in.Repo)
		}
		to := r.issueByIndex(in.Index)
		if to == nil {
			return errNoIssue(r, in.Index)
		}
		if c.perm < accessWrite {
			return fail(http.StatusForbidden, "write permission is required")
		}
		if err := f(c, is, to); err != nil {
			return err
		}
		return c.created(c.issueView(is))
	}))
}

// addDependency adds a dependency. What is wrong with a new one is an internal error on
// the real server. Only a circle of two is looked for. The event is written to this
// issue alone, Gitea writes one to each.
func addDependency(c *call, is, to *issue) error {
	switch {
	case slices.Contains(is.DependsOn, to):
		return fail(http.StatusInternalServerError,
			"issue dependency does already exist [issue id: %d, dependency id: %d]", is.ID, to.ID)
	case is != to && slices.Contains(to.DependsOn, is):
		return fail(http.StatusInternalServerError, "circular dependencies exists "+
			"(two issues blocking each other) [issue id: %d, dependency id: %d]", is.ID, to.ID)
	}
	is.DependsOn = append(is.DependsOn, to)
	c.w.addEvent(is, c.doer, comment{Kind: "add_dependency", dependent: to})
	return nil
}

// removeDependency removes a dependency.
func removeDependency(c *call, is, to *issue) error {
	if !slices.Contains(is.DependsOn, to) {
		return errNotFound
	}
	is.DependsOn = without(is.DependsOn, to)
	c.w.addEvent(is, c.doer, comment{Kind: "remove_dependency", dependent: to})
	return nil
}

// assigneesInput is the body of a change of assignees.
type assigneesInput struct {
	Assignees []string `json:"assignees"`
}

// changeAssignees gives an issue other assignees: change is applied to those that it
// has for each one of the body. Adding answers 201 and removing 200, both with the
// issue.
func changeAssignees(
	status int, change func([]*user, *user) []*user,
) func(*call, *issue, *assigneesInput) error {
	return func(c *call, is *issue, in *assigneesInput) error {
		_, err := c.w.usersNamed(in.Assignees, func(name string) error { // these routes alone say it like this
			return errNoUser(http.StatusUnprocessableEntity, name)
		})
		if err != nil {
			return err
		}
		people, err := c.assigneesOf(&issueFields{Assignees: in.Assignees})
		if err != nil {
			return err
		}
		next := slices.Clone(is.Assignees)
		for _, u := range people {
			next = change(next, u)
		}
		c.assign(is, next)
		return c.json(status, c.issueView(is))
	}
}
