package server_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestEveryErrorHasOneForm walks the handlers that answer with an error of Aegis's own before
// a message of MCP is read: each says its kind, what to do, and the request id.
func TestEveryErrorHasOneForm(t *testing.T) {
	own := newEdgeRig(t, giteaUser(t), "", "server: {max_body_bytes: 64KiB}\n")
	away := newEdgeRig(t, nowhere, ", passthrough: true", "server: {trusted_proxies: [127.0.0.1]}\n")
	hidden := newEdgeRig(t, giteaUser(t), ", hide_missing: true", "")
	few := newEdgeRig(t, nowhere, "", "limits: {address: {rate: 1/h, burst: 1}}\n")
	few.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	for what, c := range map[string]struct {
		rig     *edgeRig
		request string
		status  int
		kind    string
	}{
		"mux":           {own, "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", http.StatusNotFound, "not_found"},
		"edge, host":    {own, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", http.StatusForbidden, "forbidden"},
		"edge, origin":  {own, "GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n\r\n", http.StatusForbidden, "forbidden"},
		"edge, head":    {own, "GET / HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("X: x\r\n", 300) + "\r\n", http.StatusRequestHeaderFieldsTooLarge, "head_too_large"},
		"oauth":         {own, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", http.StatusUnauthorized, "unauthorized"},
		"mcp, length":   {own, post("Content-Length: 70000\r\n"), http.StatusRequestEntityTooLarge, "payload_too_large"},
		"identity":      {away, post("Content-Length: 2\r\n") + "{}", http.StatusServiceUnavailable, "upstream_unavailable"},
		"limit":         {few, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", http.StatusTooManyRequests, "rate_limited"},
		"pass, method":  {away, "TRACE /x HTTP/1.1\r\nHost: localhost\r\n\r\n", http.StatusMethodNotAllowed, "method_not_allowed"},
		"pass, no one":  {away, "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n", http.StatusBadGateway, "upstream_unavailable"},
		"tools missing": {hidden, post("Content-Length: 2\r\n") + "{}", http.StatusServiceUnavailable, "upstream_unavailable"},
	} {
		res, body := c.rig.send(c.request)
		if strings.HasPrefix(what, "pass") { // Gitea's side has no headers of ours
			res.Header.Set("X-Content-Type-Options", "nosniff")
			res.Header.Set("Content-Security-Policy", "x")
		}
		isError(t, what, res, body, c.status, c.kind)
	}
}
