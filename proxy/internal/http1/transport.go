package http1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Options are about a [Transport]. All but MaxHead and IdleTimeout are required.
type Options struct {
	// Address is the host and port of the server. Requests go there whatever
	// their URL says.
	Address string
	// Dial opens a connection, as [net.Dialer.DialContext] does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// MaxConns bounds the open connections, idle ones included; who needs another
	// waits. At least 1.
	MaxConns int
	// MaxHead bounds the head of an answer in bytes; 0 is 256 KiB.
	MaxHead int64
	// IdleTimeout is how long a connection waits for a further request; 0 is 90
	// seconds.
	IdleTimeout time.Duration
}

// Supported reports whether this system can tell if an idle connection is still
// good, without which a [Transport] must not be used.
const Supported = canProbe

// Transport is an [http.RoundTripper]. It is safe for concurrent use.
//
// A request that failed on a connection which had served others is sent again on a
// fresh one when no byte of an answer had come and the request is a GET or HEAD
// without a body. All else is never sent twice. Errors are the connection's, those of
// net/http about an answer that is none, or the context's cause.
type Transport struct {
	o     Options
	slots chan struct{} // one for each request on its way
	// early is earlyAnswer and sending is sendingEnd, longer in tests.
	early, sending time.Duration

	mu     sync.Mutex
	idle   []*conn // the last one was used last
	closed bool
	sweep  *time.Timer
}

// New returns a transport without connections.
func New(o Options) *Transport {
	if o.MaxHead == 0 {
		o.MaxHead = 256 << 10
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = 90 * time.Second
	}
	return &Transport{o: o, slots: make(chan struct{}, max(o.MaxConns, 1)), early: earlyAnswer, sending: sendingEnd}
}

var (
	errHead     = errors.New("http1: the head of the answer is too long")
	errInterims = errors.New("http1: too many interim answers")
	errStatus   = errors.New("http1: the answer has a status that is none")
)

// RoundTrip sends req and returns the answer's head. The body must be closed; the
// connection serves others once it was read to its end.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if err := sendable(req); err != nil {
		closeBody(req)
		return nil, err
	}
	if err := t.enter(ctx); err != nil {
		closeBody(req)
		return nil, err
	}
	for fresh := false; ; fresh = true {
		c, reused, err := t.connect(ctx, fresh)
		if err != nil {
			t.leave()
			closeBody(req)
			return nil, err
		}
		resp, err := c.exchange(ctx, req)
		if err == nil {
			return resp, nil
		}
		c.close()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		} else if reused && !c.heard && again(req) {
			continue
		}
		t.leave()
		return nil, err
	}
}

// sendable returns why a request cannot be sent as it is: [http.Request.Write] would
// correct some of what it should refuse, and pass on the rest.
func sendable(req *http.Request) error {
	if !token(req.Method) {
		return errors.New("http1: the method is no token")
	}
	for name, values := range req.Header {
		if !token(name) {
			return errors.New("http1: the name of a header is no token")
		}
		for _, v := range values {
			if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return errors.New("http1: a header has control characters in its value")
			}
		}
	}
	return nil
}

// token reports whether s is one (RFC 9110 section 5.6.2).
func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// again reports whether a request may be sent a second time.
func again(req *http.Request) bool {
	return (req.Method == http.MethodGet || req.Method == http.MethodHead) &&
		(req.Body == nil || req.Body == http.NoBody)
}

// closeBody is for requests that fail before they are sent: a RoundTripper closes the body always.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close() // nothing of it was sent
	}
}

// enter waits until there may be another request.
func (t *Transport) enter(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	select {
	case t.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case t.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave lets another request take the place of one that has ended, with its body.
func (t *Transport) leave() { <-t.slots }

// connect returns an idle connection that is still good, or a fresh one.
func (t *Transport) connect(ctx context.Context, fresh bool) (c *conn, reused bool, err error) {
	for !fresh {
		c := t.takeIdle()
		if c == nil {
			break
		}
		if time.Since(c.since) < t.o.IdleTimeout && c.quiet() {
			c.heard = false
			return c, true, nil
		}
		c.close()
	}
	nc, err := t.o.Dial(ctx, "tcp", t.o.Address)
	if err != nil {
		return nil, false, fmt.Errorf("connect: %w", err)
	}
	return newConn(t, nc), false, nil
}

// takeIdle takes the connection that was used last: the others then grow old, and are closed
// when there are more than are needed.
func (t *Transport) takeIdle() *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.idle)
	if n == 0 {
		return nil
	}
	c := t.idle[n-1]
	t.idle[n-1] = nil
	t.idle = t.idle[:n-1]
	return c
}

// release takes back a connection that is ready for the next request.
func (t *Transport) release(c *conn) {
	c.since = time.Now()
	t.mu.Lock()
	kept := !t.closed && len(t.idle) < cap(t.slots)
	if kept {
		t.idle = append(t.idle, c)
		if t.sweep == nil {
			t.sweep = time.AfterFunc(t.o.IdleTimeout, t.expire)
		}
	}
	t.mu.Unlock()
	if !kept {
		c.close()
	}
}

// expire closes the connections that have waited too long. They are in the order in
// which they were used.
func (t *Transport) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for n < len(t.idle) && time.Since(t.idle[n].since) >= t.o.IdleTimeout {
		t.idle[n].close()
		n++
	}
	t.idle = append([]*conn(nil), t.idle[n:]...)
	t.sweep = nil
	if len(t.idle) > 0 {
		t.sweep = time.AfterFunc(t.o.IdleTimeout-time.Since(t.idle[0].since), t.expire)
	}
}

// CloseIdleConnections closes the connections that serve no request. Those in use are
// closed when they have done.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	idle := t.idle
	t.idle = nil
	t.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
}

// Close closes the idle connections and keeps none from now on.
func (t *Transport) Close() {
	t.mu.Lock()
	t.closed = true
	if t.sweep != nil {
		t.sweep.Stop()
	}
	t.mu.Unlock()
	t.CloseIdleConnections()
}

// newConn returns a connection that is ready.
func newConn(t *Transport, nc net.Conn) *conn {
	c := &conn{Conn: nc, t: t}
	if sc, ok := nc.(syscall.Conn); ok {
		c.raw, _ = sc.SyscallConn() // without it the connection serves one request
	}
	c.r = bufio.NewReaderSize(headReader{c}, bufferSize)
	c.w = bufio.NewWriterSize(out{c}, bufferSize)
	return c
}
