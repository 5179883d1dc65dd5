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

// handleArtifacts registers the files that runs leave.
func handleArtifacts(t table) {
	const p = "/repos/{owner}/{repo}/actions/artifacts"
	t.on("GET "+p, listArtifacts)
}

// artifactView renders an artifact; it lasts 90 days.
func (c *call) artifactView(a *artifact) obj {
	self := c.api(c.repo, "actions", "artifacts", fmt.Sprint(a.ID))
	return obj{
		"id", a.ID, "name", a.Name, "size_in_bytes", len(a.Data), "url", self,
		"archive_download_url", self + "/zip", "expired", false, "workflow_run", c.runView(a.run),
		"created_at", a.Created, "updated_at", a.Created, "expires_at", a.Created.AddDate(0, 0, 90),
	}
}

// listArtifacts lists the artifacts of all runs. There are no paging headers.
func listArtifacts(c *call) error {
	name := c.query.Get("name")
	items := filter(c.repo.actions.artifacts, func(a *artifact) bool {
		return name == "" || a.Name == name
	})
	return c.ok(obj{"artifacts", mapped(items, c.artifactView), "total_count", len(items)})
}

// handleWorkflows registers workflows, which are files on the default branch.
func handleWorkflows(t table) {
	const p = "/repos/{owner}/{repo}/actions/workflows"
	t.on("GET "+p, func(c *call) error {
		list := mapped(c.workflows(), c.workflowView)
		return c.ok(obj{"workflows", list, "total_count", len(list)})
	})
	t.on("POST "+p+"/{workflow_id}/dispatches", onWorkflow(dispatchWorkflow), needWrite)
}

// workflows lists the workflow files.
func (c *call) workflows() []string {
	head := c.repo.git.branch(c.repo.DefaultBranch)
	if head == nil {
		return nil
	}
	return filter(slices.Sorted(maps.Keys(head.files)), func(p string) bool {
		ext := path.Ext(p)
		return path.Dir(p) == ".gitea/workflows" && (ext == ".yml" || ext == ".yaml")
	})
}

// onWorkflow finds a workflow by its file name.
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
		"badge_url",
		c.repoURL(c.repo) + "/actions/workflows/" + escape(id) + "/badge.svg?branch=" + escape(c.repo.DefaultBranch),
		"deleted_at", time.Time{},
	}
}

// dispatchWorkflow queues a run by hand.
func dispatchWorkflow(c *call, file string) error {
	var in struct {
		Ref    string            `json:"ref" binding:"Required"`
		Inputs map[string]string `json:"inputs"`
	}
	if err := c.bind(&in); err != nil {
		return err
	}
	branch := strings.TrimPrefix(in.Ref, "refs/heads/")
	if c.repo.git.resolve(in.Ref) == nil {
		return fail(http.StatusNotFound, "ref %q doesn't exist", in.Ref)
	}
	r := c.w.addRun(c.repo, c.doer, path.Base(file), branch, "workflow_dispatch", path.Base(file))
	if !c.queryBool("return_run_details") {
		return c.done()
	}
	return c.ok(obj{
		"workflow_run_id", r.ID, "run_url", c.api(c.repo, "actions", "runs", fmt.Sprint(r.ID)),
		"html_url", c.repoURL(c.repo, "actions", "runs", fmt.Sprint(r.ID)),
	})
}
