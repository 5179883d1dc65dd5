package grant

import (
	"net"
	"net/url"
	"strings"
)

// same reports whether two resources are one (RFC 8707): URLs that differ at
// most in the case of scheme and host, in a port that is the scheme's own, and in
// one slash at the end.
func same(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := canonical(a)
	y, errY := canonical(b)
	return errX && errY && x == y
}

func canonical(s string) (string, bool) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil || u.Fragment != "" || strings.Contains(s, "#") {
		return "", false
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme] // the scheme is in lower case
	}
	return u.Scheme + "://" + net.JoinHostPort(host, port) + strings.TrimSuffix(u.EscapedPath(), "/") + "?" + u.RawQuery, true
}
