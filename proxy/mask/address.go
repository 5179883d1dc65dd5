package mask

import (
	"bytes"
	"slices"

	"aegis/proxy/internal/jsonscan"
)

// address recognises credentials in URLs (RFC 3986 userinfo): the password of
// scheme://user:password@host, or a token alone before the @.
type address struct{}

// userinfo bounds the name and the password of an address, in bytes.
const userinfo = 256

// The characters are those of RFC 3986 and those that people write unescaped all
// the same; no blank, quote, slash or angle bracket, where a URL in a text ends.
var (
	isPass   = newClass("0-9A-Za-z._~!$&()*+,;=%:?#^{}|[]-")
	isScheme = newClass("0-9A-Za-z+.-")
	isHost   = newClass("0-9A-Za-z[%_$-")   // begins a host
	inHost   = newClass("0-9A-Za-z:.%_{@-") // goes on with it, or a password with an @ in it
)

// places returns a byte of the password, the @, and two bytes of the host. The
// classes are too many to list, so the scan looks for the @ itself.
func (address) places() []place {
	return []place{{bare: true, cls: [][]byte{isPass.list(), {'@'}, isHost.list(), inHost.list()}}}
}

// find is called with pos at the @.
func (address) find(s *scan, _, pos int) finding {
	t := &s.t
	// Mail addresses and mentions have an @ as well; what no host follows costs these three looks.
	if b := t.b[pos:]; len(b) < 3 || !isHost[b[1]] || !inHost[b[2]] {
		return finding{}
	}
	secret, colon := readBack(t, pos, isPass)
	if secret == pos || !atSlashes(t, secret) {
		return finding{}
	}
	end := lastAt(t, pos)
	// userinfo without a colon is a name, which is public, or a token.
	if colon < 0 {
		// No password; a long random name is a token.
		ok := end-secret >= 20 && looksRandom(t.b[secret:end], true) || isForgeToken(t.b[secret:end])
		return finding{start: secret, end: end, skip: end, ok: ok}
	}
	ok := colon+1 < pos && !templated(t.b[colon+1:end]) && !isDocumentation(t.b[secret:colon], t.b[colon+1:end])
	return finding{start: colon + 1, end: end, skip: end, ok: ok}
}

// readBack reads characters of in backwards from i and returns where they
// begin, and the place of the first colon among them, -1 without one.
func readBack(t *text, i int, in *class) (begin, colon int) {
	colon = -1
	for range userinfo {
		c, j := t.prev(i)
		if j == i || !in[c] {
			break
		}
		if i = j; c == ':' {
			colon = j
		}
	}
	return i, colon
}

// lastAt returns the place of the last @ of the address: a password may have
// one in it.
func lastAt(t *text, at int) int {
	// Forwards, as the pass has come to the first @ only. The bound keeps a text of many of them
	// linear.
	last, i := at, at
	for range userinfo {
		c, n := t.next(i)
		if n == 0 || !isPass[c] && c != '@' {
			break
		}
		if c == '@' {
			last = i
		}
		i += n
	}
	return last
}

// atSlashes reports whether "scheme://" ends at i.
func atSlashes(t *text, i int) bool {
	c1, i1 := t.prev(i)
	c2, i2 := t.prev(i1)
	c3, i3 := t.prev(i2)
	c4, i4 := t.prev(i3)
	return i4 < i3 && c1 == '/' && c2 == '/' && c3 == ':' && isScheme[c4]
}

// templated reports whether v is filled in later, by a shell or a template engine,
// or was masked before.
func templated(v []byte) bool {
	switch v[0] {
	case '{', '[', '(', '*':
		return true
	// A variable is the whole password; one with more behind it is a password that begins with $.
	case '$':
		if run(v[1:], isWord, unbounded) == len(v)-1 {
			return true
		}
	case '%': // a verb or a variable of cmd.exe, but not a percent-encoded byte
		if len(v) < 3 || jsonscan.Hex(v[1]) < 0 {
			return true
		}
	}
	return containsAny(v, "***", "${", "{{", "...")
}

func containsAny(b []byte, subs ...string) bool {
	return slices.ContainsFunc(subs, func(s string) bool { return bytes.Contains(b, []byte(s)) })
}

// demo are passwords that only manuals and tests use.
var demo = set("password", "passwd", "pass", "pwd", "pw", "secret", "token", "xxx", "xxxx", "xxxxx", "foo", "bar",
	"baz", "example", "test", "p", "x", "user", "username", "mypassword", "mypass", "yourpassword", "your_password",
	"your-password", "changeme", "api_key", "apikey", "key", "x-oauth-basic", "pass%20word", "password1", "p%40ss",
	"opensesame", "open sesame", "redacted", "hidden", "pass123", "password123")

// set is for lists that are looked up by a whole word.
func set(words ...string) map[string]bool {
	m := map[string]bool{}
	for _, w := range words {
		m[w] = true
	}
	return m
}

// isDocumentation reports whether the password is one that only manuals and tests
// use, the name again (user:user), or one character repeated (xxxx, ****). Masking
// those would change documentation and protect nothing.
func isDocumentation(name, pass []byte) bool {
	var room [userinfo]byte
	l := appendLower(room[:0], pass[:min(len(pass), len(room))])
	if demo[string(l)] || bytes.Equal(name, pass) {
		return true
	}
	return bytes.Count(l, l[:min(1, len(l))]) >= len(l) // one character again and again
}
