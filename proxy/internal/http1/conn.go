package http1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// bufferSize is what a connection reads and writes at once: an answer of usual size
// needs one system call.
const bufferSize = 16 << 10

// smallBody is the length of a request's body that is written before the answer is
// looked for. A server may answer a longer one before it has read it all.
const smallBody = bufferSize

// earlyAnswer is how long a server that takes no more of a request has for its answer.
const earlyAnswer = time.Second

// sendingEnd is how long a connection whose answer is over waits for the end of the
// request: the server had all of it, most likely, and the goroutine that writes has not
// come to say so. net/http waits as long.
const sendingEnd = 50 * time.Millisecond

// maxInterims is how many interim answers (1xx) may come before the final one.
const maxInterims = 5

// conn is one connection. It serves one request at a time.
type conn struct {
	net.Conn
	raw   syscall.RawConn // nil: there is none
	t     *Transport
	r     *bufio.Reader
	w     *bufio.Writer
	since time.Time // when it began to be idle
	// left is how many more bytes the head of the answer may have.
	left int64
	// heard: the server has said something since the request began.
	heard bool
	// refused: it took no more of the request.
	refused atomic.Bool
}

func (c *conn) close() { _ = c.Conn.Close() } // nothing can be done about an error

// headReader reads from the connection and holds the answer's head to its bound.
type headReader struct{ c *conn }

// Read is the connection's, as long as the head may go on.
func (h headReader) Read(p []byte) (int, error) {
	if h.c.left <= 0 {
		return 0, errHead
	}
	n, err := h.c.Conn.Read(p[:min(int64(len(p)), h.c.left)])
	h.c.left -= int64(n)
	h.c.heard = h.c.heard || n > 0
	return n, err
}

// past is a deadline that ends whatever a connection is doing.
var past = time.Unix(1, 0)

// exchange sends req and reads the head of its answer. On an error the connection is
// of no use any more.
func (c *conn) exchange(ctx context.Context, req *http.Request) (*http.Response, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(past) }) // a closed connection has ended as well
	b := &body{conn: c, stop: stop}
	var failed error // to write
	known := req.Body == nil || req.Body == http.NoBody || req.ContentLength > 0
	if known && req.ContentLength <= smallBody {
		failed = c.write(req)
	} else {
		b.written = make(chan error, 1)
		go func() { b.written <- c.write(req) }()
	}
	var resp *http.Response
	err := failed
	if failed == nil || c.refused.Load() {
		// A server that refuses a request may have said why before it closed.
		resp, err = c.head(req)
	}
	if err == nil {
		b.source, b.last = resp.Body, resp.Close || failed != nil
		c.attach(resp, b)
		return resp, nil
	}
	stop()
	c.close()
	if b.written != nil {
		failed = <-b.written // it uses the request until then
	}
	if failed != nil && !errors.Is(failed, net.ErrClosed) {
		err = failed
	}
	return nil, err
}

// write writes a request. When the server took no more of it, it has a moment to say
// why.
func (c *conn) write(req *http.Request) error {
	err := req.Write(c.w)
	if err == nil {
		err = c.w.Flush()
	}
	switch {
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded): // the context has ended
	case c.refused.Load():
		_ = c.SetReadDeadline(time.Now().Add(c.t.early)) // a closed connection says nothing at all
	default: // the body could not be read
		_ = c.SetReadDeadline(past)
	}
	return err
}

// out writes to the connection and notes when the server takes no more.
type out struct{ c *conn }

// Write is the connection's.
func (o out) Write(p []byte) (int, error) {
	n, err := o.c.Conn.Write(p)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		o.c.refused.Store(true)
	}
	return n, err
}

// head reads the head of the final answer.
func (c *conn) head(req *http.Request) (*http.Response, error) {
	for range maxInterims + 1 {
		c.left = c.t.o.MaxHead
		resp, err := http.ReadResponse(c.r, req)
		switch {
		case err != nil:
			return nil, err
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, ErrUpgrade
		case resp.StatusCode < 100:
			return nil, errStatus
		case resp.StatusCode >= 200:
			c.left = math.MaxInt64
			return resp, nil
		}
	}
	return nil, errInterims
}

// attach gives resp its body. An answer without one lets the connection go at once.
func (c *conn) attach(resp *http.Response, b *body) {
	if resp.Body == http.NoBody || resp.ContentLength == 0 {
		b.end(true)
		resp.Body = http.NoBody
		return
	}
	resp.Body = b
}

// body is the body of an answer on its connection.
type body struct {
	conn    *conn
	source  io.ReadCloser
	written chan error // nil: the request was written before
	stop    func() bool
	last    bool // no other request may follow on this connection

	ended atomic.Bool
}

// Read reads. At the end the connection is free for others.
func (b *body) Read(p []byte) (int, error) {
	if b.ended.Load() { // the connection may be serving somebody else
		return 0, io.EOF
	}
	n, err := b.source.Read(p)
	if err != nil {
		b.end(errors.Is(err, io.EOF))
	}
	return n, err
}

// Close ends the answer; what was not read of it is lost, and the connection too.
func (b *body) Close() error {
	b.end(false)
	return nil
}

// sent reports whether the server has the whole request. One that answered before has
// not.
func (b *body) sent() bool {
	select {
	case err := <-b.written:
		return err == nil
	default:
	}
	select {
	case err := <-b.written:
		return err == nil
	case <-time.After(b.conn.t.sending):
		return false
	}
}

// end gives the connection back, or closes it when anything may still come on it.
func (b *body) end(whole bool) {
	if b.ended.Swap(true) {
		return
	}
	c := b.conn
	if b.written != nil {
		whole = whole && b.sent()
	}
	live := b.stop() // else the context has ended, and the connection with it
	if whole && live && !b.last && c.r.Buffered() == 0 {
		c.t.release(c)
	} else {
		c.close()
	}
	c.t.leave()
}
