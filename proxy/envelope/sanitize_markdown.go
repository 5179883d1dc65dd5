package envelope

import (
	"fmt"
	"slices"
	"strings"
)

// comments takes HTML comments out of Markdown, or makes them visible, except in
// code, where they are shown to people too (CommonMark 0.31, sections 4.4 to 4.6,
// 6.1 and 6.6). The author of what is hidden chooses the text around it, so what may be
// code and may be none is taken for none: lists, quotes and HTML decide about that
// in more ways than are followed here. A comment in code that is taken out by mistake
// costs a passage, one that is left in by mistake is an instruction to a model.
func comments(s string, show bool) (string, int) {
	c := cleaner{src: s, show: show}
	shown := func(p string) string {
		text := strings.TrimSuffix(strings.TrimPrefix(p, "<!--"), "-->")
		return fmt.Sprintf("[hidden: comment %q]", clip(strings.TrimSpace(text), maxShown))
	}
	c.lastEnd = strings.LastIndex(s, "-->")
	fences := []string{""} // that may be open here; "": none
	for i := 0; i < len(s); {
		end := len(s)
		if nl := strings.IndexByte(s[i:], '\n'); nl >= 0 {
			end = i + nl + 1
		}
		line, whole := s[i:end], i == 0 || s[i-1] == '\n' // else a comment ended on it
		if !slices.Contains(fences, "") {
			fences, i = c.fence(fences, line), end
			continue
		}
		if c.open(line, whole); whole {
			before := len(fences)
			fences = c.fence(fences, line)
			if before == 1 && fences[0] != "" && len(fences) == 1 {
				i = end
				continue
			}
		}
		i = c.line(i, end, shown)
	}
	return c.text(), c.found
}

// fence returns which fences may be open after a line, given those before it. A
// fence that is indented, or is where HTML goes on, may be none, or the end of
// one in a list. So there is a set of them, in which "" is text: a line is code
// only where every member of the set says so.
func (c *cleaner) fence(before []string, line string) (after []string) {
	mark := fenceOf(line)
	if mark == "" {
		return before
	}
	add := func(f string) {
		if !slices.Contains(after, f) {
			after = append(after, f)
		}
	}
	for _, f := range before {
		switch {
		case f != "" && closes(line, mark, f):
			add("")
		case f != "":
			add(f)
		default:
			add(mark)
			if c.loose || line[0] == ' ' {
				add("")
			}
		}
	}
	if len(after) > maxFences {
		return []string{""}
	}
	return after
}

// maxFences bounds the fences that are thought of at a time. Where there may be more,
// nothing is code any longer.
const maxFences = 16

// open notes where a line leaves or enters text in which backticks may mean nothing.
func (c *cleaner) open(line string, whole bool) {
	if !whole {
		c.loose = true // the line began in a comment
		return
	}
	if strings.Trim(line, " \t>\r\n") == "" { // a blank line, in a quote or not, ends most HTML
		c.loose = c.endless
		return
	}
	// These go on over blank lines (section 4.6, conditions 1 and 3 to 5).
	text := strings.ToLower(strings.TrimLeft(line, " \t>*+-0123456789.)"))
	for _, begin := range []string{"<script", "<pre", "<style", "<textarea", "<?", "<!"} {
		if strings.HasPrefix(text, begin) && !strings.HasPrefix(text, "<!--") {
			c.loose, c.endless = true, true
		}
	}
	c.loose = c.loose || tagAt(text, 0)
}

// tagAt reports whether what begins at i may be HTML, or an address in pointed
// brackets: backticks in it are no code.
func tagAt(s string, i int) bool {
	if i+1 >= len(s) || s[i] != '<' {
		return false
	}
	b := s[i+1]
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '/' || b == '!' || b == '?'
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
	rest := strings.TrimLeft(line, " ")[len(mark):]
	return mark[0] == fence[0] && len(mark) >= len(fence) && strings.TrimRight(rest, " \t\r\n") == ""
}

// line handles one line from i on and returns where to go on: after a comment
// that spans lines, that is later than end. Backslashes and backticks protect what
// follows only while the text is not loose.
func (c *cleaner) line(i, end int, shown func(string) string) int {
	start := i
	var unpaired [maxTicks + 1]bool // lengths of runs of backticks without a partner in this line
	for i < end {
		switch {
		case c.src[i] == '\\' && !c.loose:
			i = min(i+2, end) // what follows stands for itself, a backtick too
		case c.src[i] == '`' && !c.loose:
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
			c.loose = c.loose || tagAt(c.src, i)
			i++
		}
	}
	return end
}

// maxTicks bounds the runs of backticks that are taken for code.
const maxTicks = 64

// codeEnd returns where the code span at i ends: after the next run of as many
// backticks on this line, or after this run when there is none. A length that was
// looked for and not found is not looked for again, so that a line of backticks takes
// no more than a few passes.
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
// when nothing ends it. <!--> and <!---> are whole comments since CommonMark 0.31.
// lastEnd spares a search to the end of the text for each of many beginnings.
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
