package jsonscan

import (
	"bytes"
	"encoding/json"
	"iter"
)

// Kind returns the first byte of the value in data, which gives its type: '{',
// '[', '"', 't', 'f', 'n', '-' or a digit. It is 0 for blank text.
func Kind(data []byte) byte {
	i := skipSpace(data, 0)
	if i >= len(data) {
		return 0
	}
	return data[i]
}

// Trim returns the value in data without the white space around it.
func Trim(data []byte) []byte { return bytes.Trim(data, " \t\r\n") }

// Elements yields the elements of the array in data, each with its offset in data
// and without surrounding white space. It yields nothing when data is not an array.
func Elements(data []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		i := skipSpace(data, 0)
		if i >= len(data) || data[i] != '[' {
			return
		}
		for i = skipSpace(data, i+1); i < len(data) && data[i] != ']'; {
			// A value that does not move on is none: text that was not checked must not loop.
			end := skipValue(data, i)
			if end <= i || !yield(i, data[i:end]) {
				return
			}
			i = skipSpace(data, end)
			if i < len(data) && data[i] == ',' {
				i = skipSpace(data, i+1)
			}
		}
	}
}

// Members yields the members of the object in data in their order: the name as
// it is written, with quotes and escapes, and the value. Duplicate names are
// yielded each time. It yields nothing when data is not an object.
func Members(data []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for name, at := range MemberSpans(data) {
			if !yield(name, data[at.From:at.To]) {
				return
			}
		}
	}
}

// Span is where a value is: from the offset From up to, without, the offset To.
type Span struct{ From, To int }

// MemberSpans is [Members] with where each value is in data for the value itself.
func MemberSpans(data []byte) iter.Seq2[[]byte, Span] {
	return func(yield func(name []byte, at Span) bool) {
		i := skipSpace(data, 0)
		if i >= len(data) || data[i] != '{' {
			return
		}
		for i = skipSpace(data, i+1); i < len(data) && data[i] == '"'; {
			nameEnd := skipString(data, i)
			v := skipSpace(data, nameEnd)
			// Not a member, in text that was not checked.
			if v >= len(data) || data[v] != ':' {
				return
			}
			v = skipSpace(data, v+1)
			end := skipValue(data, v)
			if end <= v || !yield(data[i:nameEnd], Span{v, end}) {
				return
			}
			i = skipSpace(data, end)
			if i < len(data) && data[i] == ',' {
				i = skipSpace(data, i+1)
			}
		}
	}
}

// Member returns the value of the last member called name in the object in
// data (the one that Go's decoder would keep), nil when there is none.
func Member(data []byte, name string) []byte {
	var found []byte
	// All are looked at: the last of several counts.
	for k, v := range Members(data) {
		if NameIs(k, name) {
			found = v
		}
	}
	return found
}

// NameIs reports whether the quoted member name, whatever its escapes, means
// name.
func NameIs(quoted []byte, name string) bool {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return len(quoted) >= 2 && string(quoted[1:len(quoted)-1]) == name
	}
	return Unquote(quoted) == name
}

// Unquote returns the string that a quoted JSON string means, "" when it
// is none. Lone surrogates become U+FFFD.
func Unquote(quoted []byte) string {
	if len(quoted) >= 2 && quoted[0] == '"' && bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	// Go's own decoder, so that escapes mean here what they mean to all who decode the document.
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return ""
	}
	return s
}

// skipValue returns the index after the value that begins at i; i itself when
// nothing begins there.
func skipValue(data []byte, i int) int {
	if i >= len(data) {
		return i
	}
	switch data[i] {
	case '"':
		return skipString(data, i)
	case '{', '[':
		return skipContainer(data, i)
	}
	from := i
	// Not checked again: up to the next byte that cannot be in a number or a word.
	for i < len(data) && !ends[data[i]] {
		i++
	}
	// Nothing a value begins with: the callers stop.
	if i == from {
		return from
	}
	return i
}

// ends marks the bytes that end a number or a literal.
var ends = [256]bool{
	' ': true, '\t': true, '\r': true, '\n': true,
	',': true, ':': true, ']': true, '}': true, '[': true, '{': true, '"': true,
}

func skipContainer(data []byte, i int) int {
	depth := 0
	for i < len(data) {
		switch data[i] {
		case '"':
			i = skipString(data, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			// Brackets are counted without their kinds: the document was checked.
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return i
}

func skipString(data []byte, i int) int { return min(StringEnd(data, i+1)+1, len(data)) }

// StringEnd returns where the string ends that i is inside of: the index of the quote at its
// end, or the length of data when it is cut off.
func StringEnd(data []byte, i int) int {
	for {
		n := bytes.IndexByte(data[i:], '"')
		if n < 0 {
			return len(data)
		}
		i += n
		// The quote ends the string when the number of backslashes before it is even.
		b := i
		for b > 0 && data[b-1] == '\\' {
			b--
		}
		if (i-b)%2 == 0 {
			return i
		}
		i++
	}
}

// Strings yields the strings of data in their order, at any depth: where each is, without its
// quotes, and whether it is the name of a member. It looks at nothing but quotes and what
// follows them, so data may be cut off; the last string ends with it then.
func Strings(data []byte) iter.Seq2[Span, bool] {
	return func(yield func(at Span, name bool) bool) {
		for i := 0; i < len(data); {
			q := bytes.IndexByte(data[i:], '"')
			if q < 0 {
				return
			}
			from := i + q + 1
			end := StringEnd(data, from)
			i = end + 1
			colon := skipSpace(data, i)
			if !yield(Span{from, end}, colon < len(data) && data[colon] == ':') {
				return
			}
		}
	}
}
