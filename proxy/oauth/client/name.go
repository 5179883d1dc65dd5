package client

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxName bounds the characters of a client's name.
	maxName = 60
	// maxMarks bounds the combining marks on one letter: more of them paint over
	// the lines around it.
	maxMarks = 2
)

// CleanName returns what can be shown of a name that a stranger chose: at most
// 60 characters on one line, none of them invisible or able to turn the text
// around; "" when no letter or digit is left.
func CleanName(name string) string {
	var b strings.Builder
	count, marks, space, readable := 0, 0, false, false
	for _, r := range name {
		switch {
		case r == utf8.RuneError, unicode.IsControl(r) && !unicode.IsSpace(r), isInvisible(r):
			continue
		case unicode.IsSpace(r):
			space = count > 0
			continue
		case unicode.Is(unicode.M, r):
			if marks++; marks > maxMarks || count == 0 || space {
				continue
			}
		default:
			marks = 0
		}
		if space {
			if count++; count < maxName {
				b.WriteByte(' ')
			}
			space = false
		}
		if count++; count > maxName {
			break
		}
		b.WriteRune(r)
		readable = readable || unicode.IsLetter(r) || unicode.IsNumber(r)
	}
	if !readable {
		return ""
	}
	return b.String()
}

// isInvisible reports whether r shows nothing, or changes how its neighbours
// show: format characters (bidi, zero width, tags), private and unassigned ones,
// and the letters and symbols that are drawn blank.
func isInvisible(r rune) bool {
	switch r {
	case '\u034f', '\u115f', '\u1160', '\u17b4', '\u17b5', '\u2800', '\u3164', '\uffa0':
		return true
	}
	if unicode.Is(unicode.Variation_Selector, r) {
		return true
	}
	return !unicode.IsSpace(r) && !unicode.IsGraphic(r)
}

// nameOf returns the name to show for a client: its own when anything of it is
// left, else where it is sent back to.
func nameOf(name string, uris []string) string {
	if clean := CleanName(name); clean != "" {
		return clean
	}
	if len(uris) > 0 {
		host := strings.TrimSuffix(RedirectHost(uris[0]), ":")
		return host[:min(len(host), maxName)]
	}
	return "unnamed client"
}
