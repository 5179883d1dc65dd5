package edge_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"aegis/proxy"
	"aegis/proxy/edge"
)

// fakeListener hands out connections of made-up addresses.
type fakeListener struct{ conns chan net.Conn }

func (l fakeListener) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (l fakeListener) Close() error   { return nil }
func (l fakeListener) Addr() net.Addr { return &net.TCPAddr{} }

type fakeConn struct {
	net.Conn
	from   string
	closed atomic.Bool
}

func (c *fakeConn) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(c.from), 1))
}
func (c *fakeConn) Close() error { c.closed.Store(true); return nil }

func TestConnectionCaps(t *testing.T) {
	t.Parallel()
	refused := map[string]int{}
	fake := fakeListener{make(chan net.Conn, 100)}
	ln := edge.NewListener(fake, edge.ConnLimits{Total: 8, PerAddress: 2, Trusted: edge.NewClients(networks(t, "10.0.0.1"), ""), Refused: func(why string) { refused[why]++ }})
	var all []*fakeConn
	for _, from := range []string{
		"192.0.2.1", "192.0.2.1", "192.0.2.1", "::ffff:192.0.2.1", // two too many
		"2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1", // one too many
		"127.0.0.1", "127.0.0.1", "127.0.0.1", // exempt, the eighth in all
		"10.0.0.1", "::1", // over the total
	} {
		c := &fakeConn{from: from}
		all = append(all, c)
		fake.conns <- c
	}
	close(fake.conns)
	var open []net.Conn
	for {
		c, err := ln.Accept()
		if err != nil {
			break
		}
		open = append(open, c)
	}
	if len(open) != 8 || ln.Open() != 8 || refused[edge.RefusedAddress] != 3 || refused[edge.RefusedTotal] != 2 {
		t.Fatalf("%d open (%d counted), refused %v", len(open), ln.Open(), refused)
	}
	for i, want := range map[int]bool{2: true, 3: true, 6: true, 11: true, 12: true} {
		if all[i].closed.Load() != want {
			t.Errorf("connection %d: closed is %v", i, !want)
		}
	}
	for _, c := range open {
		_ = c.Close()
		_ = c.Close() // a second time counts nothing
	}
	if ln.Open() != 0 || ln.Remembered() != 0 {
		t.Errorf("%d open, %d addresses remembered after all were closed", ln.Open(), ln.Remembered())
	}
}

func TestProxyProtocol(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		trusted string
		first   string
		want    string // "": no answer of the handler's
	}{
		"v1":                  {"127.0.0.0/8", "PROXY TCP4 198.51.100.9 10.0.0.1 5000 80\r\n", "198.51.100.9"},
		"v1, IPv6":            {"127.0.0.0/8", "PROXY TCP6 2001:db8::9 2001:db8::1 5000 80\r\n", "2001:db8::9"},
		"v2":                  {"127.0.0.0/8", "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc6\x33\x64\x09\x0a\x00\x00\x01\x13\x88\x00\x50", "198.51.100.9"},
		"v2, health check":    {"127.0.0.0/8", "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00", "127.0.0.1"},
		"none from a proxy":   {"127.0.0.0/8", "", "127.0.0.1"},
		"from a stranger":     {"10.0.0.0/8", "PROXY TCP4 198.51.100.9 10.0.0.1 5000 80\r\n", ""},
		"v2 from a stranger":  {"10.0.0.0/8", "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc6\x33\x64\x09\x0a\x00\x00\x01\x13\x88\x00\x50", ""},
		"none from strangers": {"10.0.0.0/8", "", "127.0.0.1"},
		"broken":              {"127.0.0.0/8", "PROXY TCP4 evil 10.0.0.1 5000 80\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			clients := edge.NewClients(networks(t, tc.trusted), "")
			e := &edge.Edge{Hosts: hosts(t), Clients: clients, Log: zerolog.Nop()}
			srv := httptest.NewUnstartedServer(e.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, proxy.RequestInfoFrom(r.Context()).Addr)
			})))
			srv.Listener = edge.ProxyProtocol(edge.NewListener(srv.Listener, edge.ConnLimits{}), clients)
			srv.Start()
			defer srv.Close()
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "%sGET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Forwarded-For: 8.8.8.8\r\n\r\n", tc.first)
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			got := ""
			if err == nil && res.StatusCode == 200 {
				body, _ := io.ReadAll(res.Body)
				got = string(body)
			}
			// The proxy itself, when it speaks HTTP, is believed as ever.
			if want := tc.want; got != want && !(got == "8.8.8.8" && want == "127.0.0.1" && tc.trusted == "127.0.0.0/8") {
				t.Errorf("client is %q, want %q", got, want)
			}
		})
	}
}

// TestAnswersReachThoseWhoStillSend: the caps keep net/http able to close its own
// side alone.
func TestAnswersReachThoseWhoStillSend(t *testing.T) {
	clients := edge.NewClients(networks(t, "127.0.0.0/8"), "")
	for name, wrap := range map[string]func(net.Listener) net.Listener{
		"caps": func(ln net.Listener) net.Listener { return edge.NewListener(ln, edge.ConnLimits{}) },
		"PROXY protocol": func(ln net.Listener) net.Listener {
			return edge.ProxyProtocol(edge.NewListener(ln, edge.ConnLimits{}), clients)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the server's end takes half a second
			srv := httptest.NewUnstartedServer(http.NotFoundHandler())
			srv.Config.MaxHeaderBytes = 1 << 10
			srv.Listener = wrap(srv.Listener)
			srv.Start()
			defer srv.Close()
			for range 20 {
				stillSends(t, srv.Listener.Addr().String())
			}
		})
	}
}

// stillSends sends a head that is too long, and wants to hear so.
func stillSends(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 300_000))
	}()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%v, %v", res, err)
	} else if _, err := io.ReadAll(res.Body); err != nil {
		t.Error(err)
	}
}

// TestTLSOnTop: HTTP/2 is spoken through TLS over both listeners.
func TestTLSOnTop(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.TLS != nil) }))
	srv.Listener = edge.ProxyProtocol(edge.NewListener(srv.Listener, edge.ConnLimits{Total: 10, PerAddress: 10}), edge.NewClients(networks(t, "127.0.0.1"), ""))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	res, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); res.ProtoMajor != 2 || string(body) != "true" {
		t.Errorf("%s, TLS %s", res.Proto, body)
	}
}
