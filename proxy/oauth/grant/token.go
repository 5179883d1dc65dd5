package grant

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"hash/crc32"
	"strings"
)

// A token is a prefix, by which people and secret scanners know it, a
// body, and six base62 digits of the CRC-32 of both, by which a scanner knows a
// token from a look-alike without a request.
const (
	accessPrefix  = "aegis_at_"
	refreshPrefix = "aegis_rt_"
	codePrefix    = "aegis_ac_"

	secretSize = 43 // base64url of 32 bytes
	idSize     = 24 // base32 of 15 bytes
	tagSize    = 22 // base64url of 16 bytes
	sumSize    = 6
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func checksum(s string) string {
	n := crc32.ChecksumIEEE([]byte(s))
	out := make([]byte, sumSize)
	for i := sumSize - 1; i >= 0; i-- {
		out[i] = base62[n%62]
		n /= 62
	}
	return string(out)
}

// mint returns the token of this body.
func mint(prefix, body string) string { return prefix + body + checksum(prefix+body) }

// body returns the body of a token that is well formed.
func body(prefix, token string, size int) (string, bool) {
	if len(token) != len(prefix)+size+sumSize || !strings.HasPrefix(token, prefix) {
		return "", false
	}
	end := len(token) - sumSize
	return token[len(prefix):end], token[end:] == checksum(token[:end])
}

// secret returns a new random secret.
func secret() string { return base64.RawURLEncoding.EncodeToString(random(32)) }

// newID returns a new grant id: lower-case letters and digits.
func newID() string { return strings.ToLower(base32.StdEncoding.EncodeToString(random(15))) }

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: it ends the process instead
	return b
}

// digest returns what the store knows of a secret. At 256 random bits it needs
// no salt, and finding a token by it reveals nothing by its timing.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// refreshToken is a refresh token taken apart. The tag proves that this server
// made it, without the store.
type refreshToken struct{ id, secret, tag string }

func parseRefresh(token string) (refreshToken, bool) {
	b, ok := body(refreshPrefix, token, idSize+secretSize+tagSize)
	if !ok {
		return refreshToken{}, false
	}
	return refreshToken{b[:idSize], b[idSize : idSize+secretSize], b[idSize+secretSize:]}, true
}

// refresh returns the refresh token of this secret.
func (g *Grants) refresh(id, secret string) string {
	return mint(refreshPrefix, id+secret+tag(g.keys[0], id, secret))
}

// genuine reports whether this server made t, under any key that it still has.
func (g *Grants) genuine(t refreshToken) bool {
	found := 0
	for _, key := range g.keys {
		found |= subtle.ConstantTimeCompare([]byte(t.tag), []byte(tag(key, t.id, t.secret)))
	}
	return found == 1
}

func tag(key []byte, id, secret string) string {
	return base64.RawURLEncoding.EncodeToString(mac(key, "tag", id, secret)[:16])
}

// successor returns the secret that follows on secret.
func successor(key []byte, id, secret string) string {
	return base64.RawURLEncoding.EncodeToString(mac(key, "next", id, secret))
}

// mac binds parts of fixed sizes, so that they need no separators.
func mac(key []byte, label, id, secret string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(label + "|" + id + secret))
	return h.Sum(nil)
}
