package fakegitea

import (
	"net/http"
	"slices"
	"strings"
)

// searchIssues searches over all visible repositories.
func searchIssues(c *call) error {
	keep, err := c.searchScope()
	if err != nil {
		return err
	}
	var items []*issue
	for _, r := range c.w.readable(c.doer) {
		if keep(r) && !(c.cred.scopes.publicOnly && r.Private) {
			items = append(items, r.issues...)
		}
	}
	if c.doer != nil {
		items = filter(items, func(is *issue) bool {
			p := is.pull
			return (!c.queryBool("assigned") || slices.Contains(is.Assignees, c.doer)) &&
				(!c.queryBool("created") || is.Poster == c.doer) &&
				(!c.queryBool("mentioned") || strings.Contains(is.Body, "@"+c.doer.Login)) &&
				(!c.queryBool("review_requested") || p != nil && slices.Contains(p.Reviewers, c.doer)) &&
				(!c.queryBool("reviewed") || p != nil && slices.ContainsFunc(p.Reviews, func(v *review) bool {
					return v.User == c.doer
				}))
		})
	}
	items, err = c.filterIssues(items)
	if err != nil {
		return err
	}
	return c.ok(mapped(linked(c, items), c.issueView))
}

// searchScope reads owner and team. Unlike other filters, an unknown one is
// refused, and a team needs its owner beside it.
func (c *call) searchScope() (func(*repo) bool, error) {
	name, teamName := c.query.Get("owner"), c.query.Get("team")
	if name == "" && teamName == "" {
		return func(*repo) bool { return true }, nil
	}
	if name == "" {
		return nil, fail(http.StatusBadRequest, "owner organisation is required for filtering on team")
	}
	owner := c.w.userByLogin(name)
	if owner == nil {
		return nil, errNoUser(http.StatusBadRequest, name)
	}
	if teamName == "" {
		return func(r *repo) bool { return r.Owner == owner }, nil
	}
	t, ok := find(owner.Teams, func(t *team) bool { return strings.EqualFold(t.Name, teamName) })
	if !ok {
		return nil, fail(http.StatusBadRequest,
			"team does not exist [org_id %d, team_id 0, name: %s]", owner.ID, teamName)
	}
	return func(r *repo) bool { return r.Owner == owner && t.has(r) }, nil
}
