package client

import (
	"net/netip"
	"slices"
)

// special are the networks of IANA's special-purpose registries for IPv4 and,
// inside 2000::/3, for IPv6, and those that carry an IPv4 address in an IPv6 one.
// The few that are reachable from everywhere are here too: no document is
// published there. Outside 2000::/3 no IPv6 address is public, which covers the
// rest: loopback, mapped, 64:ff9b::/96 and 64:ff9b:1::/48, 100::/64, fc00::/7,
// fe80::/10, multicast.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24",
	"192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"224.0.0.0/4", "240.0.0.0/4",
	"2001::/23", // protocol assignments: Teredo, benchmarking, ORCHID and others
	"2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

// unicast6 is the part of IPv6 that public addresses are given from (RFC 4291
// section 2.4).
var unicast6 = netip.MustParsePrefix("2000::/3")

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// isPublic reports whether a is an address of the public internet. An IPv4
// address mapped into IPv6 is judged as what it is.
func isPublic(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	return (a.Is4() || unicast6.Contains(a)) && !within(special, a)
}

func within(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}
