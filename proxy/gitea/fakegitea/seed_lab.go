package fakegitea

import (
	"fmt"
	"strings"
	"time"
)

// lab builds the world on which the behaviour of the real server was measured:
// the same names, counts and shapes, with texts of our own.
type lab struct {
	*builder
	admin1, alice, bob, carol, acme *user
	repos                           map[string]*repo
}

// newLab begins an hour ago.
func newLab(w *world) *lab {
	return &lab{builder: newBuilder(w, time.Hour, time.Second), repos: map[string]*repo{}}
}

// fill builds everything.
func (l *lab) fill() {
	l.admin1, l.alice, l.bob, l.carol = l.admin("aegis-admin"), l.user("alice"), l.user("bob"), l.user("carol")
	l.alice.Language, l.alice.LastLogin = "en-US", l.at
	l.acme = l.w.addOrg("acme", l.alice)
	l.acme.FullName, l.acme.Description = "ACME Corp", "measurement organisation"
	l.w.addTeam(l.acme, &team{
		Name: "developers", AllRepos: true, Permission: "none", Units: unitsAt("write", ownUnits),
		Visibility: "private",
		Members:    []*user{l.carol},
	})
	readers := l.w.addTeam(l.acme, &team{
		Name: "readers", Permission: "none", Units: unitsAt("read", ownUnits), Visibility: "private",
		Members: []*user{l.bob},
	})
	l.makeRepos()
	readers.Repos = []*repo{l.repos["paths-lab"], l.repos["private-repo"]}
	l.fillIssues()
	l.fillPaths()
	l.fillPathsExtras()
	l.fillPulls()
	l.fillReleases()
	l.fillSmall()
	l.fillNotices()
}

// makeRepos makes all repositories, in the order of their ids.
func (l *lab) makeRepos() {
	readme := func(name string) map[string]string { return map[string]string{"README.md": "# " + name + "\n"} }
	for _, name := range []string{
		"issues-lab", "pulls-lab", "releases-lab", "paths-lab", "wiki-lab", "hooks-lab", "packages-lab", "actions-lab",
		"empty-repo", "private-repo", "archived-repo", "tools-lab",
	} {
		files := readme(name)
		if name == "empty-repo" || name == "paths-lab" || name == "pulls-lab" {
			files = nil
		}
		l.repos[name] = l.repo(l.acme, l.alice, name, name+": measurement repository", files)
		l.repos[name].Watchers = []*user{l.alice, l.bob}
	}
	l.repos["private-repo"].Private = true
	l.repos["archived-repo"].Archived, l.repos["archived-repo"].ArchTime = true, l.at
	l.repos["issues-lab"].Topics = []string{"issues", "lab"}
	l.repos["personal"] = l.repo(l.alice, l.alice, "personal", "", readme("personal"))
	l.repos["private-notes"] = l.repo(l.alice, l.alice, "private-notes", "", readme("private-notes"))
	l.repos["private-notes"].Private = true
	l.repo(l.bob, l.bob, "one", "", readme("one"))
	l.repo(l.bob, l.bob, "two", "", readme("two"))
	for _, u := range []*user{l.alice, l.bob} {
		u.Starred = []*repo{l.repos["issues-lab"]}
	}
}

// words make up titles and texts.
var words = strings.Fields("login wiki merge cache timeout search font menu token review color lock slow render click crash mirror upload branch index queue button page retry")

// text is n words, chosen by a number.
func text(seed, n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = words[(seed*7+i*i+i*seed)%len(words)]
	}
	return strings.Join(out, " ")
}

// labComments is how many comments issues-lab has in all.
const labComments = 480

// fillIssues makes the 300 issues: every fourth is closed, every third is
// bob's, every other has a milestone, the eleventh has 60 comments.
func (l *lab) fillIssues() {
	r := l.repos["issues-lab"]
	r.Watchers = []*user{l.alice, l.bob, l.carol}
	var labels []*label
	for i, name := range []string{"kind/bug", "kind/feature", "50%", "c#", "needs info?", "日本語", "with space", "priority/high", "a,b"} {
		labels = append(labels, l.label(r, name, []string{"ee0701", "0e8a16", "5319e7"}[i%3], "label "+name))
	}
	l.acme.Labels = []*label{{ID: l.w.next("label"), Org: l.acme, Name: "org/label", Color: "000000"}}
	l.label(r, "b", "00aabb", "")
	var ms []*milestone
	for _, title := range []string{"v1.0", "v1.1 / next", "日本語 50%"} { // names that have to be escaped
		ms = append(ms, l.milestone(r, title, 32))
	}
	total := 60
	for i := 1; i <= 300; i++ {
		by := l.alice
		if i%3 == 2 {
			by = l.bob
		}
		is := l.issue(r, by, fmt.Sprintf("Issue %d: %s", i-1, text(i, 4)), text(i, 40), l.labelsFor(labels, i)...)
		if i%2 == 0 {
			is.Milestone = ms[[]int{2, 1, 0}[i/2%3]]
		}
		if i == 11 || i%5 == 1 && i > 200 {
			is.Assignees = []*user{l.bob}
			l.tick(func() { l.w.addEvent(is, by, comment{Kind: "assignees", assignee: l.bob}) })
		}
		n := i % 4
		if i == 11 {
			n = 60
		} else {
			n = min(n, labComments-total)
			total += n
		}
		for k := range n {
			l.say(is, []*user{l.alice, l.bob}[k%2], fmt.Sprintf("comment %d: %s", k, text(i+k, 20)))
		}
		if i%4 == 0 {
			l.close(is, l.alice)
		}
	}
}

// labelsFor picks the labels of an issue.
func (l *lab) labelsFor(labels []*label, i int) []*label {
	if i == 11 {
		return labels[:1]
	}
	var out []*label
	for k, lab := range labels[:8] {
		if i%(k+6) == 0 {
			out = append(out, lab)
		}
	}
	return out
}

// oddFiles are the names of paths-lab.
var oddFiles = map[string]string{
	"README.md":              "# paths-lab\n",
	".editorconfig":          "root = true\n\n[*.go]\nindent_style = tab\nindent_size = 2\n\n[*.md]\nindent_size = 4\n",
	"dir/sub/plain.txt":      "plain\n",
	"dir with space/a b.txt": "space\n",
	"uni/日本語 ファイル.md":        "unicode\n",
	"uni/ünï.txt":            "umlauts\n",
	"pct/100%.txt":           "percent\n",
	"pct/a%2Fb.txt":          "escaped slash\n",
	"pct/a%20b.txt":          "escaped space\n",
	"hash/c#.txt":            "hash\n",
	"q/what?.txt":            "question\n",
	"plus/a+b.txt":           "plus\n",
	"amp/a&b=c.txt":          "ampersand\n",
	"semi/a;b.txt":           "semicolon\n",
	"src/main.go":            "package main\n\nfunc main() {\n\tprintln(\"lab\")\n}\n",
}

// fillPaths makes the files, commits, branches and tags with odd names.
func (l *lab) fillPaths() {
	r := l.repos["paths-lab"]
	r.Topics = []string{"c-sharp", "paths", "v1.0"}
	r.Watchers = []*user{l.alice, l.bob, l.carol}
	blob := make([]byte, 16384)
	for i := range blob {
		blob[i] = byte(i)
	}
	files := map[string]string{"bin/blob.bin": string(blob),
		"big/3mib.txt": strings.Repeat("0123456789abcde\n", 3<<20/16)}
	for p, t := range oddFiles {
		files[p] = t
	}
	l.commit(r, "main", l.alice, "Initial commit", files)
	for i := range 40 {
		l.commit(r, "main", l.alice, fmt.Sprintf("history step %d", i),
			map[string]string{"history.txt": fmt.Sprintf("line %d\n", i)})
	}
	for _, name := range []string{
		"plain", "release/1.0", "100%", "pct%2Fname", "hot#fix", "ünï/ß", "日本語", "a+b", "a&b", "semi;colon",
		"at@sign", "dot.name", "feature/x/y",
	} {
		l.branch(r, name, "main")
	}
	l.commit(r, "feature/x/y", l.alice, "feature commit", map[string]string{"feature.txt": "feature\n"})
	head := r.git.branch("main")
	for _, name := range []string{"v1.0", "rel/1.0", "rel#1", "50%", "pct%2Ftag", "ünï/tag"} {
		r.git.addTag(name, head.id, "tag "+name, l.sig(l.alice))
	}
	r.git.refs["refs/tags/light/1"] = head.id
	r.git.refs["refs/notes/commits"] = head.id // neither a branch nor a tag
}

// fillPathsExtras adds protections, statuses and the feed.
func (l *lab) fillPathsExtras() {
	r := l.repos["paths-lab"]
	for i, name := range []string{"release/*", "main", "feature/x/y", "100%", "hot#fix", "ünï/ß"} {
		p := &protection{RuleName: name, Priority: i + 1, Push: true, CreatedAt: l.at, UpdatedAt: l.at}
		p.fixLists()
		r.protected = append(r.protected, p)
	}
	head := r.git.branch("main")
	contexts := []string{"ci/job 0", "ci/job 1", "ci/job 2", "probe", "probe", "probe", "probe", "probe2", "", "x"}
	states := []string{"success", "pending", "failure"}
	for i := range 18 {
		s := &commitStatus{ID: l.w.next("status"), SHA: head.id, State: "success", Context: "probe", Creator: l.alice,
			Created: l.at, Updated: l.at}
		if i < len(contexts) {
			s.Context = contexts[i]
		}
		switch {
		case i < 3:
			s.State, s.Description, s.TargetURL = states[i], "status", "http://127.0.0.1:9/"
		case s.Context == "":
			s.State = "bogus"
		case s.Context == "x":
			s.State = ""
		}
		r.statuses = append(r.statuses, s)
	}
	have := len(filter(l.w.feed, func(a *activity) bool { return a.repo == r }))
	for range 198 - have {
		l.tick(func() { l.w.record(l.alice, r, "delete_branch", "", "refs/heads/ren/tmp/r/1") })
	}
}
