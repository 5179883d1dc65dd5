package edge_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"aegis/proxy"
	"aegis/proxy/edge"
)

func TestHeads(t *testing.T) {
	t.Parallel()
	e := &edge.Edge{Hosts: hosts(t), Heads: edge.HeadLimits{Bytes: 8 << 10, Lines: 50}, Log: zerolog.Nop()}
	srv := httptest.NewServer(e.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer srv.Close()
	for name, tc := range map[string]struct {
		head   string
		status int
	}{
		"ordinary":     {strings.Repeat("A: b\r\n", 40), 200},
		"1000 headers": {strings.Repeat("A: b\r\n", 1000), 431},
		"1000 names":   {manyNames(1000), 431},
		"large header": {"A: " + strings.Repeat("b", 9<<10) + "\r\n", 431},
		"large sum":    {strings.Repeat("A: "+strings.Repeat("b", 1<<10)+"\r\n", 9), 431},
	} {
		res, body := raw(t, srv.Listener.Addr().String(), "GET / HTTP/1.1\r\nHost: localhost\r\n"+tc.head+"\r\n")
		if res.StatusCode != tc.status {
			t.Errorf("%s: status %d", name, res.StatusCode)
		}
		if tc.status == 431 && (!strings.Contains(body, `"kind":"head_too_large"`) || res.Header.Get("Content-Type") != "application/json" || res.Header.Get("X-Content-Type-Options") != "nosniff") {
			t.Errorf("%s: %v %s", name, res.Header, body)
		}
	}
	if res, body := raw(t, srv.Listener.Addr().String(), "GET /"+strings.Repeat("x", 9<<10)+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); res.StatusCode != 431 {
		t.Errorf("long path: %d %s", res.StatusCode, body)
	}
}

func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "A%d: b\r\n", i)
	}
	return b.String()
}

// TestDeadlines holds the rule by itself, without a clock.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		rules edge.Pace
		read  int64
		want  time.Duration // 0: never
	}{
		{edge.Pace{}, 0, 0},
		{edge.Pace{Timeout: time.Minute}, 1 << 20, time.Minute},
		{edge.Pace{MinRate: 1024}, 0, 5 * time.Second},
		{edge.Pace{MinRate: 1024}, 10 << 10, 15 * time.Second},
		{edge.Pace{MinRate: 1024, Timeout: time.Minute}, 1, 5*time.Second + time.Second/1024},
		{edge.Pace{MinRate: 1024, Timeout: time.Minute}, 1 << 20, time.Minute},
		{edge.Pace{MinRate: 1024, Timeout: time.Second}, 0, time.Second},
	} {
		got := tc.rules.Deadline(began, tc.read)
		if tc.want == 0 && !got.IsZero() || tc.want != 0 && got.Sub(began).Round(time.Millisecond) != tc.want.Round(time.Millisecond) {
			t.Errorf("%+v after %d bytes: %v, want %v", tc.rules, tc.read, got.Sub(began), tc.want)
		}
	}
}

// TestSlowBodies: bodies that drip, stop or never end are ended by the rules, on
// every protocol, while a body at an ordinary pace is read.
func TestSlowBodies(t *testing.T) { synctest.Test(t, testSlowBodies) }

func testSlowBodies(t *testing.T) {
	rules := edge.Pace{Timeout: 300 * time.Millisecond}
	for _, secure := range []bool{true, false} {
		srv := httptest.NewUnstartedServer(rules.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, 1<<16))
			if errors.Is(err, os.ErrDeadlineExceeded) {
				w.WriteHeader(http.StatusRequestTimeout)
			} else if err != nil {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
			}
		})))
		srv.EnableHTTP2 = secure
		dial := inMemory(t, srv, secure)
		if status := send(t, srv, strings.NewReader("quick")); status != 200 {
			t.Errorf("TLS %v, quick: %d", secure, status)
		}
		slowly := func() int { return send(t, srv, drip{}) }
		if !secure { // net/http's client may see the end of the connection before the answer
			slowly = func() int { return dripOn(t, dial()) }
		}
		began := time.Now()
		if status, took := slowly(), time.Since(began); status != http.StatusRequestTimeout || took != rules.Timeout {
			t.Errorf("TLS %v, dripping: %d after %v", secure, status, took)
		}
		if status := send(t, srv, endless{}); status != http.StatusRequestEntityTooLarge {
			t.Errorf("TLS %v, endless: %d", secure, status)
		}
	}
}

// drip gives a byte now and then, for longer than the test lasts.
type drip struct{}

func (drip) Read(p []byte) (int, error) {
	time.Sleep(20 * time.Millisecond)
	p[0] = 'x'
	return 1, nil
}

// dripOn sends a dripping request on a connection, and returns the status of the answer.
func dripOn(t *testing.T, c net.Conn) int {
	t.Helper()
	go func() {
		fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
		_, _ = io.Copy(c, drip{}) // until the server closes
	}()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func send(t *testing.T, s *httptest.Server, body io.Reader) int {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, s.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

// TestLongAnswersOutliveTheReadTimeout: the time to read a request does not bound
// the time to answer it.
func TestLongAnswersOutliveTheReadTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := httptest.NewUnstartedServer(edge.Pace{Timeout: 100 * time.Millisecond}.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-r.Context().Done():
				w.WriteHeader(http.StatusInternalServerError)
			case <-time.After(400 * time.Millisecond):
			}
		})))
		srv.Config.ReadTimeout = 100 * time.Millisecond
		inMemory(t, srv, false)
		if status := send(t, srv, strings.NewReader("{}")); status != 200 {
			t.Errorf("status %d: the call was cancelled by the read timeout", status)
		}
	})
}

// TestSlowHandlers: a handler that waits for something else, before it reads a body or
// in the middle, does not make the client a slow one; a client that then sends no more
// is, and so is one whose body the handler leaves to net/http.
func TestSlowHandlers(t *testing.T) { synctest.Test(t, testSlowHandlers) }

func testSlowHandlers(t *testing.T) {
	rules := edge.Pace{Timeout: time.Second, MinRate: 1 << 10}
	for _, secure := range []bool{true, false} {
		srv := httptest.NewUnstartedServer(rules.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Minute) // a store that takes its time
			_, err := io.ReadFull(r.Body, make([]byte, 4))
			time.Sleep(time.Minute)
			if err == nil && r.URL.Path == "/whole" {
				_, err = io.Copy(io.Discard, r.Body)
			}
			if err != nil {
				w.WriteHeader(http.StatusRequestTimeout)
			}
		})))
		srv.Config.ReadTimeout = time.Second
		srv.EnableHTTP2 = secure
		dial := inMemory(t, srv, secure)
		if status := send(t, srv, io.MultiReader(strings.NewReader("part"), strings.NewReader(" and rest"))); status != 200 {
			t.Errorf("TLS %v: %d", secure, status)
		}
		req, err := http.NewRequest(http.MethodPost, srv.URL+"/whole", io.MultiReader(strings.NewReader("part"), strings.NewReader(" and rest")))
		if err != nil {
			t.Fatal(err)
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != 200 {
			t.Errorf("TLS %v, whole: %d", secure, res.StatusCode)
		}
		if secure {
			continue
		}
		for path, want := range map[string]int{"/whole": http.StatusRequestTimeout, "/rest": http.StatusOK} {
			c := dial()
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\npart", path)
			in := bufio.NewReader(c)
			res, err := http.ReadResponse(in, nil)
			if err != nil || res.StatusCode != want {
				t.Fatalf("%s: %v, %v", path, res, err)
			}
			if _, err := io.Copy(io.Discard, in); err != nil {
				t.Errorf("%s: the connection stays: %v", path, err)
			}
		}
	}
}

// TestUnreadBodies: a body that stalls and that the handler does not read holds up no
// answer, small or larger than what net/http keeps back, and no connection.
func TestUnreadBodies(t *testing.T) { synctest.Test(t, testUnreadBodies) }

func testUnreadBodies(t *testing.T) {
	for _, rules := range []edge.Pace{{Timeout: time.Second, MinRate: 1 << 10}, {Timeout: time.Hour, MinRate: 1 << 10}, {Timeout: time.Second}} {
		for _, size := range []int{10, 100_000} {
			srv := httptest.NewUnstartedServer(rules.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = w.Write(make([]byte, size))
			})))
			dial := inMemory(t, srv, false)
			c := dial()
			fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\npart")
			began, in := time.Now(), bufio.NewReader(c)
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("%+v, %d bytes: %v", rules, size, err)
			}
			if n, err := io.Copy(io.Discard, res.Body); n != int64(size) || err != nil {
				t.Errorf("%+v: %d of %d bytes, %v", rules, n, size, err)
			}
			if _, err := io.Copy(io.Discard, in); err != nil || time.Since(began) > 10*time.Second {
				t.Errorf("%+v, %d bytes: the connection ended after %v, %v", rules, size, time.Since(began), err)
			}
		}
	}
}

// TestLongAnswersToWholeBodies: a body that has come whole ends no answer, however long it
// takes and however much of the body the handler has read.
func TestLongAnswersToWholeBodies(t *testing.T) {
	for name, read := range map[string]func(io.Reader){
		"nothing": func(io.Reader) {},
		"a part":  func(r io.Reader) { _, _ = io.ReadFull(r, make([]byte, 2)) },
		"twice": func(r io.Reader) {
			_, _ = io.Copy(io.Discard, r)
			_, _ = io.Copy(io.Discard, r)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			srv := httptest.NewUnstartedServer(edge.Pace{Timeout: time.Second}.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				read(r.Body)
				for range 4 {
					_, _ = w.Write(make([]byte, 3000))
					_ = http.NewResponseController(w).Flush()
					select {
					case <-r.Context().Done():
						t.Errorf("%s: the call was ended", name)
						return
					case <-time.After(700 * time.Millisecond):
					}
				}
			})))
			c := inMemory(t, srv, false)()
			fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n0123456789")
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, res.Body); n != 12_000 || err != nil {
				t.Errorf("%s: %d bytes, %v", name, n, err)
			}
			_ = c.Close()
		})
	}
}

// TestSlowReaders: a client that stops reading does not keep the handler, and one
// that reads at its leisure gets all.
func TestSlowReaders(t *testing.T) { synctest.Test(t, testSlowReaders) }

func testSlowReaders(t *testing.T) {
	ended := make(chan error, 1)
	part := make([]byte, 64<<10)
	srv := httptest.NewUnstartedServer(edge.Pace{Timeout: 200 * time.Millisecond}.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		for i := 0; err == nil && (r.URL.Path == "/endless" || i < 8); i++ {
			_, err = w.Write(part)
			if r.URL.Path != "/endless" {
				time.Sleep(50 * time.Millisecond) // longer in all than the timeout
			}
		}
		ended <- err
	})))
	dial := inMemory(t, srv, false)
	fmt.Fprint(dial(), "GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("writing ended with %v", err)
	}
	res, err := srv.Client().Get(srv.URL + "/slow")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if n, err := io.Copy(io.Discard, res.Body); n != 8*int64(len(part)) || err != nil || <-ended != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestForeign: what is not the server's own is held to Host and head limits, and
// nothing else is added to it.
func TestForeign(t *testing.T) {
	t.Parallel()
	e := &edge.Edge{
		Hosts: hosts(t), Heads: edge.HeadLimits{Lines: 50}, Log: zerolog.Nop(),
		Own: func(r *http.Request) bool { return r.URL.Path == "/mcp" },
		Foreign: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "foreign %s", proxy.RequestInfoFrom(r.Context()).Addr)
		}),
	}
	srv := httptest.NewServer(e.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "own") })))
	defer srv.Close()
	for name, tc := range map[string]struct {
		head   string
		status int
		body   string
	}{
		"own":                 {"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, "own"},
		"own, foreign page":   {"GET /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n", 403, ""},
		"foreign":             {"GET /alice/repo HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, "foreign 127.0.0.1"},
		"link from elsewhere": {"GET /alice/repo HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n\r\n", 200, "foreign 127.0.0.1"},
		"preflight":           {"OPTIONS /api/v1/user HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: GET\r\n\r\n", 200, "foreign 127.0.0.1"},
		"rebinding":           {"GET /alice/repo HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403, ""},
		"many headers":        {"GET /alice/repo HTTP/1.1\r\nHost: localhost\r\n" + manyNames(60) + "\r\n", 431, ""},
	} {
		res, body := raw(t, srv.Listener.Addr().String(), tc.head)
		if res.StatusCode != tc.status || tc.body != "" && body != tc.body {
			t.Errorf("%s: %d %s", name, res.StatusCode, body)
		}
		if csp := res.Header.Get("Content-Security-Policy"); (csp == "") != strings.HasPrefix(body, "foreign") {
			t.Errorf("%s: Content-Security-Policy %q", name, csp)
		}
	}
}

// TestManySlowBodies: 200 connections whose bodies hardly move do not keep others
// waiting, and all are ended.
func TestManySlowBodies(t *testing.T) {
	var slow atomic.Int32
	read := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			slow.Add(1)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
		}
	})
	mux := http.NewServeMux()
	mux.Handle("/slow", edge.Pace{Timeout: time.Second}.Wrap(read))
	mux.Handle("/", edge.Pace{Timeout: patience}.Wrap(read)) // a busy machine is no slow client
	srv := httptest.NewUnstartedServer(mux)
	srv.Listener = edge.NewListener(srv.Listener, edge.ConnLimits{Total: 300})
	srv.Start()
	defer srv.Close()
	const count = 200
	answers := make(chan int, count)
	for range count {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nx")
		go func() {
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				answers <- 0
				return
			}
			answers <- res.StatusCode
		}()
	}
	eventually(t, func() bool { return slow.Load() == count }, "all slow bodies reach the handler")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if status := send(t, srv, strings.NewReader("{}")); status != 200 {
					t.Errorf("another client: status %d", status)
				}
			}
		})
	}
	wg.Wait()
	for range count {
		if status := <-answers; status != http.StatusRequestTimeout {
			t.Fatalf("a slow body got %d, want 408", status)
		}
	}
}
