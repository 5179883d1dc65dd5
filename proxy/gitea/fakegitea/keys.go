package fakegitea

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// publicKey is an SSH key of a user. Nobody can log in with it: there is no git
// transport.
type publicKey struct {
	ID         int64
	user       *user
	Title, Key string
	ReadOnly   bool
	Created    time.Time
}

// handleKeys registers the SSH keys of users. Deploy keys are not in the demo.
func handleKeys(t table) {
	t.on("POST /user/keys", func(c *call) error { return readsFor(createKey)(c, c.doer) }, needToken)
	t.on("GET /user/keys/{id}", func(c *call) error { // of any user: keys are public
		named := func(k *publicKey) bool { return k.ID == c.id("id") }
		return onFirst(c, c.w.keys, named, renders((*call).keyView))
	}, needToken)
	t.on("DELETE /user/keys/{id}", func(c *call) error {
		mine := func(k *publicKey) bool { return k.ID == c.id("id") && k.user == c.doer }
		return onFirst(c, c.w.keys, mine, func(c *call, k *publicKey) error {
			c.w.keys = without(c.w.keys, k)
			return c.done()
		})
	}, needToken)
	t.on("POST /admin/users/{username}/keys", onUser(readsFor(createKey)), needSiteAdmin)
}

// keyInput is the body of a key.
type keyInput struct {
	Title    string `json:"title" binding:"Required"`
	Key      string `json:"key" binding:"Required"`
	ReadOnly bool   `json:"read_only"`
}

// keyKinds are the first words of the keys that OpenSSH knows.
var keyKinds = regexp.MustCompile(`^(ssh|ecdsa|sk)-`)

// fingerprint is the SHA-256 fingerprint of a key, as ssh-keygen prints it. Keys are
// compared by it: the comment at the end of a key does not make another key.
func fingerprint(key string) string {
	_, data, _ := strings.Cut(key, " ")
	data, _, _ = strings.Cut(data, " ")
	raw, _ := base64.StdEncoding.DecodeString(data) // as far as it can be read
	sum := sha256.Sum256(raw)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// keyView renders a key; only the owner and administrators see whose it is. Others do
// not get these fields at all.
func (c *call) keyView(k *publicKey) obj {
	mine := c.doer != nil && (c.doer == k.user || c.doer.Admin)
	return obj{
		"id", k.ID, "key", k.Key, "url", fmt.Sprintf("%s/api/v1/user/keys/%d", c.root, k.ID), "title", k.Title,
		"fingerprint", fingerprint(k.Key), "created_at", k.Created, "last_used_at", k.Created,
		"user", opt(when(mine, c.user(k.user))), "read_only", opt(mine && k.ReadOnly),
		"key_type", opt(when(mine, "user")),
	}
}

// listKeys lists the keys of u.
func listKeys(c *call, u *user) error {
	want := c.query.Get("fingerprint")
	items := filter(c.w.keys, func(k *publicKey) bool {
		return k.user == u && (want == "" || fingerprint(k.Key) == want)
	})
	return c.ok(mapped(linked(c, items), c.keyView))
}

// createKey adds a key to u; a key belongs to one user only. Beyond its first word a
// key is not looked at, so tests need no real one.
func createKey(c *call, u *user, in *keyInput) error {
	key := strings.Join(strings.Fields(in.Key), " ")
	kind, _, more := strings.Cut(key, " ")
	_, err := base64.StdEncoding.DecodeString(kind)
	same := func(k *publicKey) bool { return fingerprint(k.Key) == fingerprint(key) }
	switch {
	case !more && err != nil: // not the bare base64 of a key either
		return fail(http.StatusUnprocessableEntity,
			"Invalid key content: extractTypeFromBase64Key: invalid key format: %v", err)
	case !more || !keyKinds.MatchString(kind):
		return fail(http.StatusUnprocessableEntity, "Invalid key content: unsupported key")
	case slices.ContainsFunc(c.w.keys, same):
		return fail(http.StatusUnprocessableEntity, "Key content has been used as non-deploy key")
	}
	k := &publicKey{ID: c.w.next("key"), user: u, Title: in.Title, Key: key, ReadOnly: in.ReadOnly, Created: c.now}
	c.w.keys = append(c.w.keys, k)
	return c.created(c.keyView(k))
}
