package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"aegis/proxy"
)

// listTools answers one tools/list with bytes that were made once.
func (e *endpoint) listTools(r *request, req *sdk.ListToolsRequest) (sdk.Result, error) {
	list, err := e.listFor(r.info.Identity)
	if err != nil {
		e.opts.Log.Error().Err(err).Msg("a tool list cannot be made")
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
	}
	var cursor string
	if req.Params != nil {
		cursor = req.Params.Cursor
	}
	from, err := list.seek(cursor)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	to := min(from+e.opts.PageSize, len(list.names))
	res := &sdk.ListToolsResult{Cacheable: e.opts.cacheable(), Tools: []*sdk.Tool{}}
	if from < to {
		res.Tools = append(res.Tools, r.payloads.tools(list.shape(req.ProtocolVersion()).page(from, to)))
	}
	if to < len(list.names) {
		res.NextCursor = encodeCursor(list.names[to-1])
	}
	return res, nil
}

// toolList is an immutable list of tools, sorted by name and encoded.
type toolList struct {
	names []string
	// titled is for protocols that know a tool's title (2025-06-18 and later);
	// plain is for the one that has it among the annotations.
	titled encodedTools
	plain  func() encodedTools // made when it is first asked for: few clients are that old
	// legacy and current are the pages of titled as the fast path sends them:
	// with a handshake, and without.
	legacy, current []*listPage
}

// shape returns the encoding for a protocol version.
func (l *toolList) shape(version string) encodedTools {
	if version >= titledSince {
		return l.titled
	}
	return l.plain()
}

// encodedTools are JSON objects with commas between them, so that a page is one span of the
// bytes.
type encodedTools struct {
	data []byte
	ends []int // where each object ends
}

// page returns the objects from (included) to to (not included).
func (t encodedTools) page(from, to int) []byte {
	start := 0
	if from > 0 {
		start = t.ends[from-1] + 1 // after the comma
	}
	return t.data[start:t.ends[to-1]]
}

// newToolList sorts and encodes tools. The order is part of what pages and cursors mean, and
// lets a client see at a glance whether a list has changed.
func newToolList(tools []*proxy.Tool, outputSchemas bool) (*toolList, error) {
	tools = slices.Clone(tools)
	slices.SortFunc(tools, func(a, b *proxy.Tool) int { return strings.Compare(a.Name, b.Name) })
	l := &toolList{}
	for i, t := range tools {
		if t.Name == "" {
			return nil, errors.New("a tool has no name")
		}
		if i > 0 && tools[i-1].Name == t.Name {
			return nil, fmt.Errorf("two tools are named %s", t.Name)
		}
		l.names = append(l.names, t.Name)
		if err := l.titled.add(t, true, outputSchemas); err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.Name, err)
		}
	}
	l.plain = sync.OnceValue(func() (plain encodedTools) {
		for _, t := range tools {
			_ = plain.add(t, false, outputSchemas) // what titled has taken can be encoded
		}
		return plain
	})
	return l, nil
}

// wrapped returns the schema of structuredContent, which must be an object (MCP 2025-06-18):
// the data, which may be an array or a string, is in its member data.
func wrapped(data json.RawMessage) json.RawMessage {
	b := append([]byte(`{"type":"object","properties":{"data":`), data...)
	return append(b, `},"required":["data"]}`...)
}

// add appends the encoding of t.
func (t *encodedTools) add(tool *proxy.Tool, titled, outputSchemas bool) error {
	if len(tool.InputSchema) == 0 || !bytes.HasPrefix(bytes.TrimSpace(tool.InputSchema), []byte("{")) {
		return errors.New("the input schema is not an object")
	}
	entry := tool.Entry(titled)
	if outputSchemas && len(tool.OutputSchema) > 0 {
		entry.OutputSchema = wrapped(tool.OutputSchema)
	}
	b, err := proxy.Encode(entry)
	if err != nil {
		return err
	}
	if len(t.ends) > 0 {
		t.data = append(t.data, ',')
	}
	t.data = append(t.data, b...)
	t.ends = append(t.ends, len(t.data))
	return nil
}

// errCursor does not repeat the cursor.
var errCursor = errors.New("the cursor is none of this server's; list again from the start, without a cursor")

// seek returns the index that a cursor points to: the first tool after the
// one it names. A cursor names a tool, not a position, so that it stays right
// when the list changes between two pages.
func (l *toolList) seek(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	name, ok := decodeCursor(cursor)
	if !ok {
		return 0, errCursor
	}
	i, found := slices.BinarySearch(l.names, name)
	if found {
		i++
	}
	return i, nil
}

// encodeCursor makes a cursor of a tool's name, with a checksum that distinguishes
// a cursor from anything else. It protects nothing: a list has no secrets.
func encodeCursor(name string) string {
	b := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(name)))
	return base64.RawURLEncoding.EncodeToString(append(b, name...))
}

// maxCursor bounds what is decoded: more than twice what the longest name makes.
const maxCursor = 256

func decodeCursor(cursor string) (name string, ok bool) {
	if len(cursor) > maxCursor {
		return "", false
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) <= 4 {
		return "", false
	}
	name = string(b[4:])
	return name, encodeCursor(name) == cursor // one spelling, right checksum
}
