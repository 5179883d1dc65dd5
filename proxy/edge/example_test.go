package edge_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"

	"aegis/config"
	"aegis/proxy/edge"
)

func ExampleHosts() {
	h := edge.NewHosts(&url.URL{Scheme: "https", Host: "mcp.example"}, []string{"aegis.lan"}, nil)
	for _, host := range []string{"mcp.example", "AEGIS.lan:8080", "127.0.0.1:8080", "evil.example"} {
		fmt.Println(host, h.AllowsHost(host))
	}
	// Output:
	// mcp.example true
	// AEGIS.lan:8080 true
	// 127.0.0.1:8080 true
	// evil.example false
}

// The header counts when a trusted proxy has sent the request, and to its left end no
// further than the first address that is none.
func ExampleClients_Addr() {
	c := edge.NewClients([]config.Prefix{{Prefix: netip.MustParsePrefix("10.0.0.0/8")}}, "")
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Forwarded-For", "1.2.3.4, 203.0.113.9, 10.0.0.2")
	for _, peer := range []string{"10.0.0.1:4711", "198.51.100.7:4711"} {
		r.RemoteAddr = peer
		fmt.Println(c.Addr(r))
	}
	// Output:
	// 203.0.113.9
	// 198.51.100.7
}
