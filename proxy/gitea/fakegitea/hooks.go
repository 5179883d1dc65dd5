package fakegitea

import (
	"net/http"
	"net/url"
	"slices"
	"time"
)

// hook is a webhook of a repository, organisation, user or the instance. Nothing is
// ever delivered: the double makes no connections.
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

// handleHooks registers webhooks at every level, and git hooks.
func handleHooks(t table) {
	for path, n := range map[string]need{
		"/repos/{owner}/{repo}/hooks": needAdmin, "/orgs/{org}/hooks": needOrgOwner, "/user/hooks": needToken,
		"/admin/hooks": needSiteAdmin,
	} {
		t.on("GET "+path, func(c *call) error { return c.ok(mapped(counted(c, c.myHooks()), hookView)) }, n)
		t.on("POST "+path, reads(createHook), n)
		t.on("GET "+path+"/{id}", onHook(func(c *call, h *hook) error { return c.ok(hookView(h)) }), n)
		t.on("PATCH "+path+"/{id}", onHook(readsFor(editHook)), n)
		t.on("DELETE "+path+"/{id}", onHook(func(c *call, h *hook) error {
			c.w.hooks = without(c.w.hooks, h)
			return c.done()
		}), n)
	}
	const p = "/repos/{owner}/{repo}/hooks"
	t.on("POST "+p+"/{id}/tests", onHook(func(c *call, _ *hook) error { return c.done() }), needAdmin)
}

// hookView renders a webhook. The secret and further options are write-only, and the
// authorization header is never shown, not even to the one who set it.
func hookView(h *hook) obj {
	config := map[string]string{"url": h.Config["url"], "content_type": h.Config["content_type"]}
	return obj{
		"id", h.ID, "name", h.Name, "type", h.Type, "branch_filter", h.Branches, "config", config,
		"events", h.Events, "authorization_header", "", "active", h.Active, "updated_at", h.Updated,
		"created_at", h.Created,
	}
}

// hookOwner is the user or organisation whose hooks the path is about; none
// means the instance.
func (c *call) hookOwner() *user {
	switch {
	case c.repo != nil:
		return nil
	case c.path == "/user/hooks" || c.path == "/user/hooks/{id}":
		return c.doer
	}
	return c.owner
}

// myHooks lists the hooks that the path is about.
func (c *call) myHooks() []*hook {
	return filter(c.w.hooks, func(h *hook) bool { return h.repo == c.repo && h.owner == c.hookOwner() })
}

// onHook finds the hook of the path.
func onHook(f func(*call, *hook) error) handler {
	return func(c *call) error {
		return onFirst(c, c.myHooks(), func(h *hook) bool { return h.ID == c.id("id") }, f)
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

// hookTypes are the kinds of webhooks.
var hookTypes = []string{"dingtalk", "discord", "gitea", "gogs", "msteams", "slack", "telegram", "feishu",
	"wechatwork", "packagist"}

// createHook creates a webhook; without events it listens to pushes.
func createHook(c *call, in *hookInput) error {
	switch {
	case in.Type == "":
		return fail(http.StatusUnprocessableEntity, "[Type]: Required")
	case !slices.Contains(hookTypes, in.Type):
		return fail(http.StatusUnprocessableEntity, "Invalid hook type: %s", in.Type)
	case in.Config == nil:
		return fail(http.StatusUnprocessableEntity, "[Config]: Required")
	case in.Config["url"] == "":
		return fail(http.StatusUnprocessableEntity, "Missing config option: url")
	case in.Config["content_type"] == "":
		return fail(http.StatusUnprocessableEntity, "Missing config option: content_type")
	case !webAddress(in.Config["url"]):
		return fail(http.StatusUnprocessableEntity, "Invalid url")
	case in.Config["content_type"] != "json" && in.Config["content_type"] != "form":
		return fail(http.StatusUnprocessableEntity, "Invalid content type")
	}
	h := &hook{
		ID: c.w.next("hook"), repo: c.repo, owner: c.hookOwner(), Type: in.Type, Events: []string{"push"},
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
func editHook(c *call, h *hook, in *hookInput) error {
	in.apply(h)
	h.Updated = c.now
	return c.ok(hookView(h))
}
