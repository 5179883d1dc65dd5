package mcp

import (
	"net/http"
	"strings"
)

// BySDK returns the endpoint h without its fast path.
func BySDK(h http.Handler) http.Handler {
	e := h.(*endpoint)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if req, body, ok := e.begin(w, r); ok {
			e.bySDK(w, r, req, body)
		}
	})
}

// IsFast reports whether the fast path knows a request. The body has passed the
// check.
func IsFast(h http.Header, body []byte) bool {
	_, ok := parseFast(h, body)
	return ok
}

// Splice builds a message from parts, with a marker for texts[i] between parts
// i and i+1, and splices the texts in. The token is known to the test.
func Splice(token string, parts []string, texts [][]byte) ([]byte, error) {
	ps := &payloads{marks: &marks{}}
	ps.token = token
	var markers []string
	for _, text := range texts {
		markers = append(markers, `"`+ps.text(text)+`"`)
	}
	var msg strings.Builder
	for i, part := range parts {
		msg.WriteString(part)
		if i < len(parts)-1 {
			msg.WriteString(markers[i])
		}
	}
	return ps.splice(nil, []byte(msg.String()))
}

// Functions of foreign bytes, for the fuzz tests.
var (
	Lift          = lift
	ScrubSDKError = scrubSDKError
	Clean         = clean
	EncodeCursor  = encodeCursor
	DecodeCursor  = decodeCursor
	TakesGzip     = takesGzip
)

// Bounds that tests go up to.
const (
	MaxBatch = maxBatch
	MaxDepth = maxDepth
	MaxRest  = maxRest
	LiftFrom = liftFrom
)

// FailureText is what a model reads of a failure.
var FailureText = failureText
