package fakegitea

import (
	"fmt"
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
	others := []*repo{l.repos["personal"], l.repos["private-repo"]}
	for _, r := range others {
		l.issue(r, l.alice, "the only one", "")
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
	for _, tag := range []string{"v0.9", "v1.0", "rel/1.0", "v1.1#rc", "50%", "v2.0-draft"} {
		draft := tag == "v2.0-draft"
		rel := l.release(r, l.alice, tag, "Release "+tag, "notes for "+tag)
		rel.Draft, rel.Pre = draft, tag == "v0.9"
		if draft {
			delete(r.git.refs, "refs/tags/"+tag)
		}
		if tag == "v1.0" || tag == "rel/1.0" {
			a := l.w.newAttachment("asset-"+strings.ReplaceAll(tag, "/", "-")+".zip", make([]byte, 4096))
			a.release = tag
			rel.Assets = append(rel.Assets, a)
		}
	}
}

// fillSmall fills the wiki, hooks, actions, packages and applications.
func (l *lab) fillSmall() {
	wiki := l.repos["wiki-lab"]
	for _, title := range []string{"Home", "Page with space", "dir/sub page", "50% done", "C# notes", "What?", "日本語", "plus+page", "dash-page"} {
		l.page(wiki, l.alice, title, "# "+title+"\n\nwiki text\n")
	}
	hooked := l.repos["hooks-lab"]
	l.hook(&hook{repo: hooked, Active: true,
		Config: map[string]string{"url": "http://127.0.0.1:9998/hook", "content_type": "json"}})
	l.hook(&hook{repo: hooked,
		Config: map[string]string{"url": "http://127.0.0.1:9998/other?token=abc", "content_type": "json"}})
	l.hook(&hook{owner: l.acme, Config: map[string]string{"url": "http://127.0.0.1:9998/org", "content_type": "json"},
		Events: []string{"push"}})

	acts := l.repos["actions-lab"]
	l.commit(acts, "main", l.alice, "add workflow", map[string]string{
		".gitea/workflows/ci.yml": "name: ci\non: push\njobs:\n  build:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make\n",
	})
	l.tick(func() { l.w.addRun(acts, l.alice, "ci.yml", "main", "push", "add workflow") })
	acts.actions.secrets = []*secret{{"DEPLOY_KEY", "", l.at, "made up"}}
	acts.actions.variables = []*variable{{0, acts.ID, "REGION", "eu-west-1", ""}}

	l.w.addPackage(l.acme, l.alice, "generic", "tool", "1.0.0")
	l.w.addPackage(l.acme, l.alice, "generic", "tool", "2.0.0+build.7")
	l.w.addPackage(l.acme, l.alice, "generic", "data", "0.1")
	l.w.addPackage(l.acme, l.alice, "npm", "@acme/widget", "1.0.0")
	l.w.addPackage(l.acme, l.alice, "npm", "plainpkg", "1.0.0")

	l.w.ids["app"] = 5
	for _, name := range []string{"aegis-confidential", "aegis-public"} {
		l.w.apps = append(l.w.apps, &oauthApp{
			ID: l.w.next("app"), user: l.alice, Name: name, ClientID: newUUID(),
			Confidential: name == "aegis-confidential",
			RedirectURIs: []string{"http://127.0.0.1:9999/callback"}, Created: l.at,
		})
	}
}

// hook adds a webhook; the events of an issue tracker are its default.
func (l *lab) hook(h *hook) {
	h.ID, h.Type, h.Created, h.Updated = l.w.next("hook"), "gitea", l.at, l.at
	if h.Events == nil {
		h.Events = []string{"issues", "issue_assign", "issue_label", "issue_milestone", "issue_comment", "push"}
	}
	l.w.hooks = append(l.w.hooks, h)
}

// labNotices is how many unread notifications alice has.
const labNotices = 187

// fillNotices gives alice her notifications; the latest are about pull
// requests.
func (l *lab) fillNotices() {
	pulls := l.repos["pulls-lab"].issues
	issues := l.repos["issues-lab"].issues[:labNotices-len(pulls)]
	for _, is := range append(append([]*issue{}, issues...), pulls...) {
		l.tick(func() {
			var last *comment
			if talk := is.talk(); len(talk) > 0 {
				last = talk[len(talk)-1]
			}
			l.w.notifyUser(l.alice, is, last)
		})
	}
}
