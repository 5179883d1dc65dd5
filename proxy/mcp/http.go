package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"aegis/proxy"
)

// request is one HTTP request on its way through the SDK, which hands its
// context's values on to the middleware.
type request struct {
	// ctx is the HTTP request's context. The SDK detaches calls from it in the
	// protocols before 2026-07-28; this package ties them to it again.
	ctx      context.Context
	info     *proxy.RequestInfo
	received time.Time
	// args are the call's arguments when they were kept out of the SDK; see [lift]. Of
	// a batch, whose calls could not be distinguished here, they never are.
	args     json.RawMessage
	payloads *payloads
	// outcome is set when the call has been made and only its answer is left.
	outcome *outcome
}

type requestKey struct{}

func requestFrom(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	return r
}

// ServeHTTP answers one MCP request.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req, body, ok := e.begin(w, r)
	if !ok || r.Method == http.MethodPost && e.fast(w, r, req, body) {
		return
	}
	e.bySDK(w, r, req, body)
}

// begin reads a request. It reports false when it has answered it. Here and nowhere else
// is a body read, its syntax checked, and decided whether the caller's token covers it.
func (e *endpoint) begin(w http.ResponseWriter, r *http.Request) (req *request, body []byte, ok bool) {
	received := e.now()
	x := proxy.RequestInfoFrom(r.Context())
	if x == nil || x.Identity == nil {
		e.opts.Log.Error().Msg("an MCP request came without an identity; authentication must come before this handler")
		http.Error(w, "internal error", http.StatusInternalServerError)
		return nil, nil, false
	}
	req = &request{info: x, received: received}
	if r.Method == http.MethodPost {
		if body, ok = e.readBody(w, r, req); !ok || e.opts.Permits != nil && !e.opts.Permits(w, x, body) {
			return nil, nil, false
		}
	}
	return req, body, true
}

// bySDK lets the SDK answer a request. What the SDK is not to touch, large arguments and
// the payloads of answers, goes past it in req.
func (e *endpoint) bySDK(w http.ResponseWriter, r *http.Request, req *request, body []byte) {
	if r.Method == http.MethodPost && !e.leave(w, r, req, body) {
		return
	}
	next, r := e.negotiate(r)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	req.ctx, req.payloads = ctx, &payloads{marks: &e.marks}
	sw := &spliceWriter{ResponseWriter: w, payloads: req.payloads, buffers: &e.buffers}
	next.ServeHTTP(sw, r.WithContext(context.WithValue(ctx, requestKey{}, req)))
	if sw.err != nil {
		e.opts.Log.Error().Str("request_id", req.info.RequestID).Err(sw.err).Msg("an MCP answer could not be written")
	}
}

const acceptBoth = "application/json, text/event-stream"

// negotiate chooses between a JSON answer and events. MCP obliges clients to
// accept both, and the SDK insists; Aegis also serves those that name only
// the one they get, or none (RFC 9110 section 12.5.1: anything will do).
func (e *endpoint) negotiate(r *http.Request) (http.Handler, *http.Request) {
	values := r.Header.Values("Accept")
	asJSON, asEvents := accepts(values)
	if asJSON && asEvents || r.Method != http.MethodPost {
		return e.json, r
	}
	next := e.json
	switch {
	case len(values) == 0 || asJSON:
	case asEvents:
		next = e.event
	default:
		return e.json, r // the SDK refuses it
	}
	r = r.Clone(r.Context())
	r.Header.Set("Accept", acceptBoth)
	return next, r
}

// accepts reports which of the two forms the Accept header allows. Weights are not looked
// at: a client that names a form can read it.
func accepts(values []string) (asJSON, asEvents bool) {
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		media, _, _ := strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(media)) {
		case "application/json", "application/*":
			asJSON = true
		case "text/event-stream", "text/*":
			asEvents = true
		case "*/*":
			return true, true
		}
	}
	return asJSON, asEvents
}
