package fakegitea

import (
	"html"
	"regexp"
	"strings"
)

var (
	mdCode   = regexp.MustCompile("`([^`]+)`")
	mdBold   = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	mdItalic = regexp.MustCompile(`\*([^*]+)\*`)
	mdLink   = regexp.MustCompile(`\[([^\]]+)\]\((https?://[^)\s]+)\)`)
	mdHead   = regexp.MustCompile(`^(#{1,6}) +(.*)$`)
)

// renderMarkdown renders the common part of Markdown: headings, lists, code
// blocks, emphasis, links. Everything else stays text, and HTML is escaped.
func renderMarkdown(text string) string {
	var out, para []string
	flush := func() {
		if len(para) > 0 {
			out = append(out, `<p dir="auto">`+strings.Join(para, "<br/>\n")+"</p>")
			para = nil
		}
	}
	all := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := 0; i < len(all); i++ {
		line := all[i]
		switch {
		case strings.HasPrefix(line, "```"):
			flush()
			var code []string
			for i++; i < len(all) && !strings.HasPrefix(all[i], "```"); i++ {
				code = append(code, html.EscapeString(all[i]))
			}
			out = append(out, "<pre><code>"+strings.Join(code, "\n")+"\n</code></pre>")
		case mdHead.MatchString(line):
			flush()
			m := mdHead.FindStringSubmatch(line)
			tag := "h" + string(rune('0'+len(m[1])))
			out = append(out, "<"+tag+` dir="auto">`+inline(m[2])+"</"+tag+">")
		case strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* "):
			flush()
			var items []string
			for ; i < len(all) && (strings.HasPrefix(all[i], "- ") || strings.HasPrefix(all[i], "* ")); i++ {
				items = append(items, "<li>"+inline(all[i][2:])+"</li>")
			}
			i--
			out = append(out, "<ul dir=\"auto\">\n"+strings.Join(items, "\n")+"\n</ul>")
		case strings.TrimSpace(line) == "":
			flush()
		default:
			para = append(para, inline(line))
		}
	}
	flush()
	return strings.Join(out, "\n") + "\n"
}

// inline renders the marks inside a line.
func inline(s string) string {
	s = html.EscapeString(s)
	s = mdCode.ReplaceAllString(s, "<code>$1</code>")
	s = mdBold.ReplaceAllString(s, "<strong>$1</strong>")
	s = mdItalic.ReplaceAllString(s, "<em>$1</em>")
	return mdLink.ReplaceAllString(s, `<a href="$2" rel="nofollow">$1</a>`)
}
