package fakegitea

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// run is a run of a workflow with its one job. Nothing ever executes: a run that was
// dispatched or queued again stays queued, and only the seed has completed ones.
type run struct {
	ID, Number, Attempt int64
	repo                *repo
	Title, Workflow     string
	Event, Branch, SHA  string
	Status, Conclusion  string
	actor               *user
	Started, Completed  time.Time
	Created             time.Time

	jobID       int64
	runner, log string
	steps       []string
}

// handleRuns registers runs, jobs and workflows.
func handleRuns(t table) {
	const p = "/repos/{owner}/{repo}/actions"
	t.on("GET "+p+"/runs", listRuns)
	t.on("GET "+p+"/runs/{run}", onRun(renders((*call).runView)))
	t.on("GET "+p+"/runs/{run}/jobs", onRun(func(c *call, r *run) error { return c.listJobs([]*run{r}) }))
	t.on("POST "+p+"/runs/{run}/cancel", onRun(cancelRun), needWrite)
	t.on("POST "+p+"/runs/{run}/rerun", onRun(func(c *call, r *run) error { return c.rerun(r, c.runView) }), needWrite)
	t.on("POST "+p+"/runs/{run}/rerun-failed-jobs", onRun(rerunFailed), needWrite)
	t.on("POST "+p+"/runs/{run}/jobs/{job_id}/rerun", onRun(func(c *call, r *run) error {
		if r.jobID != c.id("job_id") {
			return errNotFound
		}
		return c.rerun(r, c.jobView)
	}), needWrite)
	t.on("GET "+p+"/jobs", func(c *call) error { return c.listJobs(c.repo.actions.runs) })
	t.on("GET "+p+"/jobs/{job_id}", onJob(renders((*call).jobView)))
	t.on("GET "+p+"/jobs/{job_id}/logs", onJob(func(c *call, r *run) error {
		if r.log == "" { // nothing ran yet
			return errNotFound
		}
		return c.text(r.log)
	}))
	handleWorkflows(t)
}

// onRun finds the run of the path.
func onRun(f func(*call, *run) error) handler {
	return func(c *call) error {
		r, ok := find(c.repo.actions.runs, func(r *run) bool { return r.ID == c.id("run") })
		if !ok {
			return fail(http.StatusNotFound, "run with id %d: resource does not exist", c.id("run"))
		}
		return f(c, r)
	}
}

// onJob finds the run of a job.
func onJob(f func(*call, *run) error) handler {
	return func(c *call) error {
		return onFirst(c, c.repo.actions.runs, func(r *run) bool { return r.jobID == c.id("job_id") }, f)
	}
}

// runView renders a run. The repository in it carries no permissions.
// The previous attempt is always null: a run that is queued again forgets the one before.
func (c *call) runView(r *run) any {
	rv := c.repoBare(r.repo)
	rv.set("permissions", obj{"admin", false, "push", false, "pull", false})
	return obj{
		"id", r.ID, "url", c.api(r.repo, "actions", "runs", fmt.Sprint(r.ID)), "previous_attempt_url", nil,
		"html_url", c.repoURL(r.repo, "actions", "runs", fmt.Sprint(r.ID)), "display_title", r.Title,
		"path", r.Workflow + "@refs/heads/" + r.Branch, "event", r.Event, "run_attempt", r.Attempt,
		// The number counts in the repository, the id in the whole instance; paths take the id.
		"run_number", r.Number, "repository_id", 0, "head_sha", r.SHA, "head_branch", r.Branch,
		"status", r.Status, "actor", c.anon(r.actor), "trigger_actor", c.anon(r.actor), "repository", rv,
		"pull_requests", []any{}, "conclusion", opt(r.Conclusion), "started_at", r.Started,
		"completed_at", r.Completed,
	}
}

// listRuns lists runs, newest first, by the filters of the query.
func listRuns(c *call) error {
	is := func(param, have string) bool { return c.query.Get(param) == "" || c.query.Get(param) == have }
	items := filter(c.repo.actions.runs, func(r *run) bool {
		return is("event", r.Event) && is("branch", r.Branch) && is("head_sha", r.SHA) && is("actor", r.actor.Login) &&
			// One parameter is for both words, as in "queued" and "failure".
			(is("status", r.Status) || is("status", r.Conclusion))
	})
	slices.SortFunc(items, func(a, b *run) int { return int(b.ID - a.ID) })
	// The total is in the body as well as in the header; there is no Link.
	return c.ok(obj{"workflow_runs", mapped(counted(c, items), c.runView), "total_count", len(items)})
}

// jobView renders the job of a run.
func (c *call) jobView(r *run) any {
	id := fmt.Sprint(r.jobID)
	steps := []obj{}
	for i, name := range r.steps {
		steps = append(steps, obj{
			"name", name, "number", i + 1, "status", r.Status, "conclusion", opt(r.Conclusion),
			"started_at", r.Started, "completed_at", r.Completed,
		})
	}
	return obj{
		"id", r.jobID, "url", c.api(r.repo, "actions", "jobs", id),
		"html_url", c.repoURL(r.repo, "actions", "runs", fmt.Sprint(r.ID), "jobs", id), "run_id", r.ID,
		"run_url", c.api(r.repo, "actions", "runs", fmt.Sprint(r.ID)), "name", "build",
		"labels", []string{"ubuntu-latest"}, "run_attempt", r.Attempt, "head_sha", r.SHA, "head_branch", r.Branch,
		"status", r.Status, "conclusion", opt(r.Conclusion), "runner_id", 0, "runner_name", opt(r.runner),
		"steps", steps, "created_at", r.Created, "started_at", r.Started, "completed_at", r.Completed,
	}
}

// listJobs lists the jobs of runs.
func (c *call) listJobs(all []*run) error {
	st := c.query.Get("status")
	items := filter(all, func(r *run) bool { return st == "" || r.Status == st || r.Conclusion == st })
	return c.ok(obj{"jobs", mapped(counted(c, items), c.jobView), "total_count", len(items)})
}

// cancelRun cancels a run that is not over.
// A run that is over is the caller's mistake, 400, and so is the opposite in rerun.
func cancelRun(c *call, r *run) error {
	if r.Status == "completed" {
		return fail(http.StatusBadRequest, "this workflow run is already done")
	}
	r.Status, r.Conclusion, r.Completed = "completed", "cancelled", c.now
	return c.ok(c.runView(r))
}

// rerun queues a run again; no runner ever takes it.
func (c *call) rerun(r *run, view func(*run) any) error {
	if r.Status != "completed" {
		return fail(http.StatusBadRequest, "this workflow run is not done")
	}
	r.Attempt++
	// The log of the earlier attempt stays, as there is never another.
	r.Status, r.Conclusion, r.Started, r.Completed = "queued", "", epoch, epoch
	return c.created(view(r))
}

// rerunFailed queues a failed run again. Unlike a rerun it answers without a body.
func rerunFailed(c *call, r *run) error {
	if r.Conclusion != "failure" {
		return fail(http.StatusBadRequest, "this workflow run has no failed jobs")
	}
	err := c.rerun(r, c.runView)
	c.out.body.Reset()
	return err
}

// addRun stores a run of a repository's workflow at the head of a branch.
func (w *world) addRun(r *repo, by *user, workflow, branch, event, title string) *run {
	x := &run{
		ID: w.next("run"), Number: int64(len(r.actions.runs) + 1), Attempt: 1, repo: r, Title: title,
		Workflow: workflow, Event: event, Branch: branch, Status: "queued", actor: by, Started: epoch,
		Completed: epoch, Created: w.now(), jobID: w.next("job"),
	}
	if head := r.git.branch(branch); head != nil {
		x.SHA = head.id
	}
	r.actions.runs = append(r.actions.runs, x)
	return x
}
