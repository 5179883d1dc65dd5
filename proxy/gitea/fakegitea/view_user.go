package fakegitea

import (
	"cmp"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// user renders u for the caller: administrators and the user see
// more, a stranger sees a no-reply address.
func (c *call) user(u *user) obj { return c.userFor(u, c.doer) }

// anon renders u as for an anonymous caller, which is how Gitea puts people into comments,
// commits, assignees and releases.
func (c *call) anon(u *user) obj { return c.userFor(u, nil) }

// userFor renders u for a viewer.
func (c *call) userFor(u, viewer *user) obj {
	if u == nil {
		return nil
	}
	email, self := c.noReply(u), viewer != nil && (viewer == u || viewer.Admin)
	if viewer != nil && !u.HideEmail || self || u.Org {
		email = u.Email
	}
	return obj{
		"id", u.ID, "login", u.Login, "login_name", "", "source_id", 0, "full_name", u.FullName,
		"email", email, "avatar_url", c.avatar(u), "html_url", c.root + "/" + escape(u.Login),
		// For others these members are there with their zero values, so false does not mean
		// that somebody is no administrator.
		"language", when(self, u.Language), "is_admin", self && u.Admin, "last_login", when(self, u.LastLogin),
		"created", u.Created, "restricted", self && u.Restricted, "active", self && u.Active,
		"prohibit_login", self && u.ProhibitLogin, "location", u.Location, "website", u.Website,
		"description", u.Description, "visibility", u.Visibility,
		"followers_count", len(c.w.followers(u)), "following_count", len(u.Following),
		"starred_repos_count", len(u.Starred), "username", u.Login,
	}
}

// when is v, or the zero value of its type for those who may not see it.
func when[T any](may bool, v T) T {
	if may {
		return v
	}
	var hidden T
	return hidden
}

// noReply is the address shown instead of a hidden one.
func (c *call) noReply(u *user) string {
	return fmt.Sprintf("%d+%s@noreply.%s", u.ID, u.Login, c.host())
}

// displayName is the full name, when there is one.
func (u *user) displayName() string { return cmp.Or(u.FullName, u.Login) }

// host is the name of the server in addresses that are no URLs.
func (c *call) host() string {
	u, err := url.Parse(c.root)
	if err != nil {
		return "localhost"
	}
	return u.Hostname()
}

// avatar is the URL of the user's picture.
// Nothing is served at it.
func (c *call) avatar(u *user) string {
	sum := md5.Sum([]byte(strings.ToLower(u.Email + u.Login)))
	return c.root + "/avatars/" + hex.EncodeToString(sum[:])
}

// users renders a list for the caller.
func (c *call) users(us []*user) []obj { return mapped(us, c.user) }

// anons renders a list as for an anonymous caller; without entries it is null.
func (c *call) anons(us []*user) []obj {
	if len(us) == 0 {
		return nil
	}
	return mapped(us, c.anon)
}

// followers lists the users who follow u.
func (w *world) followers(u *user) []*user {
	return filter(w.users, func(f *user) bool { return slices.Contains(f.Following, u) })
}

// org renders an organisation.
func (c *call) org(o *user) obj {
	return obj{
		"id", o.ID, "name", o.Login, "full_name", o.FullName, "email", o.Email, "avatar_url", c.avatar(o),
		"description", o.Description, "website", o.Website, "location", o.Location, "visibility", o.Visibility,
		"repo_admin_change_team_access", o.TeamAccess, "username", o.Login,
	}
}

// team renders a team with its organisation.
func (c *call) team(t *team) obj {
	out := c.teamBare(t)
	out.set("organization", c.org(t.Org))
	return out
}

// teamBare renders a team where the path already names the organisation.
func (c *call) teamBare(t *team) obj {
	// The list has the order of the server's units, the map that of the JSON library.
	units := []string{}
	for _, u := range allUnits {
		if t.Units[u] != "" {
			units = append(units, u)
		}
	}
	return obj{
		"id", t.ID, "name", t.Name, "description", t.Description, "organization", nil,
		"includes_all_repositories", t.AllRepos, "permission", t.Permission, "units", units,
		"units_map", t.Units, "can_create_org_repo", t.CanCreateRepo, "visibility", t.Visibility,
	}
}
