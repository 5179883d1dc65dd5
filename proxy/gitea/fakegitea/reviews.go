package fakegitea

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// review is a review of a pull request.
type review struct {
	ID int64
	// It is 0 while the review is pending: only a submitted one is in the timeline.
	CommentID          int64
	User               *user
	State, Body        string
	CommitID           string
	Stale, Dismissed   bool
	Submitted, Updated time.Time
	Remarks            []*remark
}

// remark is a comment on a line. What a body says of it is read into it.
type remark struct {
	ID       int64  `json:"-"`
	User     *user  `json:"-"`
	Resolver *user  `json:"-"`
	Body     string `json:"body"`
	Path     string `json:"path"`
	Position int64  `json:"new_position"`
	// Positions are lines of the file, of the new one or of the old one, and not offsets in the
	// diff.
	OldPosition      int64     `json:"old_position"`
	Created, Updated time.Time `json:"-"`
	Hunk             string    `json:"-"`
}

// remarks counts the line comments of a pull request.
func (p *pull) remarks() int {
	n := 0
	for _, v := range p.Reviews {
		n += len(v.Remarks)
	}
	return n
}

// handleReviews registers reviews and review requests.
func handleReviews(t table) {
	// Reading the pull request suffices to review it; only resolving needs the right to write.
	const p = "/repos/{owner}/{repo}/pulls"
	t.on("GET "+p+"/{index}/reviews", onNamedPull(listReviews))
	t.on("POST "+p+"/{index}/reviews", onNamedPull(readsFor(createReview)), needToken)
	t.on("GET "+p+"/{index}/reviews/{id}", onReview(renders((*call).reviewView)))
	t.on("POST "+p+"/{index}/reviews/{id}", onReview(readsFor(submitReview)), needToken)
	t.on("GET "+p+"/{index}/reviews/{id}/comments", onReview(listRemarks))
	t.on("POST "+p+"/comments/{id}/resolve", resolveRemark, needToken, needWrite, needActive)
	t.on("POST "+p+"/{index}/requested_reviewers", onReviewers(requestReview), needToken)
	t.on("DELETE "+p+"/{index}/requested_reviewers", onReviewers(unrequestReview), needToken)
}

// reviewOf is a review with its pull request.
type reviewOf struct {
	*review
	is *issue
}

// reviewView renders a review; that of a writer is official.
// The real server stores whether it is official. Here it is worked out each time, so it changes
// with the reviewer's rights.
func (c *call) reviewView(v reviewOf) obj {
	return obj{
		"id", v.ID, "user", c.user(v.User), "team", nil, "state", v.State, "body", v.Body,
		"commit_id", v.CommitID, "stale", v.Stale,
		"official", c.w.access(v.User, v.is.Repo) >= accessWrite, "dismissed", v.Dismissed,
		"comments_count", len(v.Remarks), "submitted_at", v.Submitted, "updated_at", v.Updated,
		// A pending review and a request have no comment; their address ends in 0.
		"html_url", fmt.Sprintf("%s#issuecomment-%d", c.issueURL(v.is), v.CommentID),
		"pull_request_url", c.issueURL(v.is),
	}
}

// visibleReviews lists the reviews of a pull request that the caller may see. A pending
// one shows to its author only.
func (c *call) visibleReviews(is *issue) []reviewOf {
	items := filter(is.pull.Reviews, func(v *review) bool { return v.State != "PENDING" || v.User == c.doer })
	return mapped(items, func(v *review) reviewOf { return reviewOf{v, is} })
}

// onReview finds the review of the path.
func onReview(f func(*call, reviewOf) error) handler {
	return onNamedPull(func(c *call, is *issue) error {
		id := c.id("id")
		// The pending review of another person is not told apart from none.
		missing := fail(http.StatusNotFound, "review does not exist [id: %d]", id)
		return onFirstOr(c, c.visibleReviews(is), func(v reviewOf) bool { return v.ID == id }, missing, f)
	})
}

// listReviews lists reviews.
// There is no Link header here.
func listReviews(c *call, is *issue) error {
	return c.ok(mapped(counted(c, c.visibleReviews(is)), c.reviewView))
}

// reviewState is the state that an event gives a review; an unknown event leaves it
// pending. The poster of a pull request can neither approve nor reject it, and a remark
// needs a text.
func (c *call) reviewState(is *issue, event, body string, remarks int) (string, error) {
	st := "PENDING"
	// The words are those of the answers. APPROVE, which other servers take, is unknown and
	// leaves the review pending, if it has a body, and the status is 200 all the same.
	if slices.Contains([]string{"COMMENT", "APPROVED", "REQUEST_CHANGES"}, event) {
		st = event
	}
	switch {
	case is.Poster == c.doer && st == "APPROVED":
		return "", fail(http.StatusUnprocessableEntity, "approve your own pull is not allowed")
	case is.Poster == c.doer && st == "REQUEST_CHANGES":
		return "", fail(http.StatusUnprocessableEntity, "reject your own pull is not allowed")
	case strings.TrimSpace(body) != "" || st == "APPROVED":
	case st != "COMMENT": // remarks do not replace the body
		return "", fail(http.StatusUnprocessableEntity, "review event %s requires a body", event)
	case remarks == 0:
		return "", fail(http.StatusUnprocessableEntity, "review event %s requires a body or a comment", event)
	}
	return st, nil
}

// reviewInput is the body of a review.
type reviewInput struct {
	Event    string   `json:"event"`
	Body     string   `json:"body"`
	CommitID string   `json:"commit_id"`
	Comments []remark `json:"comments"`
}

// createReview writes a review; without an event it stays pending.
func createReview(c *call, is *issue, in *reviewInput) error {
	st, err := c.reviewState(is, in.Event, in.Body, len(in.Comments))
	if err != nil {
		return err
	}
	if _, head, _ := is.sides(); head != nil && in.CommitID == "" {
		in.CommitID = head.id
	}
	v := reviewOf{&review{
		ID: c.w.next("review"), User: c.doer, State: st, Body: in.Body, CommitID: in.CommitID,
		Submitted: c.now, Updated: c.now,
	}, is}
	for _, r := range in.Comments {
		r.ID, r.User, r.Created, r.Updated = c.w.next("comment"), c.doer, c.now, c.now
		r.Hunk = is.hunkOf(r.Path)
		v.Remarks = append(v.Remarks, &r)
	}
	is.pull.Reviews = append(is.pull.Reviews, v.review)
	c.announce(v)
	// 200, where most routes that create something answer 201.
	return c.ok(c.reviewView(v))
}

// hunkOf is the first hunk of a file's change.
// The real server cuts the part of the hunk around the line; a file that did not change has
// none.
func (is *issue) hunkOf(p string) string {
	ch, _ := find(is.delta(), func(ch change) bool { return ch.path == p })
	return strings.TrimSuffix(ch.hunks, "\n")
}

// announce puts a submitted review into the timeline.
func (c *call) announce(v reviewOf) {
	if v.State == "PENDING" {
		return
	}
	m := c.w.addEvent(v.is, c.doer, comment{Kind: "review", Body: v.Body, reviewID: v.ID})
	v.CommentID = m.ID
	// A verdict answers the request, whatever it says.
	v.is.pull.Reviewers = without(v.is.pull.Reviewers, c.doer)
	c.notify(v.is, nil)
}

// submitReview submits a pending review.
func submitReview(c *call, v reviewOf, in *reviewInput) error {
	if v.State != "PENDING" {
		return fail(http.StatusUnprocessableEntity, "only a pending review can be submitted")
	}
	st, err := c.reviewState(v.is, in.Event, in.Body, len(v.Remarks))
	if err != nil {
		return err
	}
	// This is for unknown events that have a body; without one reviewState has refused them.
	if st == "PENDING" {
		return fail(http.StatusUnprocessableEntity, "review stay pending")
	}
	v.State, v.Body, v.Submitted, v.Updated = st, in.Body, c.now, c.now
	c.announce(v)
	return c.ok(c.reviewView(v))
}

// remarkView renders a line comment.
func (c *call) remarkView(v reviewOf, r *remark) obj {
	page := c.issueURL(v.is)
	return obj{
		"id", r.ID, "body", r.Body, "user", c.user(r.User), "resolver", c.user(r.Resolver),
		"pull_request_review_id", v.ID, "created_at", r.Created, "updated_at", r.Updated, "path", r.Path,
		// The original commit is left out.
		"commit_id", v.CommitID, "original_commit_id", "", "diff_hunk", r.Hunk, "position", r.Position,
		"original_position", r.OldPosition, "html_url", fmt.Sprintf("%s#issuecomment-%d", page, r.ID),
		"pull_request_url", page,
	}
}

// listRemarks lists the line comments of a review.
func listRemarks(c *call, v reviewOf) error {
	return c.ok(mapped(v.Remarks, func(r *remark) obj { return c.remarkView(v, r) }))
}

// resolveRemark marks the conversation of a line comment as resolved.
// The path has no pull request in it, so all of the repository are searched. It is not an error
// to resolve one twice.
func resolveRemark(c *call) error {
	for _, is := range c.repo.pulls() {
		for _, v := range is.pull.Reviews {
			if r, ok := find(v.Remarks, func(r *remark) bool { return r.ID == c.id("id") }); ok {
				r.Resolver = c.doer
				return c.done()
			}
		}
	}
	return errNotFound
}

// reviewersInput names who shall review.
type reviewersInput struct {
	Reviewers []string `json:"reviewers"`
	Teams     []string `json:"team_reviewers"`
}

// onReviewers finds the pull request of the path and the users that the body names. Teams
// are not in the demo; those of a user's repository are passed over, as by the real
// server, since a user has none.
func onReviewers(f func(*call, *issue, []*user) error) handler {
	return onNamedPull(readsFor(func(c *call, is *issue, in *reviewersInput) error {
		if c.repo.Owner.Org && len(in.Teams) > 0 {
			return notInDemo(c)
		}
		us, err := c.w.usersNamed(in.Reviewers, errNoReviewer)
		if err != nil {
			return err
		}
		return f(c, is, us)
	}))
}

// errNoReviewer is the refusal for an unknown reviewer.
func errNoReviewer(name string) error { return fail(http.StatusNotFound, "User '%s' not exist", name) }

// requestReview asks for reviews and answers the requests: they are shown as reviews, and
// never stored as such.
func requestReview(c *call, is *issue, us []*user) error {
	// Nobody is asked when one of them cannot be.
	if slices.Contains(us, is.Poster) {
		return fail(http.StatusUnprocessableEntity,
			"poster of pr can't be reviewer [user_id: %d, repo_id: %d]", is.Poster.ID, is.Repo.ID)
	}
	return c.created(mapped(us, func(u *user) obj {
		is.pull.Reviewers = with(is.pull.Reviewers, u)
		c.w.addEvent(is, c.doer, comment{Kind: "review_request", assignee: u})
		v := &review{ID: c.w.next("review"), User: u, State: "REQUEST_REVIEW", Submitted: c.now, Updated: c.now}
		return c.reviewView(reviewOf{v, is})
	}))
}

// unrequestReview takes requests back.
func unrequestReview(c *call, is *issue, us []*user) error {
	for _, u := range us {
		is.pull.Reviewers = without(is.pull.Reviewers, u)
	}
	return c.done()
}
