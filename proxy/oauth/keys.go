package oauth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// The purposes of keys; each has keys of its own.
const (
	labelFlow = "oauth/flow" // requests that travel through the consent form
	labelForm = "oauth/form" // tokens against cross-site request forgery
)

// keys authenticates what goes through browsers. The current key signs, all
// verify, so that a rotation spoils nothing under way.
type keys struct{ flow, form [][]byte }

func newKeys(derive func(label string) [][]byte) keys {
	return keys{flow: derive(labelFlow), form: derive(labelForm)}
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// matches reports whether sum is text's under one of the keys. All are tried, so that the
// time says nothing of which one it was.
func matches(keys [][]byte, text string, sum []byte) bool {
	ok := false
	for _, k := range keys {
		ok = hmac.Equal(mac(k, text), sum) || ok
	}
	return ok
}

// sign returns payload in a form that [keys.open] accepts. It hides nothing.
func (k keys) sign(payload []byte) string {
	text := base64.RawURLEncoding.EncodeToString(payload)
	return text + "." + base64.RawURLEncoding.EncodeToString(mac(k.flow[0], text))
}

// open returns the payload of what sign made.
func (k keys) open(signed string) ([]byte, bool) {
	text, tail, _ := strings.Cut(signed, ".")
	sum, err := base64.RawURLEncoding.DecodeString(tail)
	if err != nil || !matches(k.flow, text, sum) {
		return nil, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(text)
	return payload, err == nil
}

// formToken returns the token that a form of the browser with this cookie must
// carry to do what purpose names.
func (k keys) formToken(cookie, purpose string) string {
	return base64.RawURLEncoding.EncodeToString(mac(k.form[0], cookie+" "+purpose))
}

// checkForm reports whether token is one that formToken made.
func (k keys) checkForm(cookie, purpose, token string) bool {
	sum, err := base64.RawURLEncoding.DecodeString(token)
	return err == nil && cookie != "" && matches(k.form, cookie+" "+purpose, sum)
}

// fresh returns 256 random bits in characters that fit URLs and cookies.
func fresh() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails: it ends the process instead
	return base64.RawURLEncoding.EncodeToString(b)
}

// digest names a secret in the store without holding it.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// freshLen is the length of what fresh returns.
const freshLen = 43
