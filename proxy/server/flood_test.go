package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	slowBodies = 200
	floodConns = 20
	floodEach  = 5000 // requests on each connection: 100 000 in all
)

// TestFloodsAreHeld: 200 bodies that hardly move and 100 000 requests over the
// limit, at the same time, while another client is served as ever. Memory stays
// within bounds.
func TestFloodsAreHeld(t *testing.T) {
	r := newEdgeRig(t, giteaUser(t), "", "limits: {address: {rate: 10/h, burst: 50}}\nserver: {read_timeout: 3s, trusted_proxies: [127.0.0.1]}\n")
	runtime.GC()
	var before, during, after runtime.MemStats
	runtime.ReadMemStats(&before)

	slow := make(chan int, slowBodies)
	for i := range slowBodies {
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		// Each comes from a network of its own, so that no limit but the time holds it.
		fmt.Fprint(conn, post(fmt.Sprintf("X-Forwarded-For: 2001:db8:%x::1\r\nContent-Length: 100000\r\n", i))+" ")
		go func() {
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				slow <- 0
				return
			}
			slow <- res.StatusCode
		}()
	}

	var passed, refused, other atomic.Int64
	var wg sync.WaitGroup
	for range floodConns {
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		go func() {
			one := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 198.51.100.1\r\nContent-Length: 2\r\n\r\n{}"
			for range floodEach / 50 {
				if _, err := io.WriteString(conn, strings.Repeat(one, 50)); err != nil {
					return
				}
			}
		}()
		wg.Go(func() {
			in := bufio.NewReader(conn)
			for range floodEach {
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					other.Add(1)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				switch {
				case res.StatusCode == http.StatusUnauthorized:
					passed.Add(1)
				case res.StatusCode == http.StatusTooManyRequests && res.Header.Get("Retry-After") != "" && res.Header.Get("RateLimit") != "":
					refused.Add(1)
				default:
					other.Add(1)
				}
			}
		})
	}
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for range 40 {
		res, body := r.send(post(fmt.Sprintf("X-Forwarded-For: 203.0.113.9\r\nContent-Length: %d\r\n", len(ping))) + ping)
		if res.StatusCode != http.StatusOK {
			t.Errorf("another client: %s %s", res.Status, body)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&during)
	wg.Wait()
	// The burst, and what an hour's ten may have added meanwhile.
	if p := passed.Load(); p < 50 || p > 52 || p+refused.Load() != floodConns*floodEach || other.Load() != 0 {
		t.Errorf("%d passed, %d were refused, %d ended otherwise; want the burst of 50 and the rest refused", p, refused.Load(), other.Load())
	}
	for range slowBodies {
		if status := <-slow; status != http.StatusRequestTimeout {
			t.Fatalf("a slow body got %d, want 408", status)
		}
	}
	for range 100 { // refused connections linger for half a second
		runtime.GC()
		if runtime.ReadMemStats(&after); int64(after.HeapAlloc)-int64(before.HeapAlloc) <= 8<<20 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	// While it lasts, the test's own clients and garbage count too.
	for _, m := range []struct {
		when  string
		stats runtime.MemStats
		bound int64
	}{{"during the flood", during, 256 << 20}, {"after it", after, 8 << 20}} {
		if grown := int64(m.stats.HeapAlloc) - int64(before.HeapAlloc); grown > m.bound {
			t.Errorf("%s memory is larger by %d bytes, want %d at most", m.when, grown, m.bound)
		}
	}
}
