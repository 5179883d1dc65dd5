package fakegitea

import (
	"slices"
	"strings"
	"time"
)

// user is a person or an organisation; they share names and ids, as in Gitea, where an
// organisation answers on most routes of users.
type user struct {
	ID                        int64
	Login, Password, Language string
	// An organisation is not active, as in Gitea: it cannot log in.
	Org, Admin, Active, Restricted bool
	ProhibitLogin, HideEmail       bool
	Created, LastLogin             time.Time
	profile

	Following []*user
	Starred   []*repo
	Teams     []*team
	Labels    []*label
	actions   actionsOwner
}

// team is a team of an organisation. Permission is what all units have; "none" with
// Units set gives each unit a permission of its own.
type team struct {
	ID                int64
	Org               *user
	Name, Description string
	AllRepos          bool
	Permission        string // none, read, write, admin, owner
	Units             map[string]string
	CanCreateRepo     bool
	Visibility        string
	Members           []*user
	Repos             []*repo
}

// access is what a user may do in a repository.
type access int

const (
	accessNone access = iota
	accessRead
	accessWrite
	accessAdmin
	accessOwner
)

var accessNames = []string{"none", "read", "write", "admin", "owner"}

// String is the API's word for it.
func (a access) String() string { return accessNames[a] }

// accessOf is the access that a word names; an unknown one is none.
func accessOf(word string) access { return access(max(slices.Index(accessNames, word), 0)) }

// repo is a repository with everything in it.
type repo struct {
	ID                         int64
	Owner                      *user
	Name, Description, Website string
	Private, Archived          bool
	Template, Mirror           bool
	Fork                       *repo
	DefaultBranch              string
	Created, Updated, ArchTime time.Time
	Topics                     []string
	Settings                   repoSettings
	// Rights of the owner and of teams are not in it.
	Collaborators map[int64]access
	// Pointers say who it is: a user who is renamed is the same one everywhere.
	Watchers     []*user
	PendingOwner *user // of a transfer that waits
	Transferrer  *user // who began it

	git    *gitStore
	wiki   *gitStore
	issues []*issue
	// Deleted ones leave a gap.
	next int64 // the index that the next issue or pull request gets

	labels     []*label
	milestones []*milestone
	releases   []*release
	protected  []*protection
	statuses   []*commitStatus
	mirrors    []*pushMirror
	actions    actionsOwner
}

// world is the whole state. The Server's lock guards it. Lists are scanned instead of
// indexed: the largest world has some hundred objects of a kind, and an index is one
// more thing that a rename or a deletion has to keep right.
// Nothing is written to disk: a demo that is started again begins anew.
type world struct {
	clock    func() time.Time
	ids      map[string]int64
	users    []*user
	repos    []*repo
	renamed  map[string]*repo // old repoKey to repository
	tokens   map[string]*token
	hooks    []*hook
	keys     []*publicKey
	apps     []*oauthApp
	packages []*pkg
	threads  []*thread
	feed     []*activity
	watches  []*trackedTime
	times    []*trackedTime
	oauth    oauthWorld
}

// newWorld returns an empty world.
func newWorld(clock func() time.Time) *world {
	return &world{clock: clock, ids: map[string]int64{}, renamed: map[string]*repo{}, tokens: map[string]*token{},
		oauth: newOAuthWorld()}
}

// now is the time in the API's resolution: Gitea stores seconds, so a test that
// compares a written time with a read one must see no fraction.
func (w *world) now() time.Time { return w.clock().UTC().Truncate(time.Second) }

// next is a new id of a kind of object.
// Ids count from 1 for each kind, so equal numbers of two kinds are common.
func (w *world) next(kind string) int64 {
	w.ids[kind]++
	return w.ids[kind]
}

// userByLogin finds a user or organisation, whatever the letter case.
func (w *world) userByLogin(login string) *user {
	u, _ := find(w.users, func(u *user) bool { return strings.EqualFold(u.Login, login) })
	return u
}

// people lists the users that are not organisations.
func (w *world) people() []*user {
	return filter(w.users, func(u *user) bool { return !u.Org })
}

// orgs lists the organisations.
func (w *world) orgs() []*user {
	return filter(w.users, func(u *user) bool { return u.Org })
}

// repoKey is the key of a repository's name, the same for every letter case.
func repoKey(owner, name string) string { return strings.ToLower(owner + "/" + name) }

// repoByName finds a repository, whatever the letter case.
func (w *world) repoByName(owner, name string) *repo {
	key := repoKey(owner, name)
	r, _ := find(w.repos, func(r *repo) bool { return repoKey(r.Owner.Login, r.Name) == key })
	return r
}

// fullName is owner/name.
func (r *repo) fullName() string { return r.Owner.Login + "/" + r.Name }

// empty says whether nothing was pushed yet.
func (r *repo) empty() bool { return len(r.git.refs) == 0 }

// addUser creates a user.
func (w *world) addUser(login, email string) *user {
	u := &user{
		ID: w.next("user"), Login: login, Active: true, Created: w.now(),
		profile: profile{Email: email, Visibility: "public"},
	}
	w.users = append(w.users, u)
	return u
}

// addOrg creates an organisation with its Owners team.
// That team is the first of the list, which dropMember relies on.
func (w *world) addOrg(login string, owner *user) *user {
	o := w.addUser(login, "")
	o.Org, o.Active = true, false
	w.addTeam(o, &team{
		Name: "Owners", Permission: "owner", AllRepos: true, CanCreateRepo: true, Visibility: "limited",
		Units: unitsAt("owner", allUnits), Members: []*user{owner},
	})
	return o
}

// addTeam adds a team to its organisation.
func (w *world) addTeam(org *user, t *team) *team {
	t.ID, t.Org = w.next("team"), org
	org.Teams = append(org.Teams, t)
	return t
}

// allUnits are the units of a repository, as teams name them.
var allUnits = []string{
	"repo.code", "repo.issues", "repo.ext_issues", "repo.wiki", "repo.ext_wiki",
	"repo.pulls", "repo.releases", "repo.projects", "repo.packages", "repo.actions",
}

// unitsAt gives every unit the same permission.
func unitsAt(permission string, units []string) map[string]string {
	out := map[string]string{}
	for _, u := range units {
		out[u] = permission
	}
	return out
}

// level is the access that the team gives to its repositories.
func (t *team) level() access {
	if a := accessOf(t.Permission); a > accessNone {
		return a
	}
	// The best unit speaks for all: units are not told apart where access is checked.
	best := accessNone
	for _, p := range t.Units {
		best = max(best, accessOf(p))
	}
	return best
}

// has says whether the team covers the repository.
func (t *team) has(r *repo) bool {
	return r.Owner == t.Org && (t.AllRepos || slices.Contains(t.Repos, r))
}

// access is what u (nil: an anonymous caller) may do in r.
// Anyone who is logged in reads public repositories, also those of a private organisation,
// which the real server hides from strangers.
func (w *world) access(u *user, r *repo) access {
	best := accessNone
	if !r.Private && (u != nil || r.Owner.Visibility == "public") {
		best = accessRead
	}
	if u == nil {
		return best
	}
	if u.Admin || r.Owner == u {
		return accessOwner
	}
	best = max(best, r.Collaborators[u.ID])
	for _, t := range r.Owner.Teams {
		if t.has(r) && slices.Contains(t.Members, u) {
			best = max(best, t.level())
		}
	}
	return best
}

// isMember says whether u is in a team of the organisation.
// A site administrator is no member by that, unlike in isOrgOwner.
func (w *world) isMember(org, u *user) bool {
	return u != nil && slices.ContainsFunc(org.Teams, func(t *team) bool { return slices.Contains(t.Members, u) })
}

// isOrgOwner says whether u owns the organisation; site administrators do.
func (w *world) isOrgOwner(org, u *user) bool {
	return u != nil && (u.Admin || slices.ContainsFunc(org.Teams, func(t *team) bool {
		return t.Permission == "owner" && slices.Contains(t.Members, u)
	}))
}

// members lists the members of an organisation, oldest user first.
func (w *world) members(org *user) []*user {
	return filter(w.people(), func(u *user) bool { return w.isMember(org, u) })
}

// orgsOf lists the organisations of a user.
func (w *world) orgsOf(u *user) []*user {
	return filter(w.orgs(), func(o *user) bool { return w.isMember(o, u) })
}

// readable lists the repositories that u may see.
func (w *world) readable(u *user) []*repo {
	return filter(w.repos, func(r *repo) bool { return w.access(u, r) >= accessRead })
}

// filter keeps the items that f accepts. The result is a list of its own and never
// nil, since JSON would show nil as null.
func filter[T any](items []T, f func(T) bool) []T {
	out := []T{}
	for _, it := range items {
		if f(it) {
			out = append(out, it)
		}
	}
	return out
}

// mapped converts every item. Like that of filter the result is never nil.
func mapped[T, U any](items []T, f func(T) U) []U {
	out := make([]U, 0, len(items))
	for _, it := range items {
		out = append(out, f(it))
	}
	return out
}

// without removes an item, if it is there. It changes the list in place, so callers
// that iterate over the list work on a clone.
func without[T comparable](items []T, gone T) []T {
	return slices.DeleteFunc(items, func(it T) bool { return it == gone })
}

// with appends an item, unless it is there.
func with[T comparable](items []T, item T) []T {
	if slices.Contains(items, item) {
		return items
	}
	return append(items, item)
}

// hasAll says whether a list has all of the wanted items.
func hasAll[T comparable](have, wanted []T) bool {
	return !slices.ContainsFunc(wanted, func(it T) bool { return !slices.Contains(have, it) })
}

// onFirst runs f on the first item that is accepts; without one it is "not found".
func onFirst[T any](c *call, items []T, is func(T) bool, f func(*call, T) error) error {
	return onFirstOr(c, items, is, errNotFound, f)
}

// onFirstOr is onFirst for routes with another refusal.
func onFirstOr[T any](c *call, items []T, is func(T) bool, missing error, f func(*call, T) error) error {
	it, ok := find(items, is)
	if !ok {
		return missing
	}
	return f(c, it)
}

// find returns the first item that f accepts, or the zero value.
func find[T any](items []T, f func(T) bool) (T, bool) {
	if i := slices.IndexFunc(items, f); i >= 0 {
		return items[i], true
	}
	var zero T
	return zero, false
}
