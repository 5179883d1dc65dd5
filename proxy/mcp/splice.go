package mcp

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"aegis/proxy/internal/buffers"
	"aegis/proxy/internal/jsonscan"
)

// marks is how the SDK writes a tool that has a marker for an input schema:
// what is before and after the marker.
type marks struct {
	toolBefore, toolAfter string
}

// newMarks asks the SDK's encoder, and fails when the answer cannot be used.
func newMarks() (marks, error) {
	const probe = "PROBE"
	b, err := json.Marshal(&sdk.Tool{InputSchema: probe})
	if err != nil {
		return marks{}, fmt.Errorf("encode a marker: %w", err)
	}
	before, after, ok := strings.Cut(string(b), probe)
	if !ok || strings.Contains(after, probe) {
		return marks{}, errors.New("the SDK does not encode a tool as expected")
	}
	return marks{before, after}, nil
}

// payloads are the parts of one HTTP response that the SDK must not touch,
// and the markers that it writes in their places. A batch has several calls
// on several goroutines.
type payloads struct {
	marks *marks

	mu sync.Mutex
	// token begins every marker of this request. It is random, so that nothing
	// a client sends (a request id comes back in the answer) can be one.
	token string
	list  []payload
}

// payload replaces a marker and what is around it: the quotes of the string that it is to
// the SDK, or all of the tool that it is in.
type payload struct {
	before, after string
	data          []byte
	isText        bool // data is text that becomes a JSON string, else it is JSON
	used          bool
}

// add returns p's marker.
func (ps *payloads) add(p payload) string {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.token == "" {
		ps.token = rand.Text()
	}
	ps.list = append(ps.list, p)
	return ps.token + fmt.Sprintf("%0*d", markerDigits, len(ps.list)-1)
}

// markerDigits is the width of a payload's number in its marker; maxBatch
// calls of three payloads each fit.
const markerDigits = 3

// text returns a marker for a JSON string with the given value. Bytes that are
// not UTF-8 become U+FFFD. Neither this nor the others copy data, which must
// not change until the response is written.
func (ps *payloads) text(data []byte) string {
	return ps.add(payload{before: `"`, after: `"`, data: data, isText: true})
}

// value returns a marker for valid JSON without line ends.
func (ps *payloads) value(data []byte) string {
	return ps.add(payload{before: `"`, after: `"`, data: data})
}

// tools returns a tool that is a marker for encoded tools.
func (ps *payloads) tools(data []byte) *sdk.Tool {
	m := ps.add(payload{before: ps.marks.toolBefore, after: ps.marks.toolAfter, data: data})
	return &sdk.Tool{InputSchema: m}
}

var errSplice = errors.New("a marker is where it should not be")

// splice appends msg to dst with payloads in the places of their markers. When
// msg has no marker it returns dst as it is. Each marker must be where the SDK puts
// it, between the quotes of a string or in a tool, and come once: if an update of the
// SDK wrote it in another place, such as in a log line, the client would get the
// payload there.
func (ps *payloads) splice(dst, msg []byte) ([]byte, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.token == "" {
		return dst, nil
	}
	token := []byte(ps.token)
	for first := true; ; first = false {
		head, rest, found := bytes.Cut(msg, token)
		switch {
		case !found && first:
			return dst, nil
		case !found:
			return append(dst, msg...), nil
		}
		number := rest[:min(markerDigits, len(rest))]
		rest = rest[len(number):]
		p := ps.take(number)
		if p == nil || !bytes.HasSuffix(head, []byte(p.before)) || !bytes.HasPrefix(rest, []byte(p.after)) {
			return dst, errSplice
		}
		dst = append(dst, head[:len(head)-len(p.before)]...)
		if p.isText {
			dst = jsonscan.AppendQuote(dst, p.data)
		} else {
			dst = append(dst, p.data...)
		}
		msg = rest[len(p.after):]
	}
}

// room estimates what the unused payloads need, a quarter more than they are for quotes that are
// escaped. The pool gives large buffers to those alone who ask for them.
func (ps *payloads) room() (n int) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for i := range ps.list {
		if !ps.list[i].used {
			n += len(ps.list[i].data) * 5 / 4
		}
	}
	return n
}

// take returns the payload of a number, nil when there is none; each is used once.
func (ps *payloads) take(number []byte) *payload {
	n, err := strconv.Atoi(string(number))
	if err != nil || n < 0 || n >= len(ps.list) || ps.list[n].used {
		return nil
	}
	ps.list[n].used = true
	return &ps.list[n]
}

// spliceWriter is the ResponseWriter that the SDK writes to. The SDK writes a
// JSON answer, or an event, in one piece, so a marker never comes in two.
type spliceWriter struct {
	http.ResponseWriter
	payloads *payloads
	buffers  *buffers.Pool
	started  bool
	err      error // a defect; the client gets none of the answer
}

// Unwrap lets http.ResponseController flush.
func (w *spliceWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader notes that it is too late for a Content-Length.
func (w *spliceWriter) WriteHeader(status int) {
	w.started = true
	w.ResponseWriter.WriteHeader(status)
}

// Write writes p with the payloads in their places. The error is the client's
// connection's, or says that the answer would have been wrong.
func (w *spliceWriter) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	contentType := w.Header().Get("Content-Type")
	buf := w.buffers.Get(len(p) + w.payloads.room())
	msg := scrubSDKError(contentType, p)
	out, err := w.payloads.splice((*buf)[:0], msg)
	*buf = out
	if err != nil {
		w.err = err
		if !w.started {
			http.Error(w.ResponseWriter, "internal error", http.StatusInternalServerError)
		}
		return 0, err
	}
	if len(out) == 0 { // nothing to put in: spare a copy
		out = msg
	}
	if !w.started && contentType == "application/json" {
		w.Header().Set("Content-Length", strconv.Itoa(len(out)))
	}
	w.started = true
	if _, err := w.ResponseWriter.Write(out); err != nil {
		// buf does not go back: HTTP/2 may still be reading from it for a stream that the
		// client has reset.
		return 0, fmt.Errorf("write the answer: %w", err)
	}
	w.buffers.Put(buf)
	return len(p), nil
}
