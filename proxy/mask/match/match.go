// Package match removes what looks like a credential from texts of strangers. It knows no
// configuration: unlike the rules of package mask, which a deployment may switch off, these
// always hold, and rather take a harmless word too many than leave one that is none.
package match

import "regexp"

// gone takes the place of what is removed.
const gone = "[REDACTED]"

// rule is a shape, and what takes its place; $1 is what of it may stay.
type rule struct {
	shape *regexp.Regexp
	with  []byte
}

// credentials are tried in this order, each on what the ones before have left: blocks first,
// then what a name announces, then tokens with a shape of their own.
var credentials = []rule{
	{regexp.MustCompile(`-----BEGIN [A-Z ]+-----(?:.*?-----END [A-Z ]+-----|.*)`), []byte(gone)},
	{regexp.MustCompile(`(?i)\b((?:proxy-)?authorization|x-gitea-token|cookie|set-cookie)\b\s*[:=]\s*.*`), []byte("$1: " + gone)},
	{regexp.MustCompile(`(?i)\b(bearer|basic|token)(\s+)[A-Za-z0-9._~+/=-]{16,}`), []byte("$1$2" + gone)},
	{regexp.MustCompile(`(?i)\b([a-z_-]*(?:token|secret|password|passwd|api_?key|sha1)["']?\s*[:=]\s*["']?)[^\s"',;&)\]]{4,}`), []byte("${1}" + gone)},
	{regexp.MustCompile(`\b(?:eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,}|gt[aor]_[A-Za-z0-9]{16,}|xox[a-z]-[A-Za-z0-9-]{10,}|AKIA[A-Z0-9]{16})`), []byte(gone)},
}

// Credentials returns a text of one line without what looks like a credential. The text itself
// stays as it is. The time it takes is linear in the text; whoever calls bounds its length.
func Credentials(text []byte) []byte {
	for _, r := range credentials {
		text = r.shape.ReplaceAll(text, r.with)
	}
	return text
}
