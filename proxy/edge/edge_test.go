package edge_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"aegis/proxy"
	"aegis/proxy/edge"
)

// patience is how long a test waits for what must happen.
const patience = 2 * time.Minute

// eventually waits until ok.
func eventually(t *testing.T, ok func() bool, what string) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not come to this: %s", what)
		}
	}
}

func hosts(t *testing.T) *edge.Hosts {
	t.Helper()
	u, err := url.Parse("https://Aegis.Example.org:8443/base")
	if err != nil {
		t.Fatal(err)
	}
	return edge.NewHosts(u, []string{"gw.lan", "192.0.2.7", "2001:DB8::1"}, []string{"https://inspector.example.org", "http://ide.lan:3000"})
}

func TestHosts(t *testing.T) {
	t.Parallel()
	h := hosts(t)
	for host, want := range map[string]bool{
		"localhost": true, "localhost:3333": true, "LOCALHOST.": true, "127.0.0.1:80": true, "127.9.9.9": true, "[::1]:8080": true, "[::1]": true,
		"[::ffff:127.0.0.1]:1": true, "aegis.example.org": true, "AEGIS.example.org.:443": true, "aegis.example.org:": true, "gw.lan:1": true,
		"192.0.2.7:9": true, "[2001:db8:0::1]": true,
		"": false, "evil.example.com": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false, "xaegis.example.org": false,
		"aegis.example.org.evil": false, "localhost:80:80": false, "localhost:x": false, "[::1": false, "[::1]x": false, "::1": false, "localhost@evil": false,
		"evil/localhost": false, "localhost ": false, "localhost,evil": false, "0.0.0.0": false, "2130706433": false, "0x7f.1": false, "[127.0.0.1]": false,
		"192.0.2.70": false, ".": false, ":80": false, "localhost%00": false, "localhost:123456": false, strings.Repeat("a", 400): false,
	} {
		if got := h.AllowsHost(host); got != want {
			t.Errorf("AllowsHost(%q) = %v", host, got)
		}
	}
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	h := hosts(t)
	for origin, want := range map[string]bool{
		"http://localhost": true, "http://LOCALHOST:6274": true, "https://127.0.0.1:1": true, "http://[::1]:3000": true,
		"https://aegis.example.org:8443": true, "https://inspector.example.org": true, "https://inspector.example.org:443": true, "http://ide.lan:3000": true,
		"": false, "null": false, "NULL": false, "http://evil.example.com": false, "http://aegis.example.org:8443": false, "https://aegis.example.org": false,
		"http://inspector.example.org": false, "http://ide.lan": false, "http://localhost.evil.example": false, "file://": false, "https://": false,
		"chrome-extension://localhost": false, "http://localhost/path": false, "http://a@localhost": false, "localhost": false, "http://localhost, http://evil": false,
	} {
		if got := h.AllowsOrigin(origin); got != want {
			t.Errorf("AllowsOrigin(%q) = %v", origin, got)
		}
	}
}

func serve(t *testing.T) (addr string, log *strings.Builder) {
	t.Helper()
	log = &strings.Builder{}
	e := &edge.Edge{Hosts: hosts(t), Log: zerolog.New(log)}
	srv := httptest.NewServer(e.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := proxy.RequestInfoFrom(r.Context())
		fmt.Fprintf(w, "%s %s", x.Addr, x.RequestID)
	})))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String(), log
}

// raw sends bytes as they are and returns the response.
func raw(t *testing.T, addr, request string) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

func TestOnTheWire(t *testing.T) {
	t.Parallel()
	addr, log := serve(t)
	for name, tc := range map[string]struct {
		head   string
		status int
	}{
		"plain":               {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 200},
		"public":              {"POST /mcp HTTP/1.1\r\nHost: aegis.example.org\r\nContent-Length: 0\r\n\r\n", 200},
		"rebinding":           {"POST /mcp HTTP/1.1\r\nHost: evil.example.com\r\nContent-Length: 100000\r\n\r\n", 403},
		"no host, 1.0":        {"GET / HTTP/1.0\r\n\r\n", 403},
		"no host, 1.1":        {"GET / HTTP/1.1\r\n\r\n", 400},
		"two hosts":           {"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example.com\r\n\r\n", 400},
		"absolute form":       {"GET http://evil.example.com/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 403},
		"absolute form, ours": {"GET http://localhost/ HTTP/1.1\r\nHost: evil.example.com\r\n\r\n", 200},
		"forwarded host":      {"GET / HTTP/1.1\r\nHost: evil.example.com\r\nX-Forwarded-Host: localhost\r\n\r\n", 403},
		"origin":              {"GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:6274\r\n\r\n", 200},
		"foreign origin":      {"GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example.com\r\n\r\n", 403},
		"null origin":         {"GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n", 403},
		"empty origin":        {"GET / HTTP/1.1\r\nHost: localhost\r\nOrigin:\r\n\r\n", 403},
		"two origins":         {"GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nOrigin: http://localhost\r\n\r\n", 403},
		"cross-site get":      {"GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n\r\n", 403},
		"preflight":           {"OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:1\r\nAccess-Control-Request-Method: POST\r\n\r\n", 204},
		"foreign preflight":   {"OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n\r\n", 403},
	} {
		res, body := raw(t, addr, tc.head)
		if res.StatusCode != tc.status {
			t.Errorf("%s: status %d: %s", name, res.StatusCode, body)
		}
		if tc.status == 403 && (!strings.Contains(body, `"kind":"forbidden"`) || strings.Contains(body, "evil")) {
			t.Errorf("%s: body %s", name, body)
		}
		if res.StatusCode != 400 && (res.Header.Get("X-Content-Type-Options") != "nosniff" || res.Header.Get("X-Request-Id") == "") {
			t.Errorf("%s: headers %v", name, res.Header)
		}
		if acao := res.Header.Get("Access-Control-Allow-Origin"); strings.Contains(acao, "evil") || acao == "*" {
			t.Errorf("%s: allows origin %s", name, acao)
		}
	}
	if strings.Contains(log.String(), "evil") {
		t.Errorf("the log repeats what a stranger sent: %s", log)
	}
}

func TestRequestIDIsOurs(t *testing.T) {
	t.Parallel()
	addr, _ := serve(t)
	seen := map[string]bool{}
	for range 3 {
		res, body := raw(t, addr, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: mine\r\n\r\n")
		id := res.Header.Get("X-Request-Id")
		if id == "mine" || seen[id] || body != "127.0.0.1 "+id {
			t.Errorf("request id %q, body %q", id, body)
		}
		seen[id] = true
	}
}

func FuzzHosts(f *testing.F) {
	u := &url.URL{Scheme: "https", Host: "aegis.example.org"}
	h := edge.NewHosts(u, nil, nil)
	for _, s := range []string{"localhost:80", "[::1]", "a.b:c", "aegis.example.org."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, host string) {
		if !h.AllowsHost(host) {
			return
		}
		// What passes must be one of ours for the strictest reader as well.
		p, err := url.Parse("http://" + host + "/")
		if err != nil {
			t.Fatalf("accepted %q, which is no host: %v", host, err)
		}
		name := strings.ToLower(strings.TrimSuffix(p.Hostname(), "."))
		ip := net.ParseIP(name)
		if name != "localhost" && name != "aegis.example.org" && (ip == nil || !ip.IsLoopback()) {
			t.Fatalf("accepted %q as %q", host, name)
		}
	})
}

func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	e := &edge.Edge{Hosts: hosts(t), Log: zerolog.Nop()}
	for _, serve := range []func(http.Handler) *httptest.Server{httptest.NewServer, httptest.NewTLSServer} {
		srv := serve(e.Wrap(http.NotFoundHandler()))
		defer srv.Close()
		for _, host := range []string{"localhost", "evil.example.com"} {
			req, err := http.NewRequest(http.MethodGet, srv.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			res, err := srv.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if got, want := res.Header.Get("Strict-Transport-Security") != "", res.TLS != nil; got != want {
				t.Errorf("%s %s: Strict-Transport-Security sent: %v", srv.URL, host, got)
			}
			for _, name := range []string{"X-Content-Type-Options", "Content-Security-Policy", "Referrer-Policy", "Cache-Control", "X-Request-Id"} {
				if res.Header.Get(name) == "" {
					t.Errorf("%s %s: no %s", srv.URL, host, name)
				}
			}
		}
	}
}
