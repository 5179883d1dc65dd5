package client_test

import (
	"net/netip"
	"testing"

	"aegis/proxy/oauth/client"
)

// TestAddresses: one address inside each special network of the IANA registries,
// its first and last where that is telling, and public ones around them.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"0.0.0.0", "0.255.255.255", "10.0.0.1", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1", "127.255.255.254",
		"169.254.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.170", "192.0.2.1", "192.31.196.1", "192.52.193.1", "192.88.99.1",
		"192.168.0.1", "192.168.255.255", "192.175.48.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1",
		"224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.254", "255.255.255.255",
		"::", "::1", "::7f00:1", "::10.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1",
		"64:ff9b::7f00:1", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "100::1", "100:0:0:1::1", "200::1",
		"2001::1", "2001:0:7f00:1::1", "2001:1::1", "2001:2::1", "2001:3::1", "2001:4:112::1", "2001:10::1", "2001:20::1", "2001:30::1", "2001:1ff:ffff::1",
		"2001:db8::1", "2002:7f00:1::1", "2002:808:808::1", "2620:4f:8000::1", "3fff::1", "3fff:fff::1",
		"4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "ff0e::1", "2606:4700::1%eth0",
	} {
		if client.IsPublic(netip.MustParseAddr(s)) {
			t.Errorf("%s is taken for public", s)
		}
	}
	if client.IsPublic(netip.Addr{}) {
		t.Error("no address is taken for public")
	}
	for _, s := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "93.184.216.34", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1", "169.253.255.255", "169.255.0.0",
		"172.15.255.255", "172.32.0.0", "192.0.1.1", "192.0.3.1", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "203.0.112.1", "203.0.114.1", "223.255.255.255",
		"::ffff:8.8.8.8", "2001:200::1", "2001:4860:4860::8888", "2003::1", "2606:4700::1111", "2a00:1450::1", "3ffe::1",
	} {
		if !client.IsPublic(netip.MustParseAddr(s)) {
			t.Errorf("%s is not taken for public", s)
		}
	}
}

// TestDialerLooksOnceMore: the default dialer's own look, which stands even if a
// name were resolved again.
func TestDialerLooksOnceMore(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:443", "[::1]:443", "169.254.169.254:443", "[fe80::1%25lo]:443", "localhost:443", "", "[::ffff:10.0.0.1]:443"} {
		if client.DialerCheck(address) == nil {
			t.Errorf("%s may be dialled", address)
		}
	}
	if err := client.DialerCheck("93.184.216.34:443"); err != nil {
		t.Error(err)
	}
}
