package passthrough_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"aegis/proxy/gitea/passthrough"
)

// memory is a listener whose connections are in memory, so that what lives by the
// clock can be tested in a bubble of testing/synctest.
type memory struct {
	conns  chan net.Conn
	closed context.Context
	close  func()
}

func newMemory() memory {
	m := memory{conns: make(chan net.Conn)}
	m.closed, m.close = context.WithCancel(context.Background())
	return m
}

func (m memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed.Done():
		return nil, net.ErrClosed
	}
}

func (m memory) Close() error   { m.close(); return nil }
func (m memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (m memory) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	m.conns <- server
	return client, nil
}

// timed serves a passthrough to upstream in a bubble. Its read timeout of 300 ms must
// not end anything. The client knows no other server.
func timed(t *testing.T, upstream http.HandlerFunc, change func(*passthrough.Options)) (*http.Client, memory) {
	t.Helper()
	up, front := newMemory(), newMemory()
	start := func(srv *httptest.Server, on memory) {
		_ = srv.Listener.Close() // it has not been used
		srv.Listener = on
		srv.Start()
		t.Cleanup(srv.Close)
	}
	gitea := httptest.NewUnstartedServer(upstream)
	start(gitea, up)
	srv := newFront(t, gitea.URL, up.dial, change)
	srv.Config.ReadTimeout = 300 * time.Millisecond
	start(srv, front)
	transport := &http.Transport{DialContext: front.dial}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}, front
}
