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
	mdBlock  = regexp.MustCompile("(?m)^(#{1,6} |[-*] |```)")
)

// renderMarkdown renders paragraphs with code, emphasis and links. HTML is escaped.
// Headings, lists and code blocks are not in the demo: a page with them is refused
// as a whole, as half a rendering would look like a fault of the gateway.
func renderMarkdown(text string) (string, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if mdBlock.MatchString(text) {
		return "", notInDemo(nil)
	}
	var out strings.Builder
	for para := range strings.SplitSeq(text, "\n\n") {
		if para = strings.Trim(para, "\n"); strings.TrimSpace(para) != "" {
			out.WriteString(`<p dir="auto">` + strings.ReplaceAll(inline(para), "\n", "<br/>\n") + "</p>\n")
		}
	}
	return out.String(), nil
}

// inline renders the marks inside a line.
func inline(s string) string {
	s = html.EscapeString(s)
	s = mdCode.ReplaceAllString(s, "<code>$1</code>")
	s = mdBold.ReplaceAllString(s, "<strong>$1</strong>")
	s = mdItalic.ReplaceAllString(s, "<em>$1</em>")
	return mdLink.ReplaceAllString(s, `<a href="$2" rel="nofollow">$1</a>`)
}
