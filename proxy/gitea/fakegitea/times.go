package fakegitea

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// trackedTime is time spent on an issue. The running stopwatches are such times too, in
// a list of their own.
type trackedTime struct {
	ID      int64
	issue   *issue
	User    *user
	Seconds int64
	Created time.Time
}

// handleTimes registers tracked times and stopwatches.
// Times of one issue can be read without a login, those of a repository cannot.
func handleTimes(t table) {
	const p = "/repos/{owner}/{repo}"
	t.on("GET "+p+"/times", ranged(func(c *call) error {
		return c.listTimes(func(tt *trackedTime) bool { return tt.issue.Repo == c.repo })
	}), needToken)
	t.on("GET /user/times", ranged(func(c *call) error {
		repos := c.w.readable(c.doer)
		return c.listTimes(func(tt *trackedTime) bool {
			return tt.User == c.doer && slices.Contains(repos, tt.issue.Repo)
		})
	}), needToken)
	t.on("GET "+p+"/issues/{index}/times", ranged(onNamedIssue(func(c *call, is *issue) error {
		return c.listTimes(func(tt *trackedTime) bool { return tt.issue == is })
	})))
	t.on("POST "+p+"/issues/{index}/times", onNamedIssue(readsFor(addTime)), needToken)

	t.on("GET /user/stopwatches", listStopwatches, needToken)
	t.on("POST "+p+"/issues/{index}/stopwatch/start", onIssue(startWatch), needToken)
	t.on("POST "+p+"/issues/{index}/stopwatch/stop", onIssue(stopWatch), needToken)
}

// timeView renders a tracked time.
func (c *call) timeView(tt *trackedTime) obj {
	return obj{
		"id", tt.ID, "created", tt.Created, "time", tt.Seconds, "user_id", tt.User.ID,
		"user_name", tt.User.Login, "issue_id", tt.issue.ID, "issue", c.issueView(tt.issue),
	}
}

// listTimes pages times, of one user or all.
func (c *call) listTimes(keep func(*trackedTime) bool) error {
	name := c.query.Get("user")
	of := c.w.userByLogin(name)
	if name != "" && of == nil {
		return errNoUser(http.StatusNotFound, name)
	}
	items := filter(c.w.times, func(tt *trackedTime) bool {
		return keep(tt) && (of == nil || tt.User == of) && c.within(tt.Created)
	})
	return c.ok(mapped(counted(c, items), c.timeView))
}

// addTimeInput is the body of addTime.
type addTimeInput struct {
	// Seconds. Zero counts as missing.
	Time    int64      `json:"time" binding:"Required"`
	User    string     `json:"user_name"`
	Created *time.Time `json:"created"`
}

// addTime books time of the caller. Booking for others is not in the demo.
func addTime(c *call, is *issue, in *addTimeInput) error {
	if in.User != "" && !strings.EqualFold(in.User, c.doer.Login) {
		return notInDemo(c)
	}
	return c.ok(c.timeView(c.w.book(is, c.doer, in.Time, c.commitTime(in.Created))))
}

// book adds a tracked time and its event, whose body has the seconds behind a bar.
// The server stores it so, to tell seconds from the texts of older versions, and turns it into
// such a text in its timeline. The double does not.
func (w *world) book(is *issue, who *user, seconds int64, at time.Time) *trackedTime {
	tt := &trackedTime{ID: w.next("time"), issue: is, User: who, Seconds: seconds, Created: at}
	w.times = append(w.times, tt)
	w.addEvent(is, who, comment{Kind: "add_time_manual", Body: fmt.Sprintf("|%d", seconds)})
	return tt
}

// watchOn finds the caller's stopwatch on an issue.
func (c *call) watchOn(is *issue) *trackedTime {
	w, _ := find(c.w.watches, func(w *trackedTime) bool { return w.User == c.doer && w.issue == is })
	return w
}

// startWatch starts a stopwatch; one at a time on an issue.
// The real server ends a watch on another issue and books it. Here both run.
func startWatch(c *call, is *issue) error {
	if c.watchOn(is) != nil {
		return fail(http.StatusConflict, "cannot start a stopwatch again if it already exists")
	}
	c.w.watches = append(c.w.watches, &trackedTime{issue: is, User: c.doer, Created: c.now})
	return c.empty(http.StatusCreated)
}

// stopWatch stops a stopwatch and books its time.
func stopWatch(c *call, is *issue) error {
	w := c.watchOn(is)
	if w == nil {
		return fail(http.StatusConflict, "cannot stop a non-existent stopwatch")
	}
	c.w.watches = without(c.w.watches, w)
	c.w.book(is, c.doer, int64(c.now.Sub(w.Created)/time.Second), c.now)
	// 201 without a body, also for stopping.
	return c.empty(http.StatusCreated)
}

// listStopwatches lists the caller's running stopwatches.
func listStopwatches(c *call) error {
	mine := filter(c.w.watches, func(w *trackedTime) bool { return w.User == c.doer })
	return c.ok(mapped(counted(c, mine), func(w *trackedTime) obj {
		run := c.now.Sub(w.Created)
		return obj{
			"created", w.Created, "seconds", int64(run / time.Second), "duration", run.String(),
			"issue_index", w.issue.Index, "issue_title", w.issue.Title,
			"repo_owner_name", w.issue.Repo.Owner.Login, "repo_name", w.issue.Repo.Name,
		}
	}))
}
