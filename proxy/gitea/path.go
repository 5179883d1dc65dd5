package gitea

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
)

const (
	// maxPathValue bounds one path value in bytes, as file systems bound a path.
	maxPathValue = 4096
	// maxUnescape is how many times over a value may be percent-encoded. More is
	// refused, as it is not certain what a server makes of it.
	maxUnescape = 8
)

const upperHex = "0123456789ABCDEF"

// fillPath sets the path and, where the client spelled the method itself, checks that
// too. Without an operation the path is the client's own text, escaped segment by
// segment.
func (r *request) fillPath(call *proxy.Call) error {
	if call.Op != nil {
		var err error
		r.path, err = buildPath(call.Op, call.Wire.Values)
		return err
	}
	// The methods that the API has; others, such as TRACE, mean something to proxies.
	switch r.method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return invalid("method", "must be GET, HEAD, POST, PUT, PATCH or DELETE")
	}
	path := call.Wire.Path
	switch {
	case !strings.HasPrefix(path, "/"):
		return invalid("path", "must be a path below /api/v1 that begins with '/', such as /repos/acme/infra")
	// Each of these would make the path that is checked another one than the path that
	// is routed.
	case strings.ContainsAny(path, "%?#\\"):
		return invalid("path",
			"must not hold '%', '?', '#' or '\\'; it is plain text, and the query has an argument of its own")
	}
	if rule := cmp.Or(checkRepoPath(path[1:]), checkGitDir(path[1:])); rule != "" {
		return invalid("path", rule)
	}
	var b strings.Builder
	escapeInto(&b, path, true)
	r.path = b.String()
	return nil
}

// buildPath fills the path template of an operation. Every value is escaped exactly once,
// "/" included unless the parameter is a wildcard. Escaping twice, or not at all, would
// each let a value reach another route.
func buildPath(op *proxy.Tool, values []proxy.Field) (string, error) {
	return op.Expand(func(b *strings.Builder, wire string) error { return writePathValue(b, op, wire, values) })
}

// writePathValue appends the value of the path parameter with this wire name.
func writePathValue(b *strings.Builder, op *proxy.Tool, wire string, values []proxy.Field) error {
	p := op.Param(proxy.InPath, wire)
	if p == nil {
		return proxy.NewError(proxy.KindInternal, "the tool has no argument for its path", nil)
	}
	f := proxy.Find(values, wire)
	if f == nil {
		return invalid(p.Name, "is required")
	}
	// A number is its digits; nothing else has one form as a segment.
	text, ok := proxy.Scalar(f.Value)
	if !ok {
		return invalid(argument(f), "must be a string or a number")
	}
	rule := checkPathValue(wire, text)
	if f.Param == nil { // a client that spells paths itself has no business in any .git
		rule = cmp.Or(rule, checkGitDir(text))
	}
	if rule != "" {
		return invalid(argument(f), rule)
	}
	escapeInto(b, text, p.Wildcard)
	return nil
}

// checkPathValue returns the rule that a path value breaks, "" when it may go out. Gitea
// cleans paths before it reads or writes: a value that is not already clean would reach
// another object than the one it names. The catalog has checked most of this by schema;
// here is the last place before the wire, and it does not rely on that.
func checkPathValue(wire, v string) string {
	switch {
	case v == "":
		return "must not be empty"
	case isName(wire) && strings.ContainsAny(v, "/\\?#%&=;:, "):
		return "must be a plain name of letters, digits, '-', '_' and '.'"
	}
	if rule := checkRepoPath(v); rule != "" {
		return rule
	}
	if wire == "filepath" {
		return checkGitDir(v)
	}
	return ""
}

// checkGitDir refuses paths into a repository's own .git.
func checkGitDir(v string) string {
	if found, _ := hasSegment(v, isGitDir); found {
		return "must not reach into .git"
	}
	return ""
}

// checkRepoPath returns the rule that v breaks as a path inside a repository or
// as a ref.
func checkRepoPath(v string) string {
	if rule := checkText(v); rule != "" {
		return rule
	}
	if slices.Contains(strings.Split(v, "/"), "") {
		return "must not begin or end with '/' or hold '//'"
	}
	return checkDots(v)
}

// checkText returns the rule that v breaks as a piece of an address.
func checkText(v string) string {
	switch {
	case len(v) > maxPathValue:
		return "must have at most 4096 bytes"
	case !utf8.ValidString(v):
		return "must be valid UTF-8"
	case strings.ContainsFunc(v, unicode.IsControl):
		return "must not hold control characters"
	}
	return ""
}

// checkDots refuses "." and ".." segments, also the ones that appear when v is
// percent-decoded, however often: Gitea decodes once, something before it may
// decode again. A literal "%2F" in a name stays legal.
func checkDots(v string) string {
	switch found, endless := hasSegment(v, isDots); {
	case found:
		return "must not hold '.' or '..' as a segment, percent-encoded or not"
	case endless:
		return "is percent-encoded too many times"
	}
	return ""
}

// hasSegment reports whether a segment of v, between slashes of either kind and however
// percent-encoded, is one that bad describes. Endless is set when v is encoded more often
// than anyone needs. Found first and endless second: a value that is refused anyway should
// say the plainer reason.
func hasSegment(v string, bad func(string) bool) (found, endless bool) {
	for range maxUnescape {
		if slices.ContainsFunc(strings.FieldsFunc(v, isSlash), bad) {
			return true, false
		}
		// Again without one layer of encoding, until nothing changes.
		next := unescape(v)
		if next == v {
			return false, false
		}
		v = next
	}
	return false, true
}

// isSlash includes the backslash, which a server on Windows takes for one.
func isSlash(r rune) bool { return r == '/' || r == '\\' }

func isDots(seg string) bool { return seg == "." || seg == ".." }

// isGitDir reports whether a checkout could take the segment for .git: NTFS
// drops trailing dots and spaces and knows it as git~1, HFS+ ignores zero-width
// characters.
func isGitDir(seg string) bool {
	seg = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, seg)
	seg = strings.TrimRight(seg, ". ")
	return strings.EqualFold(seg, ".git") || strings.EqualFold(seg, "git~1")
}

// isName says which path parameters name an account or a repository. Gitea
// allows no delimiter in these, so a value with one is an attempt to reach
// another route.
func isName(wire string) bool {
	names := []string{"owner", "repo", "org", "username", "user", "template_owner", "template_repo"}
	return slices.Contains(names, wire)
}

// unescape decodes every well-formed %XX of v once and leaves the rest.
func unescape(v string) string {
	i := strings.IndexByte(v, '%')
	if i < 0 {
		return v
	}
	var b strings.Builder
	b.Grow(len(v))
	b.WriteString(v[:i])
	for ; i < len(v); i++ {
		if v[i] == '%' && i+2 < len(v) {
			hi, lo := jsonscan.Hex(v[i+1]), jsonscan.Hex(v[i+2])
			if hi >= 0 && lo >= 0 {
				b.WriteByte(byte(hi<<4 | lo))
				i += 2
				continue
			}
		}
		b.WriteByte(v[i])
	}
	return b.String()
}

// escapeInto percent-encodes everything but the unreserved characters of RFC
// 3986 section 2.3, and "/" when keepSlash holds.
func escapeInto(b *strings.Builder, v string, keepSlash bool) {
	for i := 0; i < len(v); i++ {
		c := v[i]
		if unreserved(c) || keepSlash && c == '/' {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&15])
	}
}

// unreserved reports what RFC 3986 never encodes. Everything else is: a server may give
// it a meaning.
func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}
