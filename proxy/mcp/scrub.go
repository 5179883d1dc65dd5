package mcp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"aegis/proxy"
)

// maxErrorText bounds an error text of the SDK's, which may quote what the
// client sent.
const maxErrorText = 500

// errorMark begins the error of a JSON-RPC response. Inside a JSON string its
// quotes would be escaped, so it is nowhere else.
const errorMark = `"error":{"code":`

// scrubSDKError returns what the SDK wrote without what must not leave in errors:
// arguments' values and Go's type names. Almost always that is p itself.
func scrubSDKError(contentType string, p []byte) []byte {
	switch {
	case strings.HasPrefix(contentType, "text/plain"):
		return scrubText(p)
	case !bytes.Contains(p, []byte(errorMark)):
	case contentType == "application/json":
		return scrubMessages(p)
	case contentType == "text/event-stream":
		head, rest, found := bytes.Cut(p, []byte("data: "))
		if found {
			msg := scrubMessages(bytes.TrimRight(rest, "\n"))
			return bytes.Join([][]byte{head, []byte("data: "), msg, []byte("\n\n")}, nil)
		}
	}
	return p
}

// scrubText rewrites an error outside the protocol. The SDK puts what its decoder said into
// one of them, which quotes the body.
func scrubText(p []byte) []byte {
	if bytes.HasPrefix(p, []byte("malformed payload:")) {
		return []byte("the body is no JSON-RPC 2.0 message: " +
			`send an object with "jsonrpc": "2.0", a method, and a string or integer id` + "\n")
	}
	if len(p) > maxErrorText {
		return []byte(proxy.Clip(string(p), maxErrorText) + "\n")
	}
	return p
}

// response is a JSON-RPC response, its parts as they were.
type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *responseError  `json:"error,omitempty"`
}

type responseError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// internalError takes the place of an error that cannot be read.
const internalError = `{"jsonrpc":"2.0","error":{"code":-32603,"message":"internal error"}}`

// scrubMessages rewrites the errors of one response or of a batch. What has none of them
// keeps its bytes: decoding may lose a number's spelling.
func scrubMessages(p []byte) []byte {
	var batch []response
	text, isBatch := p, bytes.HasPrefix(p, []byte("["))
	if !isBatch {
		text = slices.Concat([]byte("["), p, []byte("]"))
	}
	if json.Unmarshal(text, &batch) != nil || !isBatch && len(batch) != 1 {
		return []byte(internalError)
	}
	changed := false
	for _, r := range batch {
		if r.Error != nil && r.Error.scrub() {
			changed = true
		}
	}
	if !changed {
		return p
	}
	out, err := proxy.Encode(batch)
	if err != nil {
		return []byte(internalError)
	}
	if !isBatch {
		out = out[1 : len(out)-1]
	}
	return out
}

// scrub reports whether it changed the error.
func (e *responseError) scrub() bool {
	// The SDK quotes the whole params, and names a Go type, when they do not
	// have the shape of the method's.
	if strings.Contains(e.Message, `unmarshaling "`) {
		e.Message = "invalid params: they do not have the shape that MCP defines for this method"
		return true
	}
	if len(e.Message) > maxErrorText {
		e.Message = proxy.Clip(e.Message, maxErrorText)
		return true
	}
	return false
}
