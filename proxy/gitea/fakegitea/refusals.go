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

// errNoComment is the refusal for a comment.
func errNoComment(id int64) error {
	return fail(http.StatusNotFound, "comment does not exist [id: %d, issue_id: 0]", id)
}

// onIndex finds what the number of the path means; missing is the refusal.
func onIndex(f func(*call, *issue) error, pulls bool, missing func(*call) error) handler {
	return func(c *call) error {
		is := c.repo.issueByIndex(c.id("index"))
		if is == nil || pulls && is.pull == nil {
			return missing(c)
		}
		return f(c, is)
	}
}

// onIssue finds the issue or pull request of the path.
func onIssue(f func(*call, *issue) error) handler {
	return onIndex(f, false, func(*call) error { return errNotFound })
}

// onNamedIssue is onIssue for the routes that name the missing issue.
func onNamedIssue(f func(*call, *issue) error) handler {
	return onIndex(f, false, func(c *call) error { return errNoIssue(c.repo, c.id("index")) })
}

// onPull finds the pull request of the path.
func onPull(f func(*call, *issue) error) handler {
	return onIndex(f, true, func(*call) error { return errNotFound })
}

// onNamedPull is onPull for the routes that name the missing pull request.
func onNamedPull(f func(*call, *issue) error) handler {
	return onIndex(f, true, func(c *call) error {
		return fail(http.StatusNotFound,
			"pull request does not exist "+
				"[id: 0, issue_id: 0, head_repo_id: 0, base_repo_id: %d, head_branch: , base_branch: ]",
			c.repo.ID)
	})
}
