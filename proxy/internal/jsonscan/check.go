package jsonscan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
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

// ErrValues is returned by [CheckValues] for a document of too many values.
var ErrValues = errors.New("JSON of too many values")

// CheckValues reports whether data is exactly one JSON value with optional white
// space around it, nested at most maxDepth deep (a bare array or object has
// depth 1), with strings in valid UTF-8. It needs memory in proportion to
// maxDepth only. It also bounds the number of values in all, since a decoded value
// takes far more memory than the two bytes that it has at least in the text. Errors
// are [ErrDepth], [ErrValues] or a [*SyntaxError].
func CheckValues(data []byte, maxDepth, maxValues int) error {
	var room [64]byte
	// Documents nest a few levels deep, so the stack of brackets stays on that of the goroutine.
	c := checker{marks: marks{data: data}, stack: room[:0], left: maxValues}
	return c.document(maxDepth)
}

// Content is what [Inspect] has seen in a document.
type Content struct {
	// Elements is the number of elements of the outermost array, -1 for a document
	// that is none.
	Elements int
	// Plain: the strings are ASCII, without escapes but for \", \\, \/, \b, \f, \n, \r,
	// \t and those that Go's encoding/json writes for <, > and &, where no HTML comment
	// begins.
	Plain bool
}

// Inspect is [CheckValues], for any number of values, that also says what the document
// holds.
func Inspect(data []byte, maxDepth int) (Content, error) {
	var room [64]byte
	c := checker{marks: marks{data: data}, stack: room[:0], left: 1 << 62}
	if err := c.document(maxDepth); err != nil {
		return Content{Elements: -1}, err
	}
	out := Content{Elements: -1, Plain: !c.odd}
	if Kind(data) == '[' {
		out.Elements = c.elements
	}
	return out, nil
}

type checker struct {
	marks
	stack []byte // the open brackets, innermost last
	left  int    // how many more values there may be
	// elements counts the values directly below the outermost bracket.
	elements int
	odd      bool // the content is not plain
}

// document checks the whole text.
func (c *checker) document(maxDepth int) error {
	if len(c.data) > 0 {
		// The window of marks is never empty, so that [checker.short] has no first time to look for.
		c.fill(0)
	}
	i, err := c.value(skipSpace(c.data, 0), maxDepth)
	if err != nil {
		return err
	}
	if i = skipSpace(c.data, i); i != len(c.data) {
		// A second value would be passed over by some decoders and be read by others.
		return &SyntaxError{i, "text after the value"}
	}
	return nil
}

// kinds says what begins with a byte.
var kinds = func() (t [256]kind) {
	t['"'], t['{'], t['['] = kindString, kindObject, kindArray
	for b := '1'; b <= '9'; b++ {
		t[b] = kindNumber
	}
	return t
}()

type kind uint8

const (
	kindOther kind = iota
	kindString
	kindObject
	kindArray
	kindNumber // that does not begin with 0 or -
)

// value checks the value that begins at i and returns the index after it. It is a
// loop over an explicit stack, so a depth bomb costs no goroutine stack.
func (c *checker) value(i, maxDepth int) (int, error) {
	data := c.data
	open := byte(0) // the innermost bracket, 0 outside of all
	for {
		if uint(i) >= uint(len(data)) {
			return i, &SyntaxError{i, "the document ends where a value should be"}
		}
		// Containers count as well: [[],[],…] costs a decoder more than it does here.
		if c.left--; c.left < 0 {
			return i, ErrValues
		}
		// Whatever the outermost bracket: the caller knows whether it is an array.
		if len(c.stack) == 1 {
			c.elements++
		}
		var err error
		switch b := data[i]; kinds[b] {
		case kindString:
			if end, ok := c.short(i + 1); ok {
				i = end
				break
			}
			i, err = c.str(i + 1)
		case kindNumber:
			i, err = c.digits(i)
		case kindObject, kindArray:
			var opened bool
			if i, opened, err = c.enter(i, maxDepth); opened {
				open = b
				continue
			}
		default:
			i, err = c.scalar(i)
		}
		if err != nil {
			return i, err
		}
		// A value has ended: close what ends here, or step to the next one.
		for open != 0 {
			// As unsigned numbers, one comparison is the check of the index, too.
			if uint(i) < uint(len(data)) && data[i] <= ' ' {
				i = skipSpace(data, i)
			}
			if uint(i) >= uint(len(data)) {
				return i, &SyntaxError{i, "the document ends inside an array or object"}
			}
			if data[i] == ',' {
				if i++; open != '{' {
					i = skipSpace(data, i)
					break
				}
				// Mostly a short name and a colon follow at once.
				if uint(i) < uint(len(data)) && data[i] == '"' {
					if end, ok := c.short(i + 1); ok && end+1 < len(data) && data[end] == ':' && data[end+1] > ' ' {
						i = end + 1
						break
					}
				}
				if i, err = c.key(skipSpace(data, i)); err != nil {
					return i, err
				}
				break
			}
			// ']' and '}' follow their openers by two.
			if data[i] != open+2 {
				return i, &SyntaxError{i, "expected a comma or the closing bracket"}
			}
			i++
			c.stack, open = c.stack[:len(c.stack)-1], 0
			if n := len(c.stack); n > 0 {
				open = c.stack[n-1]
			}
		}
		if open == 0 {
			return i, nil
		}
	}
}

// enter checks an empty array or object whole, or goes into one and stops where its
// first value begins (opened).
func (c *checker) enter(i, maxDepth int) (_ int, opened bool, err error) {
	b := c.data[i]
	if len(c.stack) >= maxDepth {
		return i, false, ErrDepth
	}
	if i = skipSpace(c.data, i+1); i < len(c.data) && c.data[i] == b+2 { // ']' and '}' follow their openers by two
		return i + 1, false, nil
	}
	c.stack = append(c.stack, b)
	if b == '{' {
		i, err = c.key(i)
	}
	return i, err == nil, err
}

// key checks the member name that should begin at i and the colon behind it, and
// returns the index of what comes then.
func (c *checker) key(i int) (int, error) {
	data := c.data
	if i >= len(data) || data[i] != '"' {
		return i, &SyntaxError{i, "expected a member name in quotes"}
	}
	i, err := c.str(i + 1)
	if err != nil {
		return i, err
	}
	if i = skipSpace(data, i); i >= len(data) || data[i] != ':' {
		return i, &SyntaxError{i, "expected a colon after the member name"}
	}
	return skipSpace(data, i+1), nil
}

// digits checks a number that begins with a digit but 0: mostly an integer of a few
// digits that a comma or bracket follows.
func (c *checker) digits(i int) (int, error) {
	if len(c.data)-i > 8 {
		const ones = 0x0101010101010101
		// Eight bytes at once: ids, counts and sizes end within them.
		x := binary.LittleEndian.Uint64(c.data[i:])
		// The high bit of each byte that is no digit.
		if other := ((x^'0'*ones)&(0x7f*ones) + 0x76*ones | x) & (0x80 * ones); other != 0 {
			end := i + bits.TrailingZeros64(other)/8
			// Anything else, such as a point, is for the slower way to judge.
			if b := c.data[end]; b == ',' || b == '}' {
				return end, nil
			}
		}
	}
	return c.number(i)
}

func (c *checker) scalar(i int) (int, error) {
	switch b := c.data[i]; {
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

// plain marks the bytes of a string that need no look: printable ASCII without
// the quote and the backslash.
var plain = func() (t [256]bool) {
	for b := 0x20; b < 0x80; b++ {
		t[b] = b != '"' && b != '\\'
	}
	return t
}()

// short returns the index behind a string whose first byte is at i, when its first
// special byte within 64 is the quote at its end. Most are like that.
func (c *checker) short(i int) (end int, ok bool) {
	k, shift := uint(i-c.base)/64, uint(i)%64
	if k >= windowWords {
		return 0, false
	}
	w := c.bits[k]>>shift | c.bits[k+1]<<1<<(63-shift)
	end = i + bits.TrailingZeros64(w)
	return end + 1, end < len(c.data) && c.data[end] == '"'
}

// str checks the string whose first byte is at i and returns the index behind it.
func (c *checker) str(i int) (int, error) {
	data := c.data
	for {
		i = c.next(i)
		if i >= len(data) {
			return len(data), &SyntaxError{len(data), "the document ends inside a string"}
		}
		switch b := data[i]; {
		case b == '"':
			return i + 1, nil
		case b == '\\':
			n := escapeLen(data[i:])
			if n == 0 {
				return i, &SyntaxError{i, "bad escape in a string"}
			}
			c.odd = c.odd || n > 2 && !harmless(data[i:])
			i += n
		case b < 0x20:
			return i, &SyntaxError{i, "control character in a string"}
		default:
			// Whether the character hides something is for the layers above, which then look at it.
			c.odd = true
			r, n := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && n <= 1 {
				return i, &SyntaxError{i, "invalid UTF-8 in a string"}
			}
			i += n
		}
	}
}

// harmless reports whether s begins with one of the escapes that Go writes for <, >
// and &, and with no HTML comment.
func harmless(s []byte) bool {
	switch string(s[2:6]) {
	case "0026", "003e", "003E":
		return true
	// <!-- hides what follows it from people, where Markdown is rendered.
	case "003c", "003C":
		return len(s) < 7 || s[6] != '!'
	}
	return false
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
		if _, ok := Hex4(s[2:]); ok {
			return 6
		}
	}
	return 0
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && data[i] <= ' ' && (data[i] == ' ' || data[i] == '\n' || data[i] == '\r' || data[i] == '\t') {
		i++
	}
	return i
}
