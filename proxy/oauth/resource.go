package oauth

import (
	"net/url"
	"strings"
)

// canonicalResource returns the form in which resource indicators (RFC 8707) are
// compared: scheme and host in lower case, no default port, no slash at the end
// of the path. Clients differ in all of these. It is "" for what is no absolute
// http or https URL without query, fragment and user.
func canonicalResource(text string) string {
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

// maxResource bounds a resource indicator in bytes.
const maxResource = 2048

// oneResource returns the endpoint that a request means (RFC 8707), "" when it names
// none.
func (s *Server) oneResource(q fields) (string, *failure) {
	switch asked := q["resource"]; {
	case len(asked) > 1:
		return "", bad(codeTarget, "ask for one resource")
	case q.get("resource") == "":
		return "", nil
	}
	c := canonicalResource(q.get("resource"))
	for _, r := range s.resources {
		if c != "" && c == canonicalResource(r) {
			return r, nil
		}
	}
	return "", bad(codeTarget, "resource is no endpoint of this server")
}
