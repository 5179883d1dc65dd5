package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Problem is one thing that is wrong with a configuration, and where.
type Problem struct {
	// File is the file's name as it was given; "" without a file.
	File string
	// Line and Col count from 1, Col in characters; 0 without a file.
	Line, Col int
	// Key is the path of the key, such as auth.tokens[0].name; "" is the whole file.
	Key string
	// What says what is wrong, Do what to do about it. Neither holds a secret.
	What, Do string
}

// String returns the problem as file:line:col: key: what; what to do.
func (p Problem) String() string {
	text := p.What
	if p.Do != "" {
		text += "; " + p.Do
	}
	if p.Key != "" {
		text = p.Key + ": " + text
	}
	switch {
	case p.File == "":
		return text
	case p.Line == 0:
		return p.File + ": " + text
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Col, text)
}

// Problems are all that is wrong with a configuration, in the file's order.
// It is the error that [Load] and [Parse] return for a file that is there but
// not right.
type Problems []Problem

// Error returns one line per problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Sort orders the problems by their place in the file, and keeps the order of
// those of one place. Use it after adding problems that later stages found.
func (ps Problems) Sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
}

// maxQuoted is how many characters of a value a message repeats.
const maxQuoted = 40

// quote returns s in quotes, shortened and without control characters.
func quote(s string) string {
	printable := func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}
	text := []rune(strings.Map(printable, strings.ToValidUTF8(s, "\uFFFD")))
	if len(text) > maxQuoted {
		text = append(text[:maxQuoted-1], '…')
	}
	return `"` + string(text) + `"`
}
