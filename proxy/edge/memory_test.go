package edge_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"aegis/proxy/edge"
)

// memory is a listener whose connections are in memory, so that what lives by the
// clock can be tested in a bubble of testing/synctest.
type memory struct {
	conns  chan net.Conn
	closed context.Context
	close  func()
}

func (m memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed.Done():
		return nil, net.ErrClosed
	}
}

func (m memory) Close() error { m.close(); return nil }

// Addr is a name that the certificate of httptest is for.
func (m memory) Addr() net.Addr { return &net.UnixAddr{Name: "example.com"} }

func (m memory) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	m.conns <- server
	return client, nil
}

// inMemory starts a server within connection limits on a listener of a bubble's, and
// returns what connects to it, as the server's own client does.
func inMemory(t *testing.T, srv *httptest.Server, secure bool) (dial func() net.Conn) {
	t.Helper()
	_ = srv.Listener.Close() // it has not been used
	m := memory{conns: make(chan net.Conn)}
	m.closed, m.close = context.WithCancel(context.Background())
	srv.Listener = edge.NewListener(m, edge.ConnLimits{})
	if secure {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	srv.Client().Transport.(*http.Transport).DialContext = m.dial
	return func() net.Conn {
		c, _ := m.dial(t.Context(), "", "") // it cannot fail
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}
