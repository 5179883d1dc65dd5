package fakegitea

import "strings"

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
	return c.ok(mapped(linked(c, list), func(cm *commit) obj { return c.commitView(c.repo, c.repo.git, cm) }))
}

// listPullFiles lists what a pull request changes. A modified file is called
// changed here.
func listPullFiles(c *call, is *issue) error {
	list := is.delta()
	c.pageHeaders(c.window(), len(list))
	_, head, _ := is.sides()
	names := map[string]string{"added": "added", "removed": "deleted", "modified": "changed", "renamed": "renamed"}
	return c.ok(mapped(linked(c, list), func(ch change) obj {
		var previous any = omitted
		if ch.status == "renamed" {
			previous = ch.oldPath
		}
		page := c.repoURL(c.repo)
		at := "/commit/" + head.id + "/" + escapePath(ch.path)
		return obj{
			"filename", ch.path, "previous_filename", previous, "status", names[ch.status], "additions", ch.plus,
			"deletions", ch.minus, "changes", ch.plus + ch.minus, "html_url", page + "/src" + at,
			"contents_url", c.api(c.repo, "contents", escapePath(ch.path)) + "?ref=" + head.id,
			"raw_url", page + "/raw" + at,
		}
	}))
}
