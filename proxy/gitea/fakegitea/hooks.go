package fakegitea

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// hook is a webhook of a repository or an organisation, stored as the API shows it.
// Nothing is ever delivered: the double makes no connections.
type hook struct {
	ID       int64             `json:"id"`
	Name     string            `json:"name"`
	Type     string            `json:"type"`
	Branches string            `json:"branch_filter"`
	Config   map[string]string `json:"config"`
	Events   []string          `json:"events"`
	Auth     string            `json:"authorization_header"`
	Active   bool              `json:"active"`
	Updated  time.Time         `json:"updated_at"`
	Created  time.Time         `json:"created_at"`
	repo     *repo
	owner    *user
}

// handleHooks registers the webhooks of repositories and organisations. The test of a
// hook is taken and does nothing.
func handleHooks(t table) {
	const p = "/repos/{owner}/{repo}/hooks"
	for path, n := range map[string]need{p: needAdmin, "/orgs/{org}/hooks": needOrgOwner} {
		t.on("GET "+path, func(c *call) error { return c.ok(counted(c, c.myHooks())) }, n)
		t.on("POST "+path, createHook, n)
		t.on("GET "+path+"/{id}", onHook(func(c *call, h *hook) error { return c.ok(h) }), n)
		t.on("PATCH "+path+"/{id}", onHook(editHook), n)
		t.on("DELETE "+path+"/{id}", onHook(func(c *call, h *hook) error {
			c.w.hooks = without(c.w.hooks, h)
			return c.done()
		}), n)
	}
	t.on("POST "+p+"/{id}/tests", onHook(func(c *call, _ *hook) error { return c.done() }), needAdmin)
}

// myHooks lists the hooks that the path is about. A repository's hook has its owner as
// well, so an organisation's is known by having no repository.
func (c *call) myHooks() []*hook {
	return filter(c.w.hooks, func(h *hook) bool { return h.repo == c.repo && (c.repo != nil || h.owner == c.owner) })
}

// onHook finds the hook of the path.
func onHook(f func(*call, *hook) error) handler {
	return func(c *call) error {
		return onFirst(c, c.myHooks(), func(h *hook) bool { return h.ID == c.id("id") }, f)
	}
}

// readHook is a hook with what the body changes in it. The authorization header and
// the options other than these two, such as the secret, are never shown, not even to
// the one who set them; as nothing is sent with them they are not kept either.
func (c *call) readHook(old *hook) (*hook, error) {
	h := *old
	// Decoding adds to a map and would otherwise change the stored one, even for a body
	// that is refused. Events replace the old ones.
	h.Config, h.Events = maps.Clone(old.Config), nil
	err := c.bind(&h)
	maps.DeleteFunc(h.Config, func(key, _ string) bool { return key != "url" && key != "content_type" })
	if h.Config == nil {
		h.Config = old.Config
	}
	if len(h.Events) == 0 {
		h.Events = old.Events
	}
	h.ID, h.Auth, h.Created, h.Updated = old.ID, "", old.Created, c.now
	return &h, err
}

// hookTypes are the kinds of webhooks.
var hookTypes = []string{"dingtalk", "discord", "gitea", "gogs", "msteams", "slack", "telegram", "feishu",
	"wechatwork", "packagist"}

// createHook creates a webhook; without events it listens to pushes. Every refusal is
// 422. An unset option is missing, one that is set to nothing too.
func createHook(c *call) error {
	h, err := c.readHook(&hook{Events: []string{"push"}, Created: c.now, repo: c.repo, owner: c.owner})
	if err != nil {
		return err
	}
	address, kind := h.Config["url"], h.Config["content_type"]
	u, badURL := url.ParseRequestURI(address)
	switch {
	case h.Type == "":
		err = fail(http.StatusUnprocessableEntity, "[Type]: Required")
	case !slices.Contains(hookTypes, h.Type):
		err = fail(http.StatusUnprocessableEntity, "Invalid hook type: %s", h.Type)
	case h.Config == nil:
		err = fail(http.StatusUnprocessableEntity, "[Config]: Required")
	case address == "":
		err = fail(http.StatusUnprocessableEntity, "Missing config option: url")
	case kind == "":
		err = fail(http.StatusUnprocessableEntity, "Missing config option: content_type")
	case badURL != nil || u.Scheme != "http" && u.Scheme != "https":
		err = fail(http.StatusUnprocessableEntity, "Invalid url")
	case kind != "json" && kind != "form":
		err = fail(http.StatusUnprocessableEntity, "Invalid content type")
	default:
		h.ID = c.w.next("hook")
		c.w.hooks = append(c.w.hooks, h)
		return c.created(h)
	}
	return err
}

// editHook edits a webhook; its type stays. The address and the content type are not
// checked again, unlike in Gitea.
func editHook(c *call, old *hook) error {
	h, err := c.readHook(old)
	if err != nil {
		return err
	}
	h.Type = old.Type
	*old = *h
	return c.ok(old)
}
