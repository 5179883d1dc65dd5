package http1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"
)

// bufferSize is what a connection reads and writes at once: an answer of usual size
// needs one system call.
const bufferSize = 16 << 10

// smallBody is the length of a request's body that is written before the answer is
// looked for. A server may answer a longer one before it has read it all.
const smallBody = 64 << 10

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
// of no use any more, and the caller closes it.
func (c *conn) exchange(ctx context.Context, req *http.Request) (*http.Response, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(past) }) // a closed connection has ended as well
	written, err := c.send(req)
	if err == nil {
		var resp *http.Response
		if resp, err = c.head(req); err == nil {
			c.attach(resp, &body{conn: c, source: resp.Body, written: written, stop: stop, last: resp.Close})
			return resp, nil
		}
	}
	stop()
	c.close()
	if written != nil {
		<-written // it uses the request until then
	}
	return nil, err
}

// send writes req. A long body is written meanwhile: the channel tells how that ended.
func (c *conn) send(req *http.Request) (written chan error, err error) {
	if req.ContentLength >= 0 && req.ContentLength <= smallBody {
		return nil, c.write(req)
	}
	written = make(chan error, 1)
	go func() { written <- c.write(req) }()
	return written, nil
}

func (c *conn) write(req *http.Request) error {
	if err := req.Write(c.w); err != nil {
		return err
	}
	return c.w.Flush()
}

// head reads the head of the final answer.
func (c *conn) head(req *http.Request) (*http.Response, error) {
	for range maxInterims {
		c.left = c.t.o.MaxHead
		resp, err := http.ReadResponse(c.r, req)
		switch {
		case err != nil:
			return nil, err
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errUpgrade
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

// end gives the connection back, or closes it when anything may still come on it.
func (b *body) end(whole bool) {
	if b.ended.Swap(true) {
		return
	}
	c := b.conn
	if b.written != nil {
		select {
		case err := <-b.written:
			whole = whole && err == nil
		default: // the server answered before it had the whole request
			whole = false
		}
	}
	live := b.stop() // else the context has ended, and the connection with it
	if whole && live && !b.last && c.r.Buffered() == 0 {
		c.t.release(c)
	} else {
		c.close()
	}
	c.t.leave()
}
