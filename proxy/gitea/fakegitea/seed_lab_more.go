package fakegitea

import (
	"fmt"
	"slices"
	"strings"
)

// source is a Go file of n lines.
func source(file, n int, word string) string {
	var out strings.Builder
	out.WriteString("package pkg\n\n")
	for i := range n {
		fmt.Fprintf(&out, "// %s %d of file %d\n", word, i, file)
	}
	return out.String()
}

// fillPulls makes the fifteen pull requests: 1 and 5 are closed, 2 and 4
// merged, 3 conflicts, 14 is not against main, 15 is a draft.
func (l *lab) fillPulls() {
	for _, name := range []string{"personal", "private-repo"} {
		l.issue(l.repos[name], l.alice, "the only one", "")
	}
	r := l.repos["pulls-lab"]
	files := map[string]string{"README.md": "# pulls-lab\n"}
	for i := range 15 {
		files[fmt.Sprintf("pkg/f%02d.go", i)] = source(i, 60, "line")
	}
	l.commit(r, "main", l.alice, "Initial commit", files)
	l.branch(r, "feature/base", "main")
	for i := range 15 {
		head := fmt.Sprintf("pr/%02d", i)
		l.branch(r, head, "main")
		change := map[string]string{fmt.Sprintf("pkg/f%02d.go", i): source(i, 30+10*(i%5), "changed")}
		if i == 3 {
			change["pkg/extra.go"] = source(i, 5, "extra")
		}
		l.commit(r, head, l.alice, "change in "+head, change)
	}
	l.commit(r, "main", l.alice, "get in the way of pr/02", map[string]string{"pkg/f02.go": source(2, 10, "other")})
	for i := range 15 {
		l.onePull(r, i)
	}
}

// onePull opens, and where it is due reviews, closes or merges, one pull
// request.
func (l *lab) onePull(r *repo, i int) {
	base, title := "main", fmt.Sprintf("Change number %d", i)
	switch i {
	case 13:
		base = "feature/base"
	case 14:
		title = "WIP: " + title
	}
	is := l.pull(r, l.bob, fmt.Sprintf("pr/%02d", i), base, title,
		fmt.Sprintf("Body of pull request %d\n\n- item\n- [ ] task", i))
	l.say(is, l.alice, text(i, 10))
	switch i {
	case 0, 4:
		l.close(is, l.alice)
	case 1:
		l.review(is, l.alice, "REQUEST_CHANGES", "review text", "pkg/f01.go", "a remark")
		// A person whose review is asked for again is in both lists, and is shown once.
		is.pull.Reviewers = []*user{l.alice}
		l.mergeNow(is)
	case 3:
		l.mergeNow(is)
	}
}

// mergeNow merges with a merge commit.
func (l *lab) mergeNow(is *issue) {
	l.tick(func() {
		base, head, fork := is.sides()
		// The seed merges what does not conflict.
		files, _ := mergeFiles(fork.files, base.files, head.files)
		by := l.sig(l.alice)
		made := is.Repo.git.addCommit(files, []string{base.id, head.id}, by, by, "Merge "+is.pull.Head)
		c := &call{w: l.w, doer: l.alice, repo: is.Repo, now: l.at}
		c.finish(is, base, head, fork, made)
	})
}

// fillReleases makes the six releases; the numbers before were tags.
func (l *lab) fillReleases() {
	r := l.repos["releases-lab"]
	l.w.ids["release"] = 7
	assets := map[string]string{"v1.0": "asset-v1.0.zip", "rel/1.0": "asset-rel-1.0.zip"}
	for _, tag := range []string{"v0.9", "v1.0", "rel/1.0", "v1.1#rc", "50%", "v2.0-draft"} {
		var data []byte
		if assets[tag] != "" {
			data = make([]byte, 4096)
		}
		l.release(r, l.alice, tag, "Release "+tag, "notes for "+tag, assets[tag], data)
	}
	r.releases[0].Pre, r.releases[5].Draft = true, true
	// A draft has no tag until it is published.
	delete(r.git.refs, "refs/tags/v2.0-draft")
}

// fillSmall fills the wiki, hooks, actions, packages and applications.
func (l *lab) fillSmall() {
	wiki := l.repos["wiki-lab"]
	for _, title := range []string{"Home", "Page with space", "dir/sub page", "50% done", "C# notes", "What?", "日本語", "plus+page", "dash-page"} {
		l.page(wiki, l.alice, title, "# "+title+"\n\nwiki text\n")
	}
	issues := []string{"issues", "issue_assign", "issue_label", "issue_milestone", "issue_comment", "push"}
	for _, h := range []hook{
		{repo: l.repos["hooks-lab"], Active: true, Events: issues, Config: map[string]string{"url": "hook"}},
		// The address has a secret in it, as addresses of hooks often do.
		{repo: l.repos["hooks-lab"], Events: issues, Config: map[string]string{"url": "other?token=abc"}},
		{owner: l.acme, Events: []string{"push"}, Config: map[string]string{"url": "org"}},
	} {
		h.ID, h.Type, h.Created, h.Updated = l.w.next("hook"), "gitea", l.at, l.at
		h.Config["url"], h.Config["content_type"] = "http://127.0.0.1:9998/"+h.Config["url"], "json"
		l.w.hooks = append(l.w.hooks, &h)
	}

	acts := l.repos["actions-lab"]
	l.commit(acts, "main", l.alice, "add workflow", map[string]string{
		".gitea/workflows/ci.yml": "name: ci\non: push\njobs:\n  build:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make\n",
	})
	l.tick(func() { l.w.addRun(acts, l.alice, "ci.yml", "main", "push", "add workflow") })
	// No route answers the value.
	acts.actions.secrets = []*secret{{"DEPLOY_KEY", "", l.at, "made up"}}
	acts.actions.variables = []*variable{{0, acts.ID, "REGION", "eu-west-1", ""}}

	for _, p := range [][]string{
		{"generic", "tool", "1.0.0"}, {"generic", "tool", "2.0.0+build.7"},
		{"generic", "data", "0.1"}, {"npm", "@acme/widget", "1.0.0"},
		{"npm", "plainpkg", "1.0.0"},
	} {
		l.w.addPackage(l.acme, l.alice, p[0], p[1], p[2])
	}
	for _, name := range []string{"aegis-confidential", "aegis-public"} {
		l.w.addApp(&oauthApp{user: l.alice, Name: name, Confidential: name == "aegis-confidential",
			RedirectURIs: []string{"http://127.0.0.1:9999/callback"}})
	}
}

// labNotices is how many unread notifications alice has.
const labNotices = 187

// fillNotices gives alice her notifications; the latest are about pull
// requests.
func (l *lab) fillNotices() {
	pulls := l.repos["pulls-lab"].issues
	for _, is := range slices.Concat(l.repos["issues-lab"].issues[:labNotices-len(pulls)], pulls) {
		l.tick(func() {
			var last *comment
			if talk := is.talk(); len(talk) > 0 {
				last = talk[len(talk)-1]
			}
			l.w.notifyUser(l.alice, is, last)
		})
	}
}
