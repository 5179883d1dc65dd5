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
	ID                 int64
	CommentID          int64
	User               *user
	Team               *team
	State, Body        string
	CommitID           string
	Stale, Dismissed   bool
	Submitted, Updated time.Time
	Remarks            []*remark
}

// remark is a comment on a line.
type remark struct {
	ID               int64
	User             *user
	Resolver         *user
	Body, Path       string
	Position         int64
	OldPosition      int64
	Created, Updated time.Time
	Hunk             string
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
	const p = "/repos/{owner}/{repo}/pulls"
	t.on("GET "+p+"/{index}/reviews", onNamedPull(listReviews))
	t.on("POST "+p+"/{index}/reviews", onNamedPull(readsFor(createReview)), needToken)
	t.on("GET "+p+"/{index}/reviews/{id}", onReview(func(c *call, is *issue, v *review) error {
		return c.ok(c.reviewView(is, v))
	}))
	t.on("POST "+p+"/{index}/reviews/{id}", onReview(submitReview), needToken)
	t.on("GET "+p+"/{index}/reviews/{id}/comments", onReview(listRemarks))
	t.on("POST "+p+"/{index}/comments/{id}/replies", onPull(readsFor(replyRemark)), needToken)
	t.on("POST "+p+"/comments/{id}/resolve", resolveRemark, needToken, needWrite, needActive)
	t.on("POST "+p+"/{index}/requested_reviewers", onNamedPull(requestReview), needToken)
	t.on("DELETE "+p+"/{index}/requested_reviewers", onNamedPull(unrequestReview), needToken)
}

// reviewView renders a review; that of a writer is official.
func (c *call) reviewView(is *issue, v *review) obj {
	out := obj{
		"id", v.ID, "user", c.user(v.User), "team", nil, "state", v.State, "body", v.Body,
		"commit_id", v.CommitID, "stale", v.Stale,
		"official", v.User != nil && c.w.access(v.User, is.Repo) >= accessWrite, "dismissed", v.Dismissed,
		"comments_count", len(v.Remarks), "submitted_at", v.Submitted, "updated_at", v.Updated,
		"html_url", fmt.Sprintf("%s#issuecomment-%d", c.issueURL(is), v.CommentID),
		"pull_request_url", c.issueURL(is),
	}
	if v.Team != nil {
		out.set("team", c.teamBare(v.Team))
	}
	return out
}

// onReview finds the review of the path. A pending one shows to its author only.
func onReview(f func(*call, *issue, *review) error) handler {
	return onNamedPull(func(c *call, is *issue) error {
		v, ok := find(is.pull.Reviews, func(v *review) bool { return v.ID == c.id("id") })
		if !ok || v.State == "PENDING" && v.User != c.doer {
			return fail(http.StatusNotFound, "review does not exist [id: %d]", c.id("id"))
		}
		return f(c, is, v)
	})
}

// listReviews lists the reviews that the caller may see.
func listReviews(c *call, is *issue) error {
	items := filter(is.pull.Reviews, func(v *review) bool { return v.State != "PENDING" || v.User == c.doer })
	return c.ok(mapped(counted(c, items), func(v *review) obj { return c.reviewView(is, v) }))
}

// reviewEvents maps the events of a body to the states of a review.
var reviewEvents = map[string]string{
	"": "PENDING", "PENDING": "PENDING", "COMMENT": "COMMENT", "APPROVED": "APPROVED",
	"REQUEST_CHANGES": "REQUEST_CHANGES",
}

// reviewState checks an event; an unknown one leaves the review pending. The poster
// of a pull request can neither approve nor reject it, and a remark needs a text.
func (c *call) reviewState(is *issue, event, body string, remarks int) (string, error) {
	st, ok := reviewEvents[event]
	if !ok {
		st = "PENDING"
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

// remarkInput is a line comment of a body.
type remarkInput struct {
	Path string `json:"path"`
	Body string `json:"body"`
	Old  int64  `json:"old_position"`
	New  int64  `json:"new_position"`
}

// createReviewInput is the body of createReview.
type createReviewInput struct {
	Event    string        `json:"event"`
	Body     string        `json:"body"`
	CommitID string        `json:"commit_id"`
	Comments []remarkInput `json:"comments"`
}

// createReview writes a review; without an event it stays pending.
func createReview(c *call, is *issue, in *createReviewInput) error {
	st, err := c.reviewState(is, in.Event, in.Body, len(in.Comments))
	if err != nil {
		return err
	}
	if in.CommitID == "" {
		if _, head, _ := is.sides(); head != nil {
			in.CommitID = head.id
		}
	}
	v := &review{
		ID: c.w.next("review"), User: c.doer, State: st, Body: in.Body, CommitID: in.CommitID,
		Submitted: c.now, Updated: c.now,
	}
	for _, r := range in.Comments {
		v.Remarks = append(v.Remarks, &remark{
			ID: c.w.next("comment"), User: c.doer, Body: r.Body, Path: r.Path, Position: r.New, OldPosition: r.Old,
			Created: c.now, Updated: c.now, Hunk: is.hunkOf(r.Path),
		})
	}
	is.pull.Reviews = append(is.pull.Reviews, v)
	c.announce(is, v)
	return c.ok(c.reviewView(is, v))
}

// hunkOf is the first hunk of a file's change.
func (is *issue) hunkOf(p string) string {
	ch, _ := find(is.delta(), func(ch change) bool { return ch.path == p })
	return strings.TrimSuffix(ch.hunks, "\n")
}

// announce puts a submitted review into the timeline.
func (c *call) announce(is *issue, v *review) {
	if v.State == "PENDING" {
		return
	}
	m := c.w.addEvent(is, c.doer, comment{Kind: "review", Body: v.Body, reviewID: v.ID})
	v.CommentID = m.ID
	is.pull.Reviewers = without(is.pull.Reviewers, c.doer)
	c.notify(is, nil)
}

// submitReviewInput is the body of submitReview.
type submitReviewInput struct {
	Event string `json:"event"`
	Body  string `json:"body"`
}

// submitReview submits a pending review.
func submitReview(c *call, is *issue, v *review) error {
	var in submitReviewInput
	if err := c.bind(&in); err != nil {
		return err
	}
	if v.State != "PENDING" {
		return fail(http.StatusUnprocessableEntity, "only a pending review can be submitted")
	}
	st, err := c.reviewState(is, in.Event, in.Body, len(v.Remarks))
	if err != nil {
		return err
	}
	if st == "PENDING" {
		return fail(http.StatusUnprocessableEntity, "review stay pending")
	}
	v.State, v.Body, v.Submitted, v.Updated = st, in.Body, c.now, c.now
	c.announce(is, v)
	return c.ok(c.reviewView(is, v))
}

// remarkView renders a line comment.
func (c *call) remarkView(is *issue, v *review, r *remark) obj {
	return obj{
		"id", r.ID, "body", r.Body, "user", c.user(r.User), "resolver", c.user(r.Resolver),
		"pull_request_review_id", v.ID, "created_at", r.Created, "updated_at", r.Updated, "path", r.Path,
		"commit_id", v.CommitID, "original_commit_id", "", "diff_hunk", r.Hunk, "position", r.Position,
		"original_position", r.OldPosition,
		"html_url", fmt.Sprintf("%s#issuecomment-%d", c.issueURL(is), r.ID),
		"pull_request_url", c.issueURL(is),
	}
}

// listRemarks lists the line comments of a review.
func listRemarks(c *call, is *issue, v *review) error {
	return c.ok(mapped(v.Remarks, func(r *remark) obj { return c.remarkView(is, v, r) }))
}

// remarkByID finds a line comment of the repository.
func (r *repo) remarkByID(id int64) (*issue, *review, *remark) {
	for _, is := range r.pulls() {
		for _, v := range is.pull.Reviews {
			if m, ok := find(v.Remarks, func(m *remark) bool { return m.ID == id }); ok {
				return is, v, m
			}
		}
	}
	return nil, nil, nil
}

// replyRemark answers a line comment.
func replyRemark(c *call, is *issue, in *commentInput) error {
	on, v, m := c.repo.remarkByID(c.id("id"))
	if m == nil || on != is {
		return errNotFound
	}
	reply := &remark{
		ID: c.w.next("comment"), User: c.doer, Body: in.Body, Path: m.Path, Position: m.Position,
		OldPosition: m.OldPosition,
		Created:     c.now, Updated: c.now, Hunk: m.Hunk,
	}
	v.Remarks = append(v.Remarks, reply)
	return c.created(c.remarkView(is, v, reply))
}

// resolveRemark marks a conversation as resolved.
func resolveRemark(c *call) error {
	_, _, m := c.repo.remarkByID(c.id("id"))
	if m == nil {
		return errNotFound
	}
	m.Resolver = c.doer
	return c.done()
}

// reviewersInput names who shall review.
type reviewersInput struct {
	Reviewers []string `json:"reviewers"`
	Teams     []string `json:"team_reviewers"`
}

// readReviewers looks the named users and teams up.
func (c *call) readReviewers() ([]*user, []*team, error) {
	var in reviewersInput
	if err := c.bind(&in); err != nil {
		return nil, nil, err
	}
	us, err := c.usersNamed(in.Reviewers)
	if err != nil {
		return nil, nil, err
	}
	var ts []*team
	if !c.repo.Owner.Org { // a user has no teams to look up
		return us, nil, nil
	}
	for _, name := range in.Teams {
		t, ok := find(c.repo.Owner.Teams, func(t *team) bool { return strings.EqualFold(t.Name, name) })
		if !ok {
			return nil, nil, fail(http.StatusNotFound,
				"team does not exist [org_id %d, team_id 0, name: %s]", c.repo.Owner.ID, name)
		}
		ts = append(ts, t)
	}
	return us, ts, nil
}

// usersNamed looks reviewers up.
func (c *call) usersNamed(names []string) ([]*user, error) {
	var out []*user
	for _, name := range names {
		u := c.w.userByLogin(name)
		if u == nil {
			return nil, fail(http.StatusNotFound, "User '%s' not exist", name)
		}
		out = with(out, u)
	}
	return out, nil
}

// requestReview asks for reviews and answers the requests.
func requestReview(c *call, is *issue) error {
	us, ts, err := c.readReviewers()
	if err != nil {
		return err
	}
	if slices.Contains(us, is.Poster) {
		return fail(http.StatusUnprocessableEntity,
			"poster of pr can't be reviewer [user_id: %d, repo_id: %d]", is.Poster.ID, is.Repo.ID)
	}
	out := []obj{}
	add := func(u *user, t *team) { // what was asked for is shown as a review, and never stored as one
		id := c.w.next("review")
		v := &review{ID: id, User: u, Team: t, State: "REQUEST_REVIEW", Submitted: c.now, Updated: c.now}
		out = append(out, c.reviewView(is, v))
	}
	for _, u := range us {
		is.pull.Reviewers = with(is.pull.Reviewers, u)
		c.w.addEvent(is, c.doer, comment{Kind: "review_request", assignee: u})
		add(u, nil)
	}
	for _, t := range ts {
		is.pull.ReviewTeams = with(is.pull.ReviewTeams, t)
		add(nil, t)
	}
	return c.created(out)
}

// unrequestReview takes requests back.
func unrequestReview(c *call, is *issue) error {
	us, ts, err := c.readReviewers()
	if err != nil {
		return err
	}
	for _, u := range us {
		is.pull.Reviewers = without(is.pull.Reviewers, u)
	}
	for _, t := range ts {
		is.pull.ReviewTeams = without(is.pull.ReviewTeams, t)
	}
	return c.done()
}
