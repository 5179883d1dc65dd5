package fakegitea

import (
	"fmt"
	"net/http"
	"time"
)

// maxAttachment is the size that the real server measured refuses above. It is in
// bytes: 100 MiB, the default of a fresh Gitea.
const maxAttachment = 104857600

// attachment is an uploaded file. Only its description has a route here: the address
// that it names is a page of the web interface, which the double does not serve.
type attachment struct {
	ID        int64
	Name      string
	Data      []byte
	Downloads int
	Created   time.Time
	UUID      string
	release   string // the tag, when it belongs to a release
}

// attachmentView renders an attachment. Those of a release have an address by
// name, the others by UUID.
func (c *call) attachmentView(a *attachment) obj {
	out := obj{
		"id", a.ID, "name", a.Name, "size", len(a.Data), "download_count", a.Downloads,
		"created_at", a.Created, "uuid", a.UUID, "browser_download_url", c.root + "/attachments/" + a.UUID,
	}
	if a.release != "" && c.repo != nil {
		out.set("browser_download_url", c.repoURL(c.repo)+"/releases/download/"+escape(a.release)+"/"+escape(a.Name))
	}
	return out
}

// attachments renders a list; none is [], never null.
func (c *call) attachments(as []*attachment) []obj { return mapped(as, c.attachmentView) }

// holder is a list of attachments, wherever it hangs. It returns the list itself, since
// an upload appends to it, and the tag when the list is a release's.
type holder func(c *call) (*[]*attachment, string, error)

// handleAssets registers the list and the upload of attachments below a path; write is
// what a change needs besides. Whoever may read the object may list; editing and
// deleting are not in the demo.
func handleAssets(t table, path string, where holder, write need) {
	t.on("GET "+path, func(c *call) error { return c.listAssets(where) })
	t.on("POST "+path, func(c *call) error { return c.addAsset(where) }, needToken, write, needActive)
}

// listAssets lists attachments; the list is not paged.
func (c *call) listAssets(where holder) error {
	list, _, err := where(c)
	if err != nil {
		return err
	}
	return c.ok(c.attachments(*list))
}

// addAsset takes an upload. The object is looked up before the body is read: an unknown
// issue is 404 whatever is uploaded.
func (c *call) addAsset(where holder) error {
	list, release, err := where(c)
	if err != nil {
		return err
	}
	name, data, err := c.upload("attachment")
	switch {
	case err != nil:
		return err
	// This is the only limit on what a request may carry: a body of JSON has none.
	case len(data) > maxAttachment:
		return fail(http.StatusRequestEntityTooLarge, "attachment exceeds limit %d", maxAttachment)
	// An upload as application/octet-stream has a name only if the query gives one.
	case name == "":
		return fail(http.StatusBadRequest, "Could not determine name of attachment.")
	}
	a := c.w.newAttachment(name, data)
	a.release = release
	*list = append(*list, a)
	return c.created(c.attachmentView(a))
}

// newAttachment makes an attachment.
func (w *world) newAttachment(name string, data []byte) *attachment {
	return &attachment{ID: w.next("attachment"), Name: name, Data: data, Created: w.now(), UUID: newUUID()}
}

// newUUID returns a random UUID. The fixed digits are those of version 4 and of its
// variant.
func newUUID() string {
	h := randomHex(16)
	return fmt.Sprintf("%s-%s-4%s-a%s-%s", h[:8], h[8:12], h[13:16], h[17:20], h[20:])
}
