// Package match has the table of credentials: what each kind looks like and is called. Package
// mask compiles it into rules that a deployment may switch off. [Credentials] removes what the
// table holds for texts of strangers, knows no configuration, and rather takes a harmless word
// too many than leaves a credential.
//
// A new rule needs "go test ./proxy/mask -run TestPlan -update-plan", which takes about two
// minutes, and "go test ./proxy/mask -run TestManual -update-docs".
package match

import (
	"regexp"
	"strings"
)

// gone takes the place of what is removed.
const gone = "[REDACTED]"

// removal is a shape, and what takes its place.
type removal struct {
	shape *regexp.Regexp
	with  []byte
}

// removals are tried in this order, each on what the ones before have left: blocks first,
// then what a name announces, then tokens with a shape of their own. A token alone would
// leave the rest of a header or block behind it.
var removals = loose(Rules())

// loose collects the expressions for texts of strangers.
func loose(rules []Rule) (all []removal) {
	var tokens []string
	for _, r := range rules {
		switch {
		case r.Loose == "":
		case len(r.Patterns) > 0:
			tokens = append(tokens, r.Loose)
		default:
			// The table is ours: a mistake in it ends every start, those of the tests first.
			all = append(all, removal{regexp.MustCompile(r.Loose), []byte(r.Keep + gone)})
		}
	}
	// One expression for all tokens: each pass reads the whole text.
	return append(all, removal{regexp.MustCompile(`\b(?:` + strings.Join(tokens, "|") + `)`), []byte(gone)})
}

// Credentials returns a text of one line without what looks like a credential. The text itself
// stays as it is. The time it takes is linear in the text; the caller bounds its length.
func Credentials(text []byte) []byte {
	for _, r := range removals {
		text = r.shape.ReplaceAll(text, r.with)
	}
	return text
}
