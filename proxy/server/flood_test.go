package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// whole reports whether tests are to run in their whole form, which takes minutes
// where make test takes seconds.
func whole() bool { return os.Getenv("AEGIS_TEST_WHOLE") == "1" }

const (
	slowBodies = 200
	floodConns = 20
)

// floodEach is the number of requests on each connection: 100 000 in all, or 10 000.
func floodEach() int {
	if whole() {
		return 5000
	}
	return 500
}

// TestFloodsAreHeld: 200 bodies that hardly move and a flood of requests over the
// limit, at the same time, while another client is served as ever. Memory stays
// within bounds. That slow bodies end by themselves is for TestSlowBodies; here they
// are there until the flood is over.
func TestFloodsAreHeld(t *testing.T) {
	r := newEdgeRig(t, giteaUser(t), "", "limits: {address: {rate: 1/h, burst: 50}}\nserver: {read_timeout: 10m, min_body_rate: 0, trusted_proxies: [127.0.0.1]}\n")
	before := heap()
	slow := r.stuck()
	var sent flood
	for range floodConns {
		sent.begin(r)
	}
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for range 40 {
		res, body := r.send(post(fmt.Sprintf("X-Forwarded-For: 203.0.113.9\r\nContent-Length: %d\r\n", len(ping))) + ping)
		if res.StatusCode != http.StatusOK {
			t.Errorf("another client: %s %s", res.Status, body)
		}
	}
	// While it lasts, the test's own clients and garbage count too.
	if grown := heap() - before; grown > 256<<20 {
		t.Errorf("during the flood memory is larger by %d bytes", grown)
	}
	sent.wg.Wait()
	if passed, refused := sent.passed.Load(), sent.refused.Load(); passed != 50 || passed+refused != int64(floodConns*floodEach()) || sent.other.Load() != 0 {
		t.Errorf("%d passed, %d were refused, %d ended otherwise; want the burst of 50 and the rest refused", passed, refused, sent.other.Load())
	}
	select {
	case status := <-slow.answered:
		t.Errorf("a slow body got %d before its time", status)
	default:
	}
	slow.end()
	eventually(t, func() error { // refused connections linger for half a second
		if grown := heap() - before; grown > 8<<20 {
			return fmt.Errorf("after the flood memory is larger by %d bytes", grown)
		}
		return nil
	})
}

// heap returns how much memory is in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// stuckBodies are requests whose bodies do not come.
type stuckBodies struct {
	conns    []net.Conn
	answered chan int // statuses; 0: the connection ended
}

func (r *edgeRig) stuck() *stuckBodies {
	r.t.Helper()
	s := &stuckBodies{answered: make(chan int, slowBodies)}
	for i := range slowBodies {
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			r.t.Fatal(err)
		}
		s.conns = append(s.conns, conn)
		// Each comes from a network of its own, so that no limit but the time holds it.
		fmt.Fprint(conn, post(fmt.Sprintf("X-Forwarded-For: 2001:db8:%x::1\r\nContent-Length: 100000\r\n", i))+" ")
		go func() {
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			switch {
			case err == nil:
				s.answered <- res.StatusCode
			case !errors.Is(err, net.ErrClosed):
				s.answered <- 0
			}
		}()
	}
	r.t.Cleanup(s.end)
	return s
}

func (s *stuckBodies) end() {
	for _, c := range s.conns {
		_ = c.Close() // a second time it is closed already
	}
}

// flood counts what becomes of requests over the limit.
type flood struct {
	wg                     sync.WaitGroup
	passed, refused, other atomic.Int64
}

// begin sends its part on a connection of its own.
func (f *flood) begin(r *edgeRig) {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	n := floodEach()
	go func() {
		one := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 198.51.100.1\r\nContent-Length: 2\r\n\r\n{}"
		for range n / 50 {
			if _, err := io.WriteString(conn, strings.Repeat(one, 50)); err != nil {
				return
			}
		}
	}()
	f.wg.Go(func() {
		defer conn.Close()
		in := bufio.NewReader(conn)
		for range n {
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				f.other.Add(1)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			switch {
			case res.StatusCode == http.StatusUnauthorized:
				f.passed.Add(1)
			case res.StatusCode == http.StatusTooManyRequests && res.Header.Get("Retry-After") != "" && res.Header.Get("RateLimit") != "":
				f.refused.Add(1)
			default:
				f.other.Add(1)
			}
		}
	})
}
