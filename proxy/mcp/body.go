package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"aegis/internal/jsonscan"
)

const (
	// maxDepth is how deep a message may be nested; the SDK stops there too.
	maxDepth = 1000
	// liftFrom is the size of arguments in bytes from which they are kept out
	// of the SDK, which decodes a message some ten times.
	liftFrom = 1 << 10
	// maxRest bounds what is left for the SDK in bytes, since decoding can
	// need many times the memory of the text.
	maxRest = 1 << 20
	// maxMembers bounds the members of an object that lift looks into.
	maxMembers = 32
)

// readBody replaces r.Body by what the SDK is to read, and keeps the rest in
// req. The body is read once and within the bound. It reports false when it
// has answered the request itself.
func (e *endpoint) readBody(w http.ResponseWriter, r *http.Request, req *request) bool {
	limit := e.opts.MaxBodyBytes
	if r.ContentLength > limit {
		tooLarge(w, limit)
		return false
	}
	var buf bytes.Buffer
	if r.ContentLength > 0 {
		buf.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	if _, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, limit)); err != nil {
		// The edge may have set a smaller bound of the same kind.
		if over, ok := errors.AsType[*http.MaxBytesError](err); ok {
			tooLarge(w, over.Limit)
			return false
		}
		http.Error(w, "the request body could not be read to its end", http.StatusBadRequest)
		return false
	}
	body := buf.Bytes()
	if err := jsonscan.Check(body, maxDepth); err != nil {
		writeRPCError(w, jsonrpc.CodeParseError, "the request body cannot be read: "+err.Error())
		return false
	}
	if batchSize(body) > maxBatch {
		writeRPCError(w, jsonrpc.CodeInvalidRequest,
			fmt.Sprintf("a batch may hold at most %d messages; send the others in a further request", maxBatch))
		return false
	}
	body, req.args = lift(body)
	if len(body) > maxRest {
		http.Error(w, fmt.Sprintf("the message exceeds %d bytes without the arguments of its tool call", maxRest),
			http.StatusRequestEntityTooLarge)
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	return true
}

// batchSize returns the number of messages in body, which has passed the
// check; it stops counting past maxBatch.
func batchSize(body []byte) int {
	if jsonscan.Kind(body) != '[' {
		return 1
	}
	n := 0
	for range jsonscan.Elements(body) {
		if n++; n > maxBatch {
			break
		}
	}
	return n
}

// lift takes large arguments, of whatever type, out of a tools/call and leaves
// an empty object in their place. What is not exactly such a call, every
// member known by its plain name and no name given twice, stays whole: the SDK
// then reads the arguments, and there is nothing to disagree about. The body
// has passed the check.
func lift(body []byte) (rest []byte, args json.RawMessage) {
	if len(body) < liftFrom {
		return body, nil
	}
	message, ok := members(body)
	if !ok || string(message["method"]) != `"tools/call"` {
		return body, nil
	}
	params, ok := members(message["params"])
	if !ok || len(params["arguments"]) < liftFrom {
		return body, nil
	}
	args = params["arguments"]
	params["arguments"] = []byte("{}")
	message["params"] = object(params)
	return object(message), args
}

// members returns an object's members by name. It reports false for anything
// but an object with a few distinct names without escapes.
func members(data []byte) (map[string][]byte, bool) {
	if jsonscan.Kind(data) != '{' {
		return nil, false
	}
	all := map[string][]byte{}
	for name, value := range jsonscan.Members(data) {
		key := string(name[1 : len(name)-1])
		if strings.ContainsRune(key, '\\') || all[key] != nil || len(all) == maxMembers {
			return nil, false
		}
		all[key] = value
	}
	return all, true
}

// object is the inverse of members.
func object(all map[string][]byte) []byte {
	b := []byte{'{'}
	for name, value := range all {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), '"', ':')
		b = append(b, value...)
	}
	return append(b, '}')
}

func tooLarge(w http.ResponseWriter, limit int64) {
	http.Error(w, fmt.Sprintf("the request body exceeds %d bytes, the bound of this server", limit),
		http.StatusRequestEntityTooLarge)
}

// writeRPCError refuses a body before any request in it could be read. MCP
// writes such an error without an id.
func writeRPCError(w http.ResponseWriter, code int64, message string) {
	body, err := encode(response{Version: "2.0", Error: &responseError{Code: code, Message: message}})
	if err != nil {
		http.Error(w, message, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(body) // a client that went away needs no answer
}
