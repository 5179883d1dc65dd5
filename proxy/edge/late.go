package edge

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

// reads remembers whether the last read of a connection ran into its deadline.
type reads struct {
	late, aborting atomic.Bool
}

// deadline notes a new deadline. net/http ends a read of its own that is still
// waiting with one long ago; such a read is not late.
func (r *reads) deadline(t time.Time) { r.aborting.Store(!t.IsZero() && t.Unix() < 1e6) }

func (r *reads) done(err error) {
	late := err != nil && errors.Is(err, os.ErrDeadlineExceeded) && !r.aborting.Load()
	if late != r.late.Load() {
		r.late.Store(late)
	}
}

// Read reads, and notes whether that came too late.
func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.reads.done(err)
	return n, err
}

// SetDeadline sets both deadlines.
func (c *countedConn) SetDeadline(t time.Time) error {
	c.reads.deadline(t)
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline sets the deadline of reads.
func (c *countedConn) SetReadDeadline(t time.Time) error {
	c.reads.deadline(t)
	return c.Conn.SetReadDeadline(t)
}

// countedOf returns our own connection below c, nil when there is none.
func countedOf(c net.Conn) *countedConn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if p, ok := c.(proxiedConn); ok {
		c = p.Raw()
	}
	counted, _ := c.(*countedConn)
	return counted
}

// lateWrite bounds writing the answer to a late head.
const lateWrite = time.Second

// LateHeads is an http.Server's ConnState hook that answers 408 (RFC 9110 section
// 15.5.9) to a request whose head began and did not end in time, and closes the
// connection. net/http itself closes without an answer, but before it does so it
// calls the hook: the connection was active. It does not when nothing came, or
// when on a connection that has served others the head's first piece stays the
// only one; such connections are closed as ever. So are those of HTTP/2, whose frames
// are not ours to write.
func LateHeads(c net.Conn, state http.ConnState) {
	if state != http.StateActive {
		return
	}
	if t, ok := c.(*tls.Conn); ok && t.ConnectionState().NegotiatedProtocol == "h2" {
		return
	}
	counted := countedOf(c)
	if counted == nil || !counted.reads.late.Load() {
		return
	}
	const body = `{"error":{"kind":"timeout","message":"the request's head came too slowly; ` +
		`send it again, faster","request_id":""}}` + "\n"
	// The client is gone when one of these fails.
	_ = c.SetWriteDeadline(time.Now().Add(lateWrite))
	_, _ = c.Write([]byte("HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json" +
		"\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\nConnection: close" +
		"\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\r\n" + body))
	_ = c.Close()
}
