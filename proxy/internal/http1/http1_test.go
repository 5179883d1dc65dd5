package http1_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aegis/proxy/internal/http1"
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

// server accepts connections and lets script answer each of their requests.
type server struct {
	t     *testing.T
	addr  string
	conns atomic.Int32
	ended atomic.Int32 // connections of handle that are over
}

// serve runs script for each connection; the connection ends with it.
func serve(t *testing.T, script func(n int, c net.Conn, r *bufio.Reader)) *server {
	t.Helper()
	if !http1.Supported {
		t.Skip("not for this system")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, addr: ln.Addr().String()}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			n := int(s.conns.Add(1))
			all.Go(func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(patience))
				script(n, c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(func() { ln.Close(); all.Wait() })
	return s
}

// handle serves h properly.
func handle(t *testing.T, h http.HandlerFunc) *server {
	t.Helper()
	s := &server{t: t}
	up := httptest.NewUnstartedServer(h)
	up.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.conns.Add(1)
		case http.StateClosed:
			s.ended.Add(1)
		}
	}
	up.Start()
	t.Cleanup(up.Close)
	s.addr = up.Listener.Addr().String()
	return s
}

func (s *server) transport(change ...func(*http1.Options)) *http1.Transport {
	o := http1.Options{Address: s.addr, Dial: (&net.Dialer{}).DialContext, MaxConns: 4}
	for _, f := range change {
		f(&o)
	}
	t := http1.New(o)
	http1.AnswerWithin(t, patience)
	s.t.Cleanup(t.Close)
	return t
}

func request(t *testing.T, ctx context.Context, method, body string) *http.Request {
	t.Helper()
	var from io.Reader
	if body != "" {
		from = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://gitea.test/path?q=1", from)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// get sends a GET and returns the status and the body.
func get(t *testing.T, tr http.RoundTripper) (int, string, error) {
	t.Helper()
	return do(tr, request(t, t.Context(), "GET", ""))
}

func do(tr http.RoundTripper, req *http.Request) (int, string, error) {
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// read takes one request off a connection.
func read(r *bufio.Reader) (string, bool) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return "", false
	}
	body, err := io.ReadAll(req.Body)
	return req.Method + " " + string(body), err == nil
}

func TestReuse(t *testing.T) {
	s := handle(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Host != "gitea.test" || r.RequestURI != "/path?q=1" {
			t.Errorf("host %s, target %s", r.Host, r.RequestURI)
		}
		fmt.Fprintf(w, "%s %d", r.Method, len(body))
	})
	tr := s.transport()
	http1.SentWithin(tr, patience)
	for range 3 {
		for _, c := range []struct{ method, body, want string }{
			{"GET", "", "GET 0"}, {"POST", "small", "POST 5"}, {"PUT", strings.Repeat("x", 1<<20), "PUT 1048576"}, {"DELETE", "", "DELETE 0"},
		} {
			if status, got, err := do(tr, request(t, t.Context(), c.method, c.body)); status != 200 || got != c.want || err != nil {
				t.Errorf("%s: %d %q %v", c.method, status, got, err)
			}
		}
	}
	if n := s.conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// lagging is a connection whose writes return some time after the server has what was
// written.
type lagging struct{ *net.TCPConn }

func (l lagging) Write(p []byte) (int, error) {
	n, err := l.TCPConn.Write(p)
	time.Sleep(5 * time.Millisecond)
	return n, err
}

// TestReuseAfterLongBody: the answer may be over before the goroutine that wrote the
// request has said so.
func TestReuseAfterLongBody(t *testing.T) {
	s := handle(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	tr := s.transport(func(o *http1.Options) {
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return lagging{c.(*net.TCPConn)}, nil
		}
	})
	http1.SentWithin(tr, patience)
	for range 3 {
		if _, _, err := do(tr, request(t, t.Context(), "PUT", strings.Repeat("x", 40<<10))); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// TestAsNetHTTP: whatever a server says, the transport of net/http and this one
// understand the same.
func TestAsNetHTTP(t *testing.T) {
	log.SetOutput(io.Discard) // net/http tells of answers that nobody asked for
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	long := strings.Repeat("0123456789abcdef", 4096)
	answers := []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 65536\r\nX-A: 1\r\nX-A: 2\r\n\r\n" + long,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6; a=b\r\n world\r\n0\r\nX-Trailer: 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\nuntil the end",
		"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhello",
		"HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
		"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 5) + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nbad header\r\n\r\n", "HTTP/1.1 200 OK\r\n: x\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 OK\r\n\r\n", "HTTP/9.9\r\n\r\n", "SSH-2.0-Go\r\n", "\x00\x01\x02\r\n\r\n",
		"", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx",
		"HTTP/1.1 200 OK\r\nX-Folded: a\r\n b\r\nContent-Length: 1\r\n\r\nx",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nX: " + strings.Repeat("y", 400<<10) + "\r\n\r\nx",
		"HTTP/1.1 200 OK\r\nSet-Cookie: " + strings.Repeat("y", 200<<10) + "\r\nContent-Length: 1\r\n\r\nx",
	}
	for i, answer := range answers {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			s := serve(t, func(_ int, c net.Conn, r *bufio.Reader) {
				if _, ok := read(r); ok {
					_, _ = io.WriteString(c, answer)
				}
			})
			theirs := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", s.addr)
			}, DisableCompression: true, MaxResponseHeaderBytes: 256 << 10}
			type outcome struct {
				status       int
				header, body string
				failed       bool
			}
			try := func(tr http.RoundTripper) (o outcome) {
				resp, err := tr.RoundTrip(request(t, t.Context(), method, map[string]string{"POST": "body"}[method]))
				if err != nil {
					return outcome{failed: true}
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				var h bytes.Buffer
				_ = resp.Header.Write(&h) // a buffer takes everything
				return outcome{resp.StatusCode, h.String(), string(body), err != nil}
			}
			want, got := try(theirs), try(s.transport())
			if got != want {
				t.Errorf("answer %d, %s: %.200v, net/http: %.200v", i, method, got, want)
			}
			theirs.CloseIdleConnections()
		}
	}
}

func TestOddAnswers(t *testing.T) {
	for name, answer := range map[string]string{
		"upgrade":  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
		"status":   "HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n",
		"interims": strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 9) + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	} {
		s := serve(t, func(_ int, c net.Conn, r *bufio.Reader) {
			if _, ok := read(r); ok {
				_, _ = io.WriteString(c, answer)
			}
		})
		if status, _, err := get(t, s.transport()); err == nil {
			t.Errorf("%s: %d", name, status)
		}
	}
}

// TestEndlessHead: a server that never ends its head gets no memory.
func TestEndlessHead(t *testing.T) {
	sent := make(chan int, 1)
	s := serve(t, func(_ int, c net.Conn, r *bufio.Reader) {
		_, _ = read(r)
		n, _ := io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		line := strings.Repeat("X-Header: "+strings.Repeat("y", 990)+"\r\n", 8)
		for {
			m, err := io.WriteString(c, line)
			if n += m; err != nil || n > 64<<20 {
				sent <- n
				return
			}
		}
	})
	if _, _, err := get(t, s.transport(func(o *http1.Options) { o.MaxHead = 64 << 10 })); err == nil {
		t.Error("an endless head is an answer")
	}
	if n := <-sent; n > 32<<20 {
		t.Errorf("%d bytes were taken", n)
	}
}

// TestClosedWhileIdle: a connection that the server closed serves nobody.
func TestClosedWhileIdle(t *testing.T) {
	s := serve(t, func(n int, c net.Conn, r *bufio.Reader) {
		body, ok := read(r)
		if !ok {
			return
		}
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	})
	tr := s.transport()
	for range 3 {
		// Not repeatable: without the look before, it would fail.
		if _, got, err := do(tr, request(t, t.Context(), "POST", "body")); got != "POST body" || err != nil {
			t.Fatalf("%q %v", got, err)
		}
		eventually(t, func() bool { return !http1.Reusable(tr) }, "the end of the connection arrives")
	}
}

// TestClosedOnReuse: a server that closes a connection as the next request comes is
// asked again when that is harmless, and only then.
func TestClosedOnReuse(t *testing.T) {
	for method, again := range map[string]bool{"GET": true, "HEAD": true, "POST": false, "DELETE": false} {
		var got atomic.Int32
		s := serve(t, func(n int, c net.Conn, r *bufio.Reader) {
			for k := 0; ; k++ {
				line, ok := read(r)
				if !ok || n == 1 && k == 1 {
					return
				}
				if strings.HasPrefix(line, method) {
					got.Add(1)
				}
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
		})
		tr := s.transport()
		if _, _, err := do(tr, request(t, t.Context(), "OPTIONS", "")); err != nil {
			t.Fatal(err)
		}
		_, _, err := do(tr, request(t, t.Context(), method, map[string]string{"POST": "x"}[method]))
		if (err == nil) != again || got.Load() != map[bool]int32{true: 1}[again] {
			t.Errorf("%s: %v, answered %d times", method, err, got.Load())
		}
	}
}

// TestUnasked: what a server says that nobody asked for is nobody's answer.
func TestUnasked(t *testing.T) {
	const smuggled = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled"
	for name, late := range map[string]bool{"at once": false, "while idle": true} {
		heard := make(chan bool, 1)
		s := serve(t, func(n int, c net.Conn, r *bufio.Reader) {
			for {
				if _, ok := read(r); !ok {
					return
				}
				own := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nown %d", n)
				if n > 1 {
					_, _ = io.WriteString(c, own)
					continue
				}
				if !late {
					own += smuggled
				}
				_, _ = io.WriteString(c, own)
				if late {
					<-heard // so that it comes in a piece of its own
					_, _ = io.WriteString(c, smuggled)
				}
			}
		})
		tr := s.transport()
		if _, got, err := get(t, tr); got != "own 1" || err != nil {
			t.Fatalf("%s: %q %v", name, got, err)
		}
		heard <- true
		eventually(t, func() bool { return !http1.Reusable(tr) }, "what nobody asked for arrives")
		if _, got, err := do(tr, request(t, t.Context(), "POST", "x")); got != "own 2" || err != nil {
			t.Errorf("%s: the next request got %q %v", name, got, err)
		}
	}
}

// TestEarlyAnswer: a server that answers before it has read a long body is heard, and
// the connection serves no other request.
func TestEarlyAnswer(t *testing.T) {
	over := make(chan bool)
	s := serve(t, func(_ int, c net.Conn, r *bufio.Reader) {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
		_, _ = io.CopyN(io.Discard, req.Body, 4<<20)
		<-over
	})
	defer close(over)
	tr := s.transport()
	for range 2 {
		req := request(t, t.Context(), "POST", "")
		req.ContentLength = 64 << 20 // more than the buffers of both ends take
		req.Body = io.NopCloser(io.LimitReader(zeros{}, req.ContentLength))
		if status, got, err := do(tr, req); status != 413 || got != "big" || err != nil {
			t.Fatalf("%d %q %v", status, got, err)
		}
	}
	if n := s.conns.Load(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// TestRefusedBody: a server that answers and closes without reading the body is heard,
// although the connection is reset under the request. A reset that overtakes the answer
// is nobody's fault, so a few may be lost.
func TestRefusedBody(t *testing.T) {
	const requests = 60
	for _, size := range []int{100, 12 << 10, 40 << 10, 64 << 10, 300 << 10} {
		s := serve(t, func(_ int, c net.Conn, r *bufio.Reader) {
			if _, err := http.ReadRequest(r); err == nil {
				_, _ = io.WriteString(c, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
			}
		})
		tr := s.transport()
		lost := 0
		for range requests {
			if status, got, err := do(tr, request(t, t.Context(), "POST", strings.Repeat("x", size))); status != 401 || got != "no" || err != nil {
				lost++
			}
		}
		if lost > requests/10 {
			t.Errorf("%d bytes: %d of %d answers are lost", size, lost, requests)
		}
	}
}

// broken is a body that cannot be read.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// TestBrokenBody: a body that fails ends the request, not the caller's patience.
func TestBrokenBody(t *testing.T) {
	s := serve(t, func(_ int, c net.Conn, r *bufio.Reader) { _, _ = read(r) })
	tr := s.transport(func(o *http1.Options) { o.MaxConns = 1 })
	why := errors.New("the reason")
	for _, length := range []int64{10, 1 << 20, -1, 0} {
		// The server would wait for the body until long after the context has ended.
		ctx, cancel := context.WithTimeout(t.Context(), patience/2)
		req := request(t, ctx, "POST", "")
		req.ContentLength, req.Body = length, io.NopCloser(broken{why})
		if _, _, err := do(tr, req); err == nil || !strings.Contains(err.Error(), why.Error()) {
			t.Errorf("length %d: %v", length, err)
		}
		cancel()
	}
}

// TestAgainOnce: a request that makes the server drop its connection is sent again on a
// fresh one, and not on each that waits.
func TestAgainOnce(t *testing.T) {
	var poison atomic.Int32
	gate := make(chan bool)
	s := serve(t, func(_ int, c net.Conn, r *bufio.Reader) {
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			if req.Method == http.MethodHead {
				poison.Add(1)
				return
			}
			<-gate
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	tr := s.transport()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, _, err := get(t, tr); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, func() bool { return s.conns.Load() == 4 }, "four requests at once")
	close(gate)
	all.Wait()
	if _, _, err := do(tr, request(t, t.Context(), "HEAD", "")); err == nil || poison.Load() != 2 {
		t.Errorf("%v, sent %d times", err, poison.Load())
	}
}

// TestUnsendable: what would have to be mended is refused, and nothing goes out.
func TestUnsendable(t *testing.T) {
	s := serve(t, func(_ int, _ net.Conn, r *bufio.Reader) {
		req, err := http.ReadRequest(r)
		if err == nil && req.Header.Get("Sudo") != "a\tb é" {
			t.Errorf("sent: %v", req.Header)
		}
	})
	tr := s.transport()
	for name, change := range map[string]func(*http.Request){
		"value":   func(r *http.Request) { r.Header["Sudo"] = []string{"a\r\nX-Evil: 1"} },
		"control": func(r *http.Request) { r.Header["Sudo"] = []string{"a\x00"} },
		"delete":  func(r *http.Request) { r.Header["Sudo"] = []string{"a\x7f"} },
		"name":    func(r *http.Request) { r.Header["Su do"] = []string{"a"} },
		"no name": func(r *http.Request) { r.Header[""] = []string{"a"} },
		"method":  func(r *http.Request) { r.Method = "GET / HTTP/1.1\r\nX: y" },
	} {
		req := request(t, t.Context(), "GET", "")
		change(req)
		if _, _, err := do(tr, req); err == nil {
			t.Errorf("%s: sent", name)
		}
	}
	req := request(t, t.Context(), "GET", "")
	req.Header["Sudo"] = []string{"a\tb é"}
	if _, _, err := do(tr, req); err == nil { // the server answers nothing
		t.Error("an answer")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestCancel(t *testing.T) {
	stay := make(chan bool)
	asked := make(chan bool, 3)
	s := serve(t, func(n int, c net.Conn, r *bufio.Reader) {
		if _, ok := read(r); !ok {
			return
		}
		if n == 2 {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin")
		}
		asked <- true
		<-stay
	})
	defer close(stay)
	tr := s.transport(func(o *http1.Options) { o.MaxConns = 1 })
	why := errors.New("the reason")
	head := func(what string) {
		t.Helper()
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { <-asked; cancel(why) }()
		if _, _, err := do(tr, request(t, ctx, "GET", "")); !errors.Is(err, why) {
			t.Errorf("%s: %v", what, err)
		}
	}

	head("in the head")
	// In the body.
	ctx, cancel := context.WithCancelCause(t.Context())
	resp, err := tr.RoundTrip(request(t, ctx, "GET", ""))
	if err != nil {
		t.Fatal(err)
	}
	begin := make([]byte, len("begin"))
	if _, err := io.ReadFull(resp.Body, begin); err != nil || string(begin) != "begin" {
		t.Errorf("in the body: %q %v", begin, err)
	}
	<-asked
	time.AfterFunc(time.Millisecond, func() { cancel(why) }) // most likely while the body is waited for
	if rest, err := io.ReadAll(resp.Body); err == nil || len(rest) > 0 {
		t.Errorf("in the body: %q %v", rest, err)
	}
	resp.Body.Close()
	// Both let their place go, though only one connection is allowed.
	head("the third")
	if n := s.conns.Load(); n != 3 {
		t.Errorf("%d connections", n)
	}
}

// TestBound: no more connections than allowed, and who waits for one can give up.
func TestBound(t *testing.T) {
	var now, most atomic.Int32
	gate := make(chan bool)
	s := handle(t, func(w http.ResponseWriter, _ *http.Request) {
		n := now.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		<-gate
		now.Add(-1)
	})
	tr := s.transport(func(o *http1.Options) { o.MaxConns = 2 })
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, _, err := get(t, tr); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, func() bool { return now.Load() == 2 }, "two requests at once")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, _, err := do(tr, request(t, ctx, "GET", "")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting: %v", err)
	}
	close(gate)
	all.Wait()
	if most.Load() > 2 || s.conns.Load() > 2 {
		t.Errorf("%d requests at once on %d connections", most.Load(), s.conns.Load())
	}
}

func TestIdle(t *testing.T) {
	s := handle(t, func(http.ResponseWriter, *http.Request) {})
	tr := s.transport(func(o *http1.Options) { o.IdleTimeout = patience })
	want := int32(0)
	again := func(what string, tr *http1.Transport, more int32) {
		t.Helper()
		if _, _, err := get(t, tr); err != nil {
			t.Fatal(err)
		}
		if want += more; s.conns.Load() != want {
			t.Errorf("%s: %d connections, want %d", what, s.conns.Load(), want)
		}
	}
	again("first", tr, 1)
	again("second", tr, 0)
	tr.CloseIdleConnections()
	again("after closing idle ones", tr, 1)
	tr.Close()
	again("after Close", tr, 1)
	again("and again", tr, 1)

	brief := s.transport(func(o *http1.Options) { o.IdleTimeout = 5 * time.Millisecond })
	again("the first of another", brief, 1)
	time.Sleep(6 * time.Millisecond)
	again("after the idle time", brief, 1)
	eventually(t, func() bool { return s.ended.Load() == want }, "a connection that is not used ends")
}

// TestEarlyClose: a body that is closed before its end costs the connection alone.
func TestEarlyClose(t *testing.T) {
	s := handle(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) })
	tr := s.transport(func(o *http1.Options) { o.MaxConns = 1 })
	for range 3 {
		resp, err := tr.RoundTrip(request(t, t.Context(), "GET", ""))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if n, err := resp.Body.Read(make([]byte, 10)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("reading after the end: %d %v", n, err)
		}
	}
	if n := s.conns.Load(); n != 3 {
		t.Errorf("%d connections", n)
	}
}

func TestTrace(t *testing.T) {
	s := handle(t, func(http.ResponseWriter, *http.Request) {})
	wrote := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteHeaders: func() { wrote++ }})
	if _, _, err := do(s.transport(), request(t, ctx, "GET", "")); err != nil || wrote != 1 {
		t.Errorf("%d times, %v", wrote, err)
	}
}

func TestNobodyThere(t *testing.T) {
	s := serve(t, func(int, net.Conn, *bufio.Reader) {})
	tr := s.transport(func(o *http1.Options) { o.Address = "127.0.0.1:1" })
	if _, _, err := get(t, tr); err == nil {
		t.Error("an answer from nowhere")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := do(tr, request(t, ctx, "GET", "")); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that was over: %v", err)
	}
}

// TestCrowd: every caller gets its own answer, whatever the others do.
func TestCrowd(t *testing.T) {
	s := handle(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if len(body)%3 == 0 {
			w.(http.Flusher).Flush() // chunked
		}
		_, _ = w.Write(bytes.Repeat(body, 50))
	})
	tr := s.transport(func(o *http1.Options) { o.MaxConns = 8 })
	var all sync.WaitGroup
	for n := range 16 {
		all.Go(func() {
			for k := range 60 {
				body := strings.Repeat(fmt.Sprintf("%d-%d;", n, k), 1+k*7)
				ctx, cancel := context.WithCancel(t.Context())
				if k%10 == 9 {
					time.AfterFunc(time.Duration(k)*10*time.Microsecond, cancel)
				}
				_, got, err := do(tr, request(t, ctx, "POST", body))
				cancel()
				if err == nil && got != strings.Repeat(body, 50) {
					t.Errorf("%d-%d: another answer, of %d bytes", n, k, len(got))
				}
				if err != nil && k%10 != 9 {
					t.Errorf("%d-%d: %v", n, k, err)
				}
			}
		})
	}
	all.Wait()
}
