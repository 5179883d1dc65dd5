package edge

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"aegis/config"
)

// maxHops bounds the hops of a request that are looked at, from the right.
const maxHops = 32

// unknownAddr is the address of a peer without an IP address, on a Unix socket say.
const unknownAddr = "unknown"

// Clients finds where a request comes from. Trusted proxies are believed when
// they name the client that they ask for, in the one header that they write; the header
// is ignored in requests of all others. Immutable; nil trusts no proxy.
type Clients struct {
	trusted   []netip.Prefix
	forwarded bool
}

// NewClients returns the rules for proxies in the trusted networks that write
// header: "Forwarded" (RFC 7239), or X-Forwarded-For for everything else.
func NewClients(trusted []config.Prefix, header string) *Clients {
	c := &Clients{forwarded: strings.EqualFold(header, "Forwarded")}
	for _, p := range trusted {
		c.trusted = append(c.trusted, p.Prefix)
	}
	return c
}

// Trusts reports whether an address is a trusted proxy's.
func (c *Clients) Trusts(a netip.Addr) bool {
	if c == nil {
		return false
	}
	a = a.Unmap().WithZone("")
	return slices.ContainsFunc(c.trusted, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Addr returns the client's address without port and zone: the peer's, or, when
// the peer is a trusted proxy, the rightmost address in its header that is no
// trusted proxy's. Where a hop is no address ("unknown", an obfuscated name), the
// proxy that reported it is the last that can be named.
func (c *Clients) Addr(r *http.Request) string {
	at, ok := parseNode(r.RemoteAddr)
	if !ok {
		return unknownAddr
	}
	if !c.Trusts(at) {
		return at.String()
	}
	hops := c.hops(r.Header)
	for i := len(hops) - 1; i >= 0 && i >= len(hops)-maxHops && c.Trusts(at); i-- {
		next, ok := parseNode(hops[i])
		if !ok {
			break
		}
		at = next
	}
	return at.String()
}

// hops returns the addresses in the header, the client's first.
func (c *Clients) hops(h http.Header) []string {
	if c.forwarded {
		return forwardedFor(h.Values("Forwarded"))
	}
	var out []string
	for _, line := range h.Values("X-Forwarded-For") {
		for hop := range strings.SplitSeq(line, ",") {
			out = append(out, strings.Trim(hop, " \t"))
		}
	}
	return out
}

// parseNode reads an address as proxies write it: bare, in brackets, with a port
// or without.
func parseNode(s string) (netip.Addr, bool) {
	host := s
	switch h, _, err := net.SplitHostPort(s); {
	case err == nil:
		host = h
	case strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]"):
		host = s[1 : len(s)-1]
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}, false
	}
	return a.Unmap().WithZone(""), true
}

// forwardedFor returns the for parameter of each element of Forwarded headers
// (RFC 7239 section 4), "" for an element without exactly one. Elements that do
// not follow the grammar end the list for all to their left: only
// what lies to the right of them can be told apart.
func forwardedFor(lines []string) []string {
	var out []string
	for _, line := range lines {
		hops, whole := forwardedLine(line)
		if !whole {
			out = []string{""} // whatever came before must not be read
		}
		out = append(out, hops...)
	}
	return out
}

// forwardedLine reads one header line. A line that does not follow the grammar
// has no hops: where it breaks, a quote that a client left open may have
// swallowed what the proxy wrote.
func forwardedLine(line string) (hops []string, whole bool) {
	rest, element, seen := line, "", 0
	for {
		name, value, after, ok := forwardedPair(rest)
		if !ok {
			return nil, false
		}
		if strings.EqualFold(name, "for") {
			element = value
			seen++
		}
		end := after == "" || after[0] == ','
		if end {
			if seen != 1 {
				element = ""
			}
			hops = append(hops, element)
			element, seen = "", 0
		}
		if after == "" {
			return hops, true
		}
		rest = after[1:]
	}
}

// forwardedPair reads token "=" (token / quoted-string), which may be missing
// altogether, and what follows: "", or text that begins with ";" or ",".
func forwardedPair(s string) (name, value, rest string, ok bool) {
	s = strings.TrimLeft(s, " \t")
	i := 0
	for i < len(s) && isTokenByte(s[i]) {
		i++
	}
	name, s = s[:i], s[i:]
	if name != "" {
		if !strings.HasPrefix(s, "=") {
			return "", "", "", false
		}
		if value, s, ok = forwardedValue(s[1:]); !ok {
			return "", "", "", false
		}
	}
	s = strings.TrimLeft(s, " \t")
	return name, value, s, s == "" || s[0] == ';' || s[0] == ','
}

func forwardedValue(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		// Proxies often leave the quotes out that a colon or bracket asks for.
		i := 0
		for i < len(s) && (isTokenByte(s[i]) || strings.IndexByte(":[]", s[i]) >= 0) {
			i++
		}
		return s[:i], s[i:], i > 0
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			i++
			if i == len(s) {
				return "", "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}

// isTokenByte reports whether b may be in a token (RFC 9110 section 5.6.2).
func isTokenByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' ||
		strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0
}
