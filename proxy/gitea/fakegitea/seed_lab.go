package fakegitea

import (
	"fmt"
	"maps"
	"strings"
	"time"
)

// lab builds the world on which the behaviour of the real server was measured:
// the same names, counts and shapes, with texts of our own.
type lab struct {
	*builder
	alice, bob, carol, acme *user
	repos                   map[string]*repo
}

// fillLab builds everything, beginning an hour ago.
func fillLab(w *world) {
	l := &lab{builder: newBuilder(w, time.Hour, time.Second), repos: map[string]*repo{}}
	// The ids of users follow this order, which recorded answers show.
	l.user("aegis-admin").Admin = true
	l.alice, l.bob, l.carol = l.user("alice"), l.user("bob"), l.user("carol")
	l.alice.Language, l.alice.LastLogin = "en-US", l.at
	l.acme = w.addOrg("acme", l.alice)
	l.acme.FullName, l.acme.Description = "ACME Corp", "measurement organisation"
	l.team(l.acme, "developers", "", "write", l.carol).AllRepos = true
	readers := l.team(l.acme, "readers", "", "read", l.bob)
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
	// Recorded errors name repositories by id, so none may be put between.
	for name := range strings.FieldsSeq("issues-lab pulls-lab releases-lab paths-lab wiki-lab hooks-lab packages-lab " +
		"actions-lab empty-repo private-repo archived-repo tools-lab") {
		files := readme(name)
		// The latter two get their first commit later, with files that are not a README alone.
		if name == "empty-repo" || name == "paths-lab" || name == "pulls-lab" {
			files = nil
		}
		l.repos[name] = l.repo(l.acme, l.alice, name, name+": measurement repository", files)
		l.repos[name].Watchers = []*user{l.alice, l.bob}
	}
	for _, name := range []string{"personal", "private-notes"} {
		l.repos[name] = l.repo(l.alice, l.alice, name, "", readme(name))
	}
	for _, name := range []string{"one", "two"} {
		l.repo(l.bob, l.bob, name, "", readme(name))
	}
	l.repos["private-repo"].Private, l.repos["private-notes"].Private = true, true
	l.repos["archived-repo"].Archived, l.repos["archived-repo"].ArchTime = true, l.at
	l.repos["issues-lab"].Topics = []string{"issues", "lab"}
	l.alice.Starred, l.bob.Starred = []*repo{l.repos["issues-lab"]}, []*repo{l.repos["issues-lab"]}
}

// words make up titles and texts.
var words = strings.Fields("login wiki merge cache timeout search font menu token review color lock slow render click crash mirror upload branch index queue button page retry")

// text is n words, chosen by a number.
func text(seed, n int) string {
	out := make([]string, n)
	for i := range out {
		// It looks random and is the same in every run.
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
	// A label with a comma cannot be asked for, as the filter splits at it.
	for i, name := range []string{"kind/bug", "kind/feature", "50%", "c#", "needs info?", "日本語", "with space", "priority/high", "a,b"} {
		labels = append(labels, l.label(r, name, []string{"ee0701", "0e8a16", "5319e7"}[i%3], "label "+name))
	}
	l.acme.Labels = []*label{{ID: l.w.next("label"), Org: l.acme, Name: "org/label", Color: "000000"}}
	l.label(r, "b", "00aabb", "")
	var due []*milestone
	for _, title := range []string{"v1.0", "v1.1 / next", "日本語 50%"} { // names that have to be escaped
		due = append(due, l.milestone(r, title, 32))
	}
	left := labComments - 60
	for i := 1; i <= 300; i++ {
		by := []*user{l.alice, l.alice, l.bob}[i%3]
		n := min(i%4, left)
		// More comments than a page holds, for a route that does not page.
		if i == 11 {
			n = 60
		} else {
			left -= n
		}
		is := l.issue(r, by, fmt.Sprintf("Issue %d: %s", i-1, text(i, 4)), text(i, 40), labelsFor(labels, i)...)
		if i%2 == 0 {
			is.Milestone = due[2-i/2%3]
		}
		if i == 11 || i%5 == 1 && i > 200 {
			is.Assignees = []*user{l.bob}
			l.tick(func() { l.w.addEvent(is, by, comment{Kind: "assignees", assignee: l.bob}) })
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
func labelsFor(labels []*label, i int) []*label {
	if i == 11 {
		return labels[:1]
	}
	var out []*label
	for k, label := range labels[:8] {
		if i%(k+6) == 0 {
			out = append(out, label)
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
	r.Topics, r.Watchers = []string{"c-sharp", "paths", "v1.0"}, []*user{l.alice, l.bob, l.carol}
	blob := make([]byte, 16384)
	for i := range blob {
		blob[i] = byte(i)
	}
	files := maps.Clone(oddFiles)
	// One file is not UTF-8, the other is 3 MiB, which are 4 MiB in base64.
	files["bin/blob.bin"], files["big/3mib.txt"] = string(blob), strings.Repeat("0123456789abcde\n", 3<<20/16)
	l.commit(r, "main", l.alice, "Initial commit", files)
	for i := range 40 {
		l.commit(r, "main", l.alice, fmt.Sprintf("history step %d", i),
			map[string]string{"history.txt": fmt.Sprintf("line %d\n", i)})
	}
	for name := range strings.FieldsSeq("plain release/1.0 100% pct%2Fname hot#fix ünï/ß 日本語 a+b a&b semi;colon " +
		"at@sign dot.name feature/x/y") {
		l.branch(r, name, "main")
	}
	l.commit(r, "feature/x/y", l.alice, "feature commit", map[string]string{"feature.txt": "feature\n"})
	head := r.git.branch("main")
	for name := range strings.FieldsSeq("v1.0 rel/1.0 rel#1 50% pct%2Ftag ünï/tag") {
		r.git.addTag(name, head.id, "tag "+name, l.sig(l.alice))
	}
	// The others are annotated, so their ids are not those of commits.
	r.git.refs["refs/tags/light/1"] = head.id
	r.git.refs["refs/notes/commits"] = head.id // neither a branch nor a tag
}

// fillPathsExtras adds protections, statuses and the feed.
func (l *lab) fillPathsExtras() {
	r := l.repos["paths-lab"]
	l.protect(r, 0, "release/*", "main", "feature/x/y", "100%", "hot#fix", "ünï/ß")
	for i, s := range []commitStatus{
		{Context: "ci/job 0", State: "success", Description: "status", TargetURL: "http://127.0.0.1:9/"},
		{Context: "ci/job 1", State: "pending", Description: "status", TargetURL: "http://127.0.0.1:9/"},
		{Context: "ci/job 2", State: "failure", Description: "status", TargetURL: "http://127.0.0.1:9/"},
		{Context: "probe2", State: "success"}, {Context: "", State: "bogus"}, {Context: "x", State: ""},
		17: {Context: "probe", State: "success"},
	} {
		// Twelve more of one context and one state: only the newest of a context counts for the
		// sum.
		if i > 5 {
			s.Context, s.State = "probe", "success"
		}
		s.ID, s.SHA, s.Creator, s.Created, s.Updated = l.w.next("status"), r.git.branch("main").id, l.alice, l.at, l.at
		r.statuses = append(r.statuses, &s)
	}
	have := len(filter(l.w.feed, func(a *activity) bool { return a.repo == r }))
	for range 198 - have {
		l.tick(func() { l.w.record(l.alice, r, "delete_branch", "", "refs/heads/ren/tmp/r/1") })
	}
}
