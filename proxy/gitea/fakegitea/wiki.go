package fakegitea

import (
	"cmp"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// handleWiki registers the wiki, which is a git store of its own.
func handleWiki(t table) {
	const p = "/repos/{owner}/{repo}/wiki"
	t.on("GET "+p+"/pages", listWiki)
	t.on("POST "+p+"/new", reads(createPage), needToken, needWrite, needActive)
	t.on("GET "+p+"/page/{pageName}", onPage(renders((*call).pageView)))
	t.on("PATCH "+p+"/page/{pageName}", reads(editPage), needToken, needWrite, needActive)
	t.on("DELETE "+p+"/page/{pageName}", onPage(deletePage), needToken, needWrite, needActive)
}

// wikiBranch is the branch of every wiki.
const wikiBranch = "main"

// wikiFile is the name under which a page is stored. A dash is a space;
// a title that has dashes itself is marked by ".-" and keeps them.
func wikiFile(title string) string {
	// Real files escape other characters as well; here they are kept as they are.
	if strings.Contains(title, "-") {
		title += ".-"
	}
	return strings.ReplaceAll(title, " ", "-") + ".md"
}

// wikiTitle is the title of a stored page.
func wikiTitle(file string) string {
	name := strings.TrimSuffix(file, ".md")
	if marked, ok := strings.CutSuffix(name, ".-"); ok {
		return marked
	}
	return strings.ReplaceAll(name, "-", " ")
}

// wikiSub is the address of a page, escaped.
// A plus in a title becomes %2B, and a slash %2F: a wiki has no folders.
func wikiSub(file string) string { return url.QueryEscape(strings.TrimSuffix(file, ".md")) }

// wikiHead is the newest commit of the wiki, or nil.
func (r *repo) wikiHead() *commit { return r.wiki.branch(wikiBranch) }

// wikiFiles is a copy of the newest snapshot of the wiki.
func (r *repo) wikiFiles() map[string]string {
	files := map[string]string{}
	if head := r.wikiHead(); head != nil {
		maps.Copy(files, head.files)
	}
	return files
}

// onPage finds the stored page of the path: by its address, or by its title
// with spaces.
func onPage(f func(*call, string) error) handler {
	return func(c *call) error {
		head, file := c.repo.wikiHead(), c.pageFile()
		switch {
		case head == nil:
			return fail(http.StatusNotFound, "no such file or directory")
		// The same missing page has two texts, by the method.
		case head.files[file] == "" && c.r.Method == http.MethodDelete:
			return fail(http.StatusNotFound, "file does not exist")
		case head.files[file] == "":
			return errNotFound
		}
		return f(c, file)
	}
}

// pageFile is the stored name of the page of the path.
func (c *call) pageFile() string { return strings.ReplaceAll(c.params["pageName"], " ", "-") + ".md" }

// wikiCommit renders a commit.
// The name "commiter" is spelled as the server spells it, with one t.
func wikiCommit(cm *commit) obj {
	return obj{"sha", cm.id, "author", cm.author, "commiter", cm.committer, "message", cm.message}
}

// pageMeta renders a page of the list.
func (c *call) pageMeta(file string) obj {
	last := c.repo.wiki.lastChange(c.repo.wikiHead(), file)
	return obj{
		"title", wikiTitle(file), "html_url", c.repoURL(c.repo) + "/wiki/" + wikiSub(file), "sub_url", wikiSub(file),
		"last_commit", wikiCommit(last),
	}
}

// pageView renders a page with its text, and the sidebar and footer of the wiki.
func (c *call) pageView(file string) obj {
	head := c.repo.wikiHead()
	// A sidebar or footer that is not there is empty text.
	text := func(f string) string { return base64.StdEncoding.EncodeToString(c.repo.wiki.blobs[head.files[f]]) }
	return append(c.pageMeta(file), "content_base64", text(file), "commit_count", len(c.pageHistory(file)),
		"sidebar", text("_Sidebar.md"), "footer", text("_Footer.md"))
}

// pageHistory lists the commits that changed a page.
func (c *call) pageHistory(file string) []*commit {
	g := c.repo.wiki
	return filter(g.history(c.repo.wikiHead(), nil), func(cm *commit) bool { return g.touched(cm, file) })
}

// listWiki lists the pages in the order of their stored names, escaped as git
// quotes them. A repository without a wiki answers in the file system's words.
func listWiki(c *call) error {
	head := c.repo.wikiHead()
	if head == nil {
		return fail(http.StatusNotFound, "no such file or directory")
	}
	files := filter(slices.Collect(maps.Keys(head.files)), func(f string) bool {
		return strings.HasSuffix(f, ".md") && f != "_Sidebar.md" && f != "_Footer.md"
	})
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(wikiSub(a), wikiSub(b)) })
	return c.ok(mapped(linked(c, files), c.pageMeta))
}

// pageInput is the body of a page.
type pageInput struct {
	Title   string `json:"title"`
	Content string `json:"content_base64"`
	Message string `json:"message"`
}

// createPage creates a page.
func createPage(c *call, in *pageInput) error {
	if strings.TrimSpace(in.Title) == "" {
		return fail(http.StatusBadRequest, "%%!s(<nil>)") // so the real server words it
	}
	file, files := wikiFile(in.Title), c.repo.wikiFiles()
	if files[file] != "" {
		return fail(http.StatusBadRequest, "wiki page already exists [title: %s]", file)
	}
	// These would hide pages of the web interface.
	if strings.HasPrefix(strings.ToLower(in.Title), "_pages") || strings.EqualFold(in.Title, "_edit") ||
		strings.EqualFold(in.Title, "_new") {
		return fail(http.StatusBadRequest, "wiki title is reserved: %s", in.Title)
	}
	in.Message = cmp.Or(in.Message, "Add \""+in.Title+"\"")
	return c.putPage(http.StatusCreated, files, file, in)
}

// editPage edits or renames a page; without a title it keeps its own. A page
// that does not exist is created.
func editPage(c *call, in *pageInput) error {
	file := c.pageFile()
	next := file
	if strings.TrimSpace(in.Title) != "" {
		next = wikiFile(in.Title)
	}
	files := c.repo.wikiFiles()
	if next != file && files[file] != "" && files[next] != "" {
		return fail(http.StatusBadRequest, "wiki page already exists [title: %s]", next)
	}
	// A rename is a removal and an addition in one commit; links in other pages stay as they
	// are.
	delete(files, file)
	in.Message = cmp.Or(in.Message, "Update \""+wikiTitle(next)+"\"")
	return c.putPage(http.StatusOK, files, next, in)
}

// putPage commits a page to a snapshot of the wiki.
// An edit without content empties the page: the field has no third state.
func (c *call) putPage(status int, files map[string]string, file string, in *pageInput) error {
	data, err := base64.StdEncoding.DecodeString(in.Content)
	if err != nil {
		return fail(http.StatusBadRequest, "%v", err)
	}
	files[file] = c.repo.wiki.addBlob(data)
	c.commitWiki(files, in.Message)
	return c.json(status, c.pageView(file))
}

// commitWiki stores the next snapshot of the wiki.
func (c *call) commitWiki(files map[string]string, message string) {
	c.repo.wiki.commitTo(wikiBranch, files, c.signature(), message)
	c.repo.Updated = c.now
}

// commitTo adds a commit to a branch.
func (g *gitStore) commitTo(branch string, files map[string]string, by signature, message string) *commit {
	var parents []string
	if head := g.branch(branch); head != nil {
		parents = []string{head.id}
	}
	cm := g.addCommit(files, parents, by, by, message)
	g.refs["refs/heads/"+branch] = cm.id
	return cm
}

// deletePage deletes a page.
func deletePage(c *call, file string) error {
	files := c.repo.wikiFiles()
	delete(files, file)
	c.commitWiki(files, "Delete page \""+wikiTitle(file)+"\"")
	return c.done()
}
