package edge_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy/edge"
)

func networks(t testing.TB, list ...string) []config.Prefix {
	t.Helper()
	out := make([]config.Prefix, len(list))
	for i, s := range list {
		if err := out[i].UnmarshalText([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func from(remote string, headers ...string) *http.Request {
	r := &http.Request{RemoteAddr: remote, Header: http.Header{}}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	return r
}

func TestClientBehindProxies(t *testing.T) {
	t.Parallel()
	c := edge.NewClients(networks(t, "10.0.0.0/8", "2001:db8:aaaa::/48", "192.0.2.7"), "X-Forwarded-For")
	for name, tc := range map[string]struct {
		r    *http.Request
		want string
	}{
		"direct":                    {from("203.0.113.5:1000"), "203.0.113.5"},
		"direct, IPv6 with zone":    {from("[fe80::1%eth0]:1000"), "fe80::1"},
		"direct, mapped":            {from("[::ffff:203.0.113.5]:1000"), "203.0.113.5"},
		"forged by a stranger":      {from("203.0.113.5:1000", "X-Forwarded-For: 198.51.100.1"), "203.0.113.5"},
		"forged by a neighbour":     {from("192.0.2.8:1000", "X-Forwarded-For: 198.51.100.1"), "192.0.2.8"},
		"proxy without header":      {from("10.0.0.1:1000"), "10.0.0.1"},
		"proxy":                     {from("10.0.0.1:1000", "X-Forwarded-For: 198.51.100.1"), "198.51.100.1"},
		"single address":            {from("192.0.2.7:1000", "X-Forwarded-For: 198.51.100.1"), "198.51.100.1"},
		"mapped proxy":              {from("[::ffff:10.0.0.1]:1000", "X-Forwarded-For: 198.51.100.1"), "198.51.100.1"},
		"IPv6 proxy":                {from("[2001:db8:aaaa::1]:1000", "X-Forwarded-For: 2001:db8::1"), "2001:db8::1"},
		"with port":                 {from("10.0.0.1:1000", "X-Forwarded-For: 1.2.3.4:5678"), "1.2.3.4"},
		"brackets and port":         {from("10.0.0.1:1000", "X-Forwarded-For: [2001:db8::1]:443"), "2001:db8::1"},
		"brackets":                  {from("10.0.0.1:1000", "X-Forwarded-For: [2001:db8::1]"), "2001:db8::1"},
		"mapped client":             {from("10.0.0.1:1000", "X-Forwarded-For: ::ffff:1.2.3.4"), "1.2.3.4"},
		"unknown":                   {from("10.0.0.1:1000", "X-Forwarded-For: unknown"), "10.0.0.1"},
		"unknown behind two":        {from("10.0.0.1:1000", "X-Forwarded-For: unknown, 10.0.0.2"), "10.0.0.2"},
		"empty":                     {from("10.0.0.1:1000", "X-Forwarded-For: "), "10.0.0.1"},
		"two proxies":               {from("10.0.0.1:1000", "X-Forwarded-For: 198.51.100.1, 10.0.0.2"), "198.51.100.1"},
		"two proxies, two lines":    {from("10.0.0.1:1000", "X-Forwarded-For: 198.51.100.1", "X-Forwarded-For: 10.0.0.2"), "198.51.100.1"},
		"forged behind a proxy":     {from("10.0.0.1:1000", "X-Forwarded-For: 8.8.8.8, 10.0.0.9, 198.51.100.1"), "198.51.100.1"},
		"forged as trusted":         {from("10.0.0.1:1000", "X-Forwarded-For: 10.0.0.9"), "10.0.0.9"},
		"garbage left of it":        {from("10.0.0.1:1000", "X-Forwarded-For: <script>, 198.51.100.1"), "198.51.100.1"},
		"garbage":                   {from("10.0.0.1:1000", "X-Forwarded-For: 198.51.100.1 evil"), "10.0.0.1"},
		"the other header":          {from("10.0.0.1:1000", "Forwarded: for=198.51.100.1"), "10.0.0.1"},
		"other headers":             {from("10.0.0.1:1000", "X-Real-IP: 198.51.100.1", "True-Client-IP: 198.51.100.1"), "10.0.0.1"},
		"a hundred trusted proxies": {from("10.0.0.1:1000", "X-Forwarded-For: 8.8.8.8"+strings.Repeat(", 10.0.0.2", 100)), "10.0.0.2"},
		"no address":                {from("@"), "unknown"},
		"no address, forged":        {from("", "X-Forwarded-For: 8.8.8.8"), "unknown"},
	} {
		if got := c.Addr(tc.r); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
	if got := (*edge.Clients)(nil).Addr(from("10.0.0.1:1", "X-Forwarded-For: 8.8.8.8")); got != "10.0.0.1" {
		t.Errorf("without trusted proxies: %s", got)
	}
}

func TestForwarded(t *testing.T) {
	t.Parallel()
	c := edge.NewClients(networks(t, "10.0.0.0/8"), "Forwarded")
	for header, want := range map[string]string{
		`for=192.0.2.43`: "192.0.2.43", `For="192.0.2.43:47011"`: "192.0.2.43", `for="[2001:db8:cafe::17]:4711"`: "2001:db8:cafe::17",
		`for=[2001:db8:cafe::17]:4711`: "2001:db8:cafe::17", `proto=https;for=192.0.2.43;by=10.0.0.1`: "192.0.2.43",
		`for=192.0.2.43, for="10.0.0.2"`: "192.0.2.43", `for=8.8.8.8, for=192.0.2.43;host="a, for=9.9.9.9", for=10.0.0.2`: "192.0.2.43",
		`for=192.0.2.43;host="a\", for=9.9.9.9"`: "192.0.2.43", ` for=192.0.2.43 ; proto=http `: "192.0.2.43",
		`for=unknown`: "10.0.0.1", `for=_hidden, for=10.0.0.2`: "10.0.0.2", `proto=https`: "10.0.0.1", ``: "10.0.0.1",
		`for=8.8.8.8;for=9.9.9.9`: "10.0.0.1", `for="8.8.8.8`: "10.0.0.1", `for="evil, for=192.0.2.43`: "10.0.0.1", `for`: "10.0.0.1",
		`for=`: "10.0.0.1", `=8.8.8.8`: "10.0.0.1", `for=8.8.8.8 for=9.9.9.9`: "10.0.0.1", `for="8.8.8.8\`: "10.0.0.1", `8.8.8.8`: "10.0.0.1",
		`for=8.8.8.8,`: "10.0.0.1", `,for=192.0.2.43`: "192.0.2.43",
	} {
		if got := c.Addr(from("10.0.0.1:1", "Forwarded: "+header)); got != want {
			t.Errorf("%s: %s, want %s", header, got, want)
		}
		if got := c.Addr(from("203.0.113.5:1", "Forwarded: "+header)); got != "203.0.113.5" {
			t.Errorf("%s from a stranger: %s", header, got)
		}
	}
	if got := c.Addr(from("10.0.0.1:1", `Forwarded: for="open`, "Forwarded: for=192.0.2.43")); got != "192.0.2.43" {
		t.Errorf("a broken line of a client's before the proxy's: %s", got)
	}
	if got := c.Addr(from("10.0.0.1:1", "Forwarded: for=8.8.8.8", `Forwarded: for="open`)); got != "10.0.0.1" {
		t.Errorf("a client's line before a broken one is read: %s", got)
	}
	if got := c.Addr(from("10.0.0.1:1", "X-Forwarded-For: 8.8.8.8")); got != "10.0.0.1" {
		t.Errorf("the other header: %s", got)
	}
}

// FuzzClients: whatever a client writes to the left of what the proxy wrote, the
// proxy's word stands; and the result is always an address.
func FuzzClients(f *testing.F) {
	xff := edge.NewClients(networks(f, "10.0.0.0/8"), "X-Forwarded-For")
	fwd := edge.NewClients(networks(f, "10.0.0.0/8"), "Forwarded")
	for _, s := range []string{"1.2.3.4", `for="`, `"`, ",", "for=1.2.3.4;", "[::1]:1", "10.0.0.5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, forged string) {
		if got := xff.Addr(from("10.0.0.1:1", "X-Forwarded-For: "+forged, "X-Forwarded-For: 192.0.2.1")); got != "192.0.2.1" {
			t.Errorf("X-Forwarded-For %q: %s", forged, got)
		}
		if got := xff.Addr(from("10.0.0.1:1", "X-Forwarded-For: "+forged+", 192.0.2.1")); got != "192.0.2.1" {
			t.Errorf("X-Forwarded-For %q on the same line: %s", forged, got)
		}
		if got := fwd.Addr(from("10.0.0.1:1", "Forwarded: "+forged, "Forwarded: for=192.0.2.1")); got != "192.0.2.1" {
			t.Errorf("Forwarded %q: %s", forged, got)
		}
		// On one line an open quote may hide what the proxy wrote. Then nobody is
		// named but the proxy itself.
		if got := fwd.Addr(from("10.0.0.1:1", "Forwarded: "+forged+", for=192.0.2.1")); got != "192.0.2.1" && got != "10.0.0.1" {
			t.Errorf("Forwarded %q on the same line: %s", forged, got)
		}
		for _, c := range []*edge.Clients{xff, fwd} {
			if got := c.Addr(from("10.0.0.1:1", "X-Forwarded-For: "+forged, "Forwarded: "+forged)); !netip.MustParseAddr(got).IsValid() {
				t.Errorf("%q is no address", got)
			}
		}
	})
}
