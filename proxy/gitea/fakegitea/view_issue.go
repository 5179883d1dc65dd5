package fakegitea

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// label belongs to a repository or an organisation.
type label struct {
	ID          int64
	Org         *user // nil for a repository's label
	Name        string
	Exclusive   bool
	Archived    bool
	Color       string
	Description string
}

// milestone is a milestone of a repository.
type milestone struct {
	ID                 int64
	Title, Description string
	Closed             bool
	Created, Updated   time.Time
	ClosedAt, Due      *time.Time
}

// issue is an issue or, with pull set, a pull request.
type issue struct {
	ID, Index        int64
	Repo             *repo
	Poster           *user
	Title, Body, Ref string
	Labels           []*label
	Milestone        *milestone
	Assignees        []*user
	Closed, Locked   bool
	Created, Updated time.Time
	ClosedAt, Due    *time.Time
	Estimate         int64
	PinOrder         int
	Version          int
	Reactions        []*reaction
	Assets           []*attachment
	Times            []*trackedTime
	DependsOn        []*issue
	comments         []*comment // the whole timeline; kind "comment" are the comments
	pull             *pull
}

// comment is an entry of an issue's timeline.
type comment struct {
	ID               int64
	Kind             string
	Poster           *user
	Body             string
	Created, Updated time.Time
	Reactions        []*reaction
	Assets           []*attachment

	label              *label
	assignee           *user
	removed            bool
	milestone          *milestone
	oldMilestone       *milestone
	oldTitle, newTitle string
	reviewID           int64
	dependent          *issue
}

// reaction is one emoji by one user.
type reaction struct {
	User    *user
	Content string
	Created time.Time
}

// labelJSON is a label.
type labelJSON struct {
	ID          int64  `json:"id"`
	Name        string `json:"name"`
	Exclusive   bool   `json:"exclusive"`
	Archived    bool   `json:"is_archived"`
	Color       string `json:"color"`
	Description string `json:"description"`
	URL         string `json:"url"`
}

// label renders a label; its URL depends on who owns it.
func (c *call) label(l *label) *labelJSON {
	out := &labelJSON{
		ID: l.ID, Name: l.Name, Exclusive: l.Exclusive, Archived: l.Archived, Color: l.Color, Description: l.Description,
	}
	if l.Org != nil {
		out.URL = fmt.Sprintf("%s/api/v1/orgs/%s/labels/%d", c.root, escape(l.Org.Login), l.ID)
	} else {
		out.URL = c.api(c.repoOfLabel(l), "labels", fmt.Sprint(l.ID))
	}
	return out
}

// repoOfLabel finds the repository of a label; lists over several repositories
// need it.
func (c *call) repoOfLabel(l *label) *repo {
	r, ok := find(c.w.repos, func(r *repo) bool { return slices.Contains(r.labels, l) })
	if !ok {
		return c.repo
	}
	return r
}

// labels renders a list.
func (c *call) labels(ls []*label) []*labelJSON { return mapped(ls, c.label) }

// milestoneJSON is a milestone.
type milestoneJSON struct {
	ID           int64      `json:"id"`
	Title        string     `json:"title"`
	Description  string     `json:"description"`
	State        string     `json:"state"`
	OpenIssues   int        `json:"open_issues"`
	ClosedIssues int        `json:"closed_issues"`
	CreatedAt    time.Time  `json:"created_at"`
	UpdatedAt    time.Time  `json:"updated_at"`
	ClosedAt     *time.Time `json:"closed_at"`
	DueOn        *time.Time `json:"due_on"`
}

// milestone renders a milestone of r with its counts.
func (c *call) milestone(r *repo, m *milestone) *milestoneJSON {
	if m == nil {
		return nil
	}
	out := &milestoneJSON{
		ID: m.ID, Title: m.Title, Description: m.Description, State: state(m.Closed),
		CreatedAt: m.Created, UpdatedAt: m.Updated, ClosedAt: m.ClosedAt, DueOn: m.Due,
	}
	for _, is := range r.issues {
		switch {
		case is.Milestone != m:
		case is.Closed:
			out.ClosedIssues++
		default:
			out.OpenIssues++
		}
	}
	return out
}

// state is the API's word for open or closed.
func state(closed bool) string {
	if closed {
		return "closed"
	}
	return "open"
}

// issuePullJSON is what an issue tells of its pull request.
type issuePullJSON struct {
	Merged   bool       `json:"merged"`
	MergedAt *time.Time `json:"merged_at"`
	Draft    bool       `json:"draft"`
	HTMLURL  string     `json:"html_url"`
}

// repoMetaJSON names a repository.
type repoMetaJSON struct {
	ID       int64  `json:"id"`
	Name     string `json:"name"`
	Owner    string `json:"owner"`
	FullName string `json:"full_name"`
}

// issueJSON is an issue.
type issueJSON struct {
	ID               int64             `json:"id"`
	URL              string            `json:"url"`
	HTMLURL          string            `json:"html_url"`
	Number           int64             `json:"number"`
	User             *userJSON         `json:"user"`
	OriginalAuthor   string            `json:"original_author"`
	OriginalAuthorID int64             `json:"original_author_id"`
	Title            string            `json:"title"`
	Body             string            `json:"body"`
	Ref              string            `json:"ref"`
	Assets           []*attachmentJSON `json:"assets"`
	Labels           []*labelJSON      `json:"labels"`
	Milestone        *milestoneJSON    `json:"milestone"`
	Projects         []any             `json:"projects"`
	Assignee         *userJSON         `json:"assignee"`
	Assignees        []*userJSON       `json:"assignees"`
	State            string            `json:"state"`
	IsLocked         bool              `json:"is_locked"`
	Comments         int               `json:"comments"`
	CreatedAt        time.Time         `json:"created_at"`
	UpdatedAt        time.Time         `json:"updated_at"`
	ClosedAt         *time.Time        `json:"closed_at"`
	DueDate          *time.Time        `json:"due_date"`
	TimeEstimate     int64             `json:"time_estimate"`
	PullRequest      *issuePullJSON    `json:"pull_request"`
	Repository       *repoMetaJSON     `json:"repository"`
	PinOrder         int               `json:"pin_order"`
	ContentVersion   int               `json:"content_version"`
}

// issueView renders an issue.
func (c *call) issueView(is *issue) *issueJSON {
	r := is.Repo
	out := &issueJSON{
		ID: is.ID, URL: c.api(r, "issues", fmt.Sprint(is.Index)), HTMLURL: c.issueURL(is), Number: is.Index,
		User: c.user(is.Poster), Title: is.Title, Body: is.Body, Ref: is.Ref,
		Assets: c.attachments(is.Assets), Labels: c.labels(is.Labels), Milestone: c.milestone(r, is.Milestone),
		Assignees: c.anons(is.Assignees), State: state(is.Closed), IsLocked: is.Locked, Comments: len(is.talk()),
		CreatedAt: is.Created, UpdatedAt: is.Updated, ClosedAt: is.ClosedAt, DueDate: is.Due,
		TimeEstimate: is.Estimate, PinOrder: is.PinOrder, ContentVersion: is.Version,
		Repository: &repoMetaJSON{r.ID, r.Name, r.Owner.Login, r.fullName()},
	}
	if len(is.Assignees) > 0 {
		out.Assignee = c.anon(is.Assignees[0])
	}
	if p := is.pull; p != nil {
		out.PullRequest = &issuePullJSON{p.Merged, p.MergedAt, is.draft(), c.issueURL(is)}
	}
	return out
}

// issueURL is the web address of an issue or pull request.
func (c *call) issueURL(is *issue) string {
	kind := "issues"
	if is.pull != nil {
		kind = "pulls"
	}
	return c.repoURL(is.Repo, kind, fmt.Sprint(is.Index))
}

// draft says whether a title marks work in progress.
func (is *issue) draft() bool {
	t := strings.ToUpper(is.Title)
	return strings.HasPrefix(t, "WIP:") || strings.HasPrefix(t, "[WIP]")
}

// talk is the written comments of the timeline.
func (is *issue) talk() []*comment {
	return filter(is.comments, func(m *comment) bool { return m.Kind == "comment" })
}

// commentJSON is a written comment.
type commentJSON struct {
	ID               int64             `json:"id"`
	HTMLURL          string            `json:"html_url"`
	PullURL          string            `json:"pull_request_url"`
	IssueURL         string            `json:"issue_url"`
	User             *userJSON         `json:"user"`
	OriginalAuthor   string            `json:"original_author"`
	OriginalAuthorID int64             `json:"original_author_id"`
	Body             string            `json:"body"`
	Assets           []*attachmentJSON `json:"assets"`
	CreatedAt        time.Time         `json:"created_at"`
	UpdatedAt        time.Time         `json:"updated_at"`
}

// commentView renders a comment.
func (c *call) commentView(is *issue, m *comment) *commentJSON {
	out := &commentJSON{
		ID: m.ID, HTMLURL: fmt.Sprintf("%s#issuecomment-%d", c.issueURL(is), m.ID), User: c.anon(m.Poster),
		Body: m.Body, Assets: c.attachments(m.Assets), CreatedAt: m.Created, UpdatedAt: m.Updated,
	}
	if is.pull != nil {
		out.PullURL = c.issueURL(is)
	} else {
		out.IssueURL = c.issueURL(is)
	}
	return out
}

// timelineJSON is any entry of the timeline.
type timelineJSON struct {
	ID           int64          `json:"id"`
	Type         string         `json:"type"`
	HTMLURL      string         `json:"html_url"`
	PullURL      string         `json:"pull_request_url"`
	IssueURL     string         `json:"issue_url"`
	User         *userJSON      `json:"user"`
	Body         string         `json:"body"`
	CreatedAt    time.Time      `json:"created_at"`
	UpdatedAt    time.Time      `json:"updated_at"`
	OldProjectID int64          `json:"old_project_id"`
	ProjectID    int64          `json:"project_id"`
	OldMilestone *milestoneJSON `json:"old_milestone"`
	Milestone    *milestoneJSON `json:"milestone"`
	TrackedTime  any            `json:"tracked_time"`
	OldTitle     string         `json:"old_title"`
	NewTitle     string         `json:"new_title"`
	OldRef       string         `json:"old_ref"`
	NewRef       string         `json:"new_ref"`
	RefIssue     *issueJSON     `json:"ref_issue"`
	RefComment   any            `json:"ref_comment"`
	RefAction    string         `json:"ref_action"`
	RefCommit    string         `json:"ref_commit_sha"`
	ReviewID     int64          `json:"review_id"`
	Label        *labelJSON     `json:"label"`
	Assignee     *userJSON      `json:"assignee"`
	AssigneeTeam any            `json:"assignee_team"`
	Removed      bool           `json:"removed_assignee"`
	ResolveDoer  any            `json:"resolve_doer"`
	Dependent    *issueJSON     `json:"dependent_issue"`
}

// timelineView renders an entry of the timeline.
func (c *call) timelineView(is *issue, m *comment) *timelineJSON {
	plain := c.commentView(is, m)
	out := &timelineJSON{
		ID: m.ID, Type: m.Kind, HTMLURL: plain.HTMLURL, PullURL: plain.PullURL, IssueURL: plain.IssueURL,
		User: plain.User, Body: m.Body, CreatedAt: m.Created, UpdatedAt: m.Updated,
		OldMilestone: c.milestone(is.Repo, m.oldMilestone), Milestone: c.milestone(is.Repo, m.milestone),
		OldTitle: m.oldTitle, NewTitle: m.newTitle, RefAction: "none", ReviewID: m.reviewID,
		Assignee: c.anon(m.assignee), Removed: m.removed,
	}
	if m.label != nil {
		out.Label = c.label(m.label)
	}
	if m.dependent != nil {
		out.Dependent = c.issueView(m.dependent)
	}
	return out
}

// reactionJSON is one reaction.
type reactionJSON struct {
	User      *userJSON `json:"user"`
	Content   string    `json:"content"`
	CreatedAt time.Time `json:"created_at"`
}

// reactions renders a list; none is null.
func (c *call) reactions(rs []*reaction) []reactionJSON {
	if len(rs) == 0 {
		return nil
	}
	return mapped(rs, func(r *reaction) reactionJSON { return reactionJSON{c.user(r.User), r.Content, r.Created} })
}
