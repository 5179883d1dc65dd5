package edge

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/pires/go-proxyproto"
)

// What refuses a connection.
const (
	RefusedTotal   = "connections"             // too many in all
	RefusedAddress = "connections_per_address" // too many of one address
)

// ConnLimits bound the open connections of a listener.
type ConnLimits struct {
	// Total bounds all connections, PerAddress those of one address (IPv6: /64
	// network); 0 is no bound.
	Total, PerAddress int
	// Trusted are proxies, which speak for many clients and are exempt from
	// PerAddress, as loopback is. Nil trusts no proxy.
	Trusted *Clients
	// Refused is called with what refused a connection, unless it is nil.
	Refused func(why string)
}

// Listener accepts connections within limits. A connection too many is closed at
// once: it costs one descriptor for a moment, while one that waits would cost it
// for as long as its client likes.
type Listener struct {
	net.Listener
	limits ConnLimits

	mu   sync.Mutex
	open int
	by   map[netip.Addr]int
}

// NewListener returns ln with limits on its connections. TLS and the PROXY
// protocol belong on top of it.
func NewListener(ln net.Listener, l ConnLimits) *Listener {
	if l.Refused == nil {
		l.Refused = func(string) {}
	}
	return &Listener{Listener: ln, limits: l, by: map[netip.Addr]int{}}
}

// Accept returns the next connection within the limits.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := connKey(c.RemoteAddr())
		why := l.enter(from)
		if why == "" {
			return &countedConn{Conn: c, leave: sync.OnceFunc(func() { l.leave(from) })}, nil
		}
		l.limits.Refused(why)
		_ = c.Close() // it is not served, whatever comes of closing it
	}
}

// Open returns how many connections are open.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// connKey is the address that a connection counts for; the zero one is exempt.
func connKey(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	if addr.Is6() && !addr.IsLoopback() {
		if p, err := addr.Prefix(64); err == nil { // 64 fits every IPv6 address
			return p.Addr()
		}
	}
	return addr
}

func (l *Listener) enter(from netip.Addr) string {
	counted := l.counted(from)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.limits.Total > 0 && l.open >= l.limits.Total:
		return RefusedTotal
	case counted && l.by[from] >= l.limits.PerAddress:
		return RefusedAddress
	}
	l.open++
	if counted {
		l.by[from]++
	}
	return ""
}

func (l *Listener) leave(from netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if !l.counted(from) {
		return
	}
	if l.by[from]--; l.by[from] <= 0 {
		delete(l.by, from)
	}
}

// counted reports whether the connections of an address are counted.
func (l *Listener) counted(from netip.Addr) bool {
	return l.limits.PerAddress > 0 && from.IsValid() && !from.IsLoopback() && !l.limits.Trusted.Trusts(from)
}

type countedConn struct {
	net.Conn
	leave func()
	reads reads
	held  held
}

// Close closes the connection and makes room for another.
func (c *countedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// CloseWrite ends our side alone, so that a client which is still sending can read
// the answer that told it to stop.
func (c *countedConn) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// proxyHeaderTimeout bounds waiting for a proxy's first bytes.
const proxyHeaderTimeout = 5 * time.Second

// ProxyProtocol returns ln with the PROXY protocol, versions 1 and 2, read on
// connections from trusted proxies, which may leave it out. From everybody else
// it is not read, and so is no HTTP.
func ProxyProtocol(ln net.Listener, trusted *Clients) net.Listener {
	return proxied{&proxyproto.Listener{
		Listener:          ln,
		ReadHeaderTimeout: proxyHeaderTimeout,
		ConnPolicy: func(o proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
			if tcp, ok := o.Upstream.(*net.TCPAddr); ok && trusted.Trusts(tcp.AddrPort().Addr()) {
				return proxyproto.USE, nil
			}
			return proxyproto.SKIP, nil
		},
	}}
}

// proxied gives the library's connections the CloseWrite that they lack.
type proxied struct{ net.Listener }

// Accept returns the next connection.
func (p proxied) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	if pc, ok := c.(*proxyproto.Conn); ok {
		return proxiedConn{pc}, err
	}
	return c, err
}

type proxiedConn struct{ *proxyproto.Conn }

// CloseWrite is as in countedConn.
func (c proxiedConn) CloseWrite() error { return closeWrite(c.Raw()) }
