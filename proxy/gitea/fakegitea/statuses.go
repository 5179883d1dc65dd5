package fakegitea

import (
	"net/http"
	"slices"
	"time"
)

// commitStatus is a status of a commit.
type commitStatus struct {
	ID                     int64
	SHA, State, Context    string
	TargetURL, Description string
	Creator                *user
	Created, Updated       time.Time
}

// handleStatuses registers commit statuses.
func handleStatuses(t table) {
	const p = "/repos/{owner}/{repo}"
	t.on("GET "+p+"/commits/{ref}/status", onRef(combinedStatus))
	t.on("GET "+p+"/commits/{ref}/statuses", onRef(func(c *call, cm *commit) error { return c.listStatuses(cm.id) }))
	// This one takes full ids only, where the two above resolve names.
	t.on("GET "+p+"/statuses/{sha}", func(c *call) error { return c.listStatuses(c.params["sha"]) })
	t.on("POST "+p+"/statuses/{sha}", reads(createStatus), needToken, needWrite)
}

// onRef finds the commit of the path.
// An unknown name is 404 with git's words.
func onRef(f func(*call, *commit) error) handler {
	return func(c *call) error {
		at, err := c.repo.refOf(c.params["ref"])
		if err != nil {
			return err
		}
		return f(c, at.head)
	}
}

// statusView renders a status.
func (c *call) statusView(s *commitStatus) obj {
	return obj{
		"id", s.ID, "status", s.State, "target_url", s.TargetURL, "description", s.Description,
		"url", c.api(c.repo, "statuses", s.SHA), "context", s.Context, "creator", c.anon(s.Creator),
		"created_at", s.Created, "updated_at", s.Updated,
	}
}

// listStatuses lists the statuses of a full commit id, newest first. Anything
// else than a full id simply has none.
// A wrong name therefore looks like a commit without statuses.
func (c *call) listStatuses(sha string) error {
	st := c.query.Get("state")
	items := filter(c.repo.statuses, func(s *commitStatus) bool { return s.SHA == sha && (st == "" || s.State == st) })
	if c.query.Get("sort") != "oldest" {
		slices.Reverse(items)
	}
	return c.ok(mapped(linked(c, items), c.statusView))
}

// latestStatuses is the newest status of each context, oldest first.
// A status without a context is a context of its own.
func (r *repo) latestStatuses(sha string) []*commitStatus {
	last := map[string]*commitStatus{}
	for _, s := range r.statuses {
		if s.SHA == sha {
			last[s.Context] = s
		}
	}
	return filter(r.statuses, func(s *commitStatus) bool { return last[s.Context] == s })
}

// worst orders the states for the combination: the last one that occurs is the state of
// the whole. A state outside the list, which Gitea stores, is ignored.
var worst = []string{"", "success", "skipped", "warning", "pending", "failure", "error"}

// combinedStatus sums the statuses of a reference up.
func combinedStatus(c *call, cm *commit) error {
	list := c.repo.latestStatuses(cm.id)
	sum := 0
	for _, s := range list {
		sum = max(sum, slices.Index(worst, s.State))
	}
	c.setTotal(len(list))
	base := c.api(c.repo, "commits", cm.id)
	return c.ok(obj{
		// Without statuses the state is empty.
		"state", worst[sum], "sha", cm.id, "total_count", len(list), "statuses", mapped(list, c.statusView),
		"repository", c.repoView(c.repo), "commit_url", base, "url", base + "/status",
	})
}

// createStatusInput is the body of createStatus.
type createStatusInput struct {
	State       string `json:"state"`
	TargetURL   string `json:"target_url"`
	Description string `json:"description"`
	Context     string `json:"context"`
}

// createStatus stores a status. The name is resolved, unlike in GET; any word
// is taken as state.
func createStatus(c *call, in *createStatusInput) error {
	name := c.params["sha"]
	cm := c.repo.git.resolve(name)
	if cm == nil {
		// Its message is for administrators; others get an empty one.
		return fail(http.StatusInternalServerError,
			"GetCommit[%s]: object does not exist [id: %s, rel_path: ]", name, name)
	}
	s := &commitStatus{
		ID: c.w.next("status"), SHA: cm.id, State: in.State, Context: in.Context, TargetURL: in.TargetURL,
		Description: in.Description, Creator: c.doer, Created: c.now, Updated: c.now,
	}
	c.repo.statuses = append(c.repo.statuses, s)
	return c.created(c.statusView(s))
}
