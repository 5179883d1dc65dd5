package fakegitea

import (
	"fmt"
	"net/http"
	"slices"
)

// handleComments registers comments, timelines and reactions.
func handleComments(t table) {
	const p = "/repos/{owner}/{repo}/issues"
	t.on("GET "+p+"/comments", listRepoComments)
	t.on("GET "+p+"/{index}/comments", onIssue(listComments))
	t.on("POST "+p+"/{index}/comments", onIssue(readsFor(createComment)), needToken, needActive)
	t.on("GET "+p+"/comments/{id}", onComment(func(c *call, is *issue, m *comment) error {
		return c.ok(c.commentView(is, m))
	}))
	t.on("PATCH "+p+"/comments/{id}", onComment(editComment), needToken, needActive)
	t.on("DELETE "+p+"/comments/{id}", onComment(deleteComment), needToken)
	t.on("GET "+p+"/{index}/timeline", onIssue(listTimeline))

	t.on("GET "+p+"/{index}/reactions", onIssue(listIssueReactions))
	t.on("POST "+p+"/{index}/reactions", onIssue(func(c *call, is *issue) error {
		return c.react(&is.Reactions)
	}), needToken)
	t.on("DELETE "+p+"/{index}/reactions", onIssue(func(c *call, is *issue) error {
		return c.unreact(&is.Reactions)
	}), needToken)
	t.on("GET "+p+"/comments/{id}/reactions", onComment(func(c *call, _ *issue, m *comment) error {
		return c.ok(c.reactions(m.Reactions))
	}))
	t.on("POST "+p+"/comments/{id}/reactions", onComment(func(c *call, _ *issue, m *comment) error {
		return c.react(&m.Reactions)
	}), needToken)

	handleAssets(t, p+"/{index}/assets", func(c *call) (*[]*attachment, string, error) {
		is := c.repo.issueByIndex(c.id("index"))
		if is == nil {
			return nil, "", errNotFound
		}
		return &is.Assets, "", nil
	}, needToken)
	handleAssets(t, p+"/comments/{id}/assets", func(c *call) (*[]*attachment, string, error) {
		_, m := c.repo.commentByID(c.id("id"))
		if m == nil {
			return nil, "", errNotFound
		}
		return &m.Assets, "", nil
	}, needToken)
}

// commentByID finds a written comment of the repository with its issue.
func (r *repo) commentByID(id int64) (*issue, *comment) {
	for _, is := range r.issues {
		if m, ok := find(is.talk(), func(m *comment) bool { return m.ID == id }); ok {
			return is, m
		}
	}
	return nil, nil
}

// onComment finds the comment of the path.
func onComment(f func(*call, *issue, *comment) error) handler {
	return func(c *call) error {
		is, m := c.repo.commentByID(c.id("id"))
		if m == nil {
			return errNoComment(c.id("id"))
		}
		return f(c, is, m)
	}
}

// listComments lists the comments of an issue. It ignores page and limit, as
// the real server does: everything comes back.
func listComments(c *call, is *issue) error {
	items, err := c.commentsBetween(is.talk())
	if err != nil {
		return err
	}
	c.setTotal(len(items))
	return c.ok(mapped(items, func(m *comment) obj { return c.commentView(is, m) }))
}

// commentsBetween applies since and before.
func (c *call) commentsBetween(items []*comment) ([]*comment, error) {
	within, err := c.queryRange("since", "before")
	if err != nil {
		return nil, err
	}
	return filter(items, func(m *comment) bool { return within(m.Updated) }), nil
}

// placed is a comment with its issue.
type placed struct {
	is *issue
	m  *comment
}

// listRepoComments lists the comments of all issues, oldest first.
func listRepoComments(c *call) error {
	var all []placed
	for _, is := range c.repo.issues {
		items, err := c.commentsBetween(is.talk())
		if err != nil {
			return err
		}
		for _, m := range items {
			all = append(all, placed{is, m})
		}
	}
	slices.SortFunc(all, func(a, b placed) int { return int(a.m.ID - b.m.ID) })
	return c.ok(mapped(counted(c, all), func(p placed) obj { return c.commentView(p.is, p.m) }))
}

// listTimeline pages the timeline; its X-Total-Count is the size of the page, and
// an empty page is null.
func listTimeline(c *call, is *issue) error {
	items, err := c.commentsBetween(is.comments)
	if err != nil {
		return err
	}
	page := cut(c.window(), items)
	c.setTotal(len(page))
	if len(page) == 0 {
		return c.ok(nil)
	}
	return c.ok(mapped(page, func(m *comment) obj { return c.timelineView(is, m) }))
}

// commentInput is the body of a comment.
type commentInput struct {
	Body string `json:"body" binding:"Required"`
}

// createComment writes a comment. A locked conversation takes them from
// writers only.
func createComment(c *call, is *issue, in *commentInput) error {
	if is.Locked && c.perm < accessWrite {
		return fail(http.StatusForbidden, "You cannot comment on a locked issue.")
	}
	m := c.w.addEvent(is, c.doer, comment{Kind: "comment", Body: in.Body})
	c.record("comment_issue", fmt.Sprintf("%d|%s", is.Index, in.Body), "")
	c.notify(is, m)
	return c.created(c.commentView(is, m))
}

// mayChange says whether the caller may change what poster wrote: the poster may, also
// without write access, and so may everyone who can write.
func (c *call) mayChange(poster *user) bool { return c.doer == poster || c.perm >= accessWrite }

// editComment changes the text.
func editComment(c *call, is *issue, m *comment) error {
	var in commentInput
	if err := c.bind(&in); err != nil {
		return err
	}
	if !c.mayChange(m.Poster) {
		return errForbidden
	}
	m.Body, m.Updated = in.Body, c.now
	return c.ok(c.commentView(is, m))
}

// deleteComment removes a comment.
func deleteComment(c *call, is *issue, m *comment) error {
	if !c.mayChange(m.Poster) {
		return errForbidden
	}
	is.comments = without(is.comments, m)
	return c.done()
}

// allowedReactions are the reactions that the instance offers.
var allowedReactions = []string{"+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes"}

// listIssueReactions lists reactions; none is null, and the total is counted.
func listIssueReactions(c *call, is *issue) error {
	c.setTotal(len(is.Reactions))
	return c.ok(c.reactions(cut(c.window(), is.Reactions)))
}

// reactionInput is the body of a reaction.
type reactionInput struct {
	Content string `json:"content"`
}

// react adds the caller's reaction; a repeated one is 200 instead of 201, and counts
// once.
func (c *call) react(list *[]*reaction) error {
	var in reactionInput
	if err := c.bind(&in); err != nil {
		return err
	}
	if !slices.Contains(allowedReactions, in.Content) {
		return fail(http.StatusForbidden, "'%s' is not an allowed reaction", in.Content)
	}
	same := func(r *reaction) bool { return r.User == c.doer && r.Content == in.Content }
	r, ok := find(*list, same)
	if ok {
		return c.ok(c.reaction(r))
	}
	r = &reaction{User: c.doer, Content: in.Content, Created: c.now}
	*list = append(*list, r)
	return c.created(c.reaction(r))
}

// unreact takes the caller's reaction back.
func (c *call) unreact(list *[]*reaction) error {
	var in reactionInput
	if err := c.bind(&in); err != nil {
		return err
	}
	*list = slices.DeleteFunc(*list, func(r *reaction) bool { return r.User == c.doer && r.Content == in.Content })
	return c.done()
}
