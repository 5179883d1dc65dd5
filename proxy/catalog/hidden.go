package catalog

import (
	"regexp"
	"strings"

	"aegis/proxy"
)

var (
	toolName    = regexp.MustCompile(`gitea_[a-z0-9_]+`)
	clause      = regexp.MustCompile(`(?s).+?(?:[.;] |$)`) // up to a full stop or semicolon
	parenthesis = regexp.MustCompile(` \([^()]*\)`)
)

// hideReferences replaces enabled tools whose descriptions point to tools that
// are not: a model that follows such a hint only meets "unknown tool".
func (sel *Selection) hideReferences() {
	hidden := func(text string) bool {
		for _, name := range toolName.FindAllString(text, -1) {
			// A word that only looks like a tool's name stays.
			if sel.enabled[name] == nil && (sel.set.byName[name] != nil || sel.set.outside[name]) {
				return true
			}
		}
		return false
	}
	for name, t := range sel.enabled {
		// A copy: the tool itself is shared with teams that have both.
		if hidden(t.Description) {
			with := *t
			with.Description = without(t, hidden)
			sel.enabled[name] = &with
		}
	}
}

// without returns a tool's description without the remarks and clauses that mention a
// hidden tool. Whole clauses go, since half a sentence about a tool still sends a model
// looking for it.
func without(t *proxy.Tool, hidden func(string) bool) string {
	text := parenthesis.ReplaceAllStringFunc(t.Description, func(remark string) string {
		if hidden(remark) {
			return ""
		}
		return remark
	})
	var kept []string
	for _, part := range clause.FindAllString(text, -1) {
		if !hidden(part) {
			kept = append(kept, strings.TrimSuffix(part, " "))
		}
	}
	if len(kept) == 0 { // the reference is all that the text is about
		return toolName.ReplaceAllStringFunc(text, func(name string) string {
			if hidden(name) {
				return "a tool that is not available here"
			}
			return name
		})
	}
	return strings.TrimRight(strings.Join(kept, " "), ";.") + "."
}
