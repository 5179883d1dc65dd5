package fakegitea

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// label belongs to a repository or an organisation. The body that creates one is read
// into it.
type label struct {
	ID          int64  `json:"-"`
	Org         *user  `json:"-"` // nil for a repository's label
	Name        string `json:"name" binding:"Required"`
	Color       string `json:"color" binding:"Required"`
	Description string `json:"description"`
	Exclusive   bool   `json:"exclusive"`
	Archived    bool   `json:"is_archived"`
}

// milestone is a milestone of a repository. The bodies of it are read into it.
type milestone struct {
	ID               int64      `json:"-"`
	Title            string     `json:"title"`
	Description      string     `json:"description"`
	State            string     `json:"state"` // open or closed
	Due              *time.Time `json:"due_on"`
	Created, Updated time.Time  `json:"-"`
	ClosedAt         *time.Time `json:"-"`
}

// issue is an issue or, with pull set, a pull request.
// Its ids are of the whole instance, its index is of the repository; paths take the index.
type issue struct {
	ID, Index        int64
	Repo             *repo
	Poster           *user
	Title, Body, Ref string
	Labels           []*label
	Milestone        *milestone
	Assignees        []*user
	Closed           bool
	Created, Updated time.Time
	ClosedAt, Due    *time.Time
	PinOrder         int
	// It grows by one with each change of the body.
	Version   int
	Reactions []*reaction
	Assets    []*attachment
	DependsOn []*issue
	comments  []*comment // the whole timeline; kind "comment" are the comments
	pull      *pull
}

// comment is an entry of an issue's timeline.
type comment struct {
	ID               int64
	Kind             string
	Poster           *user
	Body             string
	Created, Updated time.Time
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

// label renders a label; its URL depends on who owns it. One that was deleted is null,
// which events in timelines still name.
func (c *call) label(l *label) obj {
	if l == nil {
		return nil
	}
	url := ""
	if l.Org != nil {
		url = fmt.Sprintf("%s/api/v1/orgs/%s/labels/%d", c.root, escape(l.Org.Login), l.ID)
	} else {
		r, ok := find(c.w.repos, func(r *repo) bool { return slices.Contains(r.labels, l) })
		if !ok {
			return nil
		}
		url = c.api(r, "labels", fmt.Sprint(l.ID))
	}
	return obj{
		"id", l.ID, "name", l.Name, "exclusive", l.Exclusive, "is_archived", l.Archived, "color", l.Color,
		"description", l.Description, "url", url,
	}
}

// labels renders a list.
func (c *call) labels(ls []*label) []obj { return mapped(ls, c.label) }

// milestone renders a milestone of r with its counts.
func (c *call) milestone(r *repo, m *milestone) obj {
	if m == nil {
		return nil
	}
	all := filter(r.issues, func(is *issue) bool { return is.Milestone == m })
	open := len(filter(all, func(is *issue) bool { return !is.Closed }))
	return obj{
		"id", m.ID, "title", m.Title, "description", m.Description, "state", m.State, "open_issues", open,
		"closed_issues", len(all) - open, "created_at", m.Created, "updated_at", m.Updated, "closed_at", m.ClosedAt,
		"due_on", m.Due,
	}
}

// state is the API's word for open or closed.
func state(closed bool) string {
	if closed {
		return "closed"
	}
	return "open"
}

// issueView renders an issue.
func (c *call) issueView(is *issue) obj {
	if is == nil {
		return nil
	}
	r := is.Repo
	var pull obj
	if p := is.pull; p != nil {
		pull = obj{
			"merged", p.Merged, "merged_at", p.MergedAt, "draft", is.draft(), "html_url", c.issueURL(is),
		}
	}
	return obj{
		"id", is.ID, "url", c.api(r, "issues", fmt.Sprint(is.Index)), "html_url", c.issueURL(is),
		"number", is.Index, "user", c.user(is.Poster), "original_author", "", "original_author_id", 0,
		// Projects, locks and estimates are left out, with their zero values.
		"title", is.Title, "body", is.Body, "ref", is.Ref, "assets", c.attachments(is.Assets),
		"labels", c.labels(is.Labels), "milestone", c.milestone(r, is.Milestone), "projects", nil,
		"assignee", c.anon(is.assignee()), "assignees", c.anons(is.Assignees), "state", state(is.Closed),
		"is_locked", false, "comments", len(is.talk()), "created_at", is.Created, "updated_at", is.Updated,
		"closed_at", is.ClosedAt, "due_date", is.Due, "time_estimate", 0, "pull_request", pull,
		"repository", obj{
			"id", r.ID, "name", r.Name, "owner", r.Owner.Login, "full_name", r.fullName(),
		},
		"pin_order", is.PinOrder, "content_version", is.Version,
	}
}

// assignee is the first assignee, or nil.
func (is *issue) assignee() *user {
	u, _ := find(is.Assignees, func(*user) bool { return true })
	return u
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
// The prefixes are a fresh Gitea's, in any letter case.
func (is *issue) draft() bool {
	t := strings.ToUpper(is.Title)
	return strings.HasPrefix(t, "WIP:") || strings.HasPrefix(t, "[WIP]")
}

// talk is the written comments of the timeline.
func (is *issue) talk() []*comment {
	return filter(is.comments, func(m *comment) bool { return m.Kind == "comment" })
}

// talkURLs are the addresses of a comment and of its issue or pull request.
// The one that does not apply is empty rather than left out.
func (c *call) talkURLs(m placed) (page, pull, issue string) {
	url := c.issueURL(m.is)
	page = fmt.Sprintf("%s#issuecomment-%d", url, m.ID)
	if m.is.pull != nil {
		return page, url, ""
	}
	return page, "", url
}

// commentView renders a comment.
func (c *call) commentView(m placed) obj {
	page, pull, issue := c.talkURLs(m)
	return obj{
		"id", m.ID, "html_url", page, "pull_request_url", pull, "issue_url", issue, "user", c.anon(m.Poster),
		"original_author", "", "original_author_id", 0, "body", m.Body, "assets", c.attachments(m.Assets),
		"created_at", m.Created, "updated_at", m.Updated,
	}
}

// timelineView renders an entry of the timeline.
func (c *call) timelineView(m placed) obj {
	page, pull, issue := c.talkURLs(m)
	return obj{
		"id", m.ID, "type", m.Kind, "html_url", page, "pull_request_url", pull,
		"issue_url", issue, "user", c.anon(m.Poster), "body", m.Body, "created_at", m.Created,
		"updated_at", m.Updated, "old_project_id", 0, "project_id", 0,
		"old_milestone", c.milestone(m.is.Repo, m.oldMilestone), "milestone", c.milestone(m.is.Repo, m.milestone),
		"tracked_time", nil, "old_title", m.oldTitle, "new_title", m.newTitle, "old_ref", "", "new_ref", "",
		"ref_issue", nil, "ref_comment", nil, "ref_action", "none", "ref_commit_sha", "",
		"review_id", m.reviewID, "label", c.label(m.label), "assignee", c.anon(m.assignee), "assignee_team", nil,
		"removed_assignee", m.removed, "resolve_doer", nil, "dependent_issue", c.issueView(m.dependent),
	}
}

// reaction renders one reaction.
func (c *call) reaction(r *reaction) obj {
	return obj{"user", c.user(r.User), "content", r.Content, "created_at", r.Created}
}
