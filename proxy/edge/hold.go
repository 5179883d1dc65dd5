package edge

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// net/http writes an answer of more than 4 kB, head included, in two pieces or more.
// A client next door wakes up for each, which takes longer than the rest of a small
// answer's way. A connection that is held keeps the first pieces for one write.

// maxHeld is how many bytes a held connection keeps; more go out at once.
const maxHeld = 16 << 10

// held is what a connection keeps back.
type held struct {
	mu   sync.Mutex
	room *[]byte // where it is kept; nil while the connection is not held
	buf  []byte
}

// rooms are for what is kept: connections are many, and those that are held few.
var rooms = sync.Pool{New: func() any {
	b := make([]byte, 0, maxHeld)
	return &b
}}

// Write writes, or keeps p for later while the connection is held. An error of a
// write that was put off comes with the next one.
func (c *countedConn) Write(p []byte) (int, error) {
	h := &c.held
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.room != nil && len(h.buf)+len(p) <= maxHeld {
		h.buf = append(h.buf, p...)
		return len(p), nil
	}
	if len(h.buf) == 0 {
		return c.Conn.Write(p)
	}
	before := len(h.buf)
	pieces := net.Buffers{h.buf, p}
	n, err := pieces.WriteTo(c.Conn)
	h.buf = h.buf[:0]
	return max(int(n)-before, 0), err
}

// release writes what was kept back.
func (c *countedConn) release() {
	h := &c.held
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.room == nil {
		return
	}
	defer func() {
		rooms.Put(h.room)
		h.room, h.buf = nil, nil
	}()
	if len(h.buf) == 0 {
		return
	}
	if _, err := c.Conn.Write(h.buf); err != nil {
		// No later write returns the error, and half an answer must not be followed by another.
		_ = c.Conn.Close() // it is broken
	}
}

type connKeyType struct{}

// ConnContext is an http.Server's ConnContext hook, which [Hold] needs.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if counted := countedOf(c); counted != nil {
		return context.WithValue(ctx, connKeyType{}, counted)
	}
	return ctx
}

// Hold keeps back the first pieces of an answer to r until release is called, which
// must be after the answer was flushed and before the handler returns. It does
// nothing over TLS, whose Close must see which writes are under way, over HTTP/2, where
// answers share a connection, and without [ConnContext].
func Hold(r *http.Request) (release func()) {
	c, ok := r.Context().Value(connKeyType{}).(*countedConn)
	if !ok || r.ProtoMajor != 1 || r.TLS != nil {
		return func() {}
	}
	room := rooms.Get().(*[]byte) // the pool holds nothing else
	c.held.mu.Lock()
	defer c.held.mu.Unlock()
	if c.held.room != nil { // held already
		rooms.Put(room)
		return func() {}
	}
	c.held.room, c.held.buf = room, (*room)[:0]
	return c.release
}
