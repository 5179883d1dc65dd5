package fakegitea

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// pkg is one version of a package with one file. Gitea's API has no packages without
// versions: what it lists as packages are versions, and ids are theirs.
type pkg struct {
	ID                  int64
	Owner, Creator      *user
	Repo                *repo
	Type, Name, Version string
	File                string
	Data                []byte
	Created             time.Time
}

// handlePackages registers packages. They come from the seed: uploading is the
// registries' business, not the API's.
func handlePackages(t table) {
	const p = "/packages/{owner}"
	const one = p + "/{type}/{name}"
	t.on("GET "+p, func(c *call) error {
		owner := c.w.userByLogin(c.params["owner"])
		if owner == nil {
			return errNotFound
		}
		return c.listPackages(owner)
	}, needToken)
	t.on("GET "+one, onPackages(func(c *call, all []*pkg) error {
		return c.ok(mapped(linked(c, all), c.pkgView))
	}), needToken)
	t.on("GET "+one+"/-/latest", onPackages(func(c *call, all []*pkg) error {
		return c.ok(c.pkgView(all[0]))
	}), needToken)
	t.on("DELETE "+one, onPackages(dropPackages), needToken)
	t.on("GET "+one+"/{version}", onPackages(func(c *call, all []*pkg) error {
		return c.ok(c.pkgView(all[0]))
	}), needToken)
	t.on("DELETE "+one+"/{version}", onPackages(dropPackages), needToken)
	t.on("GET "+one+"/{version}/files", onPackages(listPackageFiles), needToken)
}

// pkgView renders a version of a package.
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

// listPackages lists packages, newest first; nil is every owner.
func (c *call) listPackages(owner *user) error {
	kind, q := c.query.Get("type"), strings.ToLower(c.query.Get("q"))
	items := filter(c.w.packages, func(p *pkg) bool {
		return (owner == nil || p.Owner == owner) && (kind == "" || p.Type == kind) &&
			strings.Contains(strings.ToLower(p.Name), q)
	})
	slices.SortFunc(items, func(a, b *pkg) int { return int(b.ID - a.ID) })
	return c.ok(mapped(linked(c, items), c.pkgView))
}

// onPackages finds the versions that the path names, newest first; there is at
// least one.
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

// ownsPackages refuses who may not change the owner's packages.
func (c *call) ownsPackages(p *pkg) error {
	if p.Owner == c.doer || c.doer.Admin || p.Owner.Org && c.w.isOrgOwner(p.Owner, c.doer) {
		return nil
	}
	return fail(http.StatusForbidden, "user should have specific permission or be a site admin")
}

// dropPackages deletes the versions: one, or all of a package on the path without a
// version.
func dropPackages(c *call, all []*pkg) error {
	if err := c.ownsPackages(all[0]); err != nil {
		return err
	}
	c.w.packages = slices.DeleteFunc(c.w.packages, func(p *pkg) bool { return slices.Contains(all, p) })
	return c.done()
}

// listPackageFiles lists the files of a version with their digests.
func listPackageFiles(c *call, all []*pkg) error {
	p := all[0]
	m, s1, s2, s5 := md5.Sum(p.Data), sha1.Sum(p.Data), sha256.Sum256(p.Data), sha512.Sum512(p.Data)
	return c.ok([]any{obj{
		"id", p.ID, "size", len(p.Data), "name", p.File, "md5", hex.EncodeToString(m[:]),
		"sha1", hex.EncodeToString(s1[:]), "sha256", hex.EncodeToString(s2[:]),
		"sha512", hex.EncodeToString(s5[:]),
	}})
}

// addPackage stores a version of a package.
func (w *world) addPackage(owner, creator *user, kind, name, version, file string) *pkg {
	p := &pkg{
		ID: w.next("package"), Owner: owner, Creator: creator, Type: kind, Name: name, Version: version,
		File: file, Data: []byte(name + " " + version + "\n"), Created: w.now(),
	}
	w.packages = append(w.packages, p)
	return p
}
