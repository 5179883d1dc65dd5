package fakegitea

import (
	"slices"
	"strings"
)

// handleUsers registers other people's pages and who the caller is.
func handleUsers(t table) {
	t.on("GET /user", func(c *call) error { return c.ok(c.user(c.doer)) }, needToken)
	t.on("GET /users/search", searchUsers)
	const p = "/users/{username}"
	t.on("GET "+p, onUser(renders((*call).user)))
	t.on("GET "+p+"/repos", onUser(func(c *call, u *user) error { return c.ok(c.repos(linked(c, c.reposOf(u)))) }))
	t.on("GET "+p+"/orgs", onUser(func(c *call, u *user) error {
		return c.ok(mapped(linked(c, c.w.orgsOf(u)), c.org))
	}), needToken)
	// The two forms of each route differ in whose list it is.
	for name, list := range map[string]func(*call, *user) error{
		"starred": listStarred, "subscriptions": listWatched, "followers": listFollowers, "following": listFollowing,
		"keys": listKeys,
	} {
		t.on("GET /user/"+name, func(c *call) error { return list(c, c.doer) }, needToken)
		t.on("GET "+p+"/"+name, onUser(list))
	}
	t.on("GET /token", showToken, needToken)
}

// sees says whether a user or organisation is there for the caller.
// Limited ones can be opened by anyone who knows the name; only searches leave them out.
func (c *call) sees(u *user) bool {
	return u.Visibility != "private" || c.doer != nil && (u == c.doer || c.doer.Admin || c.w.isMember(u, c.doer))
}

// lists says whether searches show a user or organisation to the caller.
func (c *call) lists(u *user) bool { return c.sees(u) && (u.Visibility != "limited" || c.doer != nil) }

// onUser finds the user of the path. An organisation's page is there too.
func onUser(f func(*call, *user) error) handler {
	return func(c *call) error {
		u, err := c.named("username")
		if err == nil && !c.sees(u) {
			err = errNoRedirect(u.Login)
		}
		if err != nil {
			return err
		}
		return f(c, u)
	}
}

// searchUsers searches people by name; a number in uid picks one.
func searchUsers(c *call) error {
	q, uid := strings.ToLower(c.query.Get("q")), int64(c.queryInt("uid"))
	items := filter(c.w.people(), func(u *user) bool {
		return c.lists(u) && (uid == 0 || u.ID == uid) &&
			(strings.Contains(strings.ToLower(u.Login), q) || strings.Contains(strings.ToLower(u.FullName), q))
	})
	return c.ok(searchResult[obj]{true, c.users(linked(c, items))})
}

// reposOf lists what u owns and the caller may see.
// The order is that of the ids, unlike that of the caller's own repositories.
func (c *call) reposOf(u *user) []*repo {
	out := filter(c.w.readable(c.doer), func(r *repo) bool {
		return r.Owner == u && !(c.cred.scopes.publicOnly && r.Private)
	})
	slices.SortStableFunc(out, repoOrders["id"])
	return out
}

// listStarred lists what u starred.
func listStarred(c *call, u *user) error {
	items := filter(u.Starred, func(r *repo) bool { return c.w.access(c.doer, r) >= accessRead })
	return c.ok(c.repos(linked(c, items)))
}

// listWatched lists what u watches.
func listWatched(c *call, u *user) error {
	items := filter(c.w.readable(c.doer), func(r *repo) bool { return slices.Contains(r.Watchers, u) })
	return c.ok(c.repos(linked(c, items)))
}

// listFollowers lists who follows u.
func listFollowers(c *call, u *user) error { return c.ok(c.users(linked(c, c.w.followers(u)))) }

// listFollowing lists whom u follows.
func listFollowing(c *call, u *user) error { return c.ok(c.users(linked(c, u.Following))) }

// showToken is a token's view of itself, which does not show its secret.
func showToken(c *call) error {
	t := c.cred.token
	if t == nil { // not logged in by a personal access token
		return errNotFound
	}
	return c.ok(map[string]any{
		"id": t.id, "name": t.name, "scopes": t.scopes.list(), "created_at": t.created, "last_used_at": c.now,
		"user": map[string]any{"id": c.doer.ID, "login": c.doer.Login},
	})
}
