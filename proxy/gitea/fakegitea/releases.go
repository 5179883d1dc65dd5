package fakegitea

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// release is a release, or a draft of one.
// A tag without a release has none of this; the server has a hidden one for it, which uses up
// an id.
type release struct {
	releaseFields
	ID int64
	// They are equal here: a draft that is published later keeps the time at which it was made.
	Created, Published time.Time
	Author             *user
	Assets             []*attachment
}

// releaseFields are the parts of a release that a body names.
type releaseFields struct {
	Tag    string `json:"tag_name"`
	Target string `json:"target_commitish"`
	Name   string `json:"name"`
	Body   string `json:"body"`
	Draft  bool   `json:"draft"`
	Pre    bool   `json:"prerelease"`
}

// handleReleases registers releases and tags.
func handleReleases(t table) {
	const p = "/repos/{owner}/{repo}"
	t.on("GET "+p+"/releases", listReleases)
	t.on("POST "+p+"/releases", reads(createRelease), needToken, needWrite)
	t.on("GET "+p+"/releases/latest", latestRelease)
	t.on("GET "+p+"/releases/tags/{tag}", onRelease(renders((*call).releaseView)))
	t.on("DELETE "+p+"/releases/tags/{tag}", onRelease(deleteRelease), needToken, needWrite)
	// The id "latest" does not come here, since a fixed segment wins.
	t.on("GET "+p+"/releases/{id}", onRelease(renders((*call).releaseView)))
	t.on("PATCH "+p+"/releases/{id}", onRelease(editRelease), needToken, needWrite)
	t.on("DELETE "+p+"/releases/{id}", onRelease(deleteRelease), needToken, needWrite)
	handleAssets(t, p+"/releases/{id}/assets", func(c *call) (*[]*attachment, string, error) {
		r := c.releaseOf()
		if r == nil {
			return nil, "", errNotFound
		}
		return &r.Assets, r.Tag, nil
	}, needWrite)

	t.on("GET "+p+"/tags", func(c *call) error {
		// Tags have no Link header, releases have.
		return c.ok(mapped(counted(c, c.repo.git.names("refs/tags/")), c.tagView))
	})
	t.on("POST "+p+"/tags", reads(createTag), needToken, needWrite, needActive)
	t.on("GET "+p+"/tags/{tag}", getTag)
	t.on("DELETE "+p+"/tags/{tag}", deleteTag, needToken, needWrite, needActive)
}

// releaseView renders a release.
func (c *call) releaseView(r *release) obj {
	self := c.api(c.repo, "releases", fmt.Sprint(r.ID))
	// The tag keeps its slashes in these addresses; tagView escapes them.
	archive := c.repoURL(c.repo) + "/archive/" + escapePath(r.Tag)
	return obj{
		"id", r.ID, "tag_name", r.Tag, "target_commitish", r.Target, "name", r.Name, "body", r.Body,
		"url", self, "html_url", c.repoURL(c.repo) + "/releases/tag/" + escapePath(r.Tag),
		"tarball_url", archive + ".tar.gz", "zipball_url", archive + ".zip", "upload_url", self + "/assets",
		"draft", r.Draft, "prerelease", r.Pre, "created_at", r.Created, "published_at", r.Published,
		"author", c.anon(r.Author), "assets", c.attachments(r.Assets),
	}
}

// releaseOf finds the release of the path, by id or tag; drafts show to writers.
// For others a draft is as unknown as one that is not there.
func (c *call) releaseOf() *release {
	tag, byTag := c.params["tag"]
	r, _ := find(c.repo.releases, func(r *release) bool {
		return byTag && r.Tag == tag || !byTag && r.ID == c.id("id")
	})
	if r == nil || r.Draft && c.perm < accessWrite {
		return nil
	}
	return r
}

// onRelease finds the release of the path.
func onRelease(f func(*call, *release) error) handler {
	return func(c *call) error {
		r := c.releaseOf()
		if r == nil {
			return errNotFound
		}
		return f(c, r)
	}
}

// listReleases lists releases, newest first.
func listReleases(c *call) error {
	// The name has a dash, unlike that of the member.
	draft, pre := c.query.Get("draft"), c.query.Get("pre-release")
	items := filter(c.repo.releases, func(r *release) bool {
		return (!r.Draft || c.perm >= accessWrite) &&
			(draft == "" || r.Draft == c.queryBool("draft")) && (pre == "" || r.Pre == c.queryBool("pre-release"))
	})
	slices.SortFunc(items, func(a, b *release) int { return int(b.ID - a.ID) })
	return c.ok(mapped(linked(c, items), c.releaseView))
}

// latestRelease is the newest that is neither draft nor pre-release.
// A draft or pre-release alone is 404, as is no release at all.
func latestRelease(c *call) error {
	for _, r := range slices.Backward(c.repo.releases) {
		if !r.Draft && !r.Pre {
			return c.ok(c.releaseView(r))
		}
	}
	return errNotFound
}

// createReleaseInput is the body of createRelease. TagName hides the embedded Tag, which
// an edit may leave out.
type createReleaseInput struct {
	releaseFields
	TagName    string `json:"tag_name" binding:"Required"`
	TagMessage string `json:"tag_message"`
}

// createRelease creates a release, and its tag when there is none. The words
// for a release that exists are the real server's.
func createRelease(c *call, in *createReleaseInput) error {
	// An empty repository is refused even for a draft, which needs no tag.
	if c.repo.empty() {
		return fail(http.StatusUnprocessableEntity, "repo is empty")
	}
	if _, ok := find(c.repo.releases, func(r *release) bool { return r.Tag == in.TagName }); ok {
		return fail(http.StatusConflict, "Release is has no Tag")
	}
	r := &release{
		releaseFields: in.releaseFields, ID: c.w.next("release"), Created: c.now, Published: c.now, Author: c.doer,
	}
	// The target is a name and may be gone later; only the tag is bound to a commit.
	r.Tag, r.Target = in.TagName, cmp.Or(r.Target, c.repo.DefaultBranch)
	if err := c.tagRelease(r, in.TagMessage); err != nil {
		return err
	}
	c.repo.releases = append(c.repo.releases, r)
	c.record("publish_release", r.Name, r.Tag)
	return c.created(c.releaseView(r))
}

// tagRelease makes the tag of a release that is no draft.
func (c *call) tagRelease(r *release, message string) error {
	if r.Draft || c.repo.git.tag(r.Tag) != nil {
		return nil
	}
	cm := c.repo.git.resolve(r.Target)
	switch {
	case cm == nil:
		return fail(http.StatusNotFound,
			"target %q not found: object does not exist [id: %s, rel_path: ]", r.Target, r.Target)
	case !goodRef(r.Tag):
		return fail(http.StatusInternalServerError, "release tag name is not valid [tag_name: %s]", r.Tag)
	}
	c.newTag(r.Tag, cm, message)
	return nil
}

// newTag makes a tag, annotated when there is a message. An annotated tag is an object
// of its own, so the id that the API shows for it is not its commit's.
func (c *call) newTag(name string, cm *commit, message string) {
	if message == "" {
		c.repo.git.refs["refs/tags/"+name] = cm.id
	} else {
		c.repo.git.addTag(name, cm.id, message, c.signature())
	}
	c.record("push_tag", "", "refs/tags/"+name)
}

// editRelease edits a release; publishing a draft makes its tag. The body is read over
// what there is, so that what it leaves out stays.
func editRelease(c *call, r *release) error {
	next := r.releaseFields
	if err := c.bind(&next); err != nil {
		return err
	}
	next.Tag, next.Target = cmp.Or(next.Tag, r.Tag), cmp.Or(next.Target, r.Target)
	r.releaseFields = next
	if err := c.tagRelease(r, ""); err != nil {
		return err
	}
	return c.ok(c.releaseView(r))
}

// deleteRelease deletes a release; its tag stays.
func deleteRelease(c *call, r *release) error {
	c.repo.releases = without(c.repo.releases, r)
	return c.done()
}

// createTagInput is the body of createTag.
type createTagInput struct {
	TagName string `json:"tag_name" binding:"Required"`
	Message string `json:"message"`
	Target  string `json:"target"`
}

// createTag makes a tag.
func createTag(c *call, in *createTagInput) error {
	target := cmp.Or(in.Target, c.repo.DefaultBranch)
	cm := c.repo.git.resolve(target)
	switch {
	case cm == nil:
		return fail(http.StatusNotFound, "target not found: object does not exist [id: %s, rel_path: ]", target)
	case c.repo.git.tag(in.TagName) != nil:
		return fail(http.StatusConflict, "tag already exists [name: %s]", in.TagName)
	case !goodRef(in.TagName):
		return fail(http.StatusInternalServerError, "release tag name is not valid [tag_name: %s]", in.TagName)
	}
	c.newTag(in.TagName, cm, in.Message)
	return c.created(c.tagView(in.TagName))
}

// getTag answers one tag.
func getTag(c *call) error {
	if c.repo.git.tag(c.params["tag"]) == nil {
		return fail(http.StatusNotFound, "tag doesn't exist: %s", c.params["tag"])
	}
	return c.ok(c.tagView(c.params["tag"]))
}

// deleteTag deletes a tag that has no release.
func deleteTag(c *call) error {
	name := c.params["tag"]
	if c.repo.git.tag(name) == nil {
		return errNotFound
	}
	if _, ok := find(c.repo.releases, func(r *release) bool { return r.Tag == name }); ok {
		return fail(http.StatusConflict, "a tag attached to a release cannot be deleted directly")
	}
	delete(c.repo.git.refs, "refs/tags/"+name)
	c.record("delete_tag", "", "refs/tags/"+name)
	return c.done()
}
