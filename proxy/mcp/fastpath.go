package mcp

import (
	"net/http"
	"strconv"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
)

// The fast path answers the two requests that make up nearly all traffic,
// tools/call and tools/list of stateless clients that take JSON, without the
// SDK, whose session per request costs more than such a call does otherwise. It
// answers what it knows whole, see [parseFast]; all else, and every request that
// is wrong in any way, is the SDK's. A differential test holds the two equal.

// outcome is what the chain made of a call whose answer the SDK shall write.
type outcome struct {
	call *proxy.Call
	res  *proxy.Result
	err  error
}

// fast answers a request that the fast path knows and reports whether it did. It
// may have run the call and left the answer to the SDK in req.outcome.
func (e *endpoint) fast(w http.ResponseWriter, r *http.Request, req *request, body []byte) bool {
	q, ok := parseFast(r.Header, body)
	if !ok {
		return false
	}
	if q.list {
		return e.fastList(w, r, req, &q)
	}
	return e.fastCall(w, r, req, &q)
}

// fastCall makes a call and answers it in one buffer, which the chain may write
// into as well.
func (e *endpoint) fastCall(w http.ResponseWriter, r *http.Request, req *request, q *fastRequest) bool {
	q.client.Addr = req.info.Addr
	c := e.newCall(req, &q.said)
	buf := e.buffers.Get(0)
	defer func() {
		if buf != nil {
			e.buffers.Put(buf)
		}
	}()
	*buf = q.begin(*buf)
	c.Reply = proxy.NewReply(*buf, func(n int) []byte {
		buf = e.buffers.Grow(buf, n)
		return *buf
	})
	defer c.Reply.Close()
	res, err := e.handle(r.Context(), c)
	if !fastOutcome(res, err) {
		req.outcome = &outcome{call: c, res: withText(res), err: err}
		c.Reply = nil // buf is for others now
		return false
	}
	status := http.StatusOK
	if err != nil {
		*buf, status = e.appendFailure(*buf, q, c, proxy.AsError(err))
	} else {
		*buf = e.appendSuccess(*buf, q, c, res)
	}
	if err := e.send(w, r, status, *buf); err != nil {
		// HTTP/2 may still be reading from it for a stream that the client has reset, so it
		// must not serve another call: this one's answer would go to that client.
		buf = nil
	}
	if res != nil { // an error may quote the body; then the collector has it
		c.Reply.Sent()
	}
	return true
}

// send writes an answer, whole, and says so with a Content-Length: chunks would take a
// write more.
func (e *endpoint) send(w http.ResponseWriter, r *http.Request, status int, body []byte) error {
	if r.ProtoMajor == 1 {
		// HTTP/2 says in a frame of its own that the answer ends, when the handler
		// returns. HTTP/1 needs not wait for that, and has it all in one write.
		if e.opts.Hold != nil {
			defer e.opts.Hold(r)()
		}
		defer func() { _ = http.NewResponseController(w).Flush() }() // a client that went away needs no answer
	}
	e.lw.head(w.Header(), len(body))
	if status != http.StatusOK {
		w.WriteHeader(status)
	}
	_, err := w.Write(body) // a client that went away needs no answer
	return err
}

// fastOutcome reports whether what became of a call is text alone. What says more
// than that is for the SDK to write, which knows what each protocol version makes
// of it.
func fastOutcome(res *proxy.Result, err error) bool {
	if err != nil {
		return proxy.AsError(err).Question == nil
	}
	return res.Structured == nil
}

// withText returns a result with its text as such, out of the reply's memory, which goes back
// to the pool before the SDK has written the answer.
func withText(res *proxy.Result) *proxy.Result {
	if res == nil || res.Reply == nil {
		return res
	}
	out := *res
	out.Text, out.Reply = []byte(jsonscan.Unquote(res.Reply.Text())), nil
	return &out
}

// fastWords are the parts of answers that are the same in all of them. They are made by
// encoding the SDK's own types at start, so that an update of the SDK which writes them in
// another way changes both paths.
type fastWords struct {
	contentType, cacheControl []string // values of headers; shared, never changed
	// meta begins the _meta of a result, server ends it: in the protocols
	// without a handshake each answer says who gives it.
	meta, server string
	// tools begins a page of tools/list after its _meta.
	tools string
}

// newFastWords asks the SDK's types how they are written.
func newFastWords(o *Options) fastWords {
	words := fastWords{
		contentType:  []string{"application/json"},
		cacheControl: []string{"no-cache, no-transform"},
		meta:         `{`,
	}
	if o.CatalogVersion != "" {
		words.meta += `"` + metaCatalogVersion + `":` + string(jsonscan.AppendQuote(nil, o.CatalogVersion)) + `,`
	}
	server, _ := proxy.Encode(o.implementation()) // texts and numbers always encode
	words.server = `"` + sdk.MetaKeyServerInfo + `":` + string(server)
	cache, _ := proxy.Encode(o.cacheable())
	words.tools = string(cache[1:len(cache)-1]) + `,"tools":[`
	return words
}

// head sets the headers of an answer of length bytes.
func (l *fastWords) head(h http.Header, length int) {
	h["Content-Type"], h["Cache-Control"] = l.contentType, l.cacheControl
	h["Content-Length"] = []string{strconv.Itoa(length)}
}

// appendSuccess appends a result to what q.begin made. The text is escaped once,
// by the chain or here.
func (e *endpoint) appendSuccess(b []byte, q *fastRequest, c *proxy.Call, res *proxy.Result) []byte {
	if res.Reply != nil {
		b = res.Reply.Bytes()
	} else {
		b = jsonscan.AppendQuote(b, res.Text)
	}
	if res.TextBlock != nil {
		b = append(b, `},{"type":"text","text":`...)
		b = jsonscan.AppendQuote(b, res.TextBlock)
	}
	return e.end(append(b, `}]`...), q, c, res.Source)
}

// appendFailure appends the text of err to what q.begin made, or puts a JSON-RPC error in
// the place of that, and returns the HTTP status.
func (e *endpoint) appendFailure(b []byte, q *fastRequest, c *proxy.Call, err *proxy.Error) ([]byte, int) {
	if err.Kind != proxy.KindUnknownTool {
		b = append(jsonscan.AppendQuote(b, failureText(c, err)), `}],"isError":true`...)
		return e.end(b, q, c, ""), http.StatusOK
	}
	b = b[:0]
	rpc := protocolError(c, err)
	body := &responseError{Code: rpc.Code, Message: proxy.Clip(rpc.Message, maxErrorText), Data: rpc.Data}
	msg, _ := proxy.Encode(response{Version: "2.0", ID: q.id, Error: body}) // its parts are valid JSON
	status := http.StatusOK
	if q.current {
		status = http.StatusBadRequest // as the current protocol demands of invalid params
	}
	return append(b, msg...), status
}

// begin appends what comes before the text of a result. It is written before the call is
// made, in the hope of a result, so that the text can go right behind it.
func (q *fastRequest) begin(b []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, q.id...)
	return append(b, `,"result":{"content":[{"type":"text","text":`...)
}

// end appends a result's last members, with its _meta as [endpoint.meta] makes it.
func (e *endpoint) end(b []byte, q *fastRequest, c *proxy.Call, source string) []byte {
	if q.current {
		b = append(b, `,"resultType":"complete"`...)
	}
	b = append(append(b, `,"_meta":`...), e.lw.meta...)
	b = append(b, `"`+metaGeneratedAt+`":"`...)
	b = append(e.now().UTC().AppendFormat(b, time.RFC3339), '"')
	if c.Tool != nil && c.Tool.OperationID != "" {
		b = appendMember(b, metaOperation, c.Tool.OperationID)
	}
	b = appendMember(b, metaRequestID, c.RequestID)
	if source != "" {
		b = appendMember(b, metaSource, source)
	}
	if q.current {
		b = append(append(b, ','), e.lw.server...)
	}
	return append(b, "}}}"...)
}

// appendMember appends a further member to an object that is being written.
func appendMember(b []byte, name, value string) []byte {
	b = append(append(append(b, `,"`...), name...), `":`...)
	return jsonscan.AppendQuote(b, value)
}

// fastList answers tools/list when a page is ready for it.
func (e *endpoint) fastList(w http.ResponseWriter, r *http.Request, req *request, q *fastRequest) bool {
	list, err := e.listFor(req.info.Identity)
	if err != nil {
		return false // the SDK's way reports it
	}
	from, err := list.seek(q.cursor)
	if err != nil || from%e.opts.PageSize != 0 || q.version < titledSince {
		return false
	}
	pages := list.legacy
	if q.current {
		pages = list.current
	}
	n := from / e.opts.PageSize
	if n >= len(pages) { // a cursor to the end of the list
		return false
	}
	page := pages[n]
	parts := [][]byte{page.head, page.tools, page.tail, pageTail(nil, q.id)}
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	if takesGzip(r.Header["Accept-Encoding"]) {
		body := page.compressed()
		parts = [][]byte{body.data, gzipTail(body, q.id)}
		h["Content-Encoding"] = []string{"gzip"}
	}
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	e.lw.head(h, length)
	for _, part := range parts {
		_, _ = w.Write(part) // as above
	}
	return true
}
