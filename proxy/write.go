package proxy

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// errorBody is a failure in Aegis's own form. Members come in the order of the alphabet.
type errorBody struct {
	Error struct {
		Kind       Kind   `json:"kind"`
		Message    string `json:"message"`
		RequestID  string `json:"request_id"`
		RetryAfter int64  `json:"retry_after,omitempty"`
	} `json:"error"`
}

// WriteError answers an HTTP request with status and err in Aegis's own form: a JSON object
// with the error's kind, its public text and the request id of x, "" without x. Where the
// error says when to come back, the Retry-After header and the member retry_after do too.
// Caching is
// the caller's matter. It is the one writer of this form, and the only I/O of this package.
func WriteError(w http.ResponseWriter, x *RequestInfo, status int, err *Error) {
	var body errorBody
	body.Error.Kind, body.Error.Message = err.Kind, err.Public
	if x != nil {
		body.Error.RequestID = x.RequestID
	}
	h := w.Header()
	if err.RetryAfter > 0 {
		body.Error.RetryAfter = Seconds(err.RetryAfter)
		h.Set("Retry-After", strconv.FormatInt(body.Error.RetryAfter, 10))
	}
	text, _ := json.Marshal(body) // texts and numbers always marshal
	h.Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // the client has gone when this fails
}

// Seconds returns a wait as whole seconds, rounded up and at least one, as a Retry-After header
// says it: a client that waits so long does not come too soon.
func Seconds(wait time.Duration) int64 {
	return max(1, int64(math.Ceil(wait.Seconds())))
}

// RetryAfter reads the Retry-After header of an answer, seconds or a date (RFC 9110 section
// 10.2.3), and returns how long to wait from now: 0 when there is none or it cannot be read,
// and never more than most, as the other side must not put calls off for ever.
func RetryAfter(h http.Header, now time.Time, most time.Duration) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(n)*time.Second, most)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), most)
}
