package fakegitea

import (
	"net/http"
	"net/url"
	"time"
)

// hook is a webhook of a repository, organisation, user or the instance.
type hook struct {
	ID               int64
	repo             *repo
	owner            *user // nil with repo nil: the instance's
	Name, Type       string
	Branches         string
	Config           map[string]string
	Events           []string
	Active           bool
	Secret           string
	Created, Updated time.Time
}

// handleHooks registers the webhooks of a repository, and the lists of an organisation's
// and of the instance's.
func handleHooks(t table) {
	list := func(c *call) error { return c.ok(mapped(counted(c, c.myHooks()), hookView)) }
	t.on("GET /orgs/{org}/hooks", list, needOrgOwner)
	t.on("GET /admin/hooks", list, needSiteAdmin)
	const p = "/repos/{owner}/{repo}/hooks"
	t.on("GET "+p, list, needAdmin)
	t.on("POST "+p, createHook, needAdmin)
	t.on("GET "+p+"/{id}", onHook(func(c *call, h *hook) error { return c.ok(hookView(h)) }), needAdmin)
	t.on("PATCH "+p+"/{id}", onHook(editHook), needAdmin)
	t.on("DELETE "+p+"/{id}", onHook(func(c *call, h *hook) error {
		c.w.hooks = without(c.w.hooks, h)
		return c.done()
	}), needAdmin)
	t.on("POST "+p+"/{id}/tests", onHook(func(c *call, _ *hook) error { return c.done() }), needAdmin)
}

// hookView renders a webhook.
func hookView(h *hook) obj {
	config := map[string]string{"url": h.Config["url"], "content_type": h.Config["content_type"]}
	return obj{
		"id", h.ID, "name", h.Name, "type", h.Type, "branch_filter", h.Branches, "config", config,
		"events", h.Events, "authorization_header", "", "active", h.Active, "updated_at", h.Updated,
		"created_at", h.Created,
	}
}

// myHooks lists the hooks that the path is about: those of the repository, of the
// organisation, or with neither of them the instance's.
func (c *call) myHooks() []*hook {
	return filter(c.w.hooks, func(h *hook) bool { return h.repo == c.repo && (c.repo != nil || h.owner == c.owner) })
}

// onHook finds the hook of the path.
func onHook(f func(*call, *hook) error) handler {
	return func(c *call) error {
		h, ok := find(c.myHooks(), func(h *hook) bool { return h.ID == c.id("id") })
		if !ok {
			return errNotFound
		}
		return f(c, h)
	}
}

// hookInput is the body of a webhook.
type hookInput struct {
	Type     string            `json:"type"`
	Name     *string           `json:"name"`
	Config   map[string]string `json:"config"`
	Events   []string          `json:"events"`
	Branches *string           `json:"branch_filter"`
	Auth     *string           `json:"authorization_header"`
	Active   *bool             `json:"active"`
}

// createHook creates a webhook; without events it listens to pushes.
func createHook(c *call) error {
	var in hookInput
	if err := c.bind(&in); err != nil {
		return err
	}
	switch {
	case in.Type == "":
		return fail(http.StatusUnprocessableEntity, "[Type]: Required")
	case !webAddress(in.Config["url"]):
		return fail(http.StatusUnprocessableEntity, "Invalid url")
	}
	h := &hook{
		ID: c.w.next("hook"), repo: c.repo, Type: in.Type, Events: []string{"push"},
		Config: map[string]string{}, Created: c.now, Updated: c.now,
	}
	c.w.hooks = append(c.w.hooks, h)
	in.apply(h)
	return c.created(hookView(h))
}

// webAddress says whether a hook can be sent to the address.
func webAddress(s string) bool {
	u, err := url.ParseRequestURI(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https")
}

// apply changes a hook by what the body names.
func (in *hookInput) apply(h *hook) {
	for k, v := range in.Config {
		if k == "secret" {
			h.Secret = v
			continue
		}
		h.Config[k] = v
	}
	if len(in.Events) > 0 {
		h.Events = in.Events
	}
	set(&h.Name, in.Name)
	set(&h.Branches, in.Branches)
	set(&h.Active, in.Active)
}

// editHook edits a webhook.
func editHook(c *call, h *hook) error {
	var in hookInput
	if err := c.bind(&in); err != nil {
		return err
	}
	in.apply(h)
	h.Updated = c.now
	return c.ok(hookView(h))
}
