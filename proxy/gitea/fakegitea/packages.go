package fakegitea

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// pkg is one version of a package. Gitea's API has no packages without
// versions: what it lists as packages are versions, and ids are theirs.
type pkg struct {
	ID                  int64
	Owner, Creator      *user
	Repo                *repo
	Type, Name, Version string
	Created             time.Time
}

// handlePackages registers packages. They come from the seed: uploading is the
// registries' business, not the API's.
func handlePackages(t table) {
	const p = "/packages/{owner}"
	const one = p + "/{type}/{name}"
	newest := onPackages(func(c *call, all []*pkg) error { return c.ok(c.pkgView(all[0])) })
	t.on("GET "+p, listPackages, needToken)
	t.on("GET "+one, onPackages(func(c *call, all []*pkg) error {
		return c.ok(mapped(linked(c, all), c.pkgView))
	}), needToken)
	t.on("GET "+one+"/-/latest", newest, needToken)
	t.on("DELETE "+one, onPackages(dropPackages), needToken)
	t.on("GET "+one+"/{version}", newest, needToken)
	t.on("DELETE "+one+"/{version}", onPackages(dropPackages), needToken)
}

// pkgView renders a version of a package.
// The repository is null for those who may not see it, rather than the whole package.
func (c *call) pkgView(p *pkg) obj {
	out := obj{
		"id", p.ID, "owner", c.user(p.Owner), "repository", nil, "creator", c.user(p.Creator), "type", p.Type,
		"name", p.Name, "version", p.Version,
		"html_url", fmt.Sprintf("%s/%s/-/packages/%s/%s/%s",
			c.root, escape(p.Owner.Login), p.Type, escape(p.Name), escape(p.Version)),
		"created_at", p.Created,
	}
	if p.Repo != nil && c.w.access(c.doer, p.Repo) >= accessRead {
		out.set("repository", c.repoView(p.Repo))
	}
	return out
}

// listPackages lists the packages of an owner, newest first.
func listPackages(c *call) error {
	owner := c.w.userByLogin(c.params["owner"])
	if owner == nil {
		return errNotFound
	}
	// An unknown type is not refused; it has no packages.
	kind, q := c.query.Get("type"), strings.ToLower(c.query.Get("q"))
	items := filter(c.w.packages, func(p *pkg) bool {
		return p.Owner == owner && (kind == "" || p.Type == kind) && strings.Contains(strings.ToLower(p.Name), q)
	})
	// Ids say the order where several were made in one second.
	slices.SortFunc(items, func(a, b *pkg) int { return int(b.ID - a.ID) })
	return c.ok(mapped(linked(c, items), c.pkgView))
}

// onPackages finds the versions that the path names, newest first; there is at
// least one.
// A version that is asked for has to match in its letter case; owner and name need not.
func onPackages(f func(*call, []*pkg) error) handler {
	return func(c *call) error {
		version, exact := c.params["version"]
		items := filter(c.w.packages, func(p *pkg) bool {
			return strings.EqualFold(p.Owner.Login, c.params["owner"]) && p.Type == c.params["type"] &&
				strings.EqualFold(p.Name, c.params["name"]) && (!exact || p.Version == version)
		})
		if len(items) == 0 {
			return fail(http.StatusNotFound, "GetVersionByNameAndVersion: package does not exist")
		}
		slices.SortFunc(items, func(a, b *pkg) int { return int(b.ID - a.ID) })
		return f(c, items)
	}
}

// dropPackages deletes the versions: one, or all of a package on the path without a
// version.
// The permission is checked last, so that whoever may not delete learns whether the package is
// there.
func dropPackages(c *call, all []*pkg) error {
	if owner := all[0].Owner; owner != c.doer && !c.doer.Admin && !(owner.Org && c.w.isOrgOwner(owner, c.doer)) {
		return fail(http.StatusForbidden, "user should have specific permission or be a site admin")
	}
	c.w.packages = slices.DeleteFunc(c.w.packages, func(p *pkg) bool { return slices.Contains(all, p) })
	return c.done()
}

// addPackage stores a version of a package.
func (w *world) addPackage(owner, creator *user, kind, name, version string) *pkg {
	p := &pkg{
		ID: w.next("package"), Owner: owner, Creator: creator, Type: kind, Name: name, Version: version,
		Created: w.now(),
	}
	w.packages = append(w.packages, p)
	return p
}
