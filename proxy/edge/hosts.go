package edge

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// Hosts decides which Host and Origin headers are ours. Loopback names and
// addresses always are: an attacker who can make a browser believe that they name a
// foreign host already owns the machine. Immutable.
type Hosts struct {
	names   map[string]bool
	origins map[string]bool
}

// NewHosts returns the rules for a server that is known as publicURL (may be
// nil) and by the further host names and origins.
func NewHosts(publicURL *url.URL, names, origins []string) *Hosts {
	h := &Hosts{names: map[string]bool{}, origins: map[string]bool{}}
	for _, n := range names {
		h.names[canonicalHost(n)] = true
	}
	if publicURL != nil && publicURL.Host != "" {
		h.names[canonicalHost(publicURL.Hostname())] = true
		if o, ok := canonicalOrigin(publicURL.Scheme + "://" + publicURL.Host); ok {
			h.origins[o] = true
		}
	}
	for _, o := range origins {
		if c, ok := canonicalOrigin(o); ok {
			h.origins[c] = true
		}
	}
	return h
}

// AllowsHost reports whether a Host header (RFC 9110 section 7.2) is ours. The
// port does not matter: published container ports differ from the listener's.
func (h *Hosts) AllowsHost(hostport string) bool {
	host, ok := splitHost(hostport)
	return ok && (isLoopback(host) || h.names[host])
}

// AllowsOrigin reports whether an Origin header (RFC 6454 section 7) may call.
// "null" (sandboxed frames, files, redirects) may not.
func (h *Hosts) AllowsOrigin(origin string) bool {
	c, ok := canonicalOrigin(origin)
	if !ok {
		return false
	}
	if h.origins[c] {
		return true
	}
	_, hostport, _ := strings.Cut(c, "://")
	host, ok := splitHost(hostport)
	return ok && isLoopback(host)
}

// splitHost returns the host of host[:port] in canonical form. It refuses what
// is neither a name nor an address.
func splitHost(hostport string) (string, bool) {
	if hostport == "" || len(hostport) > 300 || strings.ContainsAny(hostport, "/\\@?# \t,%") {
		return "", false
	}
	host := hostport
	if strings.HasPrefix(hostport, "[") {
		end := strings.IndexByte(hostport, ']')
		if end < 0 || !validPort(hostport[end+1:]) {
			return "", false
		}
		addr, err := netip.ParseAddr(hostport[1:end])
		if err != nil || !addr.Is6() {
			return "", false
		}
		return canonicalHost(hostport[1:end]), true
	}
	if i := strings.IndexByte(hostport, ':'); i >= 0 {
		if !validPort(hostport[i:]) {
			return "", false
		}
		host = hostport[:i]
	}
	host = canonicalHost(host)
	return host, host != ""
}

// validPort reports whether s is empty or ":" and at most five digits. A bare
// colon is legal (RFC 3986 section 3.2.3).
func validPort(s string) bool {
	if s == "" {
		return true
	}
	if s[0] != ':' || len(s) > 6 {
		return false
	}
	return strings.Trim(s[1:], "0123456789") == ""
}

// canonicalHost folds case, one trailing dot and the spellings of an address.
func canonicalHost(host string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if addr, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return addr.Unmap().WithZone("").String()
	}
	return host
}

// isLoopback reports whether a canonical host is this machine.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// canonicalOrigin returns scheme://host:port with the port always written.
func canonicalOrigin(origin string) (string, bool) {
	scheme, hostport, ok := strings.Cut(strings.ToLower(origin), "://")
	if !ok || scheme != "http" && scheme != "https" {
		return "", false
	}
	host, ok := splitHost(hostport)
	if !ok {
		return "", false
	}
	port := "80"
	if scheme == "https" {
		port = "443"
	}
	if _, p, err := net.SplitHostPort(hostport); err == nil && p != "" {
		port = p
	}
	return scheme + "://" + net.JoinHostPort(host, port), true
}
