package fakegitea

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
)

// handleMerge registers merging.
func handleMerge(t table) {
	const p = "/repos/{owner}/{repo}/pulls/{index}"
	t.on("GET "+p+"/merge", onPull(isMerged))
	t.on("POST "+p+"/merge", onNamedPull(readsFor(mergePull)), needToken, needActive)
}

// isMerged is 204 for yes and 404 for no. The body of the 404 is the usual one: a pull
// request that is open looks like one that does not exist.
func isMerged(c *call, is *issue) error {
	if !is.pull.Merged {
		return errNotFound
	}
	return c.done()
}

// mergeInput is the body of a merge.
type mergeInput struct {
	Do            string `json:"Do" binding:"Required;In(merge,rebase,rebase-merge,squash,fast-forward-only,manually-merged)"`
	Title         string `json:"MergeTitleField"`
	Message       string `json:"MergeMessageField"`
	HeadCommit    string `json:"head_commit_id"`
	DeleteBranch  bool   `json:"delete_branch_after_merge"`
	Force         bool   `json:"force_merge"`
	WhenSucceeded bool   `json:"merge_when_checks_succeed"`
	OtherTitle    string `json:"merge_title_field"`
	OtherMessage  string `json:"merge_message_field"`
}

// mergePull merges or squashes, under the rules and in the words of the real server:
// 405 for what cannot be merged, 409 for a head that moved. The answer has no body.
func mergePull(c *call, is *issue, in *mergeInput) error {
	if err := c.mayMerge(is, in); err != nil {
		return err
	}
	if in.WhenSucceeded || in.DeleteBranch || in.Do != "merge" && in.Do != "squash" { // better refused than left out
		return notInDemo(c)
	}
	c.merge(is, in)
	return c.empty(http.StatusOK)
}

// mayMerge refuses what must not be merged now. The order is the real server's as far
// as what is merged, closed, not permitted, a draft or in conflict: who may not write
// does not learn of conflicts.
func (c *call) mayMerge(is *issue, in *mergeInput) error {
	p := is.pull
	switch {
	case p.Merged:
		return fail(http.StatusMethodNotAllowed, "The PR is already merged")
	// Closed without a merge is 404, although the pull request can be read.
	case is.Closed:
		return errNotFound
	case c.perm < accessWrite:
		return fail(http.StatusMethodNotAllowed, "User not allowed to merge PR")
	case is.draft():
		return fail(http.StatusMethodNotAllowed, "Work in progress PRs cannot be merged")
	// A conflict has the words of a check that is still running, so trying later does
	// not help.
	case !is.clean():
		return fail(http.StatusMethodNotAllowed, "Please try again later")
	case in.Do == "merge" && !c.repo.Settings.AllowMerge, in.Do == "squash" && !c.repo.Settings.AllowSquash:
		return fail(http.StatusMethodNotAllowed, "%s is not allowed an allowed merge style for this repository", in.Do)
	}
	_, head, _ := is.sides()
	if in.HeadCommit != "" && in.HeadCommit != head.id {
		return fail(http.StatusConflict, "head out of date")
	}
	return c.checkApprovals(is, in.Force)
}

// checkApprovals applies the protection of the base branch. Force helps administrators
// only, and them only where the rule does not bind them too. Every review that approves
// counts, whoever wrote it; Gitea counts those that it calls official.
func (c *call) checkApprovals(is *issue, force bool) error {
	rule := c.repo.ruleFor(is.pull.Base)
	if rule == nil || force && c.perm >= accessAdmin && !rule.BlockAdmin {
		return nil
	}
	var approvals int64
	for _, v := range is.pull.Reviews {
		switch {
		case v.Dismissed:
		case v.State == "APPROVED":
			approvals++
		case v.State == "REQUEST_CHANGES" && rule.BlockRejected:
			return fail(http.StatusMethodNotAllowed, "There are requested changes")
		}
	}
	if approvals < rule.Approvals {
		return fail(http.StatusMethodNotAllowed, "Does not have enough approvals")
	}
	return nil
}

// merge moves the base branch. A squash has the base as its only parent, so its head is
// not merged in the sense of git. The caller is author and committer of both.
func (c *call) merge(is *issue, in *mergeInput) {
	me := c.signature()
	base, head, fork := is.sides()
	files, _ := mergeFiles(fork.files, base.files, head.files) // mayMerge looked for conflicts
	parents := []string{base.id}
	if in.Do == "merge" {
		parents = append(parents, head.id)
	}
	c.finish(is, base, head, fork, c.repo.git.addCommit(files, parents, me, me, mergeMessage(is, in)))
}

// finish records a merge. The commits of both sides are fixed from here on, so that the
// change can still be shown after the branches moved on. The pull request is closed
// without an event of its own: the merge is the event.
func (c *call) finish(is *issue, base, head, fork, made *commit) {
	p, at := is.pull, c.now
	p.BaseID, p.HeadID, p.MergeBase = base.id, head.id, fork.id
	p.Merged, p.MergedAt, p.MergedBy, p.MergeCommit = true, &at, c.doer, made.id
	c.moveBranch(p.Base, made)
	is.Closed, is.ClosedAt, is.Updated = true, &at, at
	c.w.addEvent(is, c.doer, comment{Kind: "merge_pull"})
	c.record("merge_pull_request", fmt.Sprintf("%d|%s", is.Index, is.Title), "")
}

// mergeMessage is the message of a merge or squash commit. A title replaces the default
// one, a message is added to it. Both have two spellings, of which a body has one.
func mergeMessage(is *issue, in *mergeInput) string {
	title := fmt.Sprintf("Merge pull request '%s' (#%d) from %s into %s",
		is.Title, is.Index, is.pull.Head, is.pull.Base)
	if in.Do == "squash" {
		title = fmt.Sprintf("%s (#%d)", is.Title, is.Index)
	}
	title = cmp.Or(in.Title+in.OtherTitle, title)
	return strings.TrimRight(title+"\n\n"+in.Message+in.OtherMessage, "\n")
}
