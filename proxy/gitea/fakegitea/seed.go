package fakegitea

import (
	"fmt"
	"maps"
	"strings"
	"time"
)

// password is the password of every seeded user.
const password = "demo-password"

// ownUnits are the units that live in Gitea itself: all but the external ones.
var ownUnits = filter(allUnits, func(u string) bool { return !strings.HasPrefix(u, "repo.ext_") })

// seed fills an empty world.
func (w *world) seed(which Seed) {
	switch which {
	case SeedLab:
		fillLab(w)
	case SeedDemo:
		fillDemo(w)
	default:
		b := &builder{w: w}
		b.user("alice")
		b.user("bob")
		b.user("root1").Admin = true
	}
}

// builder makes seeded objects with little text, and without the checks and events of
// the handlers: a seed has to be right by itself. Its clock steps back from the
// world's, so that seeded things are in the past and in order.
type builder struct {
	w    *world
	at   time.Time
	step time.Duration
}

// newBuilder starts its clock at a time before now and steps on with every tick.
func newBuilder(w *world, before, step time.Duration) *builder {
	return &builder{w: w, at: w.clock().UTC().Add(-before).Truncate(time.Second), step: step}
}

// tick moves the builder's clock on and makes it the world's for f.
func (b *builder) tick(f func()) {
	real := b.w.clock
	b.at = b.at.Add(b.step)
	b.w.clock = func() time.Time { return b.at }
	f()
	b.w.clock = real
}

// user adds a user.
func (b *builder) user(login string) *user {
	u := b.w.addUser(login, login+"@example.com")
	u.Password = password
	return u
}

// team adds a team whose units all have the same permission.
func (b *builder) team(org *user, name, about, permission string, members ...*user) *team {
	return b.w.addTeam(org, &team{
		Name: name, Description: about, Permission: "none", Units: unitsAt(permission, ownUnits), Visibility: "private",
		Members: members,
	})
}

// sig is a user as git sees her, at the builder's time.
func (b *builder) sig(u *user) signature {
	return signature{u.displayName(), u.Email, b.at}
}

// repo adds a repository with a first commit; no files leave it empty.
func (b *builder) repo(owner, by *user, name, about string, files map[string]string) *repo {
	var r *repo
	b.tick(func() {
		r = b.w.addRepo(owner, name)
		r.Description, r.Watchers = about, []*user{by}
		b.w.record(by, r, "create_repo", "", "")
		if len(files) > 0 {
			b.commit(r, "main", by, "Initial commit", files)
		}
	})
	return r
}

// commit adds files to a branch.
func (b *builder) commit(r *repo, branch string, by *user, message string, files map[string]string) {
	b.write(r.git, branch, by, message, files)
	r.Updated = b.at
	b.w.record(by, r, "commit_repo", message, "refs/heads/"+branch)
}

// write commits to a store.
func (b *builder) write(git *gitStore, branch string, by *user, message string, files map[string]string) {
	tree := map[string]string{}
	if head := git.branch(branch); head != nil {
		tree = maps.Clone(head.files)
	}
	for p, text := range files {
		tree[p] = git.addBlob([]byte(text))
	}
	b.at = b.at.Add(b.step)
	git.commitTo(branch, tree, b.sig(by), message)
}

// branch makes a branch from another.
func (b *builder) branch(r *repo, name, from string) {
	r.git.refs["refs/heads/"+name] = r.git.refs["refs/heads/"+from]
}

// label adds a label.
func (b *builder) label(r *repo, name, color, about string) *label {
	l := &label{ID: b.w.next("label"), Name: name, Color: color, Description: about}
	r.labels = append(r.labels, l)
	return l
}

// milestone adds a milestone that is due after some days.
func (b *builder) milestone(r *repo, title string, days int) *milestone {
	due := b.w.now().AddDate(0, 0, days).Truncate(24 * time.Hour)
	m := &milestone{
		ID: b.w.next("milestone"), Title: title, State: "open", Created: b.at, Updated: b.at, Due: &due,
	}
	r.milestones = append(r.milestones, m)
	return m
}

// issue adds an issue.
func (b *builder) issue(r *repo, by *user, title, body string, ls ...*label) (is *issue) {
	b.tick(func() {
		is = b.w.newIssue(r, by, title, body)
		is.Labels = append(is.Labels, ls...)
		for _, l := range ls {
			b.w.addEvent(is, by, comment{Kind: "label", Body: "1", label: l})
		}
		b.w.record(by, r, "create_issue", fmt.Sprintf("%d|%s", is.Index, title), "")
	})
	return is
}

// say adds a comment.
func (b *builder) say(is *issue, by *user, text string) {
	b.tick(func() { b.w.addEvent(is, by, comment{Kind: "comment", Body: text}) })
}

// close closes an issue.
func (b *builder) close(is *issue, by *user) {
	b.tick(func() {
		is.Closed, is.ClosedAt = true, new(b.at)
		b.w.addEvent(is, by, comment{Kind: "close"})
	})
}

// pull opens a pull request within a repository.
func (b *builder) pull(r *repo, by *user, head, base, title, body string) *issue {
	is := b.issue(r, by, title, body)
	is.pull = &pull{ID: b.w.next("pull"), Base: base, Head: head, HeadRepo: r, Maintainer: true}
	return is
}

// review adds a submitted review with a remark on a file.
func (b *builder) review(is *issue, by *user, state, text, path, remarkText string) {
	v := &review{ID: b.w.next("review"), User: by, State: state, Body: text}
	if _, head, _ := is.sides(); head != nil {
		v.CommitID = head.id
	}
	b.tick(func() {
		v.Submitted, v.Updated = b.at, b.at
		v.Remarks = []*remark{{
			ID: b.w.next("comment"), User: by, Body: remarkText, Path: path, Position: 1, Created: b.at,
			Updated: b.at, Hunk: is.hunkOf(path),
		}}
		v.CommentID = b.w.addEvent(is, by, comment{Kind: "review", Body: text, reviewID: v.ID}).ID
	})
	is.pull.Reviews = append(is.pull.Reviews, v)
}

// release adds a release with its tag, and an asset when there is data for one.
func (b *builder) release(r *repo, by *user, tag, name, body, asset string, data []byte) *release {
	fields := releaseFields{Tag: tag, Target: "main", Name: name, Body: body}
	rel := &release{releaseFields: fields, ID: b.w.next("release"), Author: by}
	b.tick(func() { rel.Created, rel.Published = b.at, b.at })
	r.git.addTag(tag, r.git.branch("main").id, "tag "+tag, b.sig(by))
	if len(data) > 0 {
		a := b.w.newAttachment(asset, data)
		a.release = tag
		rel.Assets = append(rel.Assets, a)
	}
	r.releases = append(r.releases, rel)
	return rel
}

// protect protects the branches that match the names, the first before the others.
func (b *builder) protect(r *repo, approvals int64, names ...string) {
	for i, name := range names {
		p := &protection{RuleName: name, Priority: i + 1, Push: true, Approvals: approvals}
		p.CreatedAt, p.UpdatedAt = b.at, b.at
		p.fixLists()
		r.protected = append(r.protected, p)
	}
}

// page adds a wiki page.
func (b *builder) page(r *repo, by *user, title, text string) {
	b.write(r.wiki, wikiBranch, by, "add "+title, map[string]string{wikiFile(title): text})
}
