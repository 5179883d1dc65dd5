package fakegitea

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// handleIssues registers the routes of issues themselves.
func handleIssues(t table) {
	const p = "/repos/{owner}/{repo}/issues"
	t.on("GET "+p, listIssues)
	t.on("POST "+p, reads(createIssue), needToken, needActive)
	t.on("GET "+p+"/{index}", onIssue(renders((*call).issueView)))
	t.on("PATCH "+p+"/{index}", onIssue(readsFor(editIssue)), needToken)
	t.on("DELETE "+p+"/{index}", onNamedIssue(deleteIssue), needToken, needAdmin)
	t.on("GET "+p+"/pinned", listPinned)
	t.on("GET /repos/{owner}/{repo}/pulls/pinned", listPinnedPulls)
	t.on("POST "+p+"/{index}/pin", onIssue(pinIssue), needToken, needAdmin)
	t.on("DELETE "+p+"/{index}/pin", onIssue(unpinIssue), needToken, needAdmin)
	t.on("GET /repos/issues/search", searchIssues)
}

// onIssue finds the issue of the path.
func onIssue(f func(*call, *issue) error) handler {
	return func(c *call) error {
		is := c.repo.issueByIndex(c.id("index"))
		if is == nil {
			return errNotFound
		}
		return f(c, is)
	}
}

// issueByIndex finds an issue or pull request by the number people see.
func (r *repo) issueByIndex(index int64) *issue {
	is, _ := find(r.issues, func(is *issue) bool { return is.Index == index })
	return is
}

// newIssue appends an issue to its repository. Issues and pull requests share numbers,
// which start at 1 in each repository; ids are unique in the instance.
func (w *world) newIssue(r *repo, poster *user, title, body string) *issue {
	r.next++
	now := w.now()
	is := &issue{
		ID: w.next("issue"), Index: r.next, Repo: r, Poster: poster, Title: title, Body: body, Created: now,
		Updated: now,
	}
	r.issues = append(r.issues, is)
	r.Updated = now
	return is
}

// addEvent appends to the timeline.
func (w *world) addEvent(is *issue, by *user, m comment) *comment {
	m.ID, m.Poster = w.next("comment"), by
	m.Created, m.Updated = w.now(), w.now()
	is.Updated = m.Created
	is.comments = append(is.comments, &m)
	return &m
}

// listIssues lists issues and pull requests of a repository.
func listIssues(c *call) error {
	if !c.repo.Settings.HasIssues {
		return errNotFound
	}
	items, err := c.filterIssues(c.repo.issues)
	if err != nil {
		return err
	}
	return c.ok(mapped(linked(c, items), c.issueView))
}

// filterIssues applies the query. As on the real server, a label, milestone or
// unknown value drops the filter instead of emptying the list;
// only users are checked.
func (c *call) filterIssues(items []*issue) ([]*issue, error) {
	keep, err := c.byPeople()
	if err != nil {
		return nil, err
	}
	within, err := c.queryRange("since", "before")
	if err != nil {
		return nil, err
	}
	keep = append(keep, c.byState(), c.byLabels(items), c.byMilestones(items), c.byType(), c.byText())
	out := filter(items, func(is *issue) bool {
		return within(is.Updated) && !slices.ContainsFunc(keep, func(f func(*issue) bool) bool { return !f(is) })
	})
	sortIssues(out, c.query.Get("sort"))
	return out, nil
}

// sortIssues orders issues, newest first by default.
func sortIssues(items []*issue, order string) {
	slices.SortStableFunc(items, func(a, b *issue) int {
		switch order {
		case "oldest":
			return int(a.ID - b.ID)
		case "recentupdate":
			return b.Updated.Compare(a.Updated)
		case "leastupdate":
			return a.Updated.Compare(b.Updated)
		case "mostcomment":
			return len(b.talk()) - len(a.talk())
		case "leastcomment":
			return len(a.talk()) - len(b.talk())
		}
		return int(b.ID - a.ID)
	})
}

// byState keeps the asked state; anything unknown means open.
func (c *call) byState() func(*issue) bool {
	switch c.query.Get("state") {
	case "all":
		return func(*issue) bool { return true }
	case "closed":
		return func(is *issue) bool { return is.Closed }
	}
	return func(is *issue) bool { return !is.Closed }
}

// byType keeps issues or pull requests.
func (c *call) byType() func(*issue) bool {
	switch c.query.Get("type") {
	case "issues":
		return func(is *issue) bool { return is.pull == nil }
	case "pulls":
		return func(is *issue) bool { return is.pull != nil }
	}
	return func(*issue) bool { return true }
}

// byText keeps what contains the words of q.
func (c *call) byText() func(*issue) bool {
	q := strings.ToLower(strings.TrimSpace(c.query.Get("q")))
	return func(is *issue) bool {
		if q == "" || strings.Contains(strings.ToLower(is.Title+"\n"+is.Body), q) {
			return true
		}
		return slices.ContainsFunc(is.talk(), func(m *comment) bool {
			return strings.Contains(strings.ToLower(m.Body), q)
		})
	}
}

// byLabels keeps what has all the known labels. Names are case-sensitive and
// split at commas.
func (c *call) byLabels(items []*issue) func(*issue) bool {
	var known []string
	for name := range strings.SplitSeq(c.query.Get("labels"), ",") {
		if name != "" && c.knowsLabel(items, name) {
			known = append(known, name)
		}
	}
	return func(is *issue) bool {
		for _, name := range known {
			if !slices.ContainsFunc(is.Labels, func(l *label) bool { return l.Name == name }) {
				return false
			}
		}
		return true
	}
}

// knowsLabel says whether a label of that name exists where the issues are.
func (c *call) knowsLabel(items []*issue, name string) bool {
	if c.repo != nil {
		return slices.ContainsFunc(c.repo.allLabels(), func(l *label) bool { return l.Name == name })
	}
	return slices.ContainsFunc(items, func(is *issue) bool {
		return slices.ContainsFunc(is.Repo.allLabels(), func(l *label) bool { return l.Name == name })
	})
}

// byMilestones keeps what is in one of the known milestones.
func (c *call) byMilestones(items []*issue) func(*issue) bool {
	var known []*milestone
	repos := map[*repo]bool{}
	for _, is := range items {
		repos[is.Repo] = true
	}
	for name := range strings.SplitSeq(c.query.Get("milestones"), ",") {
		for r := range repos {
			known = append(known, filter(r.milestones, func(m *milestone) bool {
				return m.Title == name || name != "" && strconv.FormatInt(m.ID, 10) == name
			})...)
		}
	}
	return func(is *issue) bool { return len(known) == 0 || slices.Contains(known, is.Milestone) }
}

// byPeople keeps what the named users wrote or are assigned to.
func (c *call) byPeople() ([]func(*issue) bool, error) {
	tests := map[string]func(*issue, *user) bool{
		"created_by":  func(is *issue, u *user) bool { return is.Poster == u },
		"assigned_by": func(is *issue, u *user) bool { return slices.Contains(is.Assignees, u) },
		"mentioned_by": func(is *issue, u *user) bool {
			return strings.Contains(is.Body, "@"+u.Login)
		},
	}
	var out []func(*issue) bool
	for param, test := range tests {
		name := c.query.Get(param)
		if name == "" || c.repo == nil && param != "created_by" { // the search over all passes over the others
			continue
		}
		u := c.w.userByLogin(name)
		if u == nil {
			return nil, errNoUser(http.StatusNotFound, name)
		}
		out = append(out, func(is *issue) bool { return test(is, u) })
	}
	return out, nil
}

// issueInput is the body of a new issue.
type issueInput struct {
	Title     string     `json:"title" binding:"Required"`
	Body      string     `json:"body"`
	Ref       string     `json:"ref"`
	Assignee  string     `json:"assignee"`
	Assignees []string   `json:"assignees"`
	Milestone int64      `json:"milestone"`
	Labels    []int64    `json:"labels"`
	Closed    bool       `json:"closed"`
	Due       *time.Time `json:"due_date"`
}

// createIssue creates an issue. Labels, assignees and the like that a caller
// without write access sends are dropped silently, as on the real server.
func createIssue(c *call, in *issueInput) error {
	var people []*user
	if c.perm >= accessWrite {
		var err error
		if people, err = c.assigneesOf(in.Assignee, in.Assignees); err != nil {
			return err
		}
	}
	is := c.w.newIssue(c.repo, c.doer, in.Title, in.Body)
	is.Ref = in.Ref
	if c.perm >= accessWrite {
		is.Due, is.Milestone = in.Due, c.repo.milestoneByID(in.Milestone)
		is.Labels = filter(c.repo.allLabels(), func(l *label) bool { return slices.Contains(in.Labels, l.ID) })
		for _, l := range is.Labels {
			c.w.addEvent(is, c.doer, comment{Kind: "label", Body: "1", label: l})
		}
		c.assign(is, people)
	}
	c.setState(is, in.Closed)
	c.record("create_issue", fmt.Sprintf("%d|%s", is.Index, is.Title), "")
	c.notify(is, nil)
	return c.created(c.issueView(is))
}

// assigneesOf looks the named users up. All are checked before anything changes, so an
// unknown one among several leaves the issue as it was.
func (c *call) assigneesOf(one string, many []string) ([]*user, error) {
	var out []*user
	for _, name := range append(append([]string{}, many...), one) {
		if name == "" {
			continue
		}
		u := c.w.userByLogin(name)
		if u == nil || u.Org {
			return nil, errNoAssignee(name)
		}
		if c.w.access(u, c.repo) < accessRead {
			return nil, fail(http.StatusUnprocessableEntity,
				"user does not have access to repo [repo_id: %d, user_id: %d]", c.repo.ID, u.ID)
		}
		out = with(out, u)
	}
	return out, nil
}

// assign replaces the assignees and says so in the timeline.
func (c *call) assign(is *issue, people []*user) {
	for _, u := range people {
		if !slices.Contains(is.Assignees, u) {
			c.w.addEvent(is, c.doer, comment{Kind: "assignees", assignee: u})
		}
	}
	for _, u := range is.Assignees {
		if !slices.Contains(people, u) {
			c.w.addEvent(is, c.doer, comment{Kind: "assignees", assignee: u, removed: true})
		}
	}
	is.Assignees = people
}

// setState closes or reopens.
func (c *call) setState(is *issue, closed bool) {
	if is.Closed == closed {
		return
	}
	is.Closed, is.Updated, is.ClosedAt = closed, c.now, nil
	kind := "reopen"
	if closed {
		at := c.now
		is.ClosedAt, kind = &at, "close"
	}
	c.w.addEvent(is, c.doer, comment{Kind: kind})
	c.record(kind+"_issue", fmt.Sprintf("%d|%s", is.Index, is.Title), "")
}
