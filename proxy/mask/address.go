package mask

import (
	"bytes"

	"aegis/proxy/internal/jsonscan"
)

// address recognises credentials in URLs (RFC 3986 userinfo): the password of
// scheme://user:password@host, or a token alone before the @.
type address struct{}

// userinfo bounds the name and the password of an address, in bytes.
const userinfo = 256

var (
	isPass   = newClass("0-9A-Za-z._~!$&()*+,;=%:?#^{}|[]-")
	isScheme = newClass("0-9A-Za-z+.-")
	isHost   = newClass("0-9A-Za-z[%_$-")   // begins a host
	inHost   = newClass("0-9A-Za-z:.%_{@-") // goes on with it, or a password with an @ in it
)

// places returns a byte of the password, the @, and two bytes of the host. The
// classes are too many to spell out, so the scan looks for the @ itself.
func (address) places() []place {
	return []place{{bare: true, cls: [][]byte{isPass.list(), {'@'}, isHost.list(), inHost.list()}}}
}

// find is called with pos at the @.
func (address) find(s *scan, _, pos int) finding {
	t := &s.t
	if b := t.b[pos:]; len(b) < 3 || !isHost[b[1]] || !inHost[b[2]] {
		return finding{}
	}
	secret, colon := readBack(t, pos, isPass)
	if secret == pos {
		return finding{}
	}
	if !atSlashes(t, secret) {
		return finding{}
	}
	end := lastAt(t, pos)
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
	last := at
	i := at
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

// templated reports whether v is filled in by somebody else.
func templated(v []byte) bool {
	return v[0] == '$' && run(v[1:], isWord, unbounded) == len(v)-1 || v[0] == '%' && (len(v) < 3 || jsonscan.Hex(v[1]) < 0) || v[0] == '{' || v[0] == '[' || v[0] == '(' || v[0] == '*' ||
		bytes.Contains(v, []byte("***")) || bytes.Contains(v, []byte("${")) || bytes.Contains(v, []byte("{{")) || bytes.Contains(v, []byte("...")) ||
		bytes.HasPrefix(v, markMasked) || bytes.HasPrefix(v, markRedacted)
}

// demo are passwords that only manuals and tests use.
var demo = map[string]bool{
	"password": true, "passwd": true, "pass": true, "pwd": true, "pw": true, "secret": true, "token": true, "xxx": true, "xxxx": true, "xxxxx": true,
	"foo": true, "bar": true, "baz": true, "example": true, "test": true, "p": true, "x": true, "user": true, "username": true, "mypassword": true,
	"mypass": true, "yourpassword": true, "your_password": true, "your-password": true, "changeme": true, "api_key": true, "apikey": true, "key": true,
	"x-oauth-basic": true, "pass%20word": true, "password1": true, "p%40ss": true, "opensesame": true, "open sesame": true, "redacted": true, "hidden": true, "pass123": true, "password123": true,
}

func isDocumentation(name, pass []byte) bool {
	var room [userinfo]byte
	l := room[:0]
	for _, c := range pass {
		if len(l) < cap(l) {
			l = append(l, lower(c))
		}
	}
	if demo[string(l)] || bytes.Equal(name, pass) {
		return true
	}
	same := true
	for _, c := range l {
		same = same && c == l[0]
	}
	return same
}
