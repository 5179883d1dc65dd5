package edge

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// HeadLimits bound the head of a request; 0 is no bound. net/http has a bound of
// its own, which answers without JSON; it must be above Bytes.
type HeadLimits struct {
	// Bytes bounds the request line and all header lines together.
	Bytes int
	// Lines bounds the number of header lines.
	Lines int
}

// check returns why a head is refused, "" when it is not.
func (l HeadLimits) check(r *http.Request) string {
	size, lines := len(r.Method)+len(r.RequestURI)+len(r.Host), 0
	for name, values := range r.Header {
		lines += len(values)
		for _, v := range values {
			size += len(name) + len(v) + len(": \r\n")
		}
	}
	switch {
	case l.Lines > 0 && lines > l.Lines:
		return "the request has more header lines than this server takes; send fewer, or raise server.max_headers"
	case l.Bytes > 0 && size > l.Bytes:
		return "the head of the request is larger than this server takes; send less, or raise server.max_header_bytes"
	}
	return ""
}

// bodyGrace is how long a body may take before its rate counts.
const bodyGrace = 5 * time.Second

// Pace ends what goes too slowly: request bodies that hardly come, and answers
// that are hardly read.
type Pace struct {
	// MinRate is the least average of a body in bytes per second; 0 is none.
	MinRate int64
	// Timeout bounds a whole request body, and how long an answer may make no progress;
	// 0 is no bound.
	Timeout time.Duration
}

// serve lets next answer, with the rules on the request and the answer. A body that
// breaks them cannot be read further: reading returns an error that is
// os.ErrDeadlineExceeded. Only the time that the handler waits for the body counts:
// what it does before and between, such as asking a store that is slow to answer, is
// not the client's doing. What the handler leaves unread net/http may read, for as
// long as the rules still give.
func (b Pace) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	timed := &timedWriter{ResponseWriter: w, control: control, timeout: b.Timeout}
	if b.Timeout > 0 || b.MinRate > 0 {
		w = timed
	}
	if r.Body == nil || r.Body == http.NoBody {
		next.ServeHTTP(w, r)
		return
	}
	body := &timedBody{ReadCloser: r.Body, rules: b, control: control}
	body.pause()                    // net/http's own bound counts the handler's time, too
	r.Body, timed.body = body, body // the request is the edge's own copy
	next.ServeHTTP(w, r)
	body.drain()
}

// timedBody is a body under the rules. A transport may still read it when the handler
// has returned. Deadlines that cannot be set are those of tests' writers.
type timedBody struct {
	io.ReadCloser
	rules   Pace
	control *http.ResponseController
	waited  atomic.Int64 // nanoseconds in reads
	read    atomic.Int64 // bytes
	ended   atomic.Bool  // net/http lifts deadlines itself, and waits for the next request
	paused  atomic.Bool  // there is no deadline of ours
}

// Read reads while the body comes fast enough.
func (b *timedBody) Read(p []byte) (int, error) {
	began := time.Now()
	b.wait(began)
	n, err := b.ReadCloser.Read(p)
	b.waited.Add(int64(time.Since(began)))
	b.read.Add(int64(n))
	if err != nil {
		b.ended.Store(true)
	}
	if err == nil || errors.Is(err, io.EOF) { // net/http may already wait for the next request
		b.pause()
	}
	return n, err
}

// Close reads what net/http wants to have read before the next request.
func (b *timedBody) Close() error {
	b.drain()
	return b.ReadCloser.Close()
}

// drain bounds what net/http reads by itself of a body that the handler has left: before
// it writes the head of an answer, and at the end. It may take half of the time at the most,
// so that the answer still finds a client.
func (b *timedBody) drain() {
	// Once: net/http lifts the deadline when it has read all, and then waits for the next
	// request; a deadline in that wait would end the context of this one.
	if b.ended.Load() || !b.paused.CompareAndSwap(true, false) {
		return
	}
	now := time.Now()
	at := b.rules.deadline(now.Add(-time.Duration(b.waited.Load())), b.read.Load())
	if half := now.Add(b.rules.Timeout / 2); b.rules.Timeout > 0 && at.After(half) {
		at = half
	}
	if !at.IsZero() {
		_ = b.control.SetReadDeadline(at)
	}
}

// wait sets the deadline that the bytes so far have earned.
func (b *timedBody) wait(now time.Time) {
	b.paused.Store(false)
	if at := b.rules.deadline(now.Add(-time.Duration(b.waited.Load())), b.read.Load()); !at.IsZero() {
		_ = b.control.SetReadDeadline(at)
	}
}

// pause lifts the deadline while no read waits for the body.
func (b *timedBody) pause() {
	b.paused.Store(true)
	_ = b.control.SetReadDeadline(time.Time{})
}

// timedWriter gives each part of an answer its time. A handler may take as long
// as it likes between two of them.
type timedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration // 0: no bound
	body    *timedBody    // of the request; nil: it has none
}

// writePart is what one deadline is for: a client that takes this much in the
// time is not too slow.
const writePart = 256 << 10

// Write writes while the client reads.
func (w *timedWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		part := p[:min(len(p), writePart)]
		w.begin()
		var m int
		m, err = w.ResponseWriter.Write(part)
		n, p = n+m, p[len(part):]
	}
	return n, err
}

// Flush sends what is buffered.
func (w *timedWriter) Flush() {
	w.begin()
	_ = w.control.Flush() // the next write has the error
}

// begin sets the deadlines of a piece of the answer.
func (w *timedWriter) begin() {
	if w.timeout > 0 {
		_ = w.control.SetWriteDeadline(time.Now().Add(w.timeout)) // only writers of tests have none
	}
	if w.body != nil {
		w.body.drain()
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// deadline returns when the next bytes must be there after read of them, if the
// reader has done nothing but wait since began; zero for never.
func (b Pace) deadline(began time.Time, read int64) time.Time {
	var at time.Time
	if b.Timeout > 0 {
		at = began.Add(b.Timeout)
	}
	if b.MinRate > 0 {
		earned := began.Add(bodyGrace + time.Duration(float64(read)/float64(b.MinRate)*float64(time.Second)))
		if at.IsZero() || earned.Before(at) {
			at = earned
		}
	}
	return at
}
