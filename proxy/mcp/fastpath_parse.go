package mcp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"aegis/proxy/internal/jsonscan"
)

// fastRequest is a tools/call or tools/list that is right in every respect and
// says nothing that the fast path does not know.
type fastRequest struct {
	id      json.RawMessage // as it goes into the answer
	version string
	current bool // version is one of those without a handshake
	list    bool // tools/list, else tools/call

	said          // of tools/call
	cursor string // of tools/list
	named  bool   // the client has said who it is
}

// The headers of MCP, as http.Header keys them: a look-up by another spelling finds
// nothing.
const (
	headerVersion     = "Mcp-Protocol-Version"
	headerMethod      = "Mcp-Method"
	headerName        = "Mcp-Name"
	headerLastEventID = "Last-Event-Id"
)

// The names of methods.
const (
	methodCall = "tools/call"
	methodList = "tools/list"
)

// The versions that the fast path distinguishes.
const (
	currentSince = "2026-07-28" // requests need no handshake, and headers repeat what they ask
	titledSince  = "2025-06-18" // tools have titles
)

// maxFast bounds a message in bytes, without the arguments of a call. What is larger
// is unusual in some way.
const maxFast = 16 << 10

// parseFast reads a request whose body has passed the check. It reports false
// for anything that is not exactly what it knows; that is no error, and the SDK
// answers.
func parseFast(h http.Header, body []byte) (q fastRequest, ok bool) {
	if !q.readHeaders(h) {
		return q, false
	}
	var m [4][]byte
	if !pick(body, m[:], "jsonrpc", "id", "method", "params") || string(m[0]) != `"2.0"` || !fastID(m[1]) {
		return q, false
	}
	q.id = m[1]
	switch string(m[2]) {
	case `"` + methodCall + `"`:
		if !q.readCall(m[3]) || !q.namedIn(h, methodCall) || len(body)-len(q.args) > maxFast {
			return q, false
		}
		q.describe(h)
		return q, true
	case `"` + methodList + `"`:
		q.list = true
		return q, q.readList(m[3]) && q.namedIn(h, methodList) && len(body) <= maxFast
	}
	return q, false
}

// readHeaders looks at the headers that hold for any message. A version that is not known,
// or none, is the SDK's to refuse or to guess, and so is a stream that is to go on.
func (q *fastRequest) readHeaders(h http.Header) bool {
	version, ok := single(h, headerVersion)
	if !ok || h[headerLastEventID] != nil {
		return false
	}
	for _, v := range protocolVersions() {
		if v == version {
			q.version = v
		}
	}
	q.current = version >= currentSince
	if values := h["Accept"]; len(values) > 0 {
		if asJSON, _ := accepts(values); !asJSON {
			return false
		}
	}
	switch contentType, _ := single(h, "Content-Type"); contentType {
	case "application/json", "application/json; charset=utf-8", "application/json;charset=utf-8":
		return q.version != ""
	}
	return false
}

// single returns the value of a header that is there exactly once.
func single(h http.Header, key string) (string, bool) {
	if values := h[key]; len(values) == 1 {
		return values[0], true
	}
	return "", false
}

// namedIn reports whether the headers name what the body does, where the
// protocol wants them to.
func (q *fastRequest) namedIn(h http.Header, method string) bool {
	if !q.current {
		return true
	}
	if got, ok := single(h, headerMethod); !ok || got != method {
		return false
	}
	if q.list {
		return true
	}
	got, ok := single(h, headerName)
	return ok && got == q.name
}

func (q *fastRequest) readCall(params []byte) bool {
	var m [3][]byte
	if !pick(params, m[:], "name", "arguments", "_meta") {
		return false
	}
	if q.name = plainText(m[0]); q.name == "" {
		return false
	}
	if q.args = m[1]; q.args != nil && q.args[0] != '{' {
		return false
	}
	return q.readMeta(m[2])
}

func (q *fastRequest) readList(params []byte) bool {
	if params == nil {
		return !q.current
	}
	var m [2][]byte
	if !pick(params, m[:], "cursor", "_meta") {
		return false
	}
	if m[0] != nil {
		if q.cursor = plainText(m[0]); q.cursor == "" {
			return false
		}
	}
	return q.readMeta(m[1])
}

// reserved begins the keys of _meta that belong to the protocol.
const reserved = "io.modelcontextprotocol/"

// readMeta reads a request's _meta. Keys of others, a progress token among them,
// change nothing, as an answer in JSON has no place for progress.
func (q *fastRequest) readMeta(meta []byte) bool {
	if meta == nil {
		return !q.current
	}
	var m [5][]byte
	return pickOf(meta, m[:], foreign, sdk.MetaKeyProtocolVersion, sdk.MetaKeyClientInfo,
		sdk.MetaKeyClientCapabilities, "traceparent", "tracestate") &&
		q.readTrace(m[3], m[4]) && q.readProtocol(m[0], m[1], m[2])
}

// foreign reports whether a member of _meta is a vendor's own and any decoder takes it. A name
// with an escape could be one of the protocol's in another spelling.
func foreign(key, value []byte) bool {
	return !bytes.HasPrefix(key, []byte(reserved)) && bytes.IndexByte(key, '\\') < 0 && harmless(value, maxHarmless)
}

func (q *fastRequest) readTrace(parent, state []byte) bool {
	if parent != nil && plainText(parent) == "" || state != nil && plainText(state) == "" {
		return false
	}
	q.trace = traceFrom(plainText(parent), plainText(state))
	return true
}

// readProtocol reads what each request of the current protocol says of itself.
func (q *fastRequest) readProtocol(version, info, capabilities []byte) bool {
	if !q.current {
		return version == nil && info == nil && capabilities == nil
	}
	if plainText(version) != q.version || !q.readCapabilities(capabilities) {
		return false
	}
	if info == nil {
		return true
	}
	var m [5][]byte
	if !pick(info, m[:], "name", "version", "title", "description", "websiteUrl") {
		return false
	}
	for _, v := range m {
		if v != nil && (v[0] != '"' || bytes.IndexByte(v, '\\') >= 0) {
			return false
		}
	}
	q.named, q.client.Name, q.client.Version = true, jsonscan.Unquote(m[0]), jsonscan.Unquote(m[1])
	return true
}

// readCapabilities reads what a client can do, when it says so in the shapes that
// the protocol defines. Others are the SDK's to judge.
func (q *fastRequest) readCapabilities(v []byte) bool {
	if string(v) == "{}" {
		return true
	}
	var m [5][]byte
	var form, sampling [2][]byte
	var roots [1][]byte
	known := pick(v, m[:], "elicitation", "sampling", "roots", "extensions", "experimental") &&
		hollow(m[0], form[:], "form", "url") && hollow(m[1], sampling[:], "context", "tools") &&
		(m[2] == nil || pick(m[2], roots[:], "listChanged") && (roots[0] == nil || isBool(roots[0]))) &&
		open(m[3]) && open(m[4])
	// One that names neither kind means forms, as in [asks].
	q.asks = m[0] != nil && (form[0] != nil || form[1] == nil)
	return known
}

// open reports whether v is an object of whatever members, or absent.
func open(v []byte) bool { return v == nil || v[0] == '{' && harmless(v, maxHarmless) }

// hollow reads the members called names of an object into values and reports whether each is
// an object that says no more than that it is there. An absent object has none of them.
func hollow(v []byte, values [][]byte, names ...string) bool {
	return v == nil || pick(v, values, names...) &&
		!slices.ContainsFunc(values, func(m []byte) bool { return m != nil && string(m) != "{}" })
}

// isBool reports whether v, which is valid JSON, is true or false.
func isBool(v []byte) bool { return v[0] == 't' || v[0] == 'f' }

// describe completes what is known of the client, as [clientOf] does. It comes last: a
// request that is the SDK's after all needs no name.
func (q *fastRequest) describe(h http.Header) {
	c := &q.client
	if !q.named {
		c.Name, c.Version = product(h)
	}
	c.Name, c.Version, c.Protocol = clean(c.Name, maxClientName), clean(c.Version, maxClientVersion), q.version
}

// pick reads the members called names of an object into values. It reports false
// for anything but an object with no others and none of them twice: of two equal
// members decoders take the first or the last, and some ignore case.
func pick(object []byte, values [][]byte, names ...string) bool {
	return pickOf(object, values, func(_, _ []byte) bool { return false }, names...)
}

// pickOf is pick for an object that may have others, those that other permits.
func pickOf(object []byte, values [][]byte, other func(key, value []byte) bool, names ...string) bool {
	if jsonscan.Kind(object) != '{' {
		return false
	}
	for name, value := range jsonscan.Members(object) {
		key := name[1 : len(name)-1]
		i := 0
		for i < len(names) && string(key) != names[i] {
			i++
		}
		switch {
		case i == len(names) && other(key, value):
		case i == len(names) || values[i] != nil:
			return false
		default:
			values[i] = value
		}
	}
	return true
}

// plainText returns the value of a JSON string of printable ASCII without
// escapes; "" for anything else. Such a string is read alike by all decoders.
func plainText(v []byte) string {
	if len(v) < 2 || v[0] != '"' {
		return ""
	}
	s := string(v[1 : len(v)-1])
	if !isPlain(s) || strings.IndexByte(s, '\\') >= 0 {
		return ""
	}
	return s
}

// maxID bounds the length of an id that is a string, quotes included.
const maxID = 256

// fastID reports whether an id comes back as it is: a short plain string, or
// an integer that is exact as floating point and has one spelling. See [exactID] for
// the others.
func fastID(id []byte) bool {
	if len(id) == 0 || len(id) > maxID {
		return false
	}
	return id[0] == '"' && plainText(id) != "" || plainInteger(id)
}

// plainInteger reports whether a JSON number is an integer that has one spelling: minus zero
// is zero too.
func plainInteger(v []byte) bool { return exactInteger(v) && string(v) != "-0" }

// exactInteger reports whether a JSON number is an integer that is exact as floating point,
// which every one of at most 15 digits is.
func exactInteger(v []byte) bool {
	digits := bytes.TrimPrefix(v, []byte("-"))
	return len(digits) > 0 && len(digits) <= 15 && len(bytes.Trim(digits, "0123456789")) == 0
}

// maxHarmless is how deep a value may be nested that is not looked at further. Real _meta
// has a level or two; the rest is not worth a recursion here.
const maxHarmless = 6

// harmless reports whether any decoder takes the value: there are no escapes in
// it and no numbers that might not fit. The SDK decodes all of _meta, and what it would
// refuse there the fast path must not answer.
func harmless(v []byte, depth int) bool {
	switch v[0] {
	case '"':
		return bytes.IndexByte(v, '\\') < 0
	case 't', 'f', 'n':
		return true
	case '[':
		for _, el := range jsonscan.Elements(v) {
			if depth == 0 || !harmless(el, depth-1) {
				return false
			}
		}
		return depth > 0
	case '{':
		for name, el := range jsonscan.Members(v) {
			if depth == 0 || bytes.IndexByte(name, '\\') >= 0 || !harmless(el, depth-1) {
				return false
			}
		}
		return depth > 0
	}
	return plainInteger(v)
}

// product returns the first product of User-Agent (RFC 9110 section 10.1.5).
func product(h http.Header) (name, version string) {
	first, _, _ := strings.Cut(h.Get("User-Agent"), " ")
	name, version, _ = strings.Cut(first, "/")
	return name, version
}
