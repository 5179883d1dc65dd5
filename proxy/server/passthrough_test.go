package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// giteaWeb is a Gitea that says what it was asked.
func giteaWeb(t *testing.T) string {
	t.Helper()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/user":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"id":1,"login":"alice"}`)
		case "/user/events":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: ping\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			w.Header().Set("Content-Security-Policy", "gitea's own")
			fmt.Fprintf(w, "gitea %s %s host=%s for=%s proto=%s auth=%s", r.Method, r.RequestURI, r.Host, r.Header.Get("X-Forwarded-For"),
				r.Header.Get("X-Forwarded-Proto"), r.Header.Get("Authorization"))
		}
	}))
	t.Cleanup(up.Close)
	return up.URL
}

// TestPassthroughKeepsToItsPaths: Aegis's own paths win in every spelling, and
// everything else is Gitea's.
func TestPassthroughKeepsToItsPaths(t *testing.T) {
	r := newEdgeRig(t, giteaWeb(t), ", passthrough: true", "public_url: https://git.example.org\nserver: {trusted_proxies: [127.0.0.1]}\nlimits: {address: {rate: 1/h, burst: 30}}\n")
	ask := func(request string) (*http.Response, string) {
		return r.send(request + " HTTP/1.1\r\nHost: git.example.org\r\nX-Forwarded-For: 198.51.100.1\r\nAuthorization: Basic eDp5\r\n\r\n")
	}
	for _, own := range []string{
		"GET /healthz", "GET /readyz", "GET /mcp", "POST /mcp", "DELETE /mcp", "GET /%6dcp", "GET /mcp/", "GET /mcp/team", "GET //mcp", "GET /x/../mcp", "GET /./healthz",
		"GET /.well-known/oauth-protected-resource", "GET /.well-known/oauth-protected-resource/mcp", "GET http://git.example.org/mcp",
	} {
		if res, body := ask(own); strings.HasPrefix(body, "gitea") {
			t.Errorf("%s went to Gitea: %d %s", own, res.StatusCode, body)
		}
	}
	for _, foreign := range []string{
		"GET /", "GET /alice/repo", "POST /alice/repo.git/git-receive-pack", "PUT /alice/repo.git/info/lfs/objects/0", "GET /mcpx", "GET /MCP", "GET /api/v1/version", "GET /api/healthz",
		"GET /.well-known/openid-configuration", "GET /.well-known/acme-challenge/x", "PROPFIND /x", "GET /healthz/x", "GET /x//y?a=%zz", "GET /user/login",
	} {
		want := "gitea " + foreign + " host=git.example.org for=198.51.100.1 proto=https auth=Basic eDp5"
		if res, body := ask(foreign); body != want || res.Header.Get("Content-Security-Policy") != "gitea's own" {
			t.Errorf("%s: %d %v %s", foreign, res.StatusCode, res.Header, body)
		}
	}
	if res, body := r.send("GET /alice/repo HTTP/1.1\r\nHost: evil.example\r\n\r\n"); res.StatusCode != http.StatusForbidden {
		t.Errorf("a foreign host: %d %s", res.StatusCode, body)
	}
	// The limit by address is for Aegis's own paths; a page has many parts.
	for i := range 60 {
		if res, _ := ask("GET /assets/x"); res.StatusCode != http.StatusOK {
			t.Fatalf("asset %d: %s", i, res.Status)
		}
	}
	// An MCP call works beside it.
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	if res, body := r.send(strings.Replace(post(fmt.Sprintf("Content-Length: %d\r\n", len(ping))), "localhost", "git.example.org", 1) + ping); res.StatusCode != http.StatusOK {
		t.Errorf("ping: %d %s", res.StatusCode, body)
	}
}

// TestAegisTokensDoNotReachGitea: a token of auth.tokens that is sent to one of
// Gitea's paths stays here, whichever token it is; Gitea's own pass.
func TestAegisTokensDoNotReachGitea(t *testing.T) {
	r := newEdgeRig(t, giteaWeb(t), ", passthrough: true", "")
	for sent, want := range map[string]string{
		"Bearer " + aliceToken: "auth=", "token " + aliceToken: "auth=", "Bearer " + aliceToken + "x": "auth=Bearer " + aliceToken + "x",
	} {
		res, body := r.send("GET /api/v1/version HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + sent + "\r\n\r\n")
		if res.StatusCode != http.StatusOK || !strings.HasSuffix(body, want) {
			t.Errorf("%d %s, want %s", res.StatusCode, body, want)
		}
	}
	if log := r.log.String(); !strings.Contains(log, "carried a token of Aegis") || strings.Contains(log, aliceToken) {
		t.Errorf("log: %s", log)
	}
}

func TestWithoutPassthroughNothingPasses(t *testing.T) {
	r := newEdgeRig(t, giteaWeb(t), "", "")
	for _, target := range []string{"/alice/repo", "/api/v1/version", "/user/login"} {
		res, body := r.send("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n")
		isError(t, target, res, body, http.StatusNotFound, "not_found")
	}
	if _, body := r.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); !strings.Contains(body, `"name":"aegis"`) {
		t.Errorf("the first page: %s", body)
	}
}

// TestOpenPagesDoNotHoldUpShutdown: the event stream of a browser never ends by
// itself.
func TestOpenPagesDoNotHoldUpShutdown(t *testing.T) {
	r := newEdgeRig(t, giteaWeb(t), ", passthrough: true", "server: {shutdown_timeout: 10m}\n")
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /user/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", res, err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if err := r.stop(); err != nil { // hangs when the stream holds it up
		t.Errorf("stopping: %v", err)
	}
}
