package edge

import (
	"io"
	"net/http"
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
	// Timeout bounds a whole request body, and how long an answer may stand still;
	// 0 is no bound.
	Timeout time.Duration
}

// Wrap returns next with the rules on its requests and answers. A body that
// breaks them cannot be read further: reading returns an error that is
// os.ErrDeadlineExceeded. Deadlines end with the last byte: net/http lifts them
// when a request has been read, so they do not end long answers.
func (b Pace) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if b.Timeout > 0 {
			w = &timedWriter{ResponseWriter: w, control: control, timeout: b.Timeout}
		}
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		body := &timedBody{ReadCloser: r.Body, rules: b, control: control, began: time.Now()}
		body.extend() // a body that is never read is held to the same rules
		r.Body = body // the request is the edge's own copy
		next.ServeHTTP(w, r)
	})
}

type timedBody struct {
	io.ReadCloser
	rules   Pace
	control *http.ResponseController
	began   time.Time
	read    int64
}

// Read reads while the body comes fast enough.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if err == nil {
		b.extend()
	}
	return n, err
}

// extend sets the deadline that the bytes so far have earned. Writers without
// deadlines are those of tests.
func (b *timedBody) extend() {
	if at := b.rules.deadline(b.began, b.read); !at.IsZero() {
		_ = b.control.SetReadDeadline(at)
	}
}

// timedWriter gives each part of an answer its time. A handler may take as long
// as it likes between two of them.
type timedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

// writePart is what one deadline is for: a client that takes this much in the
// time is not too slow.
const writePart = 256 << 10

// Write writes while the client reads.
func (w *timedWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		part := p[:min(len(p), writePart)]
		_ = w.control.SetWriteDeadline(time.Now().Add(w.timeout)) // a writer without deadlines is a test's
		var m int
		m, err = w.ResponseWriter.Write(part)
		n, p = n+m, p[len(part):]
	}
	return n, err
}

// Flush sends what is buffered.
func (w *timedWriter) Flush() {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.timeout)) // as above
	_ = w.control.Flush()                                     // the next write tells
}

// Unwrap lets http.ResponseController reach the connection.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// deadline returns when the next bytes must be there after read of them; zero
// for never.
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
