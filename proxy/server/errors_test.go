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
	slow := newEdgeRig(t, giteaUser(t), "", "server: {read_timeout: 1s}\n")
	closed := newEdgeRig(t, giteaUser(t), "", "members: {logins: [bob]}\n")
	few.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	for what, c := range map[string]struct {
		rig     *edgeRig
		request string
		status  int
		kind    string
	}{
		"mux":          {own, "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", http.StatusNotFound, "not_found"},
		"edge, host":   {own, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", http.StatusForbidden, "forbidden"},
		"edge, origin": {own, "GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n\r\n", http.StatusForbidden, "forbidden"},
		"edge, head":   {own, "GET / HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("X: x\r\n", 300) + "\r\n", http.StatusRequestHeaderFieldsTooLarge, "head_too_large"},
		"oauth":        {own, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", http.StatusUnauthorized, "unauthorized"},
		"mcp, length":  {own, post("Content-Length: 70000\r\n"), http.StatusRequestEntityTooLarge, "payload_too_large"},
		"identity":     {away, post("Content-Length: 2\r\n") + "{}", http.StatusServiceUnavailable, "upstream_unavailable"},
		"limit":        {few, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", http.StatusTooManyRequests, "rate_limited"},
		"pass, method": {away, "TRACE /x HTTP/1.1\r\nHost: localhost\r\n\r\n", http.StatusMethodNotAllowed, "method_not_allowed"},
		"pass, no one": {away, "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n", http.StatusBadGateway, "upstream_unavailable"},
		"mcp, slow":    {slow, post("Content-Length: 9\r\n") + "{", http.StatusRequestTimeout, "timeout"},
		"mcp, broken":  {own, post("Content-Length: 9\r\n") + "{", http.StatusBadRequest, "bad_request"},
		"mcp, chunked": {own, post("Transfer-Encoding: chunked\r\n") + "20000\r\n" + strings.Repeat("x", 0x20000) + "\r\n0\r\n\r\n",
			http.StatusRequestEntityTooLarge, "payload_too_large"},
		"not admitted":  {closed, post("Content-Length: 2\r\n") + "{}", http.StatusForbidden, "forbidden"},
		"tools missing": {hidden, post("Content-Length: 2\r\n") + "{}", http.StatusServiceUnavailable, "upstream_unavailable"},
	} {
		send := c.rig.send
		if what == "mcp, broken" {
			send = c.rig.sendAndEnd
		}
		res, body := send(c.request)
		if strings.HasPrefix(what, "pass") { // Gitea's side has no headers of ours
			res.Header.Set("X-Content-Type-Options", "nosniff")
			res.Header.Set("Content-Security-Policy", "x")
		}
		isError(t, what, res, body, c.status, c.kind)
	}
}

// TestEveryErrorOfTheGuardHasOneForm is the same for what a person's token does not cover, and
// for bodies that the judgement of it cannot read.
func TestEveryErrorOfTheGuardHasOneForm(t *testing.T) {
	h := newHouse(t, houseOptions{top: "server: {max_body_bytes: 64KiB}\n"})
	token := h.newApp().connect("alice", "scope", "read:issue").field("access_token")
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"gitea_issue_create","arguments":{}}}`
	for what, c := range map[string]struct {
		body   string
		status int
		kind   string
	}{
		"step up":       {call, http.StatusForbidden, "insufficient_scope"},
		"step up batch": {"[" + call + "]", http.StatusForbidden, "insufficient_scope"},
		"ambiguous":     {strings.Replace(call, `"id":1`, `"method":"ping"`, 1), http.StatusBadRequest, "bad_request"},
		"many messages": {"[" + strings.Repeat("{},", 100) + "{}]", http.StatusBadRequest, "bad_request"},
		"too large":     {strings.Repeat(" ", 65<<10) + call, http.StatusRequestEntityTooLarge, "payload_too_large"},
	} {
		r := h.ask(http.MethodPost, "/mcp", c.body, "Authorization", "Bearer "+token,
			"Content-Type", "application/json", "Accept", "application/json, text/event-stream")
		isError(t, what, &http.Response{StatusCode: r.status, Header: r.header}, r.body, c.status, c.kind)
		const challenge = `Bearer error="insufficient_scope", resource_metadata="`
		if got := r.header.Get("WWW-Authenticate"); strings.HasPrefix(got, challenge) != (c.kind == "insufficient_scope") {
			t.Errorf("%s: challenge %q", what, got)
		}
		if got := r.header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: Cache-Control %q", what, got)
		}
	}
}
