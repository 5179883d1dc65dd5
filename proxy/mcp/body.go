package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
)

const (
	// maxDepth is how deep a message may be nested; the SDK stops there too.
	maxDepth = 1000
	// maxValues bounds the values of a message, since they are decoded.
	maxValues = 200_000
	// liftFrom is the size of arguments in bytes from which they are kept out
	// of the SDK, which decodes a message some ten times. Smaller ones cost less
	// than looking for them.
	liftFrom = 1 << 10
	// maxRest bounds what is left for the SDK in bytes, since decoding can
	// need many times the memory of the text.
	maxRest = 1 << 20
	// maxAnnounced bounds the memory in bytes that a body gets for its length
	// alone, before it has come.
	maxAnnounced = 256 << 10
	// maxMembers bounds the members of an object that lift looks into.
	maxMembers = 32
)

// readBody returns the body, read once and within the bound, which is one JSON
// text. It reports false when it has answered the request itself.
func (e *endpoint) readBody(w http.ResponseWriter, r *http.Request, req *request) ([]byte, bool) {
	limit := e.opts.MaxBodyBytes
	if r.ContentLength > limit {
		req.tooLarge(w, limit)
		return nil, false
	}
	var buf bytes.Buffer
	if r.ContentLength > 0 {
		// A length that is only announced takes little memory: a stranger's token may
		// be good, and the bytes never come.
		buf.Grow(int(min(r.ContentLength, maxAnnounced)) + bytes.MinRead)
	}
	if _, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, limit)); err != nil {
		// The edge may have set a smaller bound of the same kind.
		if over, ok := errors.AsType[*http.MaxBytesError](err); ok {
			req.tooLarge(w, over.Limit)
			return nil, false
		}
		req.unreadable(w, err)
		return nil, false
	}
	body := buf.Bytes()
	if err := jsonscan.CheckValues(body, maxDepth, maxValues); err != nil {
		writeRPCError(w, jsonrpc.CodeParseError, "the request body cannot be read: "+err.Error())
		return nil, false
	}
	return body, true
}

// leave replaces r.Body by what the SDK is to read of body, and keeps the rest
// in req. It reports false when it has answered the request itself: for what the SDK
// would answer in a wrong way, or would take too much memory for.
func (e *endpoint) leave(w http.ResponseWriter, r *http.Request, req *request, body []byte) bool {
	if batchSize(body) > maxBatch {
		writeRPCError(w, jsonrpc.CodeInvalidRequest,
			fmt.Sprintf("a batch may hold at most %d messages; send the others in a further request", maxBatch))
		return false
	}
	if !exactID(body) {
		writeRPCError(w, jsonrpc.CodeInvalidRequest, "id must be a string or an integer of at most 15 digits")
		return false
	}
	body, req.args = lift(body)
	if len(body) > maxRest {
		req.refuse(w, http.StatusRequestEntityTooLarge, proxy.KindPayloadTooLarge, fmt.Sprintf(
			"the message exceeds %d bytes without the arguments of its tool call; send less beside them", maxRest))
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	return true
}

// exactID reports whether the id of a message comes back as it was sent. The SDK
// reads numbers as floating point, which would answer 1.5 as 1 and round long
// ones; JSON-RPC 2.0 section 4 wants no fractions anyway. An answer under another id
// would leave the client waiting, or be taken for that of another request.
func exactID(body []byte) bool {
	id := jsonscan.Member(body, "id")
	isNumber := len(id) > 0 && (id[0] == '-' || '0' <= id[0] && id[0] <= '9')
	return !isNumber || exactInteger(id)
}

// batchSize returns the number of messages in body, which has passed the
// check; it stops counting past maxBatch, as a batch may have a million of them.
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

// object is the inverse of [members]. The order of members is that of the map, which
// changes from run to run and means nothing in JSON.
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

func (req *request) tooLarge(w http.ResponseWriter, limit int64) {
	w.Header().Set("Connection", "close") // the rest stays unread
	req.refuse(w, http.StatusRequestEntityTooLarge, proxy.KindPayloadTooLarge,
		fmt.Sprintf("the request body exceeds %d bytes, the bound of this server; send less at once", limit))
}

// unreadable answers a request whose body came too slowly (408) or broke off. What is left
// of it cannot be distinguished from a next request, so the connection ends.
func (req *request) unreadable(w http.ResponseWriter, err error) {
	w.Header().Set("Connection", "close")
	if errors.Is(err, os.ErrDeadlineExceeded) {
		req.refuse(w, http.StatusRequestTimeout, proxy.KindTimeout,
			"the request body came too slowly; send it again, faster or in smaller parts")
		return
	}
	req.refuse(w, http.StatusBadRequest, proxy.KindBadRequest,
		"the request body could not be read to its end; send it again")
}

// refuse answers at the level of HTTP, before any message could be read.
func (req *request) refuse(w http.ResponseWriter, status int, kind proxy.Kind, message string) {
	proxy.WriteError(w, req.info, status, proxy.NewError(kind, message, nil))
}

// writeRPCError refuses a body before any request in it could be read. MCP
// writes such an error without an id.
func writeRPCError(w http.ResponseWriter, code int64, message string) {
	body, _ := proxy.Encode(response{Version: "2.0", Error: &responseError{Code: code, Message: message}}) // texts encode
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(body) // a client that went away needs no answer
}
