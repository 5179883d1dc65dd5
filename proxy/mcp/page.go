package mcp

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"mime"
	"strconv"
	"strings"
	"sync"

	"aegis/proxy"
)

// listPage is one page of tools/list for one shape of answer, a response that lacks its id
// alone. The id comes last, so that the rest can be compressed once and for all. The tools
// are shared with other shapes.
type listPage struct {
	head, tools, tail []byte
	compressed        func() *gzipped
}

// newList encodes tools, and makes the pages that clients of the fast path get.
func (e *endpoint) newList(tools []*proxy.Tool) (*toolList, error) {
	l, err := newToolList(tools, e.opts.OutputSchemas)
	if err != nil {
		return nil, err
	}
	for from := 0; from == 0 || from < len(l.names); from += e.opts.PageSize {
		l.legacy = append(l.legacy, e.newPage(l, from, false))
		l.current = append(l.current, e.newPage(l, from, true))
	}
	return l, nil
}

// listFor returns what an identity sees.
func (e *endpoint) listFor(id *proxy.Identity) (*toolList, error) {
	if id.AllowSudo {
		return e.sudo()
	}
	return e.list, nil
}

// newPage returns the page of the tools from the index on, for the protocols without a
// handshake (current) or with one: in the former each answer says who gives it.
func (e *endpoint) newPage(l *toolList, from int, current bool) *listPage {
	p := &listPage{head: []byte(`{"jsonrpc":"2.0","result":{`), tail: []byte("]")}
	if current {
		p.head = append(p.head, `"_meta":{`+e.lw.server+`},"resultType":"complete",`...)
	}
	p.head = append(p.head, e.lw.tools...)
	to := min(from+e.opts.PageSize, len(l.names))
	if from < to {
		p.tools = l.titled.page(from, to)
	}
	if to < len(l.names) {
		p.tail = append(p.tail, `,"nextCursor":"`+encodeCursor(l.names[to-1])+`"`...)
	}
	p.tail = append(p.tail, '}')
	// Compressed when it is first asked for: it takes some milliseconds, which a
	// start should not wait for.
	p.compressed = sync.OnceValue(func() *gzipped { return compress(p.head, p.tools, p.tail) })
	return p
}

// pageTail appends what ends a page's response.
func pageTail(b []byte, id json.RawMessage) []byte {
	b = append(append(b, `,"id":`...), id...)
	return append(b, '}')
}

// gzipped is the beginning of a gzip file (RFC 1952): whole bytes, its last
// deflate block not marked as the last.
type gzipped struct {
	data []byte
	crc  uint32 // of what was compressed
	size uint32 // its length modulo 2^32
}

// compress returns the beginning of a gzip file of parts. Its last block is not the last of
// the file and ends at a whole byte, so that [gzipTail] can follow. The level is the highest:
// it is done once for a list that every client fetches.
func compress(parts ...[]byte) *gzipped {
	var b bytes.Buffer
	b.WriteString("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff") // deflate, no name, no time, unknown system
	z, _ := flate.NewWriter(&b, flate.BestCompression)        // there is such a level, and a buffer takes everything
	out := &gzipped{}
	for _, p := range parts {
		_, _ = z.Write(p)
		out.crc = crc32.Update(out.crc, crc32.IEEETable, p)
		out.size += uint32(len(p))
	}
	_ = z.Flush() // ends at a whole byte, and more may follow
	out.data = b.Bytes()
	return out
}

// gzipTail returns the end of the gzip file that g begins: the rest of the
// response, not compressed, and the checksum of the whole. A page that is compressed
// anew for each request would take more time than all else of the answer.
func gzipTail(g *gzipped, id json.RawMessage) []byte {
	rest := pageTail(make([]byte, 0, len(id)+32), id)
	b := make([]byte, 0, len(rest)+16)
	b = append(b, 1) // the last block, stored (RFC 1951 section 3.2.4)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(rest)))
	b = binary.LittleEndian.AppendUint16(b, ^uint16(len(rest)))
	b = append(b, rest...)
	b = binary.LittleEndian.AppendUint32(b, crc32.Update(g.crc, crc32.IEEETable, rest))
	return binary.LittleEndian.AppendUint32(b, g.size+uint32(len(rest)))
}

// Answers of tools are never compressed, only the list: see docs/adr/0014.

// takesGzip reports whether an Accept-Encoding header (RFC 9110 section 12.5.3)
// asks for gzip: it is named, or "*" is, with a weight above zero and none below
// that of identity.
func takesGzip(values []string) bool {
	gzip, other, identity := -1.0, -1.0, -1.0
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		// A coding has the form of a media type: a word in any case, and a weight as the
		// only parameter.
		coding, params, err := mime.ParseMediaType(part)
		q := 1.0
		if err == nil && len(params) > 0 {
			q, err = strconv.ParseFloat(params["q"], 64)
		}
		if err != nil || !(q >= 0 && q <= 1) { // so that NaN, which Go reads, is none
			continue
		}
		switch coding {
		case "gzip", "x-gzip":
			gzip = q
		case "identity":
			identity = q
		case "*":
			other = q
		}
	}
	if gzip < 0 {
		gzip = other
	}
	return gzip > 0 && gzip >= identity
}
