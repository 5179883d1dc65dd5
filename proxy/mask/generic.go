package mask

import (
	"slices"

	"aegis/proxy/internal/jsonscan"
)

// generic recognises values that look random behind names that say secret.
type generic struct {
	assignment
}

// Least lengths of generic values.
const (
	leastGeneric  = 16
	leastPassword = 12
)

// longest is how many characters of a generic value are read.
const longest = 256

// find demands more than other rules, as neither name nor value is distinctive: the
// keyword ends the name, and the value has an end within the bound and looks random.
func (g *generic) find(s *scan, variant, pos int) finding {
	t := &s.t
	i, ok := g.keyword(t, variant, pos)
	if !ok {
		return finding{}
	}
	i, quoted, ok := g.operator(t, i, false)
	if !ok {
		return finding{}
	}
	// Too long even if all of it is escapes. The run is remembered, so that each name in
	// it costs no further look.
	if s.runEnd(i, quoted)-i > longest*len(`\u0000`) {
		return finding{}
	}
	var room [longest]byte
	value, end := readValue(t, i, room[:0], quoted)
	least := leastGeneric
	// Passwords are shorter than tokens; private keys, which begin with p as well, are
	// longer anyway.
	if g.keywords[variant][0] == 'p' {
		least = leastPassword
	}
	// Behind punctuation at the end may be what an earlier pass left.
	if len(value) < least || len(value) == longest || !t.closedAfter(end) || !t.closedAfter(s.runEnd(i, quoted)) {
		return finding{}
	}
	// newToken(…), items[…], ${…}: the value comes from elsewhere.
	if c, n := t.next(end); n > 0 && (c == '(' || c == '[' || c == '{' || c == '<' || c == '$' || c == '%') {
		return finding{} // a call or a template, not a value
	}
	if !looksRandom(value, quoted) {
		return finding{}
	}
	return finding{start: i, end: end, skip: end, ok: true}
}

// Unquoted values end at the punctuation of shells, URLs and source code; quoted
// ones end at their quote, so more may be part of them.
var (
	isBare   = newClass("0-9A-Za-z_+/=.~:-")
	isQuoted = newClass("0-9A-Za-z_+/=.~:!@#^&*?|;%$-")
)

func valueClass(quoted bool) *class {
	if quoted {
		return isQuoted
	}
	return isBare
}

// runEnd returns where the characters of a value that begins at i end. It
// remembers the last run, so that names assigned to names assigned to names
// are read once.
func (s *scan) runEnd(i int, quoted bool) int {
	r := &s.bareRun
	if quoted {
		r = &s.quotedRun
	}
	if i >= r[0] && i < r[1] {
		return r[1]
	}
	end, _ := s.t.skip(i, len(s.t.b), valueClass(quoted))
	*r = [2]int{i, end}
	return end
}

// readValue decodes the value at i into room.
func readValue(t *text, i int, room []byte, quoted bool) (value []byte, end int) {
	in := valueClass(quoted)
	for len(room) < longest {
		c, n := t.next(i)
		if n == 0 || !in[c] {
			break
		}
		room = append(room, c)
		i += n
	}
	// Punctuation at the end belongs to the sentence.
	for n := len(room); n > 0 && (room[n-1] == '.' || room[n-1] == ':' || room[n-1] == ';'); n = len(room) {
		_, i = t.prev(i)
		room = room[:n-1]
	}
	return room, i
}

// placeholders are words of values that only stand for a secret.
var placeholders = []string{
	"example", "placeholder", "changeme", "change-me", "change_me", "your-", "your_", "yourtoken", "dummy", "sample",
	"redacted", "masked", "replace", "insert", "todo", "fake", "xxxx", "***", "....", "abcdef", "123456789", "123123",
	"qwerty", "0000000", "aaaa", "testtest", "foobar", "notasecret", "not-a-secret", "lorem", "undefined",
	"process.env", "getenv", "os.environ", "secrets.", "vault:", "env.", "${", "{{", "%s", "%v", "$(",
}

// isOperator begins paths, options, templates and the like, and no secret.
var isOperator = newClass("./$%:&-")

// looksRandom reports whether a value behind a name like "token" is likely a
// secret and not a word, an identifier, a path, a version or a placeholder.
func looksRandom(v []byte, quoted bool) bool {
	letters, digits, turns := 0, 0, 0
	var kind byte
	for _, c := range v {
		k := byte('.')
		switch {
		case c >= '0' && c <= '9':
			k = '0'
			digits++
		case c >= 'a' && c <= 'z':
			k = 'a'
			letters++
		case c >= 'A' && c <= 'Z':
			k = 'A'
			letters++
		}
		if k != kind {
			turns++
		}
		kind = k
	}
	// Without digits it is a word or a name of something, without letters a number or a date.
	if letters == 0 || digits < 2 || isOperator[v[0]] {
		return false
	}
	// Random text changes between letters, digits and cases all the time; words,
	// identifiers and dates do not.
	// Both bounds are a compromise between the clean texts and the known secrets of the tests.
	if turns*100 < len(v)*30 || entropy(v) < 3.1 {
		return false
	}
	return !structured(v) && !isPlaceholder(v)
}

// structured reports whether v is a path, an address, a dotted name, a hash
// with its algorithm, a time or a version.
func structured(v []byte) bool {
	if containsAny(v, "://", "sha256", "sha512", "sha1-", "sha384", "h1:", "md5:", "::") {
		return true
	}
	words, from := 0, 0
	sep := func(c byte) bool { return c == '.' || c == '/' || c == '-' || c == '_' || c == ':' || c == '|' }
	short := 0
	for i := 0; i <= len(v); i++ {
		if i < len(v) && !sep(v[i]) {
			continue
		}
		words++
		if w := v[from:i]; len(w) <= 4 || plainWord(w) {
			short++
		}
		from = i + 1
	}
	return words >= 3 && short*2 > words && !uuid(v)
}

// plainWord reports whether w is letters, at most with digits at the end.
func plainWord(w []byte) bool {
	n := len(w)
	for n > 0 && w[n-1] >= '0' && w[n-1] <= '9' {
		n--
	}
	return n > 0 && !slices.ContainsFunc(w[:n], func(c byte) bool { return !isAlnum[c] || c <= '9' })
}

// uuid reports whether v is a UUID. Its parts are short like those of names and
// dates, and some services use UUIDs as keys.
func uuid(v []byte) bool {
	if len(v) != 36 {
		return false
	}
	for i, c := range v {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (c == '-') || !dash && jsonscan.Hex(c) < 0 {
			return false
		}
	}
	return true
}

// isPlaceholder ignores case.
func isPlaceholder(v []byte) bool {
	var room [longest]byte
	return containsAny(appendLower(room[:0], v), placeholders...)
}
