package fakegitea

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// activity is an event of the feeds. Content is in Gitea's own form, such as "12|title"
// for an issue, which clients take apart. The double leaves out what hangs on an event
// there, such as the comment itself.
type activity struct {
	ID           int64
	actor        *user
	repo         *repo
	Op           string
	Ref, Content string
	Created      time.Time
}

// thread is a notification of one user about one issue. There is one for each pair, and
// new events make it unread again instead of adding another.
type thread struct {
	ID      int64
	user    *user
	issue   *issue
	latest  *comment
	state   string // unread, read or pinned
	Updated time.Time
}

// record adds an event to the feeds. There is one list for all readers, filtered when
// it is read.
func (w *world) record(actor *user, r *repo, op, content, ref string) {
	w.feed = append(w.feed, &activity{
		ID: w.next("activity"), actor: actor, repo: r, Op: op, Content: content, Ref: ref, Created: w.now(),
	})
}

// record adds an event of the caller in the repository at hand.
func (c *call) record(op, content, ref string) {
	if c.doer != nil && c.repo != nil {
		c.w.record(c.doer, c.repo, op, content, ref)
	}
}

// notify makes notifications for the watchers of the repository, the assignees and the
// poster of an issue, but not the caller. Those who only commented are not told, though
// Gitea counts them among the participants. Who cannot read the repository any more is
// told nothing.
func (c *call) notify(is *issue, m *comment) {
	for _, u := range append(append(slices.Clone(is.Repo.Watchers), is.Assignees...), is.Poster) {
		if u != c.doer && c.w.access(u, is.Repo) >= accessRead {
			c.w.notifyUser(u, is, m)
		}
	}
}

// notifyUser makes or refreshes the thread of an issue.
func (w *world) notifyUser(u *user, is *issue, m *comment) {
	t, ok := find(w.threads, func(t *thread) bool { return t.user == u && t.issue == is })
	if !ok {
		t = &thread{ID: w.next("thread"), user: u, issue: is}
		w.threads = append(w.threads, t)
	}
	// A pinned notification stays pinned, and is not counted as unread.
	if t.state != "pinned" {
		t.state = "unread"
	}
	t.latest, t.Updated = cmp.Or(m, t.latest), w.now()
}

// handleFeed registers activities and notifications. Feeds of repositories and users
// are open to anonymous callers, as far as they see the repositories. Feeds have a
// total and no Link, notifications have both.
func handleFeed(t table) {
	t.on("GET /repos/{owner}/{repo}/activities/feeds", func(c *call) error {
		return c.listFeed(func(a *activity) bool { return a.repo == c.repo })
	})
	t.on("GET /users/{username}/activities/feeds", onUser(func(c *call, u *user) error {
		return c.listFeed(func(a *activity) bool { return a.actor == u })
	}))
	t.on("GET /orgs/{org}/activities/feeds", func(c *call) error {
		return c.listFeed(func(a *activity) bool { return a.repo.Owner == c.owner })
	}, needMember)
	t.on("GET /teams/{id}/activities/feeds", onTeam(func(c *call, tm *team) error {
		return c.listFeed(func(a *activity) bool { return tm.has(a.repo) })
	}), needToken)
	t.on("GET /notifications", func(c *call) error { return c.listThreads(nil) }, needToken)
	t.on("PUT /notifications", func(c *call) error { return c.readThreads(nil) }, needToken)
	t.on("GET /notifications/new", newThreads, needToken)
	t.on("GET /notifications/threads/{id}", onThread(renders((*call).threadView)), needToken)
	t.on("PATCH /notifications/threads/{id}", onThread(func(c *call, t *thread) error {
		t.mark(c)
		return c.json(http.StatusResetContent, c.threadView(t))
	}), needToken)
	t.on("GET /repos/{owner}/{repo}/notifications", func(c *call) error { return c.listThreads(c.repo) }, needToken)
	t.on("PUT /repos/{owner}/{repo}/notifications", func(c *call) error { return c.readThreads(c.repo) }, needToken)
}

// listFeed lists events of repositories that the caller may see, newest first. A date
// means a day in UTC.
func (c *call) listFeed(keep func(*activity) bool) error {
	day := c.query.Get("date")
	items := filter(c.w.feed, func(a *activity) bool {
		return keep(a) && c.w.access(c.doer, a.repo) >= accessRead &&
			(day == "" || a.Created.Format(time.DateOnly) == day)
	})
	slices.Reverse(items)
	return c.ok(mapped(counted(c, items), func(a *activity) obj {
		return obj{
			"id", a.ID, "user_id", a.actor.ID, "op_type", a.Op, "act_user_id", a.actor.ID,
			"act_user", c.user(a.actor), "repo_id", a.repo.ID, "repo", c.repoView(a.repo), "comment_id", 0,
			"comment", nil, "ref_name", a.Ref, "is_private", a.repo.Private, "content", a.Content,
			"created", a.Created,
		}
	}))
}

// threadView renders a notification. The address in subject.url is that of the issue
// for pull requests, too. The two for a comment are empty until there is one.
func (c *call) threadView(t *thread) obj {
	is := t.issue
	word, latest, page := state(is.Closed), "", ""
	if is.pull != nil && is.pull.Merged {
		word = "merged"
	}
	if t.latest != nil {
		latest = c.api(is.Repo, "issues", "comments", fmt.Sprint(t.latest.ID))
		page = fmt.Sprintf("%s#issuecomment-%d", c.issueURL(is), t.latest.ID)
	}
	sub := obj{
		"title", is.Title, "url", c.api(is.Repo, "issues", fmt.Sprint(is.Index)), "latest_comment_url", latest,
		"html_url", c.issueURL(is), "latest_comment_html_url", page, "type", t.kind(), "state", word,
	}
	return obj{
		"id", t.ID, "repository", c.repoBare(is.Repo), "subject", sub, "unread", t.state == "unread",
		"pinned", t.state == "pinned",
		"updated_at", t.Updated, "url", fmt.Sprintf("%s/api/v1/notifications/threads/%d", c.root, t.ID),
	}
}

// kind is the word for what a notification is about.
func (t *thread) kind() string {
	if t.issue.pull != nil {
		return "Pull"
	}
	return "Issue"
}

// myThreads lists the caller's notifications, in one repository or all.
func (c *call) myThreads(r *repo) []*thread {
	return filter(c.w.threads, func(t *thread) bool { return t.user == c.doer && (r == nil || t.issue.Repo == r) })
}

// wantedThreads applies status-types, or all. Without either, what was read is left
// out. Marking uses the same choice here; in Gitea it passes over pinned ones unless
// they are asked for.
func (c *call) wantedThreads(r *repo) []*thread {
	types := c.query["status-types"]
	if len(types) == 0 {
		types = []string{"unread", "pinned"}
	}
	return filter(c.myThreads(r), func(t *thread) bool {
		kinds := c.query["subject-type"]
		return (c.queryBool("all") || slices.Contains(types, t.state)) &&
			(len(kinds) == 0 || slices.ContainsFunc(kinds, func(k string) bool {
				return strings.EqualFold(k, t.kind())
			}))
	})
}

// listThreads lists notifications, the latest first.
func (c *call) listThreads(r *repo) error {
	within, err := c.queryRange("since", "before")
	if err != nil {
		return err
	}
	items := filter(c.wantedThreads(r), func(t *thread) bool { return within(t.Updated) })
	slices.SortStableFunc(items, func(a, b *thread) int {
		return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(b.ID, a.ID))
	})
	return c.ok(mapped(linked(c, items), c.threadView))
}

// readThreads marks notifications and answers 205 with them. A 205 must have no body
// (RFC 9110 section 15.3.6), but the real server sends one. A malformed time is 400
// here, where listing says 422.
func (c *call) readThreads(r *repo) error {
	last, err := c.queryTime("last_read_at")
	if err != nil {
		return fail(http.StatusBadRequest, "%v", err)
	}
	items := filter(c.wantedThreads(r), func(t *thread) bool { return last.IsZero() || !t.Updated.After(last) })
	for _, t := range items {
		t.mark(c)
	}
	return c.json(http.StatusResetContent, mapped(items, c.threadView))
}

// mark puts a notification into the state that the query names, which is read without
// one. Any word is taken; Gitea makes one that it does not know read.
func (t *thread) mark(c *call) {
	t.state = cmp.Or(c.query.Get("to-status"), "read")
}

// newThreads counts the unread notifications.
func newThreads(c *call) error {
	unread := filter(c.myThreads(nil), func(t *thread) bool { return t.state == "unread" })
	return c.ok(map[string]int{"new": len(unread)})
}

// onThread finds the notification of the path. A stranger's is 403 and so shows that it
// exists. Administrators, whom the message admits, are refused here as well, unlike in
// Gitea.
func onThread(f func(*call, *thread) error) handler {
	return func(c *call) error {
		t, ok := find(c.w.threads, func(t *thread) bool { return t.ID == c.id("id") })
		switch {
		case !ok:
			return fail(http.StatusNotFound, "notification does not exist [id: %d]", c.id("id"))
		case t.user != c.doer:
			return fail(http.StatusForbidden,
				"only user itself and admin are allowed to read/change this thread %d", t.ID)
		}
		return f(c, t)
	}
}
