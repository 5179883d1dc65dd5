package edge

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// net/http closes a connection at once when its client asked for that ("Connection:
// close", HTTP/1.0), also when a part of the body has not been read. The kernel then
// resets it, and the client, such as an nginx before Aegis, finds a broken connection in
// place of the answer. To clients that keep their connections it gives half a second.

// lingerTime is how long net/http keeps such a connection (server.go, rstAvoidanceDelay).
const lingerTime = 500 * time.Millisecond

// linger returns r with a body that is watched, and what the end of the request calls:
// it makes net/http give the client the time as well, for as many as e.Linger says.
func (e *Edge) linger(w http.ResponseWriter, r *http.Request) (*http.Request, func()) {
	if !r.Close || r.ProtoMajor != 1 || r.Body == nil || r.Body == http.NoBody {
		return r, func() {}
	}
	body := &watchedBody{ReadCloser: r.Body}
	r = r.WithContext(r.Context()) // a copy: net/http reads its own
	r.Body = body
	return r, func() {
		if body.whole.Load() {
			return
		}
		if e.lingering.Add(1) > int64(e.Linger) {
			e.lingering.Add(-1)
			return
		}
		time.AfterFunc(lingerTime, func() { e.lingering.Add(-1) })
		for {
			inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
			if !ok {
				break
			}
			w = inner.Unwrap()
		}
		// MaxBytesReader tells net/http's own writer about a body that is too large, which is
		// the one way to ask for the delay (net/http server.go, closeWriteAndWait).
		over := http.MaxBytesReader(w, io.NopCloser(strings.NewReader("1")), 0)
		_, _ = over.Read(make([]byte, 1))
	}
}

// watchedBody notes that it was read to its end. A transport may still read it when the
// handler has returned.
type watchedBody struct {
	io.ReadCloser
	whole atomic.Bool
}

// Read reads.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.whole.Store(true)
	}
	return n, err
}
