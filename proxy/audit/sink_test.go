package audit_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy/audit"
)

func withSink(t *testing.T, s config.AuditSink) *rig {
	cfg := settings()
	cfg.Sinks = []config.AuditSink{s}
	return newRig(t, cfg)
}

func TestSinkStdout(t *testing.T) {
	t.Parallel()
	r := withSink(t, config.AuditSink{Type: "stdout"})
	out := &syncBuffer{}
	r.o.Stdout = out
	r.open()
	r.calls(10)
	r.log.Close()
	if out.String() != r.text() {
		t.Errorf("the stream has %d bytes, the log %d", len(out.String()), len(r.text()))
	}
}

func parseURL(t *testing.T, s string) *config.URL {
	t.Helper()
	u := new(config.URL)
	if err := u.UnmarshalText([]byte(s)); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestSinkHTTP: every line arrives, in order, although the receiver fails first.
func TestSinkHTTP(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got bytes.Buffer
	var failures atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if failures.Add(1) <= 2 {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-ndjson" ||
			r.Header.Get("Authorization") != "Bearer sink-token" || r.URL.Path != "/in" {
			t.Errorf("request is %s %s %v", r.Method, r.URL, r.Header)
		}
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.Copy(&got, r.Body)
	}))
	defer srv.Close()
	r := withSink(t,
		config.AuditSink{Type: "http", URL: parseURL(t, srv.URL+"/in"), Token: config.NewSecret("sink-token")})
	r.open()
	r.calls(700)
	eventually(t, "the receiver gets the records", func() bool { mu.Lock(); defer mu.Unlock(); return got.Len() > 0 })
	r.log.Close()
	if got.String() != r.text() {
		t.Errorf("the receiver has %d bytes, the log %d", got.Len(), len(r.text()))
	}
	if strings.Contains(r.ops.String(), "sink-token") {
		t.Error("the token is in the operational log")
	}
}

// TestSinkThatHangs never makes a call wait, keeps memory bounded, and the log
// says what it missed.
func TestSinkThatHangs(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var lines atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-release
		b, _ := io.ReadAll(r.Body)
		lines.Add(int64(bytes.Count(b, []byte("\n"))))
	}))
	defer srv.Close()
	r := withSink(t, config.AuditSink{Type: "http", URL: parseURL(t, srv.URL), Buffer: 100})
	r.open()
	r.calls(500) // all of them end before the sink goes on
	close(release)
	eventually(t, "the gap is recorded", func() bool { return len(of(r.records(), audit.SinkGap)) > 0 })
	r.log.Close()
	gap := of(r.records(), audit.SinkGap)[0]
	if gap.Detail.Sink != "http" || gap.Detail.Count < 800 || gap.Detail.Count > 1000 {
		t.Errorf("gap is %+v", gap.Detail)
	}
	r.mustVerify()
}

// TestSinkThatUpgrades: a receiver that answers 101 has not got the records, and keeps
// neither the sink nor the connection.
func TestSinkThatUpgrades(t *testing.T) {
	t.Parallel()
	closed, again := make(chan struct{}), make(chan struct{})
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch asked.Add(1) {
		case 1:
		case 2:
			close(again)
			return
		default:
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer close(closed)
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn)
	}))
	defer srv.Close()
	r := withSink(t, config.AuditSink{Type: "http", URL: parseURL(t, srv.URL)})
	r.open()
	r.calls(1)
	<-closed
	<-again
	r.log.Close()
}

var rfc5424 = regexp.MustCompile(`^<110>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z \S{1,255} aegis \d+ [!-~]{1,32} - (\{.*\})$`)

func checkSyslog(t *testing.T, r *rig, messages []string) {
	t.Helper()
	var out strings.Builder
	for _, m := range messages {
		parts := rfc5424.FindStringSubmatch(m)
		if parts == nil {
			t.Fatalf("no message of RFC 5424: %q", m)
		}
		out.WriteString(parts[1] + "\n")
	}
	if out.String() != r.text() {
		t.Errorf("%d messages are not the log's %d lines", len(messages), strings.Count(r.text(), "\n"))
	}
}

func TestSinkSyslogDatagrams(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unixPath := filepath.Join(dir, "log")
	for network, addr := range map[string]string{"udp": "127.0.0.1:0", "unixgram": unixPath} {
		t.Run(network, func(t *testing.T) {
			conn, err := net.ListenPacket(network, addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			address := "udp://" + conn.LocalAddr().String()
			if network == "unixgram" {
				address = "unix://" + unixPath
			}
			r := withSink(t, config.AuditSink{Type: "syslog", Address: address})
			received := make(chan string, 1000)
			go func() {
				buf := make([]byte, 1<<16)
				for {
					n, _, err := conn.ReadFrom(buf)
					if err != nil {
						return
					}
					received <- string(buf[:n])
				}
			}()
			r.open()
			r.calls(5)
			r.log.Close()
			checkSyslog(t, r, collect(t, received, strings.Count(r.text(), "\n")))
		})
	}
}

func collect(t *testing.T, messages <-chan string, n int) []string {
	t.Helper()
	var got []string
	for len(got) < n {
		select {
		case m := <-messages:
			got = append(got, m)
		case <-time.After(patience):
			t.Fatalf("only %d messages of %d", len(got), n)
		}
	}
	return got
}

// TestSinkSyslogStream: octet counting.
func TestSinkSyslogStream(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	messages := make(chan string, 1000)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(conn)
			for {
				var n int
				if _, err := fmt.Fscanf(r, "%d ", &n); err != nil {
					break
				}
				b := make([]byte, n)
				if _, err := io.ReadFull(r, b); err != nil {
					break
				}
				messages <- string(b)
			}
			_ = conn.Close()
		}
	}()
	r := withSink(t, config.AuditSink{Type: "syslog", Address: "tcp://" + ln.Addr().String()})
	r.open()
	r.calls(5)
	r.log.Close()
	checkSyslog(t, r, collect(t, messages, strings.Count(r.text(), "\n")))
}

// TestSinkThatIsNotThere holds up neither the start nor the stop.
func TestSinkThatIsNotThere(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	r := withSink(t, config.AuditSink{Type: "syslog", Address: "tcp://" + addr})
	r.farewell = 20 * time.Millisecond
	r.open()
	r.calls(5)
	eventually(t, "the operational log says so", func() bool { return strings.Contains(r.ops.String(), "takes no records") })
	r.log.Close() // it ends although the receiver never comes
	r.mustVerify()
}
