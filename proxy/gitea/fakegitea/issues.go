package fakegitea

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// handleIssues registers the routes of issues themselves. Whoever may read a repository
// may write an issue in it.
func handleIssues(t table) {
	const p = "/repos/{owner}/{repo}/issues"
	t.on("GET "+p, ranged(listIssues))
	t.on("POST "+p, reads(createIssue), needToken, needActive)
	t.on("GET "+p+"/{index}", onIssue(renders((*call).issueView)))
	t.on("PATCH "+p+"/{index}", onIssue(readsFor(editIssue)), needToken)
	t.on("DELETE "+p+"/{index}", onNamedIssue(deleteIssue), needToken, needAdmin)
	t.on("GET "+p+"/pinned", listPinned)
	t.on("POST "+p+"/{index}/pin", onIssue(pinIssue), needToken, needAdmin)
	t.on("DELETE "+p+"/{index}/pin", onIssue(unpinIssue), needToken, needAdmin)
	t.on("GET /repos/issues/search", ranged(searchIssues))
}

// issueByIndex finds an issue or pull request by the number people see.
func (r *repo) issueByIndex(index int64) *issue {
	is, _ := find(r.issues, func(is *issue) bool { return is.Index == index })
	return is
}

// newIssue appends an issue to its repository. Issues and pull requests share numbers,
// which start at 1 in each repository; ids are unique in the instance. The next number
// is kept, so that of a deleted issue is not used again.
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

// addEvent appends to the timeline. The issue counts as changed by every event, which
// since and before go by.
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

// searchIssues searches over all visible repositories. The flags that mean the caller,
// such as assigned, do nothing for an anonymous one.
func searchIssues(c *call) error {
	keep, err := c.searchScope()
	if err != nil {
		return err
	}
	var items []*issue
	for _, r := range c.w.readable(c.doer) {
		if keep(r) && !(c.cred.scopes.publicOnly && r.Private) {
			items = append(items, r.issues...)
		}
	}
	if c.doer != nil {
		items = filter(items, func(is *issue) bool {
			p := is.pull
			return (!c.queryBool("assigned") || slices.Contains(is.Assignees, c.doer)) &&
				(!c.queryBool("created") || is.Poster == c.doer) &&
				// A mention is looked for in the text of the issue only, and as a plain
				// string.
				(!c.queryBool("mentioned") || strings.Contains(is.Body, "@"+c.doer.Login)) &&
				(!c.queryBool("review_requested") || p != nil && slices.Contains(p.Reviewers, c.doer)) &&
				(!c.queryBool("reviewed") || p != nil && slices.ContainsFunc(p.Reviews, func(v *review) bool {
					return v.User == c.doer
				}))
		})
	}
	items, err = c.filterIssues(items)
	if err != nil {
		return err
	}
	return c.ok(mapped(linked(c, items), c.issueView))
}

// searchScope reads owner. Unlike other filters, an unknown one is refused. The filter
// on a team of it is not in the demo.
func (c *call) searchScope() (func(*repo) bool, error) {
	name := c.query.Get("owner")
	if c.query.Get("team") != "" {
		return nil, notInDemo(c)
	}
	owner := c.w.userByLogin(name)
	if name != "" && owner == nil {
		return nil, errNoUser(http.StatusBadRequest, name)
	}
	return func(r *repo) bool { return owner == nil || r.Owner == owner }, nil
}

// filterIssues applies the query. As on the real server, a label, milestone or unknown
// value drops the filter instead of emptying the list; only users are checked. So a
// client that mistypes a label gets everything and must look at the labels of what
// came. The time is that of the last change.
func (c *call) filterIssues(items []*issue) ([]*issue, error) {
	by, err := c.byPeople()
	if err != nil {
		return nil, err
	}
	inState, named, kind := c.byState(), c.byNames(items), c.query.Get("type")
	q := strings.ToLower(strings.TrimSpace(c.query.Get("q")))
	out := filter(items, func(is *issue) bool {
		return c.within(is.Updated) && inState(is) && named(is) && by(is) &&
			(q == "" || strings.Contains(is.words(), q)) &&
			(kind != "issues" || is.pull == nil) && (kind != "pulls" || is.pull != nil)
	})
	sortIssues(out, c.query.Get("sort"))
	return out, nil
}

// words is the text that a search looks in. Comments count, too.
func (is *issue) words() string {
	texts := mapped(is.talk(), func(m *comment) string { return m.Body })
	return strings.ToLower(strings.Join(append(texts, is.Title, is.Body), "\n"))
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

// byState keeps the asked state; anything unknown means open. A wrong word therefore
// hides closed issues rather than showing all.
func (c *call) byState() func(*issue) bool {
	st := c.query.Get("state")
	return func(is *issue) bool { return st == "all" || is.Closed == (st == "closed") }
}

// byNames keeps what has all the asked labels and is in one of the asked milestones, as
// far as the repositories of the issues have such. Names are case-sensitive and split
// at commas; a milestone can also be named by its id. A label with a comma in its name
// cannot be asked for.
func (c *call) byNames(items []*issue) func(*issue) bool {
	names := strings.Split(c.query.Get("labels"), ",")
	titles := strings.Split(c.query.Get("milestones"), ",")
	// In a search over several repositories a label counts if any of them has it.
	var repos []*repo
	for _, is := range items {
		repos = with(repos, is.Repo)
	}
	var labels []string
	var milestones []*milestone
	for _, r := range repos {
		for _, l := range r.allLabels() {
			if slices.Contains(names, l.Name) {
				labels = with(labels, l.Name)
			}
		}
		milestones = append(milestones, filter(r.milestones, func(m *milestone) bool {
			return slices.Contains(titles, m.Title) || slices.Contains(titles, fmt.Sprint(m.ID))
		})...)
	}
	return func(is *issue) bool {
		have := mapped(is.Labels, func(l *label) string { return l.Name })
		return hasAll(have, labels) && (len(milestones) == 0 || slices.Contains(milestones, is.Milestone))
	}
}

// byPeople keeps what the named users wrote, are assigned to or are mentioned in. The
// search over all repositories knows the first of these only.
func (c *call) byPeople() (func(*issue) bool, error) {
	people := map[string]*user{}
	for _, param := range []string{"created_by", "assigned_by", "mentioned_by"} {
		name := c.query.Get(param)
		if name == "" || c.repo == nil && param != "created_by" {
			continue
		}
		if people[param] = c.w.userByLogin(name); people[param] == nil {
			return nil, errNoUser(http.StatusNotFound, name)
		}
	}
	poster, assignee, mentioned := people["created_by"], people["assigned_by"], people["mentioned_by"]
	return func(is *issue) bool {
		return (poster == nil || is.Poster == poster) &&
			(assignee == nil || slices.Contains(is.Assignees, assignee)) &&
			(mentioned == nil || strings.Contains(is.Body, "@"+mentioned.Login))
	}, nil
}

// issueFields are the fields of issues and pull requests in the bodies that create or
// edit them; nil leaves a field alone. Closed is of those that create, State of those
// that edit.
type issueFields struct {
	Title     string     `json:"title"`
	Body      *string    `json:"body"`
	Ref       *string    `json:"ref"`
	Assignee  *string    `json:"assignee"`
	Assignees []string   `json:"assignees"`
	Milestone *int64     `json:"milestone"`
	Labels    []int64    `json:"labels"`
	State     *string    `json:"state"`
	Closed    bool       `json:"closed"`
	Due       *time.Time `json:"due_date"`
	Unset     bool       `json:"unset_due_date"`
}

// createIssue creates an issue. Labels, assignees and the like that a caller without
// write access sends are dropped silently, as on the real server. Closed stays: anybody
// may write an issue that is closed at once.
func createIssue(c *call, in *issueFields) error {
	if c.perm < accessWrite {
		*in = issueFields{Title: in.Title, Body: in.Body, Ref: in.Ref, Closed: in.Closed}
	}
	is, err := c.open(in, "create_issue")
	if err != nil {
		return err
	}
	c.setState(is, in.Closed)
	return c.created(c.issueView(is))
}

// open makes an issue of a body and says so to the feeds, as op, and to those who
// follow the repository. An unknown milestone is none.
func (c *call) open(in *issueFields, op string) (*issue, error) {
	if in.Title == "" {
		return nil, fail(http.StatusUnprocessableEntity, "[Title]: Required")
	}
	// Before the issue exists: a refused one must not use up a number.
	people, err := c.assigneesOf(in)
	if err != nil {
		return nil, err
	}
	is := c.w.newIssue(c.repo, c.doer, in.Title, "")
	set(&is.Body, in.Body)
	set(&is.Ref, in.Ref)
	is.Due = in.Due
	if in.Milestone != nil {
		is.Milestone = c.repo.milestoneByID(*in.Milestone)
	}
	c.setLabels(is, c.labelsOf(in))
	c.assign(is, people)
	c.record(op, fmt.Sprintf("%d|%s", is.Index, is.Title), "")
	c.notify(is, nil)
	return is, nil
}

// labelsOf looks the labels of a body up; unknown ones are passed over.
func (c *call) labelsOf(in *issueFields) []*label {
	return filter(c.repo.allLabels(), func(l *label) bool { return slices.Contains(in.Labels, l.ID) })
}

// assigneesOf looks the named users up. All are checked before anything changes, so an
// unknown one among several leaves the issue as it was.
func (c *call) assigneesOf(in *issueFields) ([]*user, error) {
	names := slices.Clone(in.Assignees)
	if in.Assignee != nil && *in.Assignee != "" {
		names = append(names, *in.Assignee)
	}
	people, err := c.w.usersNamed(names, errNoAssignee)
	for _, u := range people {
		if c.w.access(u, c.repo) < accessRead {
			return nil, fail(http.StatusUnprocessableEntity,
				"user does not have access to repo [repo_id: %d, user_id: %d]", c.repo.ID, u.ID)
		}
	}
	return people, err
}

// usersNamed looks users up, each once. An organisation cannot be among them. missing
// words the refusal, which differs by route.
func (w *world) usersNamed(names []string, missing func(string) error) ([]*user, error) {
	var out []*user
	for _, name := range names {
		u := w.userByLogin(name)
		if u == nil || u.Org {
			return nil, missing(name)
		}
		out = with(out, u)
	}
	return out, nil
}

// assign replaces the assignees and says so in the timeline.
func (c *call) assign(is *issue, people []*user) {
	replaceList(&is.Assignees, people, func(u *user, mark string) {
		c.w.addEvent(is, c.doer, comment{Kind: "assignees", assignee: u, removed: mark == ""})
	})
}

// setState closes or reopens. A state that is there already writes no event. The feed's
// words are those for issues, for pull requests too; Gitea has others for them, such as
// close_pull_request.
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

// errNoUser is the refusal for an unknown user.
func errNoUser(status int, name string) error {
	return fail(status, "user does not exist [uid: 0, name: %s]", name)
}

// errNoAssignee is the refusal for an unknown assignee.
func errNoAssignee(name string) error {
	return fail(http.StatusUnprocessableEntity, "Assignee does not exist: [name: %v]", errNoUser(0, name))
}

// errNoIssue is the refusal for an issue by its number.
func errNoIssue(r *repo, index int64) error {
	return fail(http.StatusNotFound, "issue does not exist [id: 0, repo_id: %d, index: %d]", r.ID, index)
}

// errNoComment is the refusal for a comment.
func errNoComment(id int64) error {
	return fail(http.StatusNotFound, "comment does not exist [id: %d, issue_id: 0]", id)
}

// onIndex finds what the number of the path means; missing is the refusal. Issues and
// pull requests share numbers, so the routes of issues find both.
func onIndex(f func(*call, *issue) error, pulls bool, missing func(*call) error) handler {
	return func(c *call) error {
		is := c.repo.issueByIndex(c.id("index"))
		if is == nil || pulls && is.pull == nil {
			return missing(c)
		}
		return f(c, is)
	}
}

// onIssue finds the issue or pull request of the path.
func onIssue(f func(*call, *issue) error) handler {
	return onIndex(f, false, func(*call) error { return errNotFound })
}

// onNamedIssue is onIssue for the routes that name the missing issue.
func onNamedIssue(f func(*call, *issue) error) handler {
	return onIndex(f, false, func(c *call) error { return errNoIssue(c.repo, c.id("index")) })
}

// onPull finds the pull request of the path.
func onPull(f func(*call, *issue) error) handler {
	return onIndex(f, true, func(*call) error { return errNotFound })
}

// onNamedPull is onPull for the routes that name the missing pull request.
func onNamedPull(f func(*call, *issue) error) handler {
	return onIndex(f, true, func(c *call) error {
		return fail(http.StatusNotFound,
			"pull request does not exist "+
				"[id: 0, issue_id: 0, head_repo_id: 0, base_repo_id: %d, head_branch: , base_branch: ]",
			c.repo.ID)
	})
}
