package fakegitea

import (
	"net/http"
)

// transferRepoInput is the body of transferRepo.
type transferRepoInput struct {
	NewOwner string  `json:"new_owner" binding:"Required"`
	TeamIDs  []int64 `json:"team_ids"`
}

// transferRepo moves a repository, at once when the caller may create
// repositories there; otherwise the new owner has to accept.
func transferRepo(c *call, in *transferRepoInput) error {
	to := c.w.userByLogin(in.NewOwner)
	switch {
	case to == nil:
		return fail(http.StatusNotFound, "The new owner does not exist or cannot be found")
	case c.repo.PendingOwner != nil:
		return fail(http.StatusConflict, "repository is already in a transfer")
	case c.w.repoByName(to.Login, c.repo.Name) != nil:
		return fail(http.StatusUnprocessableEntity,
			"repository already exists [uname: %s, name: %s]", to.Login, c.repo.Name)
	}
	if to == c.doer || c.doer.Admin || to.Org && c.w.mayCreateRepo(to, c.doer) {
		c.w.rename(c.repo, to, c.repo.Name)
		return c.json(http.StatusAccepted, c.repoView(c.repo))
	}
	c.repo.PendingOwner, c.repo.Transferrer = to, c.doer
	return c.created(c.repoView(c.repo))
}

// answerTransfer accepts or rejects a pending transfer.
func answerTransfer(accept bool) handler {
	return func(c *call) error {
		to := c.repo.PendingOwner
		switch {
		case to == nil:
			return fail(http.StatusNotFound, "repository doesn't have a pending transfer [repo_id: %d]", c.repo.ID)
		case to != c.doer && !c.doer.Admin && !(to.Org && c.w.isOrgOwner(to, c.doer)):
			return fail(http.StatusForbidden, "user does not have permission to answer the transfer")
		}
		c.repo.PendingOwner = nil
		if !accept {
			return c.ok(c.repoView(c.repo))
		}
		c.w.rename(c.repo, to, c.repo.Name)
		return c.json(http.StatusAccepted, c.repoView(c.repo))
	}
}
