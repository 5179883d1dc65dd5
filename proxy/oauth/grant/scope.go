package grant

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// narrow returns what of the asked scopes was granted: write includes read, and
// of write where only read was granted, read is left. When nothing of it was
// granted, which clients that ask for words of other servers run into, it returns
// all that was granted; the answer tells the client which those are.
func narrow(granted, asked []string) []string {
	var out []string
	add := func(s string) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, s := range asked {
		mode, category, _ := strings.Cut(s, ":")
		switch {
		case slices.Contains(granted, s), mode == "read" && slices.Contains(granted, "write:"+category):
			add(s)
		case mode == "write" && slices.Contains(granted, "read:"+category):
			add("read:" + category)
		}
	}
	if out == nil {
		return clone(granted)
	}
	return out
}

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
