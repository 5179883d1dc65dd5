package fakegitea

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// handleGit registers commits, references, raw git objects and archives.
func handleGit(t table) {
	const p = "/repos/{owner}/{repo}"
	t.on("GET "+p+"/commits", listCommits)
	t.on("GET "+p+"/compare/{basehead}", compareRefs)
	t.on("GET "+p+"/git/commits/{sha}", getCommit)
	t.on("GET "+p+"/git/commits/{sha}.{diffType}", getCommitDiff)
	t.on("GET "+p+"/git/trees/{sha}", getTree)
	t.on("GET "+p+"/archive/{archive}", getArchive)
	t.on("GET "+p+"/git/refs", listRefs)
	t.on("GET "+p+"/git/refs/{ref}", listRefs)
}

// listCommits pages the log, with every paging header there is. An empty repository is
// 409, where most routes say 404.
func listCommits(c *call) error {
	if c.repo.empty() {
		return fail(http.StatusConflict, "Git Repository is empty.")
	}
	at, err := c.repo.refOf(cmp.Or(c.query.Get("sha"), c.repo.DefaultBranch))
	if err != nil {
		return err
	}
	g := c.repo.git
	list := g.history(at.head, g.resolve(c.query.Get("not")))
	if file := c.query.Get("path"); file != "" {
		list = filter(list, func(cm *commit) bool { return g.touched(cm, file) })
		if len(list) == 0 {
			return fail(http.StatusNotFound, "FileCommitsCount") // so the real server words it
		}
	}
	// The path is judged by the whole history: a range without commits of it is an
	// empty list, not 404. The date is the committer's.
	within, err := c.queryRange("since", "until")
	if err != nil {
		return err
	}
	list = filter(list, func(cm *commit) bool { return within(cm.committer.When) })
	w := c.window()
	// The headers speak of the limit that was asked for, also where the page below has
	// another.
	c.pageHeaders(w, len(list))
	c.out.header.Set("X-Total", strconv.Itoa(len(list)))
	page := linked(c, list)
	if c.query.Get("path") != "" {
		page = cut(window{w.page, commitsOfPath}, list)
	}
	return c.ok(mapped(page, func(cm *commit) obj { return c.commitView(c.repo, g, cm) }))
}

// commitsOfPath is the page of a file's history: the real server passes over
// the limit there and takes its own number.
const commitsOfPath = 50

// getCommit answers one commit; relative names are refused before the look-up. So
// main~1 is 422 and an unknown name is 404.
func getCommit(c *call) error {
	name := c.params["sha"]
	if strings.ContainsAny(name, "~^ ") {
		return fail(http.StatusUnprocessableEntity, "no valid ref or sha: %s", name)
	}
	cm := c.repo.git.resolve(name)
	if cm == nil {
		return fail(http.StatusNotFound, "commit doesn't exist: %s", name)
	}
	return c.ok(c.commitView(c.repo, c.repo.git, cm))
}

// getCommitDiff answers a commit as text. Here a relative name is just unknown: 404.
func getCommitDiff(c *call) error {
	cm := c.repo.git.resolve(c.params["sha"])
	if cm == nil {
		return fail(http.StatusNotFound, "commit doesn't exist: %s", c.params["sha"])
	}
	if c.params["diffType"] == "patch" {
		return c.text(c.repo.git.patchText(cm))
	}
	return c.text(diffText(c.repo.git.changesOf(cm)))
}

// compareRefs compares base...head or base..head; the list is not paged.
func compareRefs(c *call) error {
	spec := c.params["basehead"]
	// Three dots first: two are a part of them. Both forms give the commits of head
	// that base lacks. One name alone is compared with the default branch.
	baseName, headName, ok := strings.Cut(spec, "...")
	if !ok {
		baseName, headName, ok = strings.Cut(spec, "..")
	}
	if !ok {
		baseName, headName = c.repo.DefaultBranch, spec
	}
	base := c.repo.git.resolve(baseName)
	if base == nil {
		return errNoRef(baseName)
	}
	headRepo, headName, err := c.headOf(headName)
	if err != nil {
		return err
	}
	head := headRepo.git.resolve(headName)
	if head == nil {
		return errNoRef(headName)
	}
	g := c.repo.git
	// A fork's commits are looked up in one store with those of the base.
	if headRepo != c.repo {
		g.fetch(headRepo.git)
	}
	// The diff starts where the branches parted, so what base got since does not show
	// as removed. Histories without a common commit have no diff, and the answer is the
	// list of commits.
	switch fork := g.mergeBase(base, head); {
	case c.query.Get("output") == "diff" && fork != nil:
		return c.text(diffText(g.changes(fork.files, head.files)))
	case c.query.Get("output") == "patch":
		list := g.history(head, base)
		// Patches are applied in order, the oldest first.
		slices.Reverse(list)
		return c.text(strings.Join(mapped(list, g.patchText), ""))
	}
	list := mapped(g.history(head, base), func(cm *commit) obj { return c.commitView(c.repo, g, cm) })
	return c.ok(obj{"total_commits", len(list), "commits", list})
}

// errNoRef is the refusal of a comparison.
func errNoRef(name string) error {
	return fail(http.StatusNotFound, "ref %q does not exist", name)
}

// treePage is the page size of trees, and its cap. The cap on pages of other lists does
// not hold for trees.
const treePage = 1000

// getTree answers a tree, paged by per_page; truncated says that there is more. An
// unknown name is 400, not 404. The sha in the answer is the tree's, also when a commit
// was asked for. limit means nothing here.
func getTree(c *call) error {
	name := c.params["sha"]
	id, ok := c.treeID(name)
	if !ok {
		return fail(http.StatusBadRequest, "sha not found [%s]", name)
	}
	all := c.walkTree(id, "", c.queryBool("recursive"))
	w := c.windowBy("per_page", treePage, treePage)
	c.setTotal(len(all))
	return c.ok(obj{
		"sha", id, "url", c.api(c.repo, "git", "trees", id), "tree", cut(w, all),
		"truncated", w.page < w.pages(len(all)), "page", w.page, "total_count", len(all),
	})
}

// treeID finds the tree of a reference or a commit, or by its id.
func (c *call) treeID(name string) (string, bool) {
	g := c.repo.git
	if cm := g.resolve(name); cm != nil {
		return cm.tree, true
	}
	_, ok := g.trees[name]
	return name, ok
}

// walkTree lists a tree, folders before what is in them. A folder has the size 0.
func (c *call) walkTree(id, prefix string, deep bool) []obj {
	out := []obj{}
	for _, e := range c.repo.git.trees[id] {
		mode, kind := e.kind()
		out = append(out, obj{
			"path", prefix + e.name, "mode", mode, "type", kind, "size", len(c.repo.git.blobs[e.id]), "sha", e.id,
			"url", c.api(c.repo, "git", kind+"s", e.id),
		})
		if e.dir && deep {
			out = append(out, c.walkTree(e.id, prefix+e.name+"/", true)...)
		}
	}
	return out
}

// listRefs lists references, all of them or those below a prefix; there is no paging,
// and none at all is 404. A prefix ends at a slash: heads/ma does not find heads/main.
// One reference alone is a list as well. An annotated tag shows its own object, not the
// commit.
func listRefs(c *call) error {
	prefix := "refs/" + c.params["ref"]
	var out []obj
	for _, name := range c.repo.git.names("refs/") {
		ref := "refs/" + name
		if c.params["ref"] != "" && ref != prefix && !strings.HasPrefix(ref, strings.TrimSuffix(prefix, "/")+"/") {
			continue
		}
		id := c.repo.git.refs[ref]
		kind := "commit"
		if c.repo.git.tags[id] != nil {
			kind = "tag"
		}
		out = append(out, obj{
			"ref", ref, "url", c.api(c.repo, "git", escapePath(ref)),
			"object", obj{"type", kind, "sha", id, "url", c.api(c.repo, "git", kind+"s", id)},
		})
	}
	if out == nil {
		return errNotFound
	}
	return c.ok(out)
}
