package fakegitea

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// userJSON is a user or organisation as owner, author and so on.
type userJSON struct {
	ID            int64     `json:"id"`
	Login         string    `json:"login"`
	LoginName     string    `json:"login_name"`
	SourceID      int64     `json:"source_id"`
	FullName      string    `json:"full_name"`
	Email         string    `json:"email"`
	AvatarURL     string    `json:"avatar_url"`
	HTMLURL       string    `json:"html_url"`
	Language      string    `json:"language"`
	IsAdmin       bool      `json:"is_admin"`
	LastLogin     time.Time `json:"last_login"`
	Created       time.Time `json:"created"`
	Restricted    bool      `json:"restricted"`
	Active        bool      `json:"active"`
	ProhibitLogin bool      `json:"prohibit_login"`
	Location      string    `json:"location"`
	Website       string    `json:"website"`
	Description   string    `json:"description"`
	Visibility    string    `json:"visibility"`
	Followers     int       `json:"followers_count"`
	Following     int       `json:"following_count"`
	Starred       int       `json:"starred_repos_count"`
	Username      string    `json:"username"`
}

// user renders u for the caller: an administrator and the user herself see
// more, a stranger sees a no-reply address.
func (c *call) user(u *user) *userJSON { return c.userFor(u, c.doer) }

// anon renders u as for nobody, which is how Gitea puts people into comments,
// commits, assignees and releases.
func (c *call) anon(u *user) *userJSON { return c.userFor(u, nil) }

// userFor renders u for a viewer.
func (c *call) userFor(u, viewer *user) *userJSON {
	if u == nil {
		return nil
	}
	out := &userJSON{
		ID: u.ID, Login: u.Login, FullName: u.FullName, Email: c.noReply(u),
		AvatarURL: c.avatar(u), HTMLURL: c.root + "/" + escape(u.Login), Created: u.Created,
		Location: u.Location, Website: u.Website, Description: u.Description, Visibility: u.Visibility,
		Followers: len(c.w.followers(u)), Following: len(u.Following), Starred: len(u.Starred), Username: u.Login,
	}
	self := viewer != nil && (viewer == u || viewer.Admin)
	if viewer != nil && (!u.HideEmail || self) || u.Org {
		out.Email = u.Email
	}
	if self {
		out.Language, out.IsAdmin, out.LastLogin = u.Language, u.Admin, u.LastLogin
		out.Active, out.Restricted, out.ProhibitLogin = u.Active, u.Restricted, u.ProhibitLogin
	}
	return out
}

// noReply is the address shown instead of a hidden one.
func (c *call) noReply(u *user) string {
	host := "localhost"
	if parsed, err := url.Parse(c.root); err == nil {
		host = parsed.Hostname()
	}
	return fmt.Sprintf("%d+%s@noreply.%s", u.ID, u.Login, host)
}

// avatar is the URL of the user's picture.
func (c *call) avatar(u *user) string {
	sum := md5.Sum([]byte(strings.ToLower(u.Email + u.Login)))
	return c.root + "/avatars/" + hex.EncodeToString(sum[:])
}

// users renders a list for the caller.
func (c *call) users(us []*user) []*userJSON { return mapped(us, c.user) }

// anons renders a list as for nobody; without entries it is null.
func (c *call) anons(us []*user) []*userJSON {
	if len(us) == 0 {
		return nil
	}
	return mapped(us, c.anon)
}

// followers lists the users who follow u.
func (w *world) followers(u *user) []*user {
	return filter(w.users, func(f *user) bool { return slices.Contains(f.Following, u) })
}

// orgJSON is an organisation in its own right.
type orgJSON struct {
	ID          int64  `json:"id"`
	Name        string `json:"name"`
	FullName    string `json:"full_name"`
	Email       string `json:"email"`
	AvatarURL   string `json:"avatar_url"`
	Description string `json:"description"`
	Website     string `json:"website"`
	Location    string `json:"location"`
	Visibility  string `json:"visibility"`
	TeamAccess  bool   `json:"repo_admin_change_team_access"`
	Username    string `json:"username"`
}

// org renders an organisation.
func (c *call) org(o *user) *orgJSON {
	return &orgJSON{
		ID: o.ID, Name: o.Login, FullName: o.FullName, Email: o.Email, AvatarURL: c.avatar(o),
		Description: o.Description, Website: o.Website, Location: o.Location, Visibility: o.Visibility,
		TeamAccess: o.TeamAccess, Username: o.Login,
	}
}

// teamJSON is a team.
type teamJSON struct {
	ID            int64             `json:"id"`
	Name          string            `json:"name"`
	Description   string            `json:"description"`
	Org           *orgJSON          `json:"organization"`
	AllRepos      bool              `json:"includes_all_repositories"`
	Permission    string            `json:"permission"`
	Units         []string          `json:"units"`
	UnitsMap      map[string]string `json:"units_map"`
	CanCreateRepo bool              `json:"can_create_org_repo"`
	Visibility    string            `json:"visibility"`
}

// team renders a team with its organisation.
func (c *call) team(t *team) *teamJSON {
	out := c.teamBare(t)
	out.Org = c.org(t.Org)
	return out
}

// teamBare renders a team where the path already names the organisation.
func (c *call) teamBare(t *team) *teamJSON {
	units := []string{}
	for _, u := range allUnits {
		if t.Units[u] != "" {
			units = append(units, u)
		}
	}
	return &teamJSON{
		ID: t.ID, Name: t.Name, Description: t.Description, AllRepos: t.AllRepos, Permission: t.Permission,
		Units: units, UnitsMap: t.Units, CanCreateRepo: t.CanCreateRepo, Visibility: t.Visibility,
	}
}
