package fakegitea

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// pull is what a pull request adds to an issue.
type pull struct {
	ID         int64
	Base, Head string
	HeadRepo   *repo
	// Empty ids mean the branches as they are now.
	BaseID, HeadID string // fixed once merged or closed by a deleted branch
	MergeBase      string
	Merged         bool
	MergedAt       *time.Time
	MergedBy       *user
	MergeCommit    string
	Maintainer     bool
	// Who was asked for a review and has not given one.
	Reviewers []*user
	Reviews   []*review
}

// handlePulls registers pull requests without reviews and merging.
// Both routes of one pull request end in the index; the router tells index.diff from index.
func handlePulls(t table) {
	const p = "/repos/{owner}/{repo}/pulls"
	t.on("GET "+p, listPulls)
	t.on("POST "+p, reads(createPull), needToken, needActive)
	t.on("GET "+p+"/{index}", onPull(renders((*call).pullView)))
	t.on("PATCH "+p+"/{index}", onPull(readsFor(editPull)), needToken)
	t.on("GET "+p+"/{index}.{diffType}", onPull(getPullDiff))
	t.on("GET "+p+"/{index}/commits", onPull(listPullCommits))
	t.on("GET "+p+"/{index}/files", onPull(listPullFiles))
}

// sides are the commits of a pull request as they are now: the branches while it is
// open, the recorded ids once it is merged or its branch is gone. Any of them can be
// nil, after a branch or a fork was deleted. For a fork the objects are copied over
// first, as git does when it fetches a pull request.
func (is *issue) sides() (base, head, fork *commit) {
	p, g := is.pull, is.Repo.git
	base = g.branch(p.Base)
	if p.BaseID != "" {
		base = g.commits[p.BaseID]
	}
	if p.HeadID != "" {
		head = g.commits[p.HeadID]
	} else if p.HeadRepo != nil {
		head = p.HeadRepo.git.branch(p.Head)
	}
	// Without both there is no merge base, no change and no commit to list.
	if head == nil || base == nil {
		return base, head, nil
	}
	if p.HeadRepo != nil && p.HeadRepo != is.Repo {
		g.fetch(p.HeadRepo.git)
	}
	// After a merge the head itself is the merge base, so the one from before is recorded.
	fork = g.commits[p.MergeBase]
	if fork == nil {
		fork = g.mergeBase(base, head)
	}
	return base, head, fork
}

// delta is what a pull request changes.
func (is *issue) delta() []change {
	_, head, fork := is.sides()
	if head == nil || fork == nil {
		return nil
	}
	return is.Repo.git.changes(fork.files, head.files)
}

// pullView renders a pull request with the counts of its changes.
func (c *call) pullView(is *issue) obj {
	out := c.pullRow(is)
	// Lists leave it null even for a merged one.
	out.set("merged_by", c.anon(is.pull.MergedBy))
	var plus, minus int
	changes := is.delta()
	for _, ch := range changes {
		plus, minus = plus+ch.plus, minus+ch.minus
	}
	out.set("additions", plus)
	out.set("deletions", minus)
	out.set("changed_files", len(changes))
	// The same members are null in a list and empty lists here, which clients with strict types
	// meet.
	out.set("assignees", append([]obj{}, c.anons(is.Assignees)...))
	out.set("requested_reviewers", append([]obj{}, c.anons(is.pull.reviewers())...))
	out.set("requested_reviewers_teams", []obj{})
	return out
}

// reviewers lists who was asked for a review, and who gave a verdict: the API
// calls both requested.
func (p *pull) reviewers() []*user {
	out := slices.Clone(p.Reviewers)
	for _, v := range p.Reviews {
		if v.State == "APPROVED" || v.State == "REQUEST_CHANGES" {
			out = with(out, v.User)
		}
	}
	return out
}

// pullRow renders a pull request as lists show it: without counts, and without
// who merged it.
// The url is that of the web page, not the API's.
func (c *call) pullRow(is *issue) obj {
	p, page := is.pull, c.issueURL(is)
	base, head, fork := is.sides()
	out := obj{
		"id", p.ID, "url", page, "number", is.Index, "user", c.user(is.Poster), "title", is.Title, "body", is.Body,
		// People are shown as to a stranger, without their addresses, except for the poster.
		"labels", c.labels(is.Labels), "milestone", c.milestone(is.Repo, is.Milestone),
		"assignee", c.anon(is.assignee()), "assignees", c.anons(is.Assignees),
		"requested_reviewers", c.anons(p.reviewers()), "requested_reviewers_teams", nil, "state", state(is.Closed),
		"draft", is.draft(), "is_locked", false, "comments", len(is.talk()), "review_comments", p.remarks(),
		"additions", omitted, "deletions", omitted, "changed_files", omitted, "html_url", page,
		"diff_url", page + ".diff", "patch_url", page + ".patch",
		// The real server tests it in the background and says false until it is done; here it
		// is right at once.
		"mergeable", !p.Merged && !is.Closed && !is.draft() && is.clean(), "merged", p.Merged,
		"merged_at", p.MergedAt, "merge_commit_sha", nil, "merged_by", nil, "allow_maintainer_edit", p.Maintainer,
		"base", c.side(is.Repo, is.Repo, p.Base, base), "head", c.side(is.Repo, p.HeadRepo, p.Head, head),
		"merge_base", "", "due_date", is.Due, "created_at", is.Created, "updated_at", is.Updated,
		"closed_at", is.ClosedAt, "pin_order", is.PinOrder, "content_version", is.Version,
	}
	if p.Merged {
		out.set("merge_commit_sha", p.MergeCommit)
	}
	if fork != nil {
		out.set("merge_base", fork.id)
	}
	return out
}

// side renders one side; a fork's label names its owner.
// A fork that was deleted leaves a null repository and the id 0, where the real server has -1.
func (c *call) side(base, r *repo, branch string, cm *commit) obj {
	out := obj{"label", branch, "ref", branch, "sha", "", "repo_id", 0, "repo", nil}
	if cm != nil {
		out.set("sha", cm.id)
	}
	if r != nil {
		out.set("repo_id", r.ID)
		out.set("repo", c.repoView(r))
		if r != base {
			out.set("label", r.Owner.Login+":"+branch)
		}
	}
	return out
}

// clean says whether the pull request merges without a conflict.
func (is *issue) clean() bool {
	base, head, fork := is.sides()
	if fork == nil {
		return false
	}
	_, ok := mergeFiles(fork.files, base.files, head.files)
	return ok
}

// pulls lists the pull requests of a repository.
func (r *repo) pulls() []*issue {
	return filter(r.issues, func(is *issue) bool { return is.pull != nil })
}

// listPulls lists pull requests. An empty repository has no such page.
func listPulls(c *call) error {
	if c.repo.empty() || !c.repo.Settings.HasPulls {
		return errNotFound
	}
	// An unknown poster is refused, while unknown labels and milestones find nothing; the lists
	// of issues drop those instead.
	base, poster, ms := c.query.Get("base_branch"), c.query.Get("poster"), c.queryInt("milestone")
	if poster != "" && c.w.userByLogin(poster) == nil {
		return errNoUser(http.StatusBadRequest, poster)
	}
	inState := c.byState()
	items := filter(c.repo.pulls(), func(is *issue) bool {
		// An issue has to have all of them.
		labels := mapped(is.Labels, func(l *label) string { return fmt.Sprint(l.ID) }) // by id here, not by name
		return inState(is) && (base == "" || is.pull.Base == base) &&
			(poster == "" || strings.EqualFold(is.Poster.Login, poster)) &&
			(ms == 0 || is.Milestone != nil && is.Milestone.ID == int64(ms)) &&
			hasAll(labels, c.query["labels"])
	})
	sortIssues(items, c.query.Get("sort"))
	return c.ok(mapped(linked(c, items), c.pullRow))
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
// The patches are one for each commit, so their sum is not the diff where commits undo each
// other.
func getPullDiff(c *call, is *issue) error {
	if c.params["diffType"] == "diff" {
		return c.text(diffText(is.delta()))
	}
	patches := mapped(is.commitsOf(), is.Repo.git.patchText)
	slices.Reverse(patches) // the oldest commit first
	return c.text(strings.Join(patches, ""))
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
	// As with commits, there are both kinds of headers.
	c.pageHeaders(c.window(), len(list))
	_, head, _ := is.sides()
	// The commits of the same repository say removed and modified.
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

// headOf finds the repository and branch of a head: a branch or owner:branch. The form
// owner/repo:branch is not in the demo.
func (c *call) headOf(head string) (*repo, string, error) {
	who, branch, ok := strings.Cut(head, ":")
	if !ok {
		return c.repo, head, nil
	}
	if strings.Contains(who, "/") {
		return nil, "", notInDemo(c)
	}
	// The owner is looked up before the branch: an unknown one is 404, one without a fork 400.
	u := c.w.userByLogin(who)
	if u == nil {
		return nil, "", errNotFound
	}
	if u == c.repo.Owner {
		return c.repo, branch, nil
	}
	// The repository that this one was forked from will do as well.
	fork, ok := find(c.w.repos, func(r *repo) bool { return r.Owner == u && (r.Fork == c.repo || c.repo.Fork == r) })
	if !ok {
		return nil, "", fail(http.StatusBadRequest, "the user %s does not have a fork of the base repository", u.Login)
	}
	return fork, branch, nil
}

// createPullInput is the body of createPull.
type createPullInput struct {
	Head string `json:"head" binding:"Required"`
	Base string `json:"base" binding:"Required"`
	issueFields
	Reviewers  []string `json:"reviewers"`
	Maintainer *bool    `json:"allow_maintainer_edit"`
}

// createPull opens a pull request.
func createPull(c *call, in *createPullInput) error {
	headRepo, head, err := c.headOf(in.Head)
	if err != nil {
		return err
	}
	// Nothing is written before all checks have passed: a refused pull request must not use up
	// a number.
	if err := c.checkPull(headRepo, head, in.Base); err != nil {
		return err
	}
	reviewers, err := c.w.usersNamed(in.Reviewers, errNoReviewer)
	if err != nil {
		return err
	}
	is, err := c.open(&in.issueFields, "create_pull_request")
	if err != nil {
		return err
	}
	is.pull = &pull{
		ID: c.w.next("pull"), Base: in.Base, Head: head, HeadRepo: headRepo, Maintainer: true, Reviewers: reviewers,
	}
	set(&is.pull.Maintainer, in.Maintainer)
	return c.created(c.pullView(is))
}

// checkPull refuses a pull request that cannot be.
func (c *call) checkPull(headRepo *repo, head, base string) error {
	if c.repo.git.branch(base) == nil || headRepo.git.branch(head) == nil {
		return errNotFound
	}
	if headRepo == c.repo && head == base {
		return fail(http.StatusUnprocessableEntity,
			"Invalid PullRequest: There are no changes between the head and the base")
	}
	for _, is := range c.repo.pulls() {
		if p := is.pull; !is.Closed && p.HeadRepo == headRepo && p.Head == head && p.Base == base {
			return fail(http.StatusConflict,
				"pull request already exists for these targets "+
					"[id: %d, issue_id: %d, head_repo_id: %d, base_repo_id: %d, head_branch: %s, base_branch: %s]",
				p.ID, is.ID, headRepo.ID, c.repo.ID, head, base)
		}
	}
	return nil
}

// editPullInput is the body of editPull.
type editPullInput struct {
	issueFields
	Base       string `json:"base"`
	Maintainer *bool  `json:"allow_maintainer_edit"`
}

// editPull edits a pull request; the base can move.
func editPull(c *call, is *issue, in *editPullInput) error {
	if err := c.applyEdit(is, &in.issueFields); err != nil {
		return err
	}
	if in.Labels != nil && c.perm >= accessWrite {
		c.setLabels(is, c.labelsOf(&in.issueFields))
	}
	if in.Base != "" && in.Base != is.pull.Base && !is.pull.Merged {
		if c.repo.git.branch(in.Base) == nil {
			return fail(http.StatusNotFound, "new base '%s' not exist", in.Base)
		}
		is.pull.Base = in.Base
	}
	set(&is.pull.Maintainer, in.Maintainer)
	return c.created(c.pullView(is))
}
