package fakegitea

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// searchResult is the body of a search.
type searchResult[T any] struct {
	OK   bool `json:"ok"`
	Data []T  `json:"data"`
}

// repoOrders are the sort modes of the repository search; nil leaves the order as it is.
// Stars, forks and the sizes of git and LFS are accepted, as a refusal would be wrong, but not
// sorted by.
var repoOrders = map[string]func(a, b *repo) int{
	"alpha":   func(a, b *repo) int { return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) },
	"created": func(a, b *repo) int { return a.Created.Compare(b.Created) },
	"updated": func(a, b *repo) int { return a.Updated.Compare(b.Updated) },
	"size":    func(a, b *repo) int { return int(a.git.size() - b.git.size()) },
	"id":      func(a, b *repo) int { return int(a.ID - b.ID) },
	"stars":   nil, "forks": nil, "git_size": nil, "lfs_size": nil,
}

// searchRepos searches the visible repositories.
func searchRepos(c *call) error {
	// Mode and sort are refused when unknown, while unknown words of most other filters are
	// dropped.
	if !slices.Contains([]string{"", "source", "fork", "mirror", "collaborative"}, c.query.Get("mode")) {
		return fail(http.StatusUnprocessableEntity, "invalid search mode")
	}
	order := cmp.Or(c.query.Get("sort"), "alpha")
	compare, ok := repoOrders[order]
	if !ok {
		return fail(http.StatusUnprocessableEntity, "Invalid sort mode: %q", order)
	}
	items := filter(c.w.readable(c.doer), c.matchesSearch)
	if compare != nil {
		slices.SortStableFunc(items, compare)
	}
	// Any other word is ascending, where the server refuses one that it does not know if the
	// sort is named.
	if c.query.Get("order") == "desc" {
		slices.Reverse(items)
	}
	return c.ok(searchResult[obj]{true, c.repos(linked(c, items))})
}

// matchesSearch applies the filters of the search.
func (c *call) matchesSearch(r *repo) bool {
	q := strings.ToLower(c.query.Get("q"))
	inText := q == "" || strings.Contains(strings.ToLower(r.Name), q) ||
		c.queryBool("includeDesc") && strings.Contains(strings.ToLower(r.Description), q)
	// A topic has to be the whole word, where a name may hold it anywhere.
	if c.queryBool("topic") {
		inText = slices.Contains(r.Topics, q)
	}
	uid := int64(c.queryInt("uid"))
	owned := uid == 0 || r.Owner.ID == uid ||
		!c.queryBool("exclusive") && r.Collaborators[uid] > accessNone
	modes := map[string]bool{
		"": true, "source": r.Fork == nil && !r.Mirror, "fork": r.Fork != nil, "mirror": r.Mirror,
		"collaborative": uid != 0 && r.Owner.ID != uid,
	}
	// These three have a third state: a parameter that is left out does not filter.
	is := func(param string, have bool) bool { return c.query.Get(param) == "" || c.queryBool(param) == have }
	return inText && owned && modes[c.query.Get("mode")] && is("archived", r.Archived) && is("template", r.Template) &&
		is("is_private", r.Private) && !(c.query.Get("private") == "false" && r.Private) &&
		!(c.cred.scopes.publicOnly && r.Private)
}
