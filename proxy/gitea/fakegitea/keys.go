package fakegitea

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// publicKey is an SSH key of a user.
type publicKey struct {
	ID         int64
	user       *user
	Title, Key string
	ReadOnly   bool
	Created    time.Time
}

// deployKey is an SSH key of a repository.
type deployKey struct {
	ID         int64
	Title, Key string
	Token      string
	ReadOnly   bool
	Created    time.Time
}

// gpgKey is a GPG key of a user, kept as it was sent.
type gpgKey struct {
	ID       int64
	user     *user
	Armored  string
	KeyID    string
	Verified bool
	Created  time.Time
}

// handleKeys registers keys of users and repositories.
func handleKeys(t table) {
	t.on("GET /user/keys", onSelf(listKeys), needToken)
	t.on("POST /user/keys", onSelf(createKey), needToken)
	t.on("GET /user/keys/{id}", func(c *call) error { // anybody's: keys are public
		k, ok := find(c.w.keys, func(k *publicKey) bool { return k.ID == c.id("id") })
		if !ok {
			return errNotFound
		}
		return c.ok(c.keyView(k))
	}, needToken)
	t.on("DELETE /user/keys/{id}", onKey(deleteKey), needToken)
	t.on("GET /users/{username}/keys", onUser(listKeys))
	t.on("POST /admin/users/{username}/keys", onUser(createKey), needSiteAdmin)
	t.on("DELETE /admin/users/{username}/keys/{id}", onKey(deleteKey), needSiteAdmin)

	const p = "/repos/{owner}/{repo}/keys"
	t.on("GET "+p, func(c *call) error { return c.ok(mapped(linked(c, c.repo.keys), c.deployKeyView)) }, needAdmin)
	t.on("POST "+p, createDeployKey, needAdmin)
	t.on("POST "+p+"/tokens", createDeployToken, needAdmin)
	t.on("GET "+p+"/{id}", onDeployKey(func(c *call, k *deployKey) error { return c.ok(c.deployKeyView(k)) }), needAdmin)
	t.on("DELETE "+p+"/{id}", onDeployKey(func(c *call, k *deployKey) error {
		c.repo.keys = without(c.repo.keys, k)
		return c.done()
	}), needAdmin)

	t.on("GET /user/gpg_keys", onSelf(listGPG), needToken)
	t.on("GET /users/{username}/gpg_keys", onUser(listGPG))
	t.on("POST /user/gpg_keys", createGPG, needToken)
	t.on("GET /user/gpg_key_token", func(c *call) error {
		err := c.text(c.gpgToken())
		c.out.header.Set("Content-Type", "text/plain;charset=utf-8") // spelled so here alone
		return err
	}, needToken)
	t.on("POST /user/gpg_key_verify", verifyGPG, needToken)
	t.on("GET /user/gpg_keys/{id}", onGPG(func(c *call, k *gpgKey) error { return c.ok(gpgView(k)) }), needToken)
	t.on("DELETE /user/gpg_keys/{id}", onGPG(func(c *call, k *gpgKey) error {
		c.w.gpgKeys = without(c.w.gpgKeys, k)
		return c.done()
	}), needToken)
}

// keyInput is the body of a key.
type keyInput struct {
	Title    string `json:"title" binding:"Required"`
	Key      string `json:"key" binding:"Required"`
	ReadOnly bool   `json:"read_only"`
}

// readKey decodes a key and checks that it looks like one.
func (c *call) readKey() (keyInput, error) {
	var in keyInput
	if err := c.bind(&in); err != nil {
		return in, err
	}
	fields := strings.Fields(in.Key)
	if len(fields) == 1 { // the bare base64 of a key
		if _, err := base64.StdEncoding.DecodeString(fields[0]); err != nil {
			return in, fail(http.StatusUnprocessableEntity, "Invalid key content: extractTypeFromBase64Key: invalid key format: %v", err)
		}
	}
	if len(fields) < 2 || !strings.HasPrefix(fields[0], "ssh-") && !strings.HasPrefix(fields[0], "ecdsa-") && !strings.HasPrefix(fields[0], "sk-") {
		return in, fail(http.StatusUnprocessableEntity, "Invalid key content: unsupported key")
	}
	if _, err := base64.StdEncoding.DecodeString(fields[1]); err != nil {
		return in, fail(http.StatusUnprocessableEntity, "Invalid key content: %v", err)
	}
	in.Key = strings.TrimSpace(in.Key)
	return in, nil
}

// fingerprint is the SHA-256 fingerprint of a key.
func fingerprint(key string) string {
	fields := strings.Fields(key)
	if len(fields) < 2 {
		return ""
	}
	raw, _ := base64.StdEncoding.DecodeString(fields[1]) // checked when the key came in
	sum := sha256.Sum256(raw)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// keyJSON is a user's key.
type keyJSON struct {
	ID          int64     `json:"id"`
	Key         string    `json:"key"`
	URL         string    `json:"url"`
	Title       string    `json:"title"`
	Fingerprint string    `json:"fingerprint"`
	CreatedAt   time.Time `json:"created_at"`
	LastUsedAt  time.Time `json:"last_used_at"`
	User        *userJSON `json:"user,omitempty"`
	ReadOnly    bool      `json:"read_only,omitempty"`
	KeyType     string    `json:"key_type,omitempty"`
}

// keyView renders a key; its owner shows to herself and administrators.
func (c *call) keyView(k *publicKey) *keyJSON {
	out := &keyJSON{
		ID: k.ID, Key: k.Key, URL: fmt.Sprintf("%s/api/v1/user/keys/%d", c.root, k.ID), Title: k.Title,
		Fingerprint: fingerprint(k.Key), CreatedAt: k.Created, LastUsedAt: k.Created,
	}
	if c.doer != nil && (c.doer == k.user || c.doer.Admin) {
		out.User, out.ReadOnly, out.KeyType = c.user(k.user), k.ReadOnly, "user"
	}
	return out
}

// listKeys lists the keys of u.
func listKeys(c *call, u *user) error {
	want := c.query.Get("fingerprint")
	items := filter(c.w.keys, func(k *publicKey) bool { return k.user == u && (want == "" || fingerprint(k.Key) == want) })
	return c.ok(mapped(linked(c, items), c.keyView))
}

// createKey adds a key to u; a key belongs to one user only.
func createKey(c *call, u *user) error {
	in, err := c.readKey()
	if err != nil {
		return err
	}
	if _, ok := find(c.w.keys, func(k *publicKey) bool { return fingerprint(k.Key) == fingerprint(in.Key) }); ok {
		return fail(http.StatusUnprocessableEntity, "Key content has been used as non-deploy key")
	}
	k := &publicKey{ID: c.w.next("key"), user: u, Title: in.Title, Key: in.Key, ReadOnly: in.ReadOnly, Created: c.now}
	c.w.keys = append(c.w.keys, k)
	return c.created(c.keyView(k))
}

// onKey finds a key of the caller, or of anybody for an administrator's path.
func onKey(f func(*call, *publicKey) error) handler {
	return func(c *call) error {
		k, ok := find(c.w.keys, func(k *publicKey) bool {
			return k.ID == c.id("id") && (k.user == c.doer || strings.EqualFold(k.user.Login, c.params["username"]))
		})
		if !ok {
			return errNotFound
		}
		return f(c, k)
	}
}

// deleteKey removes a key.
func deleteKey(c *call, k *publicKey) error {
	c.w.keys = without(c.w.keys, k)
	return c.done()
}

// deployKeyJSON is a repository's key.
type deployKeyJSON struct {
	ID          int64     `json:"id"`
	KeyID       int64     `json:"key_id"`
	KeyType     string    `json:"key_type"`
	Key         string    `json:"key"`
	Token       string    `json:"token,omitempty"`
	URL         string    `json:"url"`
	Title       string    `json:"title"`
	Fingerprint string    `json:"fingerprint"`
	CreatedAt   time.Time `json:"created_at"`
	ReadOnly    bool      `json:"read_only"`
	Repository  *repoJSON `json:"repository,omitempty"`
}

// deployKeyView renders a deploy key; a token's secret is not in it.
func (c *call) deployKeyView(k *deployKey) *deployKeyJSON {
	kind := "ssh"
	if k.Token != "" {
		kind = "token"
	}
	return &deployKeyJSON{
		ID: k.ID, KeyID: k.ID, KeyType: kind, Key: k.Key, URL: c.api(c.repo, "keys", fmt.Sprint(k.ID)), Title: k.Title,
		Fingerprint: fingerprint(k.Key), CreatedAt: k.Created, ReadOnly: k.ReadOnly, Repository: c.repoView(c.repo),
	}
}

// createDeployKey adds a key to the repository.
func createDeployKey(c *call) error {
	in, err := c.readKey()
	if err != nil {
		return err
	}
	if _, ok := find(c.repo.keys, func(k *deployKey) bool { return k.Title == in.Title || k.Key == in.Key }); ok {
		return fail(http.StatusUnprocessableEntity, "This key has already been added to this repository")
	}
	k := &deployKey{ID: c.w.next("deploy_key"), Title: in.Title, Key: in.Key, ReadOnly: in.ReadOnly, Created: c.now}
	c.repo.keys = append(c.repo.keys, k)
	out := c.deployKeyView(k)
	out.Repository = nil
	return c.created(out)
}

// createDeployToken makes a token of the repository and shows it once.
func createDeployToken(c *call) error {
	var in struct {
		Title    string `json:"title" binding:"Required"`
		ReadOnly bool   `json:"read_only"`
	}
	if err := c.bind(&in); err != nil {
		return err
	}
	k := &deployKey{ID: c.w.next("deploy_key"), Title: in.Title, Token: randomHex(20), ReadOnly: in.ReadOnly, Created: c.now}
	c.repo.keys = append(c.repo.keys, k)
	out := c.deployKeyView(k)
	out.Token = k.Token
	return c.created(out)
}

// onDeployKey finds a key of the repository.
func onDeployKey(f func(*call, *deployKey) error) handler {
	return func(c *call) error {
		k, ok := find(c.repo.keys, func(k *deployKey) bool { return k.ID == c.id("id") })
		if !ok {
			return errNotFound
		}
		return f(c, k)
	}
}

// gpgJSON is a GPG key.
type gpgJSON struct {
	ID           int64     `json:"id"`
	PrimaryKeyID string    `json:"primary_key_id"`
	KeyID        string    `json:"key_id"`
	PublicKey    string    `json:"public_key"`
	Emails       []any     `json:"emails"`
	SubKeys      []any     `json:"subkeys"`
	CanSign      bool      `json:"can_sign"`
	CanEncrypt   bool      `json:"can_encrypt_comms"`
	CanStore     bool      `json:"can_encrypt_storage"`
	CanCertify   bool      `json:"can_certify"`
	Verified     bool      `json:"verified"`
	CreatedAt    time.Time `json:"created_at"`
	ExpiresAt    time.Time `json:"expires_at"`
}

// gpgView renders a GPG key.
func gpgView(k *gpgKey) *gpgJSON {
	return &gpgJSON{
		ID: k.ID, KeyID: k.KeyID, PublicKey: k.Armored, Emails: []any{}, SubKeys: []any{}, CanSign: true, CanCertify: true,
		Verified: k.Verified, CreatedAt: k.Created,
	}
}

// listGPG lists the GPG keys of u.
func listGPG(c *call, u *user) error {
	items := filter(c.w.gpgKeys, func(k *gpgKey) bool { return k.user == u })
	return c.ok(mapped(linked(c, items), gpgView))
}

// gpgToken is the text that proves the possession of a key when signed.
func (c *call) gpgToken() string {
	sum := sha256.Sum256([]byte(c.doer.Login + c.now.Format(time.DateOnly)))
	return fmt.Sprintf("%x", sum)
}

// createGPG stores an armored key. The double does not parse it: the key id is
// a digest of the text.
func createGPG(c *call) error {
	var in struct {
		Armored   string `json:"armored_public_key" binding:"Required"`
		Signature string `json:"armored_signature"`
	}
	if err := c.bind(&in); err != nil {
		return err
	}
	if !strings.Contains(in.Armored, "BEGIN PGP PUBLIC KEY BLOCK") {
		return fail(http.StatusUnprocessableEntity, "failed to parse gpg key openpgp: invalid argument: no armored data found")
	}
	sum := sha256.Sum256([]byte(in.Armored))
	k := &gpgKey{
		ID: c.w.next("gpg_key"), user: c.doer, Armored: in.Armored, KeyID: fmt.Sprintf("%X", sum[:8]), Created: c.now,
	}
	c.w.gpgKeys = append(c.w.gpgKeys, k)
	return c.created(gpgView(k))
}

// verifyGPG refuses every signature: the double cannot check one.
func verifyGPG(c *call) error {
	return fail(http.StatusNotFound, "the provided GPG key, signature and token do not match or token is out of date")
}

// onGPG finds a GPG key of the caller.
func onGPG(f func(*call, *gpgKey) error) handler {
	return func(c *call) error {
		k, ok := find(c.w.gpgKeys, func(k *gpgKey) bool { return k.ID == c.id("id") && k.user == c.doer })
		if !ok {
			return errNotFound
		}
		return f(c, k)
	}
}
