package sanitize

import (
	"fmt"
	"strings"
)

// comments takes HTML comments out of Markdown, or makes them visible, except in
// code, where they are shown to people too (CommonMark 0.31, sections 4.4 to 4.6,
// 6.1 and 6.6).
func comments(s string, show bool) (string, int) {
	c := cleaner{src: s, show: show}
	shown := func(p string) string {
		return fmt.Sprintf("[hidden: comment %q]", clip(strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(p, "<!--"), "-->"))))
	}
	fence := ""
	c.lastEnd = strings.LastIndex(s, "-->")
	for i := 0; i < len(s); {
		end := len(s)
		if nl := strings.IndexByte(s[i:], '\n'); nl >= 0 {
			end = i + nl + 1
		}
		line := s[i:end]
		if mark := fenceOf(line); mark != "" && (fence == "" || closes(line, mark, fence)) {
			if fence == "" {
				fence = mark
			} else {
				fence = ""
			}
			i = end
			continue
		}
		if fence != "" {
			i = end
			continue
		}
		i = c.line(i, end, shown)
	}
	return c.text(), c.found
}

// fenceOf returns the run of ` or ~ that a code fence on this line begins with,
// "" when there is none.
func fenceOf(line string) string {
	text := strings.TrimLeft(line, " ")
	if len(line)-len(text) > 3 || len(text) < 3 || text[0] != '`' && text[0] != '~' {
		return ""
	}
	n := len(text) - len(strings.TrimLeft(text, text[:1]))
	if n < 3 || text[0] == '`' && strings.Contains(text[n:], "`") {
		return ""
	}
	return text[:n]
}

// closes reports whether the line ends the fenced code that fence began.
func closes(line, mark, fence string) bool {
	return mark[0] == fence[0] && len(mark) >= len(fence) && strings.TrimRight(strings.TrimLeft(line, " ")[len(mark):], " \t\r\n") == ""
}

// line handles one line from i on and returns where to go on: after a comment
// that spans lines, that is later than end.
func (c *cleaner) line(i, end int, shown func(string) string) int {
	start := i
	var unpaired [maxTicks + 1]bool // lengths of runs of backticks without a partner in this line
	for i < end {
		switch {
		case c.src[i] == '`':
			i = codeEnd(c.src, i, end, &unpaired)
		case strings.HasPrefix(c.src[i:], "<!--"):
			to, ok := c.commentEnd(i)
			if !ok && len(strings.TrimLeft(c.src[start:i], " ")) > 0 {
				return end // without an end, and not at the start of a line, it is text
			}
			c.hide(i, to, shown)
			if to >= end {
				return to
			}
			i = to
		default:
			i++
		}
	}
	return end
}

// maxTicks bounds the runs of backticks that are taken for code.
const maxTicks = 64

// codeEnd returns where the code span at i ends: after the next run of as many
// backticks on this line, or after this run when there is none. A length that was
// looked for in vain is not looked for again, so that a line of backticks takes no
// more than a few passes.
func codeEnd(s string, i, end int, unpaired *[maxTicks + 1]bool) int {
	n := i
	for n < end && s[n] == '`' {
		n++
	}
	if n-i > maxTicks || unpaired[n-i] {
		return n
	}
	ticks := s[i:n]
	for j := n; j < end; {
		at := strings.Index(s[j:end], ticks)
		if at < 0 {
			break
		}
		k := j + at + len(ticks)
		if k >= end || s[k] != '`' {
			return k
		}
		for k < end && s[k] == '`' {
			k++
		}
		j = k
	}
	unpaired[n-i] = true
	return n
}

// commentEnd returns where the comment at i ends: the end of the text and false
// when nothing ends it.
func (c *cleaner) commentEnd(i int) (int, bool) {
	s := c.src
	if strings.HasPrefix(s[i:], "<!-->") {
		return i + len("<!-->"), true
	}
	if strings.HasPrefix(s[i:], "<!--->") {
		return i + len("<!--->"), true
	}
	if c.lastEnd < i+4 {
		return len(s), false
	}
	return i + 4 + strings.Index(s[i+4:], "-->") + 3, true
}
