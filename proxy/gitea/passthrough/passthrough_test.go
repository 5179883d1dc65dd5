package passthrough_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"aegis/proxy"
	"aegis/proxy/gitea/passthrough"
)

// direct shares no connection with another request: httptest closes the idle ones of
// http.DefaultTransport whenever a test's server is closed, and a test beside it fails.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// newPass serves a passthrough to upstream and returns its address.
func newPass(t *testing.T, upstream http.Handler, change func(*passthrough.Options)) string {
	t.Helper()
	up := httptest.NewServer(upstream)
	t.Cleanup(up.Close)
	srv := newFront(t, up.URL, (&net.Dialer{}).DialContext, change)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

// newFront returns a server of a passthrough that is to be started.
func newFront(t *testing.T, gitea string, dial func(context.Context, string, string) (net.Conn, error),
	change func(*passthrough.Options)) *httptest.Server {
	t.Helper()
	u, err := url.Parse(gitea)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true, DialContext: dial}
	t.Cleanup(transport.CloseIdleConnections)
	o := passthrough.Options{Gitea: u, Public: &url.URL{Scheme: "https", Host: "git.example.org"},
		Strip: []string{"X-Company-User"}, Transport: transport, Log: zerolog.Nop()}
	if change != nil {
		change(&o)
	}
	h := passthrough.New(o)
	return httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(proxy.WithRequestInfo(r.Context(),
			&proxy.RequestInfo{RequestID: "req-1", Addr: "203.0.113.5"})))
	}))
}

func raw(t *testing.T, addr, request string) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, request)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

// forgeries are headers that only a reverse proxy may write.
var forgeries = []string{
	"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-User", "X-Forwarded-Email", "X-Forwarded-Prefix", "X-Forwarded",
	"Forwarded", "X-Real-IP", "X-Client-IP", "True-Client-IP", "CF-Connecting-IP", "X-WEBAUTH-USER", "X-WebAuth-Email", "X-WEBAUTH-FULLNAME", "x-webauth-groups",
	"Remote-User", "Remote-Groups", "X-Remote-User", "X-Auth-Request-User", "X-Original-URL", "X-Rewrite-URL", "X-Company-User",
	"X_WEBAUTH_USER", "X-WEBAUTH_USER", "X_Forwarded_For", "REMOTE_USER", "x_company_user",
}

// TestForgedHeaders: Gitea hears of address, host, scheme and identity what Aegis
// says, whatever the client writes and names in Connection.
func TestForgedHeaders(t *testing.T) {
	t.Parallel()
	addr := newPass(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "Host: %s\n", r.Host)
		_ = r.Header.Write(w) // the buffer of the test's own answer
	}), nil)
	for _, connection := range []string{
		"", "Connection: X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Proto, X-Real-Ip\r\n", "Connection: close, X-WEBAUTH-USER\r\n",
		"Connection: keep-alive\r\nConnection: Host\r\nProxy-Connection: X-Real-Ip\r\n", "Connection: Content-Length\r\n",
	} {
		for _, f := range forgeries {
			_, body := raw(t, addr, "GET / HTTP/1.1\r\nHost: evil.example\r\n"+f+": evil\r\n"+f+": evil-too\r\n"+connection+"Accept-Language: de\r\n\r\n")
			if strings.Contains(body, "evil") {
				t.Fatalf("%s with %q: %s", f, connection, body)
			}
			for _, want := range []string{"Host: git.example.org\n", "X-Forwarded-For: 203.0.113.5\r\n",
				"X-Forwarded-Host: git.example.org\r\n", "X-Forwarded-Proto: https\r\n", "X-Real-Ip: 203.0.113.5\r\n", "X-Request-Id: req-1\r\n", "Accept-Language: de\r\n"} {
				if strings.Count(body, want) != 1 {
					t.Fatalf("%s with %q: want %q once in %s", f, connection, want, body)
				}
			}
		}
	}
}

func FuzzHeaders(f *testing.F) {
	var got http.Header
	h := passthrough.New(passthrough.Options{Gitea: &url.URL{Scheme: "http", Host: "gitea:3000"},
		Transport: carrier(func(r *http.Request) (*http.Response, error) {
			got = r.Header
			return &http.Response{StatusCode: 204, Body: http.NoBody, Header: http.Header{}}, nil
		})})
	f.Add("X-WEBAUTH-USER", "a", "close")
	f.Add("x_real_ip", "a", "X-Real-Ip")
	f.Fuzz(func(t *testing.T, name, value, connection string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header = http.Header{name: {value}, "Connection": {connection}}
		h.ServeHTTP(httptest.NewRecorder(),
			r.WithContext(proxy.WithRequestInfo(r.Context(), &proxy.RequestInfo{RequestID: "id", Addr: "203.0.113.5"})))
		for _, one := range []string{"X-Forwarded-For", "X-Real-Ip"} {
			if v := got[one]; !slices.Equal(v, []string{"203.0.113.5"}) {
				t.Errorf("%s: %q", one, v)
			}
		}
		for n := range got {
			c := strings.ReplaceAll(strings.ToLower(n), "_", "-")
			if strings.HasPrefix(c, "x-webauth-") || strings.HasPrefix(c, "remote-") || c == "forwarded" {
				t.Errorf("%q went through", n)
			}
		}
	})
}

type carrier func(*http.Request) (*http.Response, error)

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

// TestTargetsAreKept: the path and query reach Gitea as the client wrote them,
// and no target reaches another host.
func TestTargetsAreKept(t *testing.T) {
	t.Parallel()
	addr := newPass(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RequestURI) }),
		nil)
	for target, want := range map[string]string{
		"/": "/", "/a/b.git/info/refs?service=git-upload-pack": "", "/a/b/src/branch/x%2Fy/%E4%BD%A0?a=1;b=2&%zz": "", "//evil.example/x": "",
		"/a//b/../c": "", "/a?": "", "http://evil.example/x?y": "/x?y", "/@evil.example/": "",
	} {
		if want == "" {
			want = target
		}
		if res, body := raw(t, addr, "GET "+target+" HTTP/1.1\r\nHost: evil.example\r\n\r\n"); res.StatusCode != 200 || body != want {
			t.Errorf("%s: %d %s", target, res.StatusCode, body)
		}
	}
	for _, method := range []string{"TRACE / HTTP/1.1", "CONNECT evil.example:443 HTTP/1.1"} {
		if res, _ := raw(t, addr, method+"\r\nHost: evil.example\r\n\r\n"); res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %s", method, res.Status)
		}
	}
}

// pattern is an endless, cheap body.
type pattern struct{ left int64 }

func (p *pattern) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(b)), p.left)
	for i := range b[:n] {
		b[i] = byte(i)
	}
	p.left -= n
	return int(n), nil
}

// TestLargeUploadsStream: 64 MiB in and out, chunked, while memory stays small; four
// times as much in the whole form.
func TestLargeUploadsStream(t *testing.T) {
	size := int64(64 << 20)
	if os.Getenv("AEGIS_TEST_WHOLE") == "1" {
		size *= 4
	}
	var peak atomic.Uint64
	addr := newPass(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		n, err := io.Copy(h, r.Body)
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak.Store(m.HeapAlloc)
		if n != size || err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("X-Sum", fmt.Sprintf("%x", h.Sum(nil)))
		_, _ = io.Copy(w, &pattern{size})
	}), nil)
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	res, err := direct.Post("http://"+addr+"/a/b.git/git-receive-pack", "application/octet-stream",
		io.NopCloser(&pattern{size}))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	n, err := io.Copy(io.Discard, res.Body)
	if res.StatusCode != 200 || n != size || err != nil || res.Header.Get("X-Sum") == "" {
		t.Errorf("%s, %d bytes, %v", res.Status, n, err)
	}
	if grown := int64(peak.Load()) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("memory grew by %d bytes under a body of %d", grown, size)
	}
}

// TestSlowTransfers outlive the timeouts of ordinary requests.
func TestSlowTransfers(t *testing.T) { synctest.Test(t, testSlowTransfers) }

func testSlowTransfers(t *testing.T) {
	client, _ := timed(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		for i := range 4 {
			fmt.Fprintf(w, "%d", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(150 * time.Millisecond):
			}
		}
		_, _ = w.Write(body)
	}, nil)
	pr, pw := io.Pipe()
	go func() {
		for range 4 {
			_, _ = pw.Write([]byte("x"))
			time.Sleep(150 * time.Millisecond)
		}
		_ = pw.Close()
	}()
	res, err := client.Post("http://memory/", "", pr)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "0123xxxx" {
		t.Errorf("%q, %v", body, err)
	}
}

// TestUpgrade: a WebSocket is a connection in both directions.
func TestUpgrade(t *testing.T) { synctest.Test(t, testUpgrade) }

func testUpgrade(t *testing.T) {
	_, front := timed(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Connection") != "Upgrade" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		line, _ := rw.ReadString('\n')
		fmt.Fprint(conn, "echo "+line)
	}, nil)
	conn, err := front.dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /-/ws HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", res, err)
	}
	time.Sleep(500 * time.Millisecond) // longer than the read timeout
	fmt.Fprint(conn, "hello\n")
	if line, err := in.ReadString('\n'); err != nil || line != "echo hello\n" {
		t.Errorf("%q, %v", line, err)
	}
}

// TestEventStreamsEndWithTheServer, and only then.
func TestEventStreamsEndWithTheServer(t *testing.T) { synctest.Test(t, testEventStreams) }

func testEventStreams(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	gone := make(chan struct{})
	client, _ := timed(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		fmt.Fprint(w, "event: ping\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, func(o *passthrough.Options) { o.Stopping = ctx })
	res, err := client.Get("http://memory/user/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	in := bufio.NewReader(res.Body)
	if line, err := in.ReadString('\n'); err != nil || line != "event: ping\n" {
		t.Fatalf("%q, %v", line, err)
	}
	select {
	case <-gone:
		t.Fatal("the stream ended by itself")
	case <-time.After(400 * time.Millisecond): // longer than the read timeout
	}
	stop()
	<-gone
	_, _ = io.ReadAll(in) // returns when the stream ends, in whatever way
}

// TestEarlyAnswers: an answer that begins before the request is over arrives, begins at
// once, and is whole.
func TestEarlyAnswers(t *testing.T) {
	t.Parallel()
	addr := newPass(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if err := errors.Join(control.EnableFullDuplex(), write(w, "first "), control.Flush()); err != nil {
			t.Error(err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		_ = write(w, "then "+string(body)) // the client says what is missing
	}), nil)
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, len("first "))
	if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "first " {
		t.Fatalf("%q, %v", first, err)
	}
	fmt.Fprint(conn, "cd")
	if rest, err := io.ReadAll(res.Body); err != nil || string(rest) != "then abcd" {
		t.Errorf("%q, %v", rest, err)
	}
}

func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

func TestGiteaDown(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	addr := newPass(t, http.NotFoundHandler(), func(o *passthrough.Options) {
		o.Gitea = &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
		o.Log = zerolog.New(&log)
	})
	res, body := raw(t, addr, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
	if res.StatusCode != http.StatusBadGateway || !strings.Contains(body, `"kind":"upstream_unavailable"`) ||
		strings.Contains(body, "127.0.0.1") || !strings.Contains(body, "req-1") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

func TestWithoutRequestInfoIsClosed(t *testing.T) {
	t.Parallel()
	h := passthrough.New(passthrough.Options{Gitea: &url.URL{},
		Transport: carrier(func(*http.Request) (*http.Response, error) {
			t.Error("let through")
			return nil, io.EOF
		})})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("status %d", w.Code)
	}
}
