package edge_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"aegis/proxy/edge"
)

// newLate serves with short deadlines of a bubble's clock, over TLS or not.
func newLate(t *testing.T, secure bool) (dial func() net.Conn) {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" { // longer than a head may take
			time.Sleep(400 * time.Millisecond)
		}
		_, _ = io.Copy(w, r.Body)
		fmt.Fprint(w, r.URL.Path)
	}))
	srv.Config.ReadHeaderTimeout = 200 * time.Millisecond
	srv.Config.ConnState = edge.LateHeads
	connect := inMemory(t, srv, secure)
	return func() net.Conn {
		c := connect()
		if secure {
			cfg := srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			cfg.NextProtos, cfg.ServerName = nil, "example.com"
			over := tls.Client(c, cfg)
			if err := over.Handshake(); err != nil {
				t.Fatal(err)
			}
			c = over
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		return c
	}
}

func TestLateHeads(t *testing.T) { synctest.Test(t, testLateHeads) }

func testLateHeads(t *testing.T) {
	for _, secure := range []bool{false, true} {
		dial := newLate(t, secure)
		for _, head := range []string{"G", "GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\nHost: localhost\r\nX: "} {
			c := dial()
			fmt.Fprint(c, head)
			answer, err := io.ReadAll(c)
			if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") || strings.Count(string(answer), "HTTP/1.1") != 1 || !strings.Contains(string(answer), `"kind":"timeout"`) {
				t.Errorf("TLS %v, %q: %q, %v", secure, head, answer, err)
			}
		}
		// Nobody asked anything: nothing is answered.
		if answer, _ := io.ReadAll(dial()); len(answer) != 0 {
			t.Errorf("TLS %v: %q to a silent client", secure, answer)
		}
	}
}

// TestLateHeadAfterOthers: on a connection that has served requests the late one
// is answered, and those before it are as ever, however long they take, one by
// one or pipelined.
func TestLateHeadAfterOthers(t *testing.T) { synctest.Test(t, testLateHeadAfterOthers) }

func testLateHeadAfterOthers(t *testing.T) {
	for _, secure := range []bool{false, true} {
		dial := newLate(t, secure)
		c := dial()
		in := bufio.NewReader(c)
		read := func(want int, body string) {
			t.Helper()
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("TLS %v: %v", secure, err)
			}
			got, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != want || body != "" && string(got) != body {
				t.Fatalf("TLS %v: %d %q, %v; want %d %q", secure, res.StatusCode, got, err, want, body)
			}
		}
		for range 3 {
			fmt.Fprint(c, "GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n")
			read(200, "/long")
			fmt.Fprint(c, "GET /long HTTP/1.1\r\nHost: localhost\r\n\r\nPOST /b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabcGET /c HTTP/1.1\r\nHost: localhost\r\n\r\n")
			read(200, "/long")
			read(200, "abc/b")
			read(200, "/c")
		}
		// net/http tells nothing of a head whose first piece stays the only one.
		fmt.Fprint(c, "GET /d HTTP/1.1\r\n")
		time.Sleep(50 * time.Millisecond)
		fmt.Fprint(c, "Host: ")
		read(408, "")
	}
}
