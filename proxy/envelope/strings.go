package envelope

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"aegis/proxy/internal/jsonscan"
)

// minString is the length in characters below which strings are not cut: ids,
// names, dates.
const minString = 256

// stringsCut is a value whose longest strings were cut.
type stringsCut struct {
	data                []byte
	returned, available int      // characters
	next                uint64   // the characters of each long string now returned; 0: no string goes on
	omitted             []string // members left out altogether
}

// cutStrings returns value with its longest strings cut to one common length so
// that it fits into chars. With done > 0 it returns what follows the first done
// characters of each string that has more: an object of JSON Pointer → text.
//
// One length for all makes one number of a cursor, whatever the number of strings, and
// takes from the long ones alone: an issue keeps its title and loses the end of its body.
// Escapes count as the characters that they take, since that is what is read.
func (e *Envelope) cutStrings(value []byte, done uint64, chars int) stringsCut {
	if done > 0 {
		return continueStrings(value, int(min(done, 1<<40)), chars)
	}
	total := utf8.RuneCount(value)
	var lens []int
	eachLong(value, func(s longString) { lens = append(lens, s.chars) })
	limit := max(level(lens, 0, total-chars+2), minString)
	out := stringsCut{available: total}
	b := make([]byte, 0, min(len(value), 4*chars)+slack)
	from := 0
	eachLong(value, func(s longString) {
		if s.chars > limit {
			b = append(b, value[from:s.from+cutIndex(value[s.from:s.to], limit)]...)
			from = s.to
			out.next = uint64(limit)
		}
	})
	out.data = append(b, value[from:]...)
	if !fits(out.data, chars) {
		out.data, out.omitted = dropMembers(out.data, chars)
	}
	out.returned = utf8.RuneCount(out.data)
	return out
}

// continueStrings returns the next parts of the strings longer than done, by their pointers
// and without the rest of the value, which the client has. One that was shorter has come
// whole before.
func continueStrings(value []byte, done, chars int) stringsCut {
	out := stringsCut{available: utf8.RuneCount(value)}
	var lens []int
	need := slack
	eachLong(value, func(s longString) {
		if s.chars > done {
			lens = append(lens, s.chars)
			need += s.chars - done + longestUnit + keyRoom(s)
		}
	})
	limit := max(level(lens, done, need-chars), done+minString/4)
	room := chars - slack
	b := []byte{'{'}
	eachLong(value, func(s longString) {
		if s.chars <= done {
			return
		}
		text := value[s.from:s.to]
		from, to := cutIndex(text, done), len(text)
		if s.chars > limit {
			to = cutIndex(text, limit)
			out.next = uint64(limit)
		}
		n := utf8.RuneCount(text[from:to]) + keyRoom(s)
		if n > room { // more long strings than fit, each with the least that makes sense
			out.omitted = append(out.omitted, s.pointer())
			return
		}
		room -= n
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(jsonscan.AppendQuote(b, s.pointer()), `:"`...)
		b = append(append(b, text[from:to]...), '"')
	})
	out.data = append(b, '}')
	out.returned = utf8.RuneCount(out.data)
	out.omitted = boundNames(out.omitted)
	return out
}

// keyRoom is what a string takes in a continuation besides its text: the key
// and the punctuation.
func keyRoom(s longString) int {
	return utf8.RuneCount(jsonscan.AppendQuote(nil, s.pointer())) + 4
}

// longestUnit is the longest thing that is never split, a pair of surrogate
// escapes: a part may begin this much before the length that it should.
const longestUnit = 12

// level returns the common length, at least base, to which strings of these
// lengths must be cut so that together they lose excess characters; the longest
// lose first. Of 900, 500 and 300 with an excess of 700, the first two are cut to
// 350: the first loses 400 down to the second, then both lose 150.
func level(lens []int, base, excess int) int {
	if excess <= 0 {
		return 1 << 60
	}
	lens = slices.Clone(lens)
	slices.SortFunc(lens, func(a, b int) int { return b - a })
	lens = append(lens, base)
	for i := range len(lens) - 1 {
		// Cutting the i+1 longest from lens[i] down to lens[i+1] frees this many.
		step := (lens[i] - lens[i+1]) * (i + 1)
		if step >= excess {
			return lens[i] - (excess+i)/(i+1)
		}
		excess -= step
	}
	return base
}

// longString is a string value of more than minString characters: the offsets
// of the bytes between its quotes, and its path.
type longString struct {
	from, to int
	chars    int
	path     []step // shared with the walk; read it before the walk goes on
}

// step is one level of a path: a member's quoted name, or an index.
type step struct {
	name  []byte
	index int
}

// pointer returns the place as a JSON Pointer (RFC 6901). Names that are longer than
// people write are clipped, so that a document cannot make its pointers
// longer than its texts.
func (s longString) pointer() string {
	var b strings.Builder
	for _, p := range s.path {
		b.WriteByte('/')
		if p.name == nil {
			b.WriteString(strconv.Itoa(p.index))
			continue
		}
		b.WriteString(pointerEscaper.Replace(showName(p.name)))
	}
	return b.String()
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// eachLong visits the long string values of a document in order. Member names
// are not among them: an object without its names is another object. Its memory is in
// proportion to the document's depth, which was bounded when it was checked. One path serves
// all levels, as most values are passed without a use for theirs.
func eachLong(doc []byte, visit func(longString)) {
	var path []step
	var value func(v []byte, at int)
	value = func(v []byte, at int) {
		level := len(path)
		switch v[0] {
		case '"':
			if len(v) < minString { // characters take a byte at least, so it needs no counting
				return
			}
			if n := utf8.RuneCount(v) - 2; n > minString {
				visit(longString{from: at + 1, to: at + len(v) - 1, chars: n, path: path})
			}
		case '[':
			path = append(path, step{})
			for from, el := range jsonscan.Elements(v) {
				value(el, at+from)
				path[level].index++
			}
		case '{':
			path = append(path, step{})
			for k, el := range jsonscan.MemberSpans(v) {
				path[level].name = k
				value(v[el.From:el.To], at+el.From)
			}
		}
		path = path[:level]
	}
	value(doc, 0)
}

// cutIndex returns the byte index of the n-th character of the raw JSON string
// text, moved back so that it splits neither an escape nor a surrogate pair.
func cutIndex(text []byte, n int) int {
	limit := runeIndex(text, n)
	i := 0
	for i < limit {
		size := unitLen(text[i:])
		if i+size > limit {
			break
		}
		i += size
	}
	return i
}

// A cut between the halves of a pair would make two lone surrogates of it, which many
// decoders replace or refuse.

// unitLen returns the length of the character, escape or pair of surrogate
// escapes at the start of raw JSON string text.
func unitLen(s []byte) int {
	if s[0] != '\\' {
		_, size := utf8.DecodeRune(s)
		return size
	}
	if len(s) < 2 || s[1] != 'u' {
		return min(2, len(s))
	}
	if surrogate(s, "89ab") && surrogate(s[6:], "cdef") {
		return 12
	}
	return min(6, len(s))
}

// surrogate reports whether s begins with \udX… where X is one of kinds: 8 to b
// is the first half of a pair, c to f the second.
func surrogate(s []byte, kinds string) bool {
	return len(s) >= 6 && s[0] == '\\' && s[1] == 'u' && s[2]|0x20 == 'd' && strings.IndexByte(kinds, s[3]|0x20) >= 0
}

// dropMembers leaves out the members of an object that do not fit, the others
// in their order, and names them. It comes after strings were cut, for objects of very
// many members or of numbers.
func dropMembers(value []byte, chars int) (kept []byte, omitted []string) {
	if jsonscan.Kind(value) != '{' { // nothing of an array in an array can be named
		return []byte("null"), []string{"an array longer than the bound"}
	}
	room := chars - slack
	b := []byte{'{'}
	for k, v := range jsonscan.Members(value) {
		n := utf8.RuneCount(k) + utf8.RuneCount(v) + 2
		if n > room {
			if len(omitted) <= maxOmitted {
				omitted = append(omitted, showName(k))
			}
			continue
		}
		room -= n
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, k...), ':'), v...)
	}
	return append(b, '}'), boundNames(omitted)
}

// The bounds of names that Aegis repeats beside the data: they come from the
// data, so they are kept too short to say anything.
const (
	maxOmitted = 20
	maxName    = 64
)

// showName returns a member's name fit to be outside the data.
func showName(quoted []byte) string {
	if len(quoted) > 6*maxName { // an escape takes six bytes at most
		quoted = append(slices.Clone(quoted[:cutIndex(quoted, 6*maxName)]), '"')
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, clip(jsonscan.Unquote(quoted), maxName))
}

// boundNames keeps the list of omitted names short, as it is outside the bound.
func boundNames(names []string) []string {
	if len(names) <= maxOmitted {
		return names
	}
	return append(names[:maxOmitted:maxOmitted], "and others")
}
