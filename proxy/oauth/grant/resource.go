package grant

import (
	"net/url"
	"strings"
)

// maxResource bounds a resource indicator in bytes.
const maxResource = 2048

// CanonicalResource returns the form in which resource indicators (RFC 8707) are
// compared: scheme and host in lower case, no default port, no slash at the end of the
// path. Clients differ in all of these. It is "" for what is no absolute http or https
// URL without query, fragment and user.
func CanonicalResource(text string) string {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxResource || u.Host == "" || u.Opaque != "" || u.User != nil ||
		u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(text, "#") {
		return ""
	}
	host := strings.ToLower(u.Host)
	switch u.Scheme { // Parse made it lower case
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	default:
		return ""
	}
	return u.Scheme + "://" + host + strings.TrimSuffix(u.EscapedPath(), "/")
}

// same reports whether two resources are one.
func same(a, b string) bool {
	c := CanonicalResource(a)
	return a == b || c != "" && c == CanonicalResource(b)
}
