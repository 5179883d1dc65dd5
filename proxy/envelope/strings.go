package envelope

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"aegis/internal/jsonscan"
)

// minString is the length below which strings are not cut: ids, names, dates.
const minString = 256

// stringsCut is a value whose longest strings were cut.
type stringsCut struct {
	data                []byte
	returned, available int      // characters
	next                uint64   // the characters of each long string now returned; 0: no string goes on
	omitted             []string // members left out altogether
}

// leaf is a string value in a document: the bytes between its quotes.
type leaf struct {
	from, to int // offsets in the document
	chars    int
	pointer  string // JSON Pointer (RFC 6901)
}

// cutStrings returns value with its longest strings cut to one common length so
// that it fits into chars. With done > 0 it returns what follows the first done
// characters of each string that has more: an object of JSON Pointer → text.
func (e *Envelope) cutStrings(value []byte, done uint64, chars int) stringsCut {
	leaves := stringLeaves(value)
	if done > 0 {
		return continueStrings(value, leaves, int(min(done, 1<<40)), chars)
	}
	total := utf8.RuneCount(value)
	limit := level(leaves, 0, total-chars+2)
	out := stringsCut{available: total}
	if limit < minString {
		limit = minString
	}
	b := make([]byte, 0, min(len(value), 4*chars)+slack)
	from := 0
	for _, l := range leaves {
		if l.chars > limit {
			end := l.from + cutIndex(value[l.from:l.to], limit)
			b = append(b, value[from:end]...)
			from = l.to
			out.next = uint64(limit)
		}
	}
	out.data = append(b, value[from:]...)
	if !fits(out.data, chars) {
		out.data, out.omitted = dropMembers(out.data, chars)
	}
	out.returned = utf8.RuneCount(out.data)
	return out
}

// continueStrings returns the next parts of the strings longer than done.
func continueStrings(value []byte, leaves []leaf, done, chars int) stringsCut {
	out := stringsCut{available: utf8.RuneCount(value)}
	open := leaves[:0]
	need := slack
	for _, l := range leaves {
		if l.chars > done {
			open = append(open, l)
			need += l.chars - done + utf8.RuneCount(jsonscan.AppendQuote(nil, l.pointer)) + 4
		}
	}
	limit := max(level(open, done, need-chars), done+minString)
	room := chars
	b := []byte{'{'}
	for _, l := range open {
		text := value[l.from:l.to]
		from, to := cutIndex(text, done), len(text)
		if l.chars > limit {
			to = cutIndex(text, limit)
			out.next = uint64(limit)
		}
		room -= utf8.RuneCount(text[from:to]) + utf8.RuneCountInString(l.pointer) + 8
		if room < 0 { // too many long strings, or a pointer longer than the bound
			out.omitted = append(out.omitted, l.pointer)
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(jsonscan.AppendQuote(b, l.pointer), `:"`...)
		b = append(append(b, text[from:to]...), '"')
	}
	out.data = append(b, '}')
	out.returned = utf8.RuneCount(out.data)
	out.omitted = boundNames(out.omitted)
	return out
}

// level returns the common length, at least base, to which leaves must be cut so
// that together they lose excess characters; the longest lose first.
func level(leaves []leaf, base, excess int) int {
	if excess <= 0 {
		return 1 << 60
	}
	lens := make([]int, 0, len(leaves)+1)
	for _, l := range leaves {
		lens = append(lens, l.chars)
	}
	slices.SortFunc(lens, func(a, b int) int { return b - a })
	lens = append(lens, base)
	for i := 0; i < len(lens)-1; i++ {
		// Cutting the i+1 longest from lens[i] down to lens[i+1] frees this many.
		step := (lens[i] - lens[i+1]) * (i + 1)
		if step >= excess {
			return lens[i] - (excess+i)/(i+1)
		}
		excess -= step
	}
	return base
}

// stringLeaves lists the string values of a document in order. Member names
// are not among them.
func stringLeaves(doc []byte) []leaf {
	var out []leaf
	collect(doc, doc, "", &out)
	return out
}

// collect recurses to the depth of the document, which was bounded when it was
// checked.
func collect(doc, v []byte, pointer string, out *[]leaf) {
	switch v[0] {
	case '"':
		at := cap(doc) - cap(v)
		*out = append(*out, leaf{from: at + 1, to: at + len(v) - 1, chars: utf8.RuneCount(v) - 2, pointer: pointer})
	case '[':
		i := 0
		for el := range jsonscan.Elements(v) {
			collect(doc, el, pointer+"/"+strconv.Itoa(i), out)
			i++
		}
	case '{':
		for k, el := range jsonscan.Members(v) {
			collect(doc, el, pointer+"/"+escapePointer(jsonscan.Unquote(k)), out)
		}
	}
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

func escapePointer(name string) string { return pointerEscaper.Replace(name) }

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
	isSurrogate := func(t []byte, lo, hi byte) bool {
		return len(t) >= 6 && t[0] == '\\' && t[1] == 'u' && t[2]|0x20 == 'd' && t[3]|0x20 >= lo && t[3]|0x20 <= hi
	}
	high := len(s) >= 6 && s[2]|0x20 == 'd' && (s[3] == '8' || s[3] == '9' || s[3]|0x20 == 'a' || s[3]|0x20 == 'b')
	if high && isSurrogate(s[6:], 'c', 'f') {
		return 12
	}
	return min(6, len(s))
}

// dropMembers leaves out the members of an object (or elements of an array)
// that do not fit, the others in their order, and names them.
func dropMembers(value []byte, chars int) (kept []byte, omitted []string) {
	room := chars - slack
	b := []byte{'{'}
	for k, v := range jsonscan.Members(value) {
		n := utf8.RuneCount(k) + utf8.RuneCount(v) + 2
		if n > room {
			omitted = append(omitted, jsonscan.Unquote(k))
			continue
		}
		room -= n
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, k...), ':'), v...)
	}
	if jsonscan.Kind(value) != '{' { // an array in an array: nothing of it can be named
		return []byte("null"), []string{"(an array longer than the bound)"}
	}
	return append(b, '}'), boundNames(omitted)
}

// boundNames keeps the list of omitted names short.
func boundNames(names []string) []string {
	const most = 20
	if len(names) <= most {
		return names
	}
	return append(names[:most:most], "and "+strconv.Itoa(len(names)-most)+" more")
}
