package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy/server"
)

// edgeRig is an Aegis before any upstream, spoken to in raw bytes.
type edgeRig struct {
	t    *testing.T
	addr string
	log  *syncBuffer
	stop func() error
}

// newEdgeRig serves a configuration of the given lines, with one identity. Tune is
// called with the server before it serves.
func newEdgeRig(t *testing.T, upstream, gitea, yaml string, tune ...func(*server.Process)) *edgeRig {
	t.Helper()
	file := filepath.Join(t.TempDir(), "aegis.yaml")
	text := fmt.Sprintf("gitea: {url: %q%s}\nauth: {tokens: [{name: alice, token: %s, gitea_token: t%040d}]}\n%s", upstream, gitea, aliceToken, 7, yaml)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Listen = ln.Addr().String()
	r := &edgeRig{t: t, addr: cfg.Listen, log: &syncBuffer{}}
	srv, err := server.Build(cfg, zerolog.New(r.log).Level(zerolog.InfoLevel), tune...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, ln) }()
	r.stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = r.stop(); srv.Close() })
	return r
}

// send writes a request as it is and reads the answer.
func (r *edgeRig) send(request string) (*http.Response, string) {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		r.t.Fatal(err)
	}
	return r.read(conn)
}

// sendAndEnd writes a request as it is, ends our side of the connection, and reads the answer.
func (r *edgeRig) sendAndEnd(request string) (*http.Response, string) {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		r.t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		r.t.Fatal(err)
	}
	return r.read(conn)
}

func (r *edgeRig) read(conn net.Conn) (*http.Response, string) {
	r.t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		r.t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		r.t.Fatalf("no answer: %v", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res, string(body)
}

// post returns a request to the MCP endpoint as its head; the body follows.
func post(headers string) string {
	return "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + aliceToken +
		"\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n" + headers + "\r\n"
}

// nowhere refuses connections.
const nowhere = "http://127.0.0.1:1"

// giteaUser answers whose token it is, as Gitea does, and nothing else.
func giteaUser(t *testing.T) string {
	t.Helper()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/user" {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"id":1,"login":"alice","is_admin":false}`)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(up.Close)
	return up.URL
}

// isError holds that an answer has the one form of errors.
func isError(t *testing.T, what string, res *http.Response, body string, status int, kind string) {
	t.Helper()
	var e struct {
		Error struct {
			Kind, Message string
			RequestID     string `json:"request_id"`
		}
	}
	if res.StatusCode != status || json.Unmarshal([]byte(body), &e) != nil || e.Error.Kind != kind || e.Error.Message == "" || e.Error.RequestID != res.Header.Get("X-Request-Id") {
		t.Errorf("%s: %s %s", what, res.Status, body)
	}
	if res.Header.Get("Content-Type") != "application/json" || res.Header.Get("X-Content-Type-Options") != "nosniff" || res.Header.Get("Content-Security-Policy") == "" {
		t.Errorf("%s: headers %v", what, res.Header)
	}
}

// TestHostileRequests: what is too large, too slow or endless ends soon, with the
// right status, in JSON.
func TestHostileRequests(t *testing.T) {
	r := newEdgeRig(t, giteaUser(t), "", "server: {max_body_bytes: 64KiB, read_timeout: 10m, min_body_rate: 0}\n")
	t.Run("expect", func(t *testing.T) {
		res, body := r.send(post("Expect: 100-continue\r\nContent-Length: 70000\r\n"))
		isError(t, "over the cap", res, body, http.StatusRequestEntityTooLarge, "payload_too_large")
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
		fmt.Fprint(conn, post(fmt.Sprintf("Expect: 100-continue\r\nContent-Length: %d\r\n", len(ping))))
		in := bufio.NewReader(conn)
		if line, err := in.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
			t.Fatalf("within the cap: %q, %v", line, err)
		}
		fmt.Fprint(conn, ping)
		if _, err := in.ReadString('\n'); err != nil { // the empty line after 100
			t.Fatal(err)
		}
		if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("within the cap: %v, %v", res, err)
		}
	})
	t.Run("unknown caller", func(t *testing.T) {
		res, body := r.send("POST /mcp HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n")
		isError(t, "expect without a token", res, body, http.StatusUnauthorized, "unauthorized")
	})
	t.Run("endless", func(t *testing.T) {
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, post("Transfer-Encoding: chunked\r\n"))
		go func() {
			chunk := "1000\r\n" + strings.Repeat(" ", 0x1000) + "\r\n"
			for range 10_000 { // 40 MB, or until the server has had enough
				if _, err := io.WriteString(conn, chunk); err != nil {
					return
				}
			}
		}()
		res, body := r.read(conn)
		isError(t, "endless body", res, body, http.StatusRequestEntityTooLarge, "payload_too_large")
	})
	t.Run("heads", func(t *testing.T) {
		res, body := r.send(post(strings.Repeat("X: y\r\n", 1000) + "Content-Length: 0\r\n"))
		isError(t, "1000 headers", res, body, http.StatusRequestHeaderFieldsTooLarge, "head_too_large")
		res, body = r.send(post("X: " + strings.Repeat("y", 70<<10) + "\r\nContent-Length: 0\r\n"))
		isError(t, "a large header", res, body, http.StatusRequestHeaderFieldsTooLarge, "head_too_large")
		if res, _ = r.send(post("X: " + strings.Repeat("y", 200<<10) + "\r\n")); res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("a huge header: %s", res.Status)
		}
	})
	t.Run("h2c", func(t *testing.T) {
		res, _ := r.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
		if res.StatusCode < 400 {
			t.Errorf("HTTP/2 without TLS: %s", res.Status)
		}
		res, _ = r.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")
		if res.StatusCode != http.StatusOK {
			t.Errorf("upgrade to h2c: %s", res.Status)
		}
	})
}

// TestSlowBodies: many bodies that come byte by byte all end at their time, each with
// an answer.
func TestSlowBodies(t *testing.T) {
	r := newEdgeRig(t, giteaUser(t), "", "server: {read_timeout: 1s, trusted_proxies: [127.0.0.1]}\nlimits: {address: {rate: off}}\n")
	left := slowBodies
	eventually(t, func() error {
		var again atomic.Int64
		parallel(left, func(int) {
			res, body, err := r.trickle()
			if err != nil || res.Header.Get("X-Request-Id") == "" { // its head came late, too
				again.Add(1)
				return
			}
			isError(t, "slow body", res, body, http.StatusRequestTimeout, "timeout")
		})
		if left = int(again.Load()); left > 0 {
			return fmt.Errorf("%d bodies have no answer", left)
		}
		return nil
	})
}

// trickle sends a request with a body that hardly moves, until there is an answer. A
// server that was held up for longer than its timeout takes the head for late; then
// the answer knows of no request, or there is none.
func (r *edgeRig) trickle() (*http.Response, string, error) {
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		return nil, "", err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, post("Content-Length: 1000\r\n")); err != nil {
		return nil, "", err
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
				if _, err := io.WriteString(conn, " "); err != nil {
					return
				}
			}
		}
	}()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, "", err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res, string(body), err
}

// TestHostAndOriginInPlace holds the Host check where it stands, before all else.
func TestHostAndOriginInPlace(t *testing.T) {
	r := newEdgeRig(t, nowhere, "", "public_url: https://aegis.example.org\n")
	for host, want := range map[string]int{
		"aegis.example.org": 200, "AEGIS.example.org.": 200, "localhost:3333": 200, "[::1]:8080": 200, "127.0.0.1": 200, "evil.example": 403, "aegis.example.org.evil": 403,
	} {
		if res, body := r.send("GET /healthz HTTP/1.1\r\nHost: " + host + "\r\n\r\n"); res.StatusCode != want {
			t.Errorf("Host %s: %s %s", host, res.Status, body)
		}
	}
}

// TestAddressLimitInPlace: the limit by address holds before authentication, by
// the client's address and not the proxy's, and never for probes.
func TestAddressLimitInPlace(t *testing.T) {
	r := newEdgeRig(t, nowhere, "", "limits: {address: {rate: 2/h, burst: 2}}\nserver: {trusted_proxies: [127.0.0.0/8]}\n")
	get := func(path, client string) *http.Response {
		res, _ := r.send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: " + client + "\r\n\r\n")
		return res
	}
	for i := range 5 {
		want := http.StatusUnauthorized
		if i >= 2 {
			want = http.StatusTooManyRequests
		}
		if res := get("/mcp", fmt.Sprintf("9.9.9.%d, 198.51.100.1", i)); res.StatusCode != want {
			t.Errorf("request %d: %s", i, res.Status)
		}
		if res := get("/mcp", fmt.Sprintf("[2001:db8::%d]:77", i)); res.StatusCode != want {
			t.Errorf("request %d of one /64: %s", i, res.Status)
		}
		if res := get("/mcp", fmt.Sprintf("2001:db8:0:%d::1", i+1)); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("another /64: %s", res.Status)
		}
		if res := get("/healthz", "198.51.100.1"); res.StatusCode != http.StatusOK {
			t.Errorf("probe: %s", res.Status)
		}
	}
	// Requests that the edge refuses count as well, and no line of log follows then.
	for i := range 4 {
		want := http.StatusForbidden
		if i >= 2 {
			want = http.StatusTooManyRequests
		}
		if res, _ := r.send("GET / HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-For: 198.51.100.77\r\n\r\n"); res.StatusCode != want {
			t.Errorf("foreign host %d: %s", i, res.Status)
		}
	}
	if n := strings.Count(r.log.String(), "request refused at the edge"); n != 2 {
		t.Errorf("%d lines of log for 2 refusals", n)
	}
	res := get("/", "198.51.100.1")
	if res.Header.Get("Retry-After") == "" || !strings.HasPrefix(res.Header.Get("RateLimit"), `"address";r=0;t=`) || res.Header.Get("RateLimit-Policy") != `"address";q=2;w=3600` {
		t.Errorf("%v", res.Header)
	}
}

// TestIdentitiesDoNotStarveEachOther behind one address, and a refused call says
// when to come back.
func TestIdentitiesDoNotStarveEachOther(t *testing.T) {
	r := newRig(t, "limits: {identity: {rate: 6/h, burst: 3}, destructive: {rate: 1/h}, tools: {gitea_repository_search: {rate: 1/h}}}\n")
	alice, bob := r.connect(aliceToken, "2025-11-25"), r.connect(bobToken, "2025-11-25")
	read := func() answer { return r.call(alice, "gitea_user_get_me", nil) }
	for i := range 3 {
		if a := read(); a.Error.Kind != "" {
			t.Fatalf("call %d: %+v", i, a)
		}
	}
	a := read()
	if a.Error.Kind != "rate_limited" || a.Error.RetryAfter == nil || *a.Error.RetryAfter < 1 || *a.Error.RetryAfter > 600 {
		t.Errorf("over the limit: %+v", a.Error)
	}
	search := func(tool string, args map[string]any) string { return r.call(bob, tool, args).Error.Kind }
	raw := map[string]any{"method": "GET", "path": "/repos/search"}
	if first, second, around := search("gitea_repository_search", nil), search("gitea_repository_search", nil), search("gitea_api_request", raw); first != "" || second != "rate_limited" || around != "rate_limited" {
		t.Errorf("a limited tool: %q, again %q, by the raw tool %q", first, second, around)
	}
	if b := r.call(bob, "gitea_user_get_me", nil); b.Error.Kind != "" {
		t.Errorf("bob behind the same address: %+v", b.Error)
	}
}

// TestReadinessFollowsGitea: liveness stays, readiness turns and recovers.
func TestReadinessFollowsGitea(t *testing.T) {
	var down atomic.Bool
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"version":"28.1.0","login":"alice"}`)
	}))
	defer up.Close()
	var at clock
	r := newEdgeRig(t, up.URL, "", "", func(s *server.Process) { server.SetClock(s, at.now) })
	status := func(path string) int {
		res, _ := r.send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n")
		return res.StatusCode
	}
	for _, away := range []bool{false, true, false} {
		down.Store(away)
		want := http.StatusOK
		if away {
			want = http.StatusServiceUnavailable
		}
		eventually(t, func() error { // a Gitea that takes too long is not there
			at.add(server.ReadinessTTL) // what was heard before counts no longer
			if got := status("/readyz"); got != want {
				return fmt.Errorf("Gitea is away: %v; readiness is %d, want %d", away, got, want)
			}
			return nil
		})
		if status("/healthz") != http.StatusOK {
			t.Error("liveness follows Gitea")
		}
	}
}

// TestLimitsOutliveAReload: a changed file is no way to full buckets, nor a way to
// lose what was counted.
func TestLimitsOutliveAReload(t *testing.T) {
	load := func(yaml string) *config.Config {
		t.Helper()
		text := fmt.Sprintf("data_dir: %s\ngitea: {url: %s}\nauth: {tokens: [{name: alice, token: %s, gitea_token: t%040d}]}\n%s", t.TempDir(), nowhere, aliceToken, 7, yaml)
		cfg, err := config.Parse("aegis.yaml", []byte(text), config.Env{})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	ask := func(s *server.Server) int {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/mcp", nil)
		r.Host = "localhost"
		s.Handler().ServeHTTP(w, r)
		return w.Code
	}
	old, err := server.Look(load("limits: {address: {rate: 1/h, burst: 2}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if a, b, c := ask(old), ask(old), ask(old); a != 401 || b != 401 || c != 429 {
		t.Fatalf("before: %d %d %d", a, b, c)
	}
	same, err := server.Next(old, load("limits: {address: {rate: 1/h, burst: 2}, read: {rate: 1/s}}\nresults: {max_items: 7}\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer same.Close()
	if status := ask(same); status != 429 {
		t.Errorf("after a change of something else: %d", status)
	}
	other, err := server.Next(same, load("limits: {address: {rate: 1/h, burst: 3}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if status := ask(other); status != 401 {
		t.Errorf("after a change of the limit: %d", status)
	}
}
