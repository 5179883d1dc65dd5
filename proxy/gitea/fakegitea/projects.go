package fakegitea

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// project is a board of a repository, organisation or user.
type project struct {
	ID                 int64
	repo               *repo
	owner              *user
	creator            *user
	Title, Description string
	Template, Card     string
	Closed             bool
	Created, Updated   time.Time
	ClosedAt           *time.Time
	columns            []*column
}

// column is a column of a board, with the cards in their order.
type column struct {
	ID, Sorting      int64
	Title, Color     string
	Default          bool
	creator          *user
	Created, Updated time.Time
	cards            []*issue
}

// handleProjects registers boards at all three levels, under the same rules.
func handleProjects(t table) {
	for path, needs := range map[string][2]need{
		"/repos/{owner}/{repo}/projects": {0, needWrite}, "/orgs/{org}/projects": {0, needOrgOwner}, "/user/projects": {needToken, needToken},
	} {
		read, write := needs[0], needs[1]
		t.on("GET "+path, func(c *call) error { return c.listProjects(c.myProjects()) }, read)
		t.on("POST "+path, createProject, write)
		one := path + "/{id}"
		t.on("GET "+one, onProject(func(c *call, p *project) error { return c.ok(c.projectView(p)) }), read)
		t.on("PATCH "+one, onProject(editProject), write)
		t.on("DELETE "+one, onProject(func(c *call, p *project) error {
			c.w.projects = without(c.w.projects, p)
			return c.done()
		}), write)
		t.on("GET "+one+"/columns", onProject(listColumns), read)
		t.on("POST "+one+"/columns", onProject(createColumn), write)
		t.on("POST "+one+"/columns/move", onProject(moveColumns), write)
		t.on("POST "+one+"/issues/{issue_id}/move", onProject(moveCard), write)
		col := one + "/columns/{column_id}"
		t.on("GET "+col, onColumn(func(c *call, p *project, k *column) error { return c.ok(c.columnView(p, k)) }), read)
		t.on("PATCH "+col, onColumn(editColumn), write)
		t.on("DELETE "+col, onColumn(deleteColumn), write)
		t.on("POST "+col+"/default", onColumn(func(c *call, p *project, k *column) error {
			for _, o := range p.columns {
				o.Default = o == k
			}
			return c.done()
		}), write)
		t.on("GET "+col+"/issues", onColumn(func(c *call, _ *project, k *column) error {
			return c.ok(mapped(linked(c, k.cards), c.issueView))
		}), read)
		t.on("POST "+col+"/issues/{issue_id}", onColumn(addCard), write)
		t.on("DELETE "+col+"/issues/{issue_id}", onColumn(dropCard), write)
	}
	t.on("GET /users/{username}/projects", onUser(func(c *call, u *user) error {
		return c.listProjects(filter(c.w.projects, func(p *project) bool { return p.owner == u && p.repo == nil }))
	}))
}

// projectOwner is the user or organisation that the path is about; with a
// repository there is none.
func (c *call) projectOwner() *user {
	switch {
	case c.repo != nil:
		return nil
	case strings.HasPrefix(c.path, "/user/"):
		return c.doer
	}
	return c.owner
}

// myProjects lists the boards that the path is about.
func (c *call) myProjects() []*project {
	return filter(c.w.projects, func(p *project) bool { return p.repo == c.repo && p.owner == c.projectOwner() })
}

// listProjects lists boards, the open ones by default.
func (c *call) listProjects(all []*project) error {
	st := c.query.Get("state")
	items := filter(all, func(p *project) bool { return st == "all" || p.Closed == (st == "closed") })
	return c.ok(mapped(linked(c, items), c.projectView))
}

// onProject finds the board of the path.
func onProject(f func(*call, *project) error) handler {
	return func(c *call) error {
		p, ok := find(c.myProjects(), func(p *project) bool { return p.ID == c.id("id") })
		if !ok {
			return errNotFound
		}
		return f(c, p)
	}
}

// onColumn finds the column of the path.
func onColumn(f func(*call, *project, *column) error) handler {
	return onProject(func(c *call, p *project) error {
		k, ok := find(p.columns, func(k *column) bool { return k.ID == c.id("column_id") })
		if !ok {
			return errNotFound
		}
		return f(c, p, k)
	})
}

// projectJSON is a board.
type projectJSON struct {
	ID          int64      `json:"id"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	OwnerID     int64      `json:"owner_id"`
	RepoID      int64      `json:"repo_id"`
	CreatorID   int64      `json:"creator_id"`
	Creator     *userJSON  `json:"creator"`
	State       string     `json:"state"`
	IsClosed    bool       `json:"is_closed"`
	Template    string     `json:"template_type"`
	Card        string     `json:"card_type"`
	Type        string     `json:"type"`
	Issues      int        `json:"num_issues"`
	Open        int        `json:"num_open_issues"`
	ClosedCount int        `json:"num_closed_issues"`
	HTMLURL     string     `json:"html_url"`
	CreatedAt   time.Time  `json:"created_at"`
	UpdatedAt   time.Time  `json:"updated_at"`
	ClosedAt    *time.Time `json:"closed_at"`
}

// projectView renders a board.
func (c *call) projectView(p *project) *projectJSON {
	out := &projectJSON{
		ID: p.ID, Title: p.Title, Description: p.Description, CreatorID: p.creator.ID, Creator: c.user(p.creator),
		State: state(p.Closed), IsClosed: p.Closed, Template: p.Template, Card: p.Card, CreatedAt: p.Created, UpdatedAt: p.Updated,
		ClosedAt: p.ClosedAt,
	}
	switch {
	case p.repo != nil:
		out.RepoID, out.Type, out.HTMLURL = p.repo.ID, "repository", c.repoURL(p.repo, "projects", fmt.Sprint(p.ID))
	default:
		out.OwnerID, out.Type = p.owner.ID, "individual"
		if p.owner.Org {
			out.Type = "organization"
		}
		out.HTMLURL = fmt.Sprintf("%s/%s/-/projects/%d", c.root, escape(p.owner.Login), p.ID)
	}
	for _, k := range p.columns {
		for _, is := range k.cards {
			out.Issues++
			if is.Closed {
				out.ClosedCount++
			} else {
				out.Open++
			}
		}
	}
	return out
}

// columnJSON is a column.
type columnJSON struct {
	ID        int64     `json:"id"`
	Title     string    `json:"title"`
	Default   bool      `json:"default"`
	Sorting   int64     `json:"sorting"`
	Color     string    `json:"color"`
	ProjectID int64     `json:"project_id"`
	Creator   *userJSON `json:"creator"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// columnView renders a column.
func (c *call) columnView(p *project, k *column) *columnJSON {
	return &columnJSON{k.ID, k.Title, k.Default, k.Sorting, k.Color, p.ID, c.user(k.creator), k.Created, k.Updated}
}

// createProject creates a board. A template gives it columns; there is always
// at least one.
func createProject(c *call) error {
	var in struct {
		Title       string `json:"title" binding:"Required"`
		Description string `json:"description"`
		Template    string `json:"template_type" binding:"In(none,basic_kanban,bug_triage)"`
		Card        string `json:"card_type" binding:"In(text_only,images_and_text)"`
	}
	if err := c.bind(&in); err != nil {
		return err
	}
	p := &project{
		ID: c.w.next("project"), repo: c.repo, owner: c.projectOwner(), creator: c.doer, Title: in.Title, Description: in.Description,
		Template: in.Template, Card: in.Card, Created: c.now, Updated: c.now,
	}
	titles := map[string][]string{
		"basic_kanban": {"Backlog", "To Do", "In Progress", "Done"},
		"bug_triage":   {"Needs Triage", "High Priority", "Low Priority", "Closed"},
	}[in.Template]
	for _, title := range titles {
		c.addColumn(p, title, "")
	}
	if len(titles) == 0 {
		c.addColumn(p, "Backlog", "")
	}
	c.w.projects = append(c.w.projects, p)
	return c.created(c.projectView(p))
}

// addColumn appends a column; the first one is the default.
func (c *call) addColumn(p *project, title, color string) *column {
	k := &column{
		ID: c.w.next("column"), Sorting: int64(len(p.columns)), Title: title, Color: color, Default: len(p.columns) == 0,
		creator: c.doer, Created: c.now, Updated: c.now,
	}
	p.columns = append(p.columns, k)
	return k
}

// editProject changes what the body names.
func editProject(c *call, p *project) error {
	var in struct {
		Title       *string `json:"title"`
		Description *string `json:"description"`
		Card        *string `json:"card_type"`
		State       string  `json:"state" binding:"In(open,closed)"`
	}
	if err := c.bind(&in); err != nil {
		return err
	}
	set(&p.Title, in.Title)
	set(&p.Description, in.Description)
	set(&p.Card, in.Card)
	if in.State != "" {
		p.Closed, p.ClosedAt = in.State == "closed", nil
		if p.Closed {
			at := c.now
			p.ClosedAt = &at
		}
	}
	p.Updated = c.now
	return c.ok(c.projectView(p))
}

// listColumns lists the columns in their order.
func listColumns(c *call, p *project) error {
	items := slices.Clone(p.columns)
	slices.SortStableFunc(items, func(a, b *column) int { return int(a.Sorting - b.Sorting) })
	return c.ok(mapped(linked(c, items), func(k *column) *columnJSON { return c.columnView(p, k) }))
}

// createColumn adds a column.
func createColumn(c *call, p *project) error {
	var in struct {
		Title string `json:"title" binding:"Required"`
		Color string `json:"color"`
	}
	if err := c.bind(&in); err != nil {
		return err
	}
	return c.created(c.columnView(p, c.addColumn(p, in.Title, in.Color)))
}

// editColumn changes what the body names.
func editColumn(c *call, p *project, k *column) error {
	var in struct {
		Title   *string `json:"title"`
		Color   *string `json:"color"`
		Sorting *int64  `json:"sorting"`
	}
	if err := c.bind(&in); err != nil {
		return err
	}
	set(&k.Title, in.Title)
	set(&k.Color, in.Color)
	set(&k.Sorting, in.Sorting)
	k.Updated = c.now
	return c.ok(c.columnView(p, k))
}

// deleteColumn moves the cards to the default column, which itself stays.
func deleteColumn(c *call, p *project, k *column) error {
	if k.Default {
		return fail(http.StatusConflict, "the default column cannot be deleted")
	}
	home, _ := find(p.columns, func(k *column) bool { return k.Default })
	home.cards = append(home.cards, k.cards...)
	p.columns = without(p.columns, k)
	return c.done()
}

// cardOf finds the issue of the path by its id; the caller has to see it.
func (c *call) cardOf() *issue {
	for _, r := range c.w.readable(c.doer) {
		if is, ok := find(r.issues, func(is *issue) bool { return is.ID == c.id("issue_id") && (c.repo == nil || is.Repo == c.repo) }); ok {
			return is
		}
	}
	return nil
}

// place puts a card into one column of the board at a position, and out of the
// others.
func (p *project) place(is *issue, to *column, at int) {
	for _, k := range p.columns {
		k.cards = without(k.cards, is)
	}
	to.cards = slices.Insert(to.cards, min(max(at, 0), len(to.cards)), is)
}

// addCard puts an issue into a column.
func addCard(c *call, p *project, k *column) error {
	is := c.cardOf()
	if is == nil {
		return errNotFound
	}
	p.place(is, k, len(k.cards))
	return c.empty(http.StatusCreated)
}

// dropCard takes an issue off the board.
func dropCard(c *call, _ *project, k *column) error {
	is := c.cardOf()
	if is == nil || !slices.Contains(k.cards, is) {
		return errNotFound
	}
	k.cards = without(k.cards, is)
	return c.done()
}
