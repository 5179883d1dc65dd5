package jsonscan

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// ErrDepth is returned by [Check] for a document nested deeper than its limit.
var ErrDepth = errors.New("JSON nested too deep")

// SyntaxError is a place where a document stops being JSON.
type SyntaxError struct {
	// Offset is the index of the first offending byte; it may be the length of
	// the document when that ends too early.
	Offset int
	// What is the complaint; it quotes nothing of the document.
	What string
}

// Error returns the complaint and its place.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.What)
}

// Check reports whether data is exactly one JSON value with optional white
// space around it, nested at most maxDepth deep (a bare array or object has
// depth 1), with strings in valid UTF-8. It needs memory in proportion to
// maxDepth only. Errors are [ErrDepth] or a [*SyntaxError].
func Check(data []byte, maxDepth int) error { return CheckValues(data, maxDepth, 1<<62) }

// ErrValues is returned by [CheckValues] for a document of too many values.
var ErrValues = errors.New("JSON of too many values")

// CheckValues is [Check] for documents that will be decoded: it also bounds the
// number of values in all, since a decoded value takes far more memory than the
// two bytes that it has at least in the text.
func CheckValues(data []byte, maxDepth, maxValues int) error {
	var room [64]byte
	c := checker{data: data, stack: room[:0], left: maxValues}
	return c.document(maxDepth)
}

// CheckCount is [Check] that also counts the elements of the outermost array; the
// count is -1 for a document that is none.
func CheckCount(data []byte, maxDepth int) (elements int, err error) {
	var room [64]byte
	c := checker{data: data, stack: room[:0], left: 1 << 62}
	if err := c.document(maxDepth); err != nil {
		return -1, err
	}
	if Kind(data) != '[' {
		return -1, nil
	}
	return c.elements, nil
}

type checker struct {
	data  []byte
	stack []byte // the open brackets, innermost last
	left  int    // how many more values there may be
	// elements counts the values directly below the outermost bracket.
	elements int
}

// document checks the whole text.
func (c *checker) document(maxDepth int) error {
	i, err := c.value(skipSpace(c.data, 0), maxDepth)
	if err != nil {
		return err
	}
	if i = skipSpace(c.data, i); i != len(c.data) {
		return &SyntaxError{i, "text after the value"}
	}
	return nil
}

// value checks the value that begins at i and returns the index after it. It
// is a loop over an explicit stack, so a depth bomb costs no goroutine stack.
func (c *checker) value(i, maxDepth int) (int, error) {
	for {
		var err error
		var opened bool
		if i, opened, err = c.begin(i, maxDepth); err != nil {
			return i, err
		}
		if opened {
			continue
		}
		// A value has ended: close what ends here, or step to the next one.
		var more bool
		if i, more, err = c.next(i); err != nil || !more {
			return i, err
		}
	}
}

// begin checks a scalar or an empty container whole, or enters a container
// and stops where its first value begins (opened).
func (c *checker) begin(i, maxDepth int) (_ int, opened bool, _ error) {
	if i >= len(c.data) {
		return i, false, &SyntaxError{i, "the document ends where a value should be"}
	}
	if c.left--; c.left < 0 {
		return i, false, ErrValues
	}
	if len(c.stack) == 1 {
		c.elements++
	}
	b := c.data[i]
	if b != '{' && b != '[' {
		i, err := c.scalar(i)
		return i, false, err
	}
	if len(c.stack) >= maxDepth {
		return i, false, ErrDepth
	}
	i = skipSpace(c.data, i+1)
	if i < len(c.data) && c.data[i] == b+2 { // ']' and '}' follow their openers by two
		return i + 1, false, nil
	}
	c.stack = append(c.stack, b)
	if b == '{' {
		i, err := c.key(i)
		return i, true, err
	}
	return i, true, nil
}

// next stands behind a value: it closes containers that end, and stops where
// the next value begins (more) or where the outermost one has ended.
func (c *checker) next(i int) (_ int, more bool, _ error) {
	for len(c.stack) > 0 {
		i = skipSpace(c.data, i)
		if i >= len(c.data) {
			return i, false, &SyntaxError{i, "the document ends inside an array or object"}
		}
		open := c.stack[len(c.stack)-1]
		switch c.data[i] {
		case open + 2:
			c.stack = c.stack[:len(c.stack)-1]
			i++
			continue
		case ',':
			i = skipSpace(c.data, i+1)
			if open == '{' {
				i, err := c.key(i)
				return i, true, err
			}
			return i, true, nil
		}
		return i, false, &SyntaxError{i, "expected a comma or the closing bracket"}
	}
	return i, false, nil
}

func (c *checker) key(i int) (int, error) {
	if i >= len(c.data) || c.data[i] != '"' {
		return i, &SyntaxError{i, "expected a member name in quotes"}
	}
	end := skipPlain(c.data, i+1)
	if end < len(c.data) && c.data[end] == '"' {
		i = end + 1
	} else {
		var err error
		if i, err = c.str(i); err != nil {
			return i, err
		}
	}
	i = skipSpace(c.data, i)
	if i >= len(c.data) || c.data[i] != ':' {
		return i, &SyntaxError{i, "expected a colon after the member name"}
	}
	return skipSpace(c.data, i+1), nil
}

func (c *checker) scalar(i int) (int, error) {
	switch b := c.data[i]; {
	case b == '"':
		if end := skipPlain(c.data, i+1); end < len(c.data) && c.data[end] == '"' {
			return end + 1, nil
		}
		return c.str(i)
	case b == '-' || b >= '0' && b <= '9':
		return c.number(i)
	case b == 't':
		return c.word(i, "true")
	case b == 'f':
		return c.word(i, "false")
	case b == 'n':
		return c.word(i, "null")
	}
	return i, &SyntaxError{i, "expected a value"}
}

func (c *checker) word(i int, w string) (int, error) {
	if len(c.data)-i < len(w) || string(c.data[i:i+len(w)]) != w {
		return i, &SyntaxError{i, "expected a value"}
	}
	return i + len(w), nil
}

func (c *checker) number(i int) (int, error) {
	data := c.data
	if data[i] == '-' {
		i++
	}
	from := i
	if i = skipDigits(data, i); i == from {
		return i, &SyntaxError{i, "expected a digit"}
	}
	if data[from] == '0' {
		i = from + 1 // what follows a leading zero is no part of the number
	}
	if i < len(data) && data[i] == '.' {
		from = i + 1
		if i = skipDigits(data, from); i == from {
			return i, &SyntaxError{i, "expected a digit after the decimal point"}
		}
	}
	if i < len(data) && (data[i] == 'e' || data[i] == 'E') {
		if i++; i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		from = i
		if i = skipDigits(data, i); i == from {
			return i, &SyntaxError{i, "expected a digit in the exponent"}
		}
	}
	return i, nil
}

func skipDigits(data []byte, i int) int {
	for i < len(data) && data[i] >= '0' && data[i] <= '9' {
		i++
	}
	return i
}

// skipPlain returns the index of the first byte from i on that is not plain, or
// the length of data.
func skipPlain(data []byte, i int) int {
	for i < len(data) && plain[data[i]] {
		i++
	}
	return i
}

// plain marks the bytes of a string that need no look: printable ASCII without
// the quote and the backslash.
var plain = func() (t [256]bool) {
	for b := 0x20; b < 0x80; b++ {
		t[b] = b != '"' && b != '\\'
	}
	return t
}()

func (c *checker) str(i int) (int, error) {
	data := c.data
	for i++; ; {
		i = skipPlain(data, i)
		if i >= len(data) {
			return i, &SyntaxError{i, "the document ends inside a string"}
		}
		switch b := data[i]; {
		case b == '"':
			return i + 1, nil
		case b == '\\':
			n := escapeLen(data[i:])
			if n == 0 {
				return i, &SyntaxError{i, "bad escape in a string"}
			}
			i += n
		case b < 0x20:
			return i, &SyntaxError{i, "control character in a string"}
		default:
			r, n := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && n <= 1 {
				return i, &SyntaxError{i, "invalid UTF-8 in a string"}
			}
			i += n
		}
	}
}

// escapeLen returns the length of the escape at the start of s, 0 when it is
// none. A lone surrogate is an escape: RFC 8259 section 8.2 permits it.
func escapeLen(s []byte) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(s) < 6 {
			return 0
		}
		for _, b := range s[2:6] {
			if !(b >= '0' && b <= '9' || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && data[i] <= ' ' && (data[i] == ' ' || data[i] == '\n' || data[i] == '\r' || data[i] == '\t') {
		i++
	}
	return i
}
