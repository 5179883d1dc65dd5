package envelope

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// How much of a hidden passage is shown, in characters.
const maxShown = 200

// cleaner builds the text without, or with visible, hidden passages. Until the
// first one nothing is copied.
type cleaner struct {
	src   string
	out   strings.Builder
	done  int // src up to here is in out, once there is any
	found int // passages
	show  bool

	lastEnd int // where the last end of an HTML comment is, for [comments]
	// loose: up to the next blank line, or to the end when it is endless, backticks
	// may mean nothing, for [comments] too.
	loose, endless bool
}

// hide takes src[from:to] out; shown is what takes its place when it is to be
// made visible.
func (c *cleaner) hide(from, to int, shown func(passage string) string) {
	c.out.WriteString(c.src[c.done:from])
	if c.show {
		c.out.WriteString(shown(c.src[from:to]))
	}
	c.done = to
	c.found++
}

// text returns what is left: src itself when nothing was hidden.
func (c *cleaner) text() string {
	if c.found == 0 {
		return c.src
	}
	c.out.WriteString(c.src[c.done:])
	return c.out.String()
}

// clean returns s without hidden passages, or with them visible, and their number.
//
// It goes by runs of hidden characters: one alone may be needed by what is around it
// (see [needed]), a run never is, but for the one within emoji. So a message that is
// spelled in joiners or selectors between letters of a script that uses them is found,
// and text in that script stays as it is. before is the last character that people see;
// 0 after something that nothing may attach to.
func clean(s string, show, markdown bool) (string, int) {
	n := 0
	if markdown && strings.Contains(s, "<!--") {
		s, n = comments(s, show)
	}
	c := cleaner{src: s, show: show}
	var before rune
	for i := 0; i < len(s); {
		b := s[i]
		if b < utf8.RuneSelf && b != 0x1b {
			before, i = rune(b), i+1
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch cl := classOf(r); {
		case r == 0x1b || r == 0x9b:
			end := csiEnd(s, i+size) // U+009B is the one-character form of ESC [
			if r == 0x1b {
				end = escapeEnd(s, i)
			}
			c.hide(i, end, func(p string) string {
				return fmt.Sprintf("[hidden: terminal escape %q]", clip(p, maxShown))
			})
			i = end
		case cl == visible:
			before, i = r, i+size
		case cl == tag && before == 0x1F3F4 && flagEnd(s, i) > i:
			i = flagEnd(s, i)
			before = 0
		default:
			end, one := runEnd(s, i)
			after, _ := utf8.DecodeRuneInString(s[end:])
			if end == len(s) {
				after = 0
			}
			if one && needed(before, r, after) || before != 0 && emojiEnd(s[i:end], before, after) {
				before = r
			} else {
				c.hide(i, end, describe)
			}
			i = end
		}
	}
	return c.text(), n + c.found
}

// emojiEnd reports whether a run of hidden characters is the "presentation
// selector, joiner" between two parts of an emoji, the one run of two that text has.
func emojiEnd(run string, before, after rune) bool {
	return run == "\uFE0F\u200D" && pictorial(before) && pictorial(after)
}

// runEnd returns where the run of hidden characters at i ends, and whether it is
// a single one.
func runEnd(s string, i int) (end int, one bool) {
	n := 0
	for end = i; end < len(s); n++ {
		r, size := utf8.DecodeRuneInString(s[end:])
		if classOf(r) == visible {
			break
		}
		end += size
	}
	return end, n == 1
}

// A flag of tags is the one place where people see something of them: those of England,
// Scotland and Wales. Longer ones are none.

// flagEnd returns where the tags of a flag (U+1F3F4, two to six tag letters or
// digits, U+E007F) that begin at i end; i when they are no flag.
func flagEnd(s string, i int) int {
	end, n := i, 0
	for end < len(s) && n <= 6 {
		r, size := utf8.DecodeRuneInString(s[end:])
		end += size
		switch {
		case r == 0xE007F && n >= 3 && n <= 6:
			return end
		case r >= 0xE0061 && r <= 0xE007A, r >= 0xE0030 && r <= 0xE0039:
			n++
		default:
			return i
		}
	}
	return i
}

// escapeEnd returns where the terminal escape at i ends (ECMA-48: CSI, OSC and
// the like, or two characters).
func escapeEnd(s string, i int) int {
	if i+1 >= len(s) {
		return i + 1
	}
	switch s[i+1] {
	case '[':
		return csiEnd(s, i+2)
	case ']', 'P', 'X', '^', '_': // up to BEL or ESC \
		// Within a bound: without one each of many beginnings would be followed to the
		// end of the text, and time would grow with its square.
		for j := i + 2; j < len(s) && j < i+4096; j++ {
			if s[j] == 0x07 {
				return j + 1
			}
			if s[j] == 0x1b {
				return min(j+2, len(s))
			}
		}
		return i + 2
	}
	if s[i+1] >= ' ' && s[i+1] <= '~' {
		return i + 2
	}
	return i + 1
}

// csiEnd returns where a control sequence ends whose parameters begin at i: any number of
// parameter and intermediate bytes, and one final byte (ECMA-48 section 5.4).
func csiEnd(s string, i int) int {
	for i < len(s) && s[i] >= 0x20 && s[i] <= 0x3f {
		i++
	}
	if i < len(s) && s[i] >= 0x40 && s[i] <= 0x7e {
		i++
	}
	return i
}

// describe makes a run of hidden characters visible. Tags spell text: U+E0041 is A. The
// codes of long runs are not all shown, or a text could be made eight times as long.
func describe(run string) string {
	var spelled, codes strings.Builder
	n := 0
	for _, r := range run {
		if r >= 0xE0020 && r <= 0xE007E {
			spelled.WriteRune(r - 0xE0000)
		}
		if n < 8 {
			fmt.Fprintf(&codes, " U+%04X", r)
		}
		n++
	}
	if n > 8 {
		fmt.Fprintf(&codes, " and %d more", n-8)
	}
	if spelled.Len() > 0 {
		return fmt.Sprintf("[hidden: tag characters that spell %q]", clip(spelled.String(), maxShown))
	}
	return "[hidden:" + codes.String() + "]"
}

// clip bounds what is shown of a hidden passage or a name to most characters: enough to see
// what it is, and no way to get a long text past the bounds of what people see.
func clip(s string, most int) string {
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i] + "…"
		}
	}
	return s
}
