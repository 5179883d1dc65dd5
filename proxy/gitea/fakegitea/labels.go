package fakegitea

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// handleLabels registers labels and milestones. Labels and milestones have a total and
// no Link; the labels of one issue have neither and are not paged.
func handleLabels(t table) {
	const p = "/repos/{owner}/{repo}"
	t.on("GET "+p+"/labels", func(c *call) error { return c.ok(c.labels(counted(c, sortedLabels(c.repo.labels)))) })
	t.on("POST "+p+"/labels", reads(createLabel), needToken, needWrite)
	t.on("GET "+p+"/labels/{id}", getLabel)
	t.on("DELETE "+p+"/labels/{id}", deleteLabel, needToken, needWrite)

	t.on("GET "+p+"/issues/{index}/labels", onIssue(func(c *call, is *issue) error {
		return c.ok(c.labels(sortedLabels(is.Labels)))
	}))
	t.on("POST "+p+"/issues/{index}/labels", onIssue(changeLabels(false)), needToken)
	t.on("PUT "+p+"/issues/{index}/labels", onIssue(changeLabels(true)), needToken)
	t.on("DELETE "+p+"/issues/{index}/labels/{id}", onIssue(removeIssueLabel), needToken)

	t.on("GET "+p+"/milestones", listMilestones)
	t.on("POST "+p+"/milestones", createMilestone, needToken, needWrite)
	t.on("GET "+p+"/milestones/{id}", onMilestone(renders((*call).milestoneView)))
	t.on("PATCH "+p+"/milestones/{id}", onMilestone(editMilestone), needToken, needWrite)

	t.on("GET /orgs/{org}/labels", func(c *call) error {
		return c.ok(c.labels(counted(c, sortedLabels(c.owner.Labels))))
	})
}

// allLabels is what an issue of the repository can carry: its own labels and those of
// its organisation. Ids are unique over both.
func (r *repo) allLabels() []*label {
	return append(append([]*label{}, r.labels...), r.Owner.Labels...)
}

// sortedLabels orders labels by name. Letter case does not count, as it does when a
// label is looked up.
func sortedLabels(ls []*label) []*label {
	out := slices.Clone(ls)
	slices.SortStableFunc(out, func(a, b *label) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return out
}

var colorPattern = regexp.MustCompile(`^#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3})$`)

// color checks a colour and spells it as stored: six digits without "#". Clients may
// send three or six digits, with the sign or without; the answer has always the one
// form.
func color(s string) (string, error) {
	s = strings.TrimSpace(s)
	if len(s) == 3 || len(s) == 6 {
		s = "#" + s
	}
	if !colorPattern.MatchString(s) {
		return "", fail(http.StatusUnprocessableEntity, "invalid color: %s", s)
	}
	s = strings.ToLower(strings.TrimPrefix(s, "#"))
	if len(s) == 3 {
		s = strings.Repeat(s[:1], 2) + strings.Repeat(s[1:2], 2) + strings.Repeat(s[2:], 2)
	}
	return s, nil
}

// createLabel makes a label of the body. A second label of the name is made without a
// word.
func createLabel(c *call, l *label) error {
	var err error
	if l.Color, err = color(l.Color); err != nil {
		return err
	}
	if l.Exclusive { // would put other labels off an issue
		return notInDemo(c)
	}
	l.ID = c.w.next("label")
	c.repo.labels = append(c.repo.labels, l)
	return c.created(c.label(l))
}

// getLabel takes an id or a name. A label whose name is a number can be had by id only.
// Labels of the organisation are not found.
func getLabel(c *call) error {
	key := c.params["id"]
	id, err := strconv.ParseInt(key, 10, 64)
	l, ok := find(c.repo.labels, func(l *label) bool { return err == nil && l.ID == id || err != nil && l.Name == key })
	if !ok {
		return fail(http.StatusNotFound, "label does not exist [label_id: %d, repo_id: %d]", c.id("id"), c.repo.ID)
	}
	return c.ok(c.label(l))
}

// set assigns when the input names a value.
func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// deleteLabel deletes by id and answers 204 whether or not there was one; a name counts
// as id 0. So a client that takes 204 for success can be wrong. Issues lose the label
// without an event.
func deleteLabel(c *call) error {
	gone := func(l *label) bool { return l.Org == nil && l.ID == c.id("id") }
	c.repo.labels = slices.DeleteFunc(c.repo.labels, gone)
	for _, is := range c.repo.issues {
		is.Labels = slices.DeleteFunc(is.Labels, gone)
	}
	return c.done()
}

// readLabels decodes the labels of a body, by id or by name; unknown ones are skipped.
// The body comes before the permission. JSON numbers are float64 here, as the list may
// hold both kinds; Gitea refuses a list that mixes them.
func (c *call) readLabels() ([]*label, error) {
	var in struct {
		Labels []any `json:"labels"`
	}
	if err := c.bind(&in); err != nil {
		return nil, err
	}
	if c.perm < accessWrite {
		return nil, fail(http.StatusForbidden, "write permission is required")
	}
	for _, v := range in.Labels {
		_, isName := v.(string)
		if _, isID := v.(float64); !isID && !isName {
			return nil, fail(http.StatusBadRequest, "a label must be an integer or a string")
		}
	}
	return filter(c.repo.allLabels(), func(l *label) bool {
		return slices.ContainsFunc(in.Labels, func(v any) bool { return v == l.Name || v == float64(l.ID) })
	}), nil
}

// changeLabels adds labels to those of an issue, or replaces them. Both answer with all
// labels that the issue has then.
func changeLabels(replace bool) func(*call, *issue) error {
	return func(c *call, is *issue) error {
		next, err := c.readLabels()
		if err != nil {
			return err
		}
		if !replace {
			next = slices.Concat(is.Labels, filter(next, func(l *label) bool { return !slices.Contains(is.Labels, l) }))
		}
		c.setLabels(is, next)
		return c.ok(c.labels(sortedLabels(is.Labels)))
	}
}

// setLabels replaces the labels of an issue and says so in the timeline.
func (c *call) setLabels(is *issue, next []*label) {
	replaceList(&is.Labels, next, func(l *label, body string) {
		c.w.addEvent(is, c.doer, comment{Kind: "label", Body: body, label: l})
	})
}

// replaceList replaces a list. It calls event for each item that comes, with "1", and for each
// that goes, with "", as Gitea marks them; those that stay get none.
func replaceList[T comparable](list *[]T, next []T, event func(it T, mark string)) {
	old := *list
	*list = next
	for _, it := range next {
		if !slices.Contains(old, it) {
			event(it, "1")
		}
	}
	for _, it := range old {
		if !slices.Contains(next, it) {
			event(it, "")
		}
	}
}

// removeIssueLabel removes one label of an issue by id or name. A label that the issue
// does not have is 204, too, if the repository knows it.
func removeIssueLabel(c *call, is *issue) error {
	if c.perm < accessWrite {
		return errForbidden
	}
	named := func(l *label) bool { return l.ID == c.id("id") || l.Name == c.params["id"] }
	if !slices.ContainsFunc(c.repo.allLabels(), named) {
		return fail(http.StatusUnprocessableEntity, "label does not exist [label_id: 0]")
	}
	c.setLabels(is, slices.DeleteFunc(slices.Clone(is.Labels), named))
	return c.done()
}

// milestoneByID finds a milestone; 0 and unknown ids give nil.
func (r *repo) milestoneByID(id int64) *milestone {
	m, _ := find(r.milestones, func(m *milestone) bool { return m.ID == id })
	return m
}

// onMilestone finds the milestone of the path, by id or title.
func onMilestone(f func(*call, *milestone) error) handler {
	return func(c *call) error {
		return onFirst(c, c.repo.milestones, func(m *milestone) bool {
			return m.ID == c.id("id") || m.Title == c.params["id"]
		}, f)
	}
}

// milestoneView renders a milestone of the repository at hand.
func (c *call) milestoneView(m *milestone) obj { return c.milestone(c.repo, m) }

// listMilestones lists milestones by due date, those without one last; the default is
// the open ones. The name is a part of the title and its letter case counts.
func listMilestones(c *call) error {
	st, name := c.query.Get("state"), c.query.Get("name")
	items := filter(c.repo.milestones, func(m *milestone) bool {
		return (st == "all" || (m.State == "closed") == (st == "closed")) && strings.Contains(m.Title, name)
	})
	never := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	slices.SortStableFunc(items, func(a, b *milestone) int {
		return cmp.Or(a.Due, &never).Compare(*cmp.Or(b.Due, &never))
	})
	return c.ok(mapped(counted(c, items), c.milestoneView))
}

// createMilestone makes a milestone of the body.
func createMilestone(c *call) error {
	m := &milestone{ID: c.w.next("milestone"), State: "open", Created: c.now}
	if err := c.fillMilestone(m); err != nil {
		return err
	}
	c.repo.milestones = append(c.repo.milestones, m)
	return c.created(c.milestoneView(m))
}

// editMilestone edits a milestone.
func editMilestone(c *call, m *milestone) error {
	if err := c.fillMilestone(m); err != nil {
		return err
	}
	return c.ok(c.milestoneView(m))
}

// fillMilestone reads the body into a milestone. What it does not name stays, but for
// the date, which goes: a client must repeat it in every change. States other than open
// and closed change nothing.
func (c *call) fillMilestone(m *milestone) error {
	// A copy, so that a refused body changes nothing.
	next := *m
	next.Due = nil
	if err := c.bind(&next); err != nil {
		return err
	}
	next.Title, next.Updated = cmp.Or(next.Title, m.Title), c.now
	switch {
	case next.State == "open":
		next.ClosedAt = nil
	case next.State != "closed":
		next.State = m.State
	case m.State != "closed":
		next.ClosedAt = &next.Updated
	}
	*m = next
	return nil
}
