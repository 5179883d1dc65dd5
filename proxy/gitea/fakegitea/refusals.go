package fakegitea

import "net/http"

// Some routes name what is missing; the others say "not found".

// errNoUser is the refusal for an unknown user.
func errNoUser(status int, name string) error {
	return fail(status, "user does not exist [uid: 0, name: %s]", name)
}

// errNoAssignee is the refusal for an unknown assignee.
func errNoAssignee(name string) error {
	return fail(http.StatusUnprocessableEntity, "Assignee does not exist: [name: %v]", errNoUser(0, name))
}

// errNoIssue is the refusal for an issue by its number.
func errNoIssue(r *repo, index int64) error {
	return fail(http.StatusNotFound, "issue does not exist [id: 0, repo_id: %d, index: %d]", r.ID, index)
}

// errNoPull is the refusal for a pull request.
func (c *call) errNoPull() error {
	return fail(http.StatusNotFound,
		"pull request does not exist "+
			"[id: 0, issue_id: 0, head_repo_id: 0, base_repo_id: %d, head_branch: , base_branch: ]",
		c.repo.ID)
}

// errNoComment is the refusal for a comment.
func errNoComment(id int64) error {
	return fail(http.StatusNotFound, "comment does not exist [id: %d, issue_id: 0]", id)
}

// onNamedIssue is onIssue for the routes that name the missing issue.
func onNamedIssue(f func(*call, *issue) error) handler {
	return func(c *call) error {
		if c.repo.issueByIndex(c.id("index")) == nil {
			return errNoIssue(c.repo, c.id("index"))
		}
		return onIssue(f)(c)
	}
}

// onNamedPull is onPull for the routes that name the missing pull request.
func onNamedPull(f func(*call, *issue) error) handler {
	return func(c *call) error {
		if is := c.repo.issueByIndex(c.id("index")); is == nil || is.pull == nil {
			return c.errNoPull()
		}
		return onPull(f)(c)
	}
}
