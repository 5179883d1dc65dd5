package setup

import (
	"encoding/json"
	"strings"
)

// tokenVariable is the environment variable that clients take a static token from. The
// token itself is in none of the guides: they are copied into chats, tickets and
// repositories.
const tokenVariable = "AEGIS_TOKEN"

// mcpClient is an MCP client that Aegis knows how to connect. Everything that differs
// between clients is in here; what they have in common is code.
type mcpClient struct {
	command string // sub-command of "aegis setup"
	title   string
	// hosted: it connects from its maker's servers, and can only sign in.
	hosted bool
	// intro comes before the file; after the file comes signIn, or with a static token
	// token (nil: exportToken).
	intro, signIn, token []part
	// after is what is left to do to sign in once the file is written; whole lines.
	after string
	// path is the client's own file, "" when it has none that could be written. It is JSON,
	// where keys lead to the object of servers; without keys it is TOML.
	path string
	keys []string
	// members are what the file says of the server, and withToken what it says besides for a
	// static token: JSON members without their braces, or lines of TOML.
	members, withToken string
}

// guide says how a client is connected.
type guide struct {
	parts []part
	// file is what the client reads; nil: none that could be written.
	file *clientFile
	// after is what is left to do once the file is written; whole lines.
	after string
}

// part is a sentence or a piece to copy. The page and the terminal show the same parts,
// each in its own form.
type part struct {
	says string // a paragraph
	lang string // of code
	code string // whole lines
}

func says(text string) part       { return part{says: text} }
func shell(lines ...string) part  { return part{lang: "text", code: strings.Join(lines, "\n") + "\n"} }
func (f *clientFile) shown() part { return part{lang: f.lang(), code: f.text()} }

// text is the guide for a terminal.
func (g guide) text() string {
	// Code is indented and never broken: a line that is copied must be whole.
	return g.render(78, func(p part) string {
		var b strings.Builder
		for line := range strings.Lines(p.code) {
			b.WriteString("  " + line)
		}
		return b.String()
	})
}

// markdown is the guide as a section of a page.
func (g guide) markdown(c mcpClient) string {
	return "## " + c.title + "\n\n" + g.render(92, func(p part) string {
		return "```" + p.lang + "\n" + p.code + "```\n"
	})
}

// render joins the parts, with an empty line between two of them. A part is either text
// or code, so that each is laid out by one rule.
func (g guide) render(width int, code func(part) string) string {
	texts := make([]string, len(g.parts))
	for i, p := range g.parts {
		if texts[i] = code(p); p.says != "" {
			texts[i] = wrap(p.says, width) + "\n"
		}
	}
	return strings.Join(texts, "\n")
}

// wrap breaks a paragraph into lines. Words longer than the width, such as addresses,
// stay whole on a line of their own.
func wrap(text string, width int) string {
	var b strings.Builder
	n := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case n == 0:
		case n+1+len(word) > width:
			b.WriteByte('\n')
			n = 0
		default:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(word)
		n += len(word)
	}
	return b.String()
}

// quoted is s as JSON text, which is a text of TOML and YAML too.
func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil { // strings always marshal
		return `""`
	}
	return string(text)
}
