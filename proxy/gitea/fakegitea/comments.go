package fakegitea

import (
	"fmt"
	"net/http"
	"slices"
)

// handleComments registers comments, timelines and reactions. Comments and events of an
// issue are one list, the timeline; only what people wrote has routes by id. Whoever
// may read an issue may write a comment, and issues are never locked here.
func handleComments(t table) {
	const p = "/repos/{owner}/{repo}/issues"
	t.on("GET "+p+"/{index}/comments", ranged(onIssue(listComments)))
	t.on("POST "+p+"/{index}/comments", onIssue(readsFor(createComment)), needToken, needActive)
	t.on("GET "+p+"/comments/{id}", onComment(renders((*call).commentView)))
	t.on("PATCH "+p+"/comments/{id}", onComment(readsFor(editComment)), needToken, needActive)
	t.on("DELETE "+p+"/comments/{id}", onComment(deleteComment), needToken)
	t.on("GET "+p+"/{index}/timeline", ranged(onIssue(listTimeline)))

	t.on("GET "+p+"/{index}/reactions", onIssue(listReactions))
	t.on("POST "+p+"/{index}/reactions", onIssue(readsFor(react)), needToken)

	handleAssets(t, p+"/{index}/assets", func(c *call) (*[]*attachment, string, error) {
		is := c.repo.issueByIndex(c.id("index"))
		if is == nil {
			return nil, "", errNotFound
		}
		return &is.Assets, "", nil
	}, needToken)
	handleAssets(t, p+"/comments/{id}/assets", func(c *call) (*[]*attachment, string, error) {
		m, ok := find(c.talks(), func(m placed) bool { return m.ID == c.id("id") })
		if !ok {
			return nil, "", errNotFound
		}
		return &m.Assets, "", nil
	}, needToken)
}

// placed is a comment with its issue.
type placed struct {
	*comment
	is *issue
}

// talks lists the written comments of the repository. Ids are unique in the instance,
// yet a comment is found only below its own repository.
func (c *call) talks() []placed {
	var out []placed
	for _, is := range c.repo.issues {
		out = append(out, is.placed(is.talk())...)
	}
	return out
}

// placed puts comments to their issue.
func (is *issue) placed(ms []*comment) []placed {
	return mapped(ms, func(m *comment) placed { return placed{m, is} })
}

// onComment finds the comment of the path. An event of the timeline is not found, even
// by its right id.
func onComment(f func(*call, placed) error) handler {
	return func(c *call) error {
		id := c.id("id")
		return onFirstOr(c, c.talks(), func(m placed) bool { return m.ID == id }, errNoComment(id), f)
	}
}

// recent applies since and before. The time is that of the last change, not of writing:
// an edited comment comes up again.
func (c *call) recent(m placed) bool { return c.within(m.Updated) }

// listComments lists the comments of an issue. It ignores page and limit, as
// the real server does: everything comes back.
func listComments(c *call, is *issue) error {
	items := filter(is.placed(is.talk()), c.recent)
	c.setTotal(len(items))
	return c.ok(mapped(items, c.commentView))
}

// listTimeline pages the timeline; its X-Total-Count is the size of the page, and an
// empty page is null. A client cannot tell from it whether more pages follow, and has
// to ask until one is null.
func listTimeline(c *call, is *issue) error {
	page := cut(c.window(), filter(is.placed(is.comments), c.recent))
	c.setTotal(len(page))
	if len(page) == 0 {
		return c.ok(nil)
	}
	return c.ok(mapped(page, c.timelineView))
}

// commentInput is the body of a comment.
type commentInput struct {
	Body string `json:"body" binding:"Required"`
}

// createComment writes a comment. The feed gets the text whole, and the same word for
// pull requests; Gitea cuts it at 200 characters and has comment_pull for those.
func createComment(c *call, is *issue, in *commentInput) error {
	m := c.w.addEvent(is, c.doer, comment{Kind: "comment", Body: in.Body})
	c.record("comment_issue", fmt.Sprintf("%d|%s", is.Index, in.Body), "")
	c.notify(is, m)
	return c.created(c.commentView(placed{m, is}))
}

// mayChange says whether the caller may change what poster wrote: the poster may, also
// without write access, and so may everyone who can write.
func (c *call) mayChange(poster *user) bool { return c.doer == poster || c.perm >= accessWrite }

// editComment changes the text. The refusal has no body. A text that stays the same
// counts as a change, too.
func editComment(c *call, m placed, in *commentInput) error {
	if !c.mayChange(m.Poster) {
		return errForbidden
	}
	m.Body, m.Updated = in.Body, c.now
	return c.ok(c.commentView(m))
}

// deleteComment removes a comment. It leaves no event, and notifications about it stay.
func deleteComment(c *call, m placed) error {
	if !c.mayChange(m.Poster) {
		return errForbidden
	}
	m.is.comments = without(m.is.comments, m.comment)
	return c.done()
}

// allowedReactions are the reactions that the instance offers. They are the default of
// its setting. Others are 403, not 422.
var allowedReactions = []string{"+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes"}

// listReactions lists the reactions to an issue; none is null, and the total is counted.
func listReactions(c *call, is *issue) error {
	page := counted(c, is.Reactions)
	if len(page) == 0 {
		return c.ok(nil)
	}
	return c.ok(mapped(page, c.reaction))
}

// reactionInput is the body of a reaction.
type reactionInput struct {
	Content string `json:"content"`
}

// react adds the caller's reaction; a repeated one is 200 instead of 201, and counts
// once. Reactions to comments are not in the demo.
func react(c *call, is *issue, in *reactionInput) error {
	if !slices.Contains(allowedReactions, in.Content) {
		return fail(http.StatusForbidden, "'%s' is not an allowed reaction", in.Content)
	}
	r, ok := find(is.Reactions, func(r *reaction) bool { return r.User == c.doer && r.Content == in.Content })
	if ok {
		return c.ok(c.reaction(r))
	}
	r = &reaction{User: c.doer, Content: in.Content, Created: c.now}
	is.Reactions = append(is.Reactions, r)
	return c.created(c.reaction(r))
}
