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

// handleMirrors registers mirrors and migration. Nothing is ever contacted.
func handleMirrors(t table) {
	const p = "/repos/{owner}/{repo}"
	t.on("GET "+p+"/push_mirrors", func(c *call) error { return c.ok(linked(c, c.repo.mirrors)) }, needAdmin)
	t.on("POST "+p+"/push_mirrors", reads(createMirror), needAdmin, needActive)
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

// createMirrorInput is the body of createMirror.
type createMirrorInput struct {
	Address  string `json:"remote_address"`
	Username string `json:"remote_username"`
	Password string `json:"remote_password"`
	Interval string `json:"interval"`
	OnCommit bool   `json:"sync_on_commit"`
}

// createMirror adds a push mirror. The password is dropped at once: no route shows it,
// and nothing is ever pushed.
func createMirror(c *call, in *createMirrorInput) error {
	if !strings.HasPrefix(in.Address, "https://") && !strings.HasPrefix(in.Address, "http://") {
		return fail(http.StatusBadRequest, "Invalid mirror remote URL")
	}
	if in.Interval != "" {
		if _, err := time.ParseDuration(in.Interval); err != nil {
			return fail(http.StatusBadRequest, "%v", err)
		}
	}
	m := &pushMirror{
		Repo: c.repo.Name, Remote: "remote_mirror_" + randomHex(5), Address: in.Address, Created: c.now,
		Interval: in.Interval, OnCommit: in.OnCommit,
	}
	c.repo.mirrors = append(c.repo.mirrors, m)
	return c.ok(m)
}

// onMirror finds a push mirror by name.
func onMirror(f func(*call, *pushMirror) error) handler {
	return func(c *call) error {
		return onFirst(c, c.repo.mirrors, func(m *pushMirror) bool { return m.Remote == c.params["name"] }, f)
	}
}
