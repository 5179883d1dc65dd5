package fakegitea

import (
	"net/http"
)

// transferRepo moves a repository, at once when the caller may create
// repositories there; otherwise the new owner has to accept.
func transferRepo(c *call) error {
	var in struct {
		NewOwner string  `json:"new_owner" binding:"Required"`
		TeamIDs  []int64 `json:"team_ids"`
	}
	if err := c.bind(&in); err != nil {
		return err
	}
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
