package fakegitea

import (
	"net/http"
	"slices"
)

// editIssue edits an issue; its poster and writers may.
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
	if in.State != nil && *in.State != "open" && *in.State != "closed" {
		return fail(http.StatusPreconditionFailed, "unknown state: %s", *in.State)
	}
	if in.State != nil && is.pull != nil && is.pull.Merged {
		return fail(http.StatusPreconditionFailed, "cannot change state of this pull request, it was already merged")
	}
	if in.Title != "" && in.Title != is.Title {
		c.w.addEvent(is, c.doer, comment{Kind: "change_title", oldTitle: is.Title, newTitle: in.Title})
		is.Title = in.Title
	}
	if in.Body != nil && *in.Body != is.Body {
		is.Body = *in.Body
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
	if *in.State == "closed" && slices.ContainsFunc(is.DependsOn, func(o *issue) bool { return !o.Closed }) {
		return fail(http.StatusPreconditionFailed,
			"cannot close this issue or pull request because it still has open dependencies")
	}
	c.setState(is, *in.State == "closed")
	return nil
}

// applyTriage applies what only writers may change. For others these fields are passed
// over without a word, as when an issue is created.
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
	if in.Unset {
		is.Due = nil
	}
	return nil
}

// deleteIssue removes an issue for good. Its number is not used again.
func deleteIssue(c *call, is *issue) error {
	c.repo.issues = without(c.repo.issues, is)
	c.w.times = slices.DeleteFunc(c.w.times, func(tt *trackedTime) bool { return tt.issue == is })
	c.w.threads = slices.DeleteFunc(c.w.threads, func(t *thread) bool { return t.issue == is })
	return c.done()
}

// maxPins is how many issues, and how many pull requests, can be pinned.
const maxPins = 3

// pinned lists the pinned issues or pull requests in their order.
func (c *call) pinned(pulls bool) []*issue {
	out := filter(c.repo.issues, func(is *issue) bool { return is.PinOrder > 0 && (is.pull != nil) == pulls })
	slices.SortFunc(out, func(a, b *issue) int { return a.PinOrder - b.PinOrder })
	return out
}

// listPinned lists the pinned issues.
func listPinned(c *call) error { return c.ok(mapped(c.pinned(false), c.issueView)) }

// pinIssue pins at the end.
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

// unpinIssue unpins and closes the gap.
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
