package fakegitea

import (
	"bytes"
	"cmp"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
	"unicode/utf8"
)

// handleContents registers reading files. A file is JSON with base64 in it, or its
// bytes: raw has an ETag and answers ranges, media has neither here.
func handleContents(t table) {
	const p = "/repos/{owner}/{repo}"
	t.on("GET "+p+"/contents", getContents)
	t.on("GET "+p+"/contents/{filepath}", getContents)
	t.on("GET "+p+"/raw/{filepath}", func(c *call) error { return c.rawFile(true) })
	t.on("GET "+p+"/media/{filepath}", func(c *call) error { return c.rawFile(false) })
	t.on("GET "+p+"/languages", func(c *call) error { return c.ok(languages(c.repo)) })
	t.on("GET "+p+"/licenses", func(c *call) error { return c.ok(licensesOf(c.repo)) })
}

// refOf finds the commit of a name, with the kind that web addresses show. A branch
// wins over a tag of the same name. An abbreviated id is a commit, too.
func (r *repo) refOf(name string) (treeAt, error) {
	at := treeAt{name, "commit", r.git.resolve(name)}
	switch {
	case r.git.branch(name) != nil:
		at.kind = "branch"
	case r.git.tag(name) != nil:
		at.kind = "tag"
	case at.head == nil:
		return at, errNoObject(name, "")
	}
	return at, nil
}

// queryRef is the commit of ?ref=, the default branch without one. An empty ?ref= is
// the same as none.
func (c *call) queryRef() (treeAt, error) {
	return c.repo.refOf(cmp.Or(c.query.Get("ref"), c.repo.DefaultBranch))
}

// errNoObject is git's message for a missing reference or path. For an unknown
// reference the id is what was asked and the path is empty; for a path it is the other
// way round.
func errNoObject(id, rel string) error {
	return fail(http.StatusNotFound, "object does not exist [id: %s, rel_path: %s]", id, rel)
}

// cleanPath normalises a path the way the server reads it: dots are resolved inside the
// repository and never lead out of it. A caller that judges a path before it sends it
// has to do the same.
func cleanPath(p string) string { return strings.TrimPrefix(path.Clean("/"+p), "/") }

// gitPath says whether a path has a component that git reserves. Letter case does not
// matter, as there.
func gitPath(p string) bool {
	for seg := range strings.SplitSeq(p, "/") {
		if strings.EqualFold(seg, ".git") {
			return true
		}
	}
	return false
}

// lookup finds an object of a tree. The error names the first folder that is
// missing, or the whole path when only the last step is.
func (c *call) lookup(at treeAt, p string) (treeEntry, error) {
	if e, ok := c.repo.git.at(at.head.tree, p); ok {
		return e, nil
	}
	segs := strings.Split(p, "/")
	for i := 1; i < len(segs); i++ {
		// A file in the place of a folder ends the walk: then the whole path is named.
		if e, ok := c.repo.git.at(at.head.tree, strings.Join(segs[:i], "/")); !ok {
			return treeEntry{}, errNoObject("", segs[i-1])
		} else if !e.dir {
			break
		}
	}
	return treeEntry{}, errNoObject("", p)
}

// getContents answers a file with its content or the entries of a folder; the
// list is not paged.
func getContents(c *call) error {
	at, err := c.queryRef()
	if err != nil {
		return err
	}
	p := cleanPath(c.params["filepath"])
	// Reading such a path is 400, writing it is 422.
	if gitPath(p) {
		return fail(http.StatusBadRequest, "path contains a malformed path component [path: %s]", p)
	}
	e, err := c.lookup(at, p)
	if err != nil {
		return err
	}
	if e.dir {
		return c.ok(c.folder(at, p, e))
	}
	return c.ok(c.contentView(at, p, e, true))
}

// folder renders the entries of a folder, without their contents. A submodule or a link
// cannot be among them: the double has files and folders only.
func (c *call) folder(at treeAt, p string, dir treeEntry) []obj {
	return mapped(c.repo.git.trees[dir.id], func(e treeEntry) obj {
		return c.contentView(at, path.Join(p, e.name), e, false)
	})
}

// rawFile answers the bytes of a file. The path is not cleaned, and may begin with a
// reference. So a path with dots in it is 404 here, while the contents route finds the
// file.
func (c *call) rawFile(cached bool) error {
	if c.repo.empty() {
		return fail(http.StatusNotFound, "repository is empty")
	}
	at, p, ok := c.rawTarget()
	if !ok {
		return errNotFound
	}
	e, ok := c.repo.git.at(at.head.tree, p)
	if !ok || e.dir {
		return errNotFound
	}
	data := c.repo.git.blobs[e.id]
	h := c.out.header
	// Shared caches may keep what everybody may read. Whether the owner is public,
	// which Gitea asks for too, is not looked at. The age is six hours, in seconds.
	visibility := "public"
	if c.repo.Private {
		visibility = "private"
	}
	h.Set("Cache-Control", visibility+", max-age=21600")
	h.Set("Content-Type", contentType(data))
	if !cached {
		c.out.body.Write(data)
		return nil
	}
	// The id of the content is the tag, so the same bytes under another path have the
	// same one.
	h.Set("Etag", `"`+e.id+`"`)
	h.Set("Content-Disposition", mime.FormatMediaType("inline", map[string]string{"filename": path.Base(p)}))
	modified := c.repo.git.lastChange(at.head, p).committer.When
	// Conditional requests and ranges are answered by net/http, as on the real server:
	// 304 and 206.
	http.ServeContent(c.out, c.r, p, modified, bytes.NewReader(data))
	return nil
}

// contentType distinguishes text from bytes as Gitea does for raw files: by a NUL or
// invalid UTF-8 near the beginning, never by the name.
func contentType(data []byte) string {
	head := data[:min(len(data), 8000)]
	// Of a longer file only NUL counts: the cut may have split a character.
	if bytes.IndexByte(head, 0) >= 0 || !utf8.Valid(head) && len(head) == len(data) {
		return "application/octet-stream"
	}
	return "text/plain; charset=utf-8"
}

// rawTarget splits {ref}/{path}; without a reference in front it is the whole
// path at ?ref=.
func (c *call) rawTarget() (treeAt, string, bool) {
	p := c.params["filepath"]
	if c.query.Get("ref") == "" {
		segs := strings.Split(p, "/")
		// The shortest prefix that is a reference wins, and at least one segment is
		// left for the path. An id counts in full only.
		for i := 1; i < len(segs); i++ {
			name := strings.Join(segs[:i], "/")
			g := c.repo.git
			if g.branch(name) != nil || g.tag(name) != nil || len(name) == 40 && g.commits[name] != nil {
				at, err := c.repo.refOf(name)
				return at, strings.Join(segs[i:], "/"), err == nil
			}
		}
	}
	at, err := c.queryRef()
	if err != nil { // an unknown reference is passed over
		head := c.repo.git.branch(c.repo.DefaultBranch)
		return treeAt{c.repo.DefaultBranch, "branch", head}, p, head != nil
	}
	return at, p, true
}

// commitTime picks the date of a commit: the body's, or now. git stores whole seconds.
func (c *call) commitTime(t *time.Time) time.Time {
	if t != nil && !t.IsZero() {
		return t.UTC().Truncate(time.Second)
	}
	return c.now
}
