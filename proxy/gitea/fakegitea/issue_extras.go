package fakegitea

import (
	"net/http"
	"slices"
)

// handleIssueExtras registers dependencies and assignees.
func handleIssueExtras(t table) {
	const p = "/repos/{owner}/{repo}/issues/{index}"
	t.on("GET "+p+"/dependencies", onNamedIssue(listDependencies))
	t.on("POST "+p+"/dependencies", onDependency(addDependency), needToken, needActive)
	t.on("DELETE "+p+"/dependencies", onDependency(removeDependency), needToken, needActive)
	t.on("POST "+p+"/assignees", onIssue(readsFor(changeAssignees(http.StatusCreated, with))), needToken, needWrite)
	t.on("DELETE "+p+"/assignees", onIssue(readsFor(changeAssignees(http.StatusOK, without))), needToken, needWrite)
}

// listDependencies lists what an issue depends on, as far as the caller may see it.
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

// onDependency finds the issue of the path and the one that the body names.
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
// the real server.
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

// changeAssignees gives an issue other assignees: change is applied to those that it has
// for each one of the body.
func changeAssignees(
	status int, change func([]*user, *user) []*user,
) func(*call, *issue, *assigneesInput) error {
	return func(c *call, is *issue, in *assigneesInput) error {
		for _, name := range in.Assignees {
			if c.w.userByLogin(name) == nil { // these routes alone say it like this
				return errNoUser(http.StatusUnprocessableEntity, name)
			}
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
