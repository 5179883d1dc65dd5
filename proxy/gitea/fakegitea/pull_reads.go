package fakegitea

import (
	"strings"
)

// getPullByBranches finds the pull request between two branches.
func getPullByBranches(c *call) error {
	headRepo, head, err := c.headOf(c.params["head"])
	if err != nil {
		return err
	}
	is, ok := find(c.repo.pulls(), func(is *issue) bool {
		p := is.pull
		return p.Base == c.params["base"] && p.HeadRepo == headRepo && p.Head == head
	})
	if !ok {
		return errNotFound
	}
	return c.ok(c.pullView(is))
}

// commitsOf lists the commits of a pull request, newest first.
func (is *issue) commitsOf() []*commit {
	_, head, fork := is.sides()
	if head == nil {
		return nil
	}
	return is.Repo.git.history(head, fork)
}

// getPullDiff answers the whole change as text.
func getPullDiff(c *call, is *issue) error {
	if c.params["diffType"] == "diff" {
		return c.text(diffText(is.delta()))
	}
	var out strings.Builder
	list := is.commitsOf()
	for i := len(list) - 1; i >= 0; i-- {
		out.WriteString(is.Repo.git.patchText(list[i]))
	}
	return c.text(out.String())
}

// listPullCommits pages with Link only when there is more than one page, and
// with the X-Page headers always.
func listPullCommits(c *call, is *issue) error {
	list := is.commitsOf()
	w := c.window()
	c.pageHeaders(w, len(list))
	return c.ok(mapped(linked(c, list), func(cm *commit) *commitJSON { return c.commitView(c.repo, c.repo.git, cm) }))
}

// changedFileJSON is a file of a pull request.
type changedFileJSON struct {
	Filename    string `json:"filename"`
	Previous    string `json:"previous_filename,omitempty"`
	Status      string `json:"status"`
	Additions   int    `json:"additions"`
	Deletions   int    `json:"deletions"`
	Changes     int    `json:"changes"`
	HTMLURL     string `json:"html_url"`
	ContentsURL string `json:"contents_url"`
	RawURL      string `json:"raw_url"`
}

// listPullFiles lists what a pull request changes. A modified file is called
// changed here.
func listPullFiles(c *call, is *issue) error {
	list := is.delta()
	c.pageHeaders(c.window(), len(list))
	_, head, _ := is.sides()
	return c.ok(mapped(linked(c, list), func(ch change) changedFileJSON {
		status := map[string]string{"added": "added", "removed": "deleted", "modified": "changed", "renamed": "renamed"}[ch.status]
		out := changedFileJSON{
			Filename: ch.path, Status: status, Additions: ch.plus, Deletions: ch.minus, Changes: ch.plus + ch.minus,
			HTMLURL:     c.repoURL(c.repo) + "/src/commit/" + head.id + "/" + escapePath(ch.path),
			ContentsURL: c.api(c.repo, "contents", escapePath(ch.path)) + "?ref=" + head.id,
			RawURL:      c.repoURL(c.repo) + "/raw/commit/" + head.id + "/" + escapePath(ch.path),
		}
		if ch.status == "renamed" {
			out.Previous = ch.oldPath
		}
		return out
	}))
}
