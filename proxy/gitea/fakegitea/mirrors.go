package fakegitea

import (
	"net/http"
	"strings"
	"time"
)

// pushMirror is a remote that pushes are repeated to.
type pushMirror struct {
	Repo     string     `json:"repo_name"`
	Remote   string     `json:"remote_name"`
	Address  string     `json:"remote_address"`
	Created  time.Time  `json:"created"`
	Updated  *time.Time `json:"last_update"`
	Error    string     `json:"last_error"`
	Interval string     `json:"interval"`
	OnCommit bool       `json:"sync_on_commit"`
}

// handleMirrors registers mirrors and migration. Nothing is ever contacted. A
// synchronisation only sets the time of the last one.
func handleMirrors(t table) {
	const p = "/repos/{owner}/{repo}"
	t.on("GET "+p+"/push_mirrors", func(c *call) error { return c.ok(linked(c, c.repo.mirrors)) }, needAdmin)
	t.on("POST "+p+"/push_mirrors", createMirror, needAdmin, needActive)
	t.on("DELETE "+p+"/push_mirrors/{name}", onMirror(func(c *call, m *pushMirror) error {
		c.repo.mirrors = without(c.repo.mirrors, m)
		return c.done()
	}), needAdmin)
	t.on("POST "+p+"/push_mirrors-sync", func(c *call) error {
		at := c.now
		for _, m := range c.repo.mirrors {
			m.Updated = &at
		}
		return c.empty(http.StatusOK)
	}, needAdmin, needActive)
}

// createMirror adds a push mirror. A password in the body is not even read: no route
// shows it, and nothing is ever pushed. The answer is 200, not 201. The name is random
// and the only key of a mirror. An interval may be missing here, which Gitea refuses,
// and has no least value.
func createMirror(c *call) error {
	m := &pushMirror{}
	if err := c.bind(m); err != nil {
		return err
	}
	if !strings.HasPrefix(m.Address, "https://") && !strings.HasPrefix(m.Address, "http://") {
		return fail(http.StatusBadRequest, "Invalid mirror remote URL")
	}
	if m.Interval != "" {
		if _, err := time.ParseDuration(m.Interval); err != nil {
			return fail(http.StatusBadRequest, "%v", err)
		}
	}
	m.Repo, m.Remote, m.Created = c.repo.Name, "remote_mirror_"+randomHex(5), c.now
	m.Updated, m.Error = nil, ""
	c.repo.mirrors = append(c.repo.mirrors, m)
	return c.ok(m)
}

// onMirror finds a push mirror by name.
func onMirror(f func(*call, *pushMirror) error) handler {
	return func(c *call) error {
		return onFirst(c, c.repo.mirrors, func(m *pushMirror) bool { return m.Remote == c.params["name"] }, f)
	}
}
