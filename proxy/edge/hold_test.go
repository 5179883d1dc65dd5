package edge_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"aegis/proxy/edge"
)

// direct shares no connection with another request: httptest closes the idle ones of
// http.DefaultTransport whenever a test's server is closed, and a test beside it fails.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// counting is a listener whose connections count their writes and can be broken.
type counting struct {
	net.Listener
	writes atomic.Int32
	broken atomic.Bool
	closed atomic.Int32
}

func (l *counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countingConn{Conn: c, l: l}, nil
}

type countingConn struct {
	net.Conn
	l *counting
}

func (c *countingConn) Write(p []byte) (int, error) {
	c.l.writes.Add(1)
	if c.l.broken.Load() {
		return 0, errors.New("broken")
	}
	return c.Conn.Write(p)
}

func (c *countingConn) Close() error {
	c.l.closed.Add(1)
	return c.Conn.Close()
}

// serveHeld serves h behind a counting listener.
func serveHeld(t *testing.T, h http.HandlerFunc) (*counting, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	counted := &counting{Listener: ln}
	srv := &http.Server{Handler: h, ConnContext: edge.ConnContext}
	go func() { _ = srv.Serve(edge.NewListener(counted, edge.ConnLimits{})) }() // ends with Close
	t.Cleanup(func() { _ = srv.Close() })
	return counted, "http://" + ln.Addr().String()
}

func answerOf(size int, hold bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if hold {
			defer edge.Hold(r)()
		}
		defer func() { _ = http.NewResponseController(w).Flush() }()
		w.Header().Set("Content-Length", strconv.Itoa(size))
		_, _ = w.Write(bytes.Repeat([]byte("x"), size))
	}
}

// TestHold: an answer that net/http writes in pieces goes out in one, whole, and the
// connection serves the next.
func TestHold(t *testing.T) {
	for _, size := range []int{0, 1, 3000, 4000, 4096, 5000, 12 << 10, 16 << 10, 17 << 10, 200 << 10} {
		for _, hold := range []bool{false, true} {
			l, url := serveHeld(t, answerOf(size, hold))
			client := &http.Client{Transport: &http.Transport{}}
			for range 3 {
				l.writes.Store(0)
				res, err := client.Get(url)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || len(body) != size || strings.Trim(string(body), "x") != "" {
					t.Fatalf("%d bytes, held %v: got %d, %v", size, hold, len(body), err)
				}
				// What does not fit is written behind what was kept, in two writes here,
				// as this connection cannot take both at once.
				n, want := l.writes.Load(), int32(1)
				if size >= 16<<10 {
					want = 2
				}
				if hold && n != want || !hold && size >= 4096 && n < 2 {
					t.Errorf("%d bytes, held %v: %d writes", size, hold, n)
				}
			}
			client.CloseIdleConnections()
		}
	}
}

// TestHoldPanics: a handler that panics leaves nothing held.
func TestHoldPanics(t *testing.T) {
	_, url := serveHeld(t, func(w http.ResponseWriter, r *http.Request) {
		defer edge.Hold(r)()
		_, _ = w.Write([]byte("half"))
		panic(http.ErrAbortHandler)
	})
	if res, err := direct.Get(url); err == nil {
		res.Body.Close()
		t.Errorf("an answer: %s", res.Status)
	}
}

// TestHoldBroken: what was kept and cannot be written ends the connection, so that no
// other answer follows half of one.
func TestHoldBroken(t *testing.T) {
	var l *counting
	l, url := serveHeld(t, func(w http.ResponseWriter, r *http.Request) {
		l.broken.Store(true)
		answerOf(5000, true)(w, r)
	})
	client := &http.Client{Transport: direct.Transport, Timeout: patience}
	if res, err := client.Get(url); err == nil {
		res.Body.Close()
		t.Fatalf("an answer: %s", res.Status)
	}
	eventually(t, func() bool { return l.closed.Load() > 0 }, "the connection is closed")
}

// TestHoldNotOverTLS: closing a TLS connection waits for a write that it does not know
// of, so nothing is kept below it. Clients that read nothing hold up no end.
func TestHoldNotOverTLS(t *testing.T) {
	var l *counting
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		release := edge.Hold(r)
		defer release()
		before := l.writes.Load()
		_, _ = w.Write(bytes.Repeat([]byte("x"), 10<<10))
		_ = http.NewResponseController(w).Flush()
		if l.writes.Load() == before {
			t.Error("the answer is kept below TLS")
		}
	}))
	l = &counting{Listener: up.Listener}
	up.Listener = edge.NewListener(l, edge.ConnLimits{})
	up.Config.ConnContext = edge.ConnContext
	up.StartTLS()
	defer up.Close()
	res, err := up.Client().Get(up.URL)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || len(body) != 10<<10 {
		t.Fatalf("%d bytes, %v", len(body), err)
	}
	if t.Failed() { // closing would never end
		return
	}
	// The clock of the bubble stands still while anything can go on.
	synctest.Test(t, func(t *testing.T) {
		up := httptest.NewUnstartedServer(answerOf(10<<10, true))
		up.Config.ConnContext = edge.ConnContext
		dial := inMemory(t, up, true)
		cfg := &tls.Config{RootCAs: up.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"}
		for range 3 {
			c := tls.Client(dial(), cfg)
			if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // until all writes are stuck
		began := time.Now()
		_ = up.Config.Close()
		if took := time.Since(began); took != 0 {
			t.Errorf("closing took %v", took)
		}
	})
}

// TestHoldElsewhere: without our connection there is nothing to hold.
func TestHoldElsewhere(t *testing.T) {
	r, err := http.NewRequest("GET", "http://x/", nil)
	if err != nil {
		t.Fatal(err)
	}
	edge.Hold(r)()
}
