package fakegitea

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

// handleWorkflows registers workflows, which are files on the default branch.
func handleWorkflows(t table) {
	const p = "/repos/{owner}/{repo}/actions/workflows"
	t.on("GET "+p, func(c *call) error {
		list := mapped(c.workflows(), c.workflowView)
		// The list is not paged, and the total is in the body only.
		return c.ok(obj{"workflows", list, "total_count", len(list)})
	})
	t.on("GET /repos/{owner}/{repo}/actions/artifacts", func(c *call) error { // nothing runs, so nothing is left behind
		return c.ok(obj{"artifacts", []any{}, "total_count", 0})
	})
	t.on("POST "+p+"/{workflow_id}/dispatches", onWorkflow(readsFor(dispatchWorkflow)), needWrite)
}

// workflows lists the workflow files.
func (c *call) workflows() []string {
	head := c.repo.git.branch(c.repo.DefaultBranch)
	if head == nil {
		return nil
	}
	return filter(slices.Sorted(maps.Keys(head.files)), func(p string) bool {
		ext := path.Ext(p)
		// Files on other branches, and in .github/workflows, are left out.
		return path.Dir(p) == ".gitea/workflows" && (ext == ".yml" || ext == ".yaml")
	})
}

// onWorkflow finds a workflow by its file name.
// The id of a workflow is that name; there is no number.
func onWorkflow(f func(*call, string) error) handler {
	return func(c *call) error {
		file, ok := find(c.workflows(), func(p string) bool { return path.Base(p) == c.params["workflow_id"] })
		if !ok {
			return fail(http.StatusNotFound, "workflow %q doesn't exist", c.params["workflow_id"])
		}
		return f(c, file)
	}
}

// workflowView renders a workflow. Its name is the one in the file, or that of
// the file.
func (c *call) workflowView(file string) obj {
	head := c.repo.git.branch(c.repo.DefaultBranch)
	id := path.Base(file)
	name := id
	for line := range strings.Lines(string(c.repo.git.blobs[head.files[file]])) {
		if v, ok := strings.CutPrefix(line, "name:"); ok {
			name = strings.TrimSpace(v)
			break
		}
	}
	last := c.repo.git.lastChange(head, file)
	return obj{
		"id", id, "name", name, "path", file, "state", "active", "created_at", last.committer.When,
		"updated_at", last.committer.When, "url", c.api(c.repo, "actions", "workflows", escape(id)),
		"html_url", c.repoURL(c.repo) + "/src/branch/" + escapePath(c.repo.DefaultBranch) + "/" + escapePath(file),
		"badge_url", c.repoURL(c.repo, "actions", "workflows", escape(id), "badge.svg") +
			"?branch=" + escape(c.repo.DefaultBranch),
		"deleted_at", time.Time{},
	}
}

// dispatchWorkflowInput is the body of dispatchWorkflow.
type dispatchWorkflowInput struct {
	Ref    string            `json:"ref" binding:"Required"`
	Inputs map[string]string `json:"inputs"`
}

// dispatchWorkflow queues a run by hand.
// The inputs are not looked at, nor whether the file may be run by hand.
func dispatchWorkflow(c *call, file string, in *dispatchWorkflowInput) error {
	branch := strings.TrimPrefix(in.Ref, "refs/heads/")
	if c.repo.git.resolve(in.Ref) == nil {
		return fail(http.StatusNotFound, "ref %q doesn't exist", in.Ref)
	}
	r := c.w.addRun(c.repo, c.doer, path.Base(file), branch, "workflow_dispatch", path.Base(file))
	// Without this the caller does not learn which run it started.
	if !c.queryBool("return_run_details") {
		return c.done()
	}
	return c.ok(obj{
		"workflow_run_id", r.ID, "run_url", c.api(c.repo, "actions", "runs", fmt.Sprint(r.ID)),
		"html_url", c.repoURL(c.repo, "actions", "runs", fmt.Sprint(r.ID)),
	})
}
