package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"aegis/proxy"
)

// The keys of a result's _meta. They follow MCP's key format (prefix, slash,
// name) under Aegis's own prefix; models do not see them.
const (
	metaRequestID      = "aegis/request_id"
	metaSource         = "aegis/source"
	metaOperation      = "aegis/operation"
	metaCatalogVersion = "aegis/catalog_version"
	metaGeneratedAt    = "aegis/generated_at"
)

// receive is the SDK's middleware: it answers what is about tools and leaves
// the rest of the protocol to the SDK. The SDK calls it on a goroutine of its
// own, where a panic would end the process, so none passes.
func (e *endpoint) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		r := requestFrom(ctx)
		if r == nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
		}
		defer func() {
			if v := recover(); v != nil {
				e.logPanic(r.info.RequestID, method, v)
				res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
			}
		}()
		switch req := req.(type) {
		case *sdk.CallToolRequest:
			out, err := e.call(ctx, r, req)
			if err != nil {
				return nil, err
			}
			// The SDK completes the result as if its one tool had made it.
			req.Params.Name = onlyTool
			return next(context.WithValue(ctx, resultKey{}, out), method, req)
		case *sdk.ListToolsRequest:
			return e.listTools(r, req)
		}
		return next(ctx, method, req)
	}
}

// onlyTool is the one tool that the SDK knows: to it every call is one of this tool, which
// is how results reach its encoder. It is not listed; a client that calls it by name asks
// the handler, like any other.
const onlyTool = "aegis"

type resultKey struct{}

// handOver is onlyTool's handler: it hands the SDK what [endpoint.call] made.
func handOver(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	out, ok := ctx.Value(resultKey{}).(*sdk.CallToolResult)
	if !ok {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
	}
	return out, nil
}

// call answers one tools/call.
func (e *endpoint) call(ctx context.Context, r *request, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if o := r.outcome; o != nil {
		if o.err != nil {
			return e.failure(o.call, proxy.AsError(o.err))
		}
		return e.success(r, o.call, o.res), nil
	}
	// In both protocol generations a call lives as long as its HTTP request
	// and no longer than the SDK wants.
	callCtx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer stop()

	c := e.newCall(r, saidBy(r, req))
	res, err := e.handle(callCtx, c)
	if err != nil {
		return e.failure(c, proxy.AsError(err))
	}
	return e.success(r, c, res), nil
}

// said is what a request says of a call, whether the fast path or the SDK has read it. Both
// fill in the same fields, so that a stage cannot know which it was.
type said struct {
	name   string          // of the tool
	args   json.RawMessage // as they were sent; nil when absent
	client proxy.Client
	trace  proxy.TraceContext
	// asks: the client puts questions to its user and comes back with the answers.
	asks   bool
	answer *proxy.Answer // what the user answered to an earlier call's question
}

// newCall makes a call of what a request says.
func (e *endpoint) newCall(r *request, s *said) *proxy.Call {
	return &proxy.Call{
		RequestID: r.info.RequestID,
		Team:      r.info.Team,
		Name:      s.name,
		RawArgs:   s.args,
		Identity:  r.info.Identity,
		Client:    s.client,
		Received:  r.received,
		Trace:     s.trace,
		CanAsk:    s.asks,
		TakesCode: e.opts.TakesCode,
		Answer:    s.answer,
	}
}

// saidBy reads what the SDK has read.
func saidBy(r *request, req *sdk.CallToolRequest) *said {
	args := req.Params.Arguments
	if r.args != nil {
		args = r.args
	}
	return &said{
		name: req.Params.Name, args: args, client: clientOf(r, req), trace: traceOf(req.Params.Meta),
		asks: asks(req), answer: answerOf(req.Params),
	}
}

// asks reports whether the client can answer a call with a question in a form,
// and come back with what its user said. Before 2026-07-28 there is no such thing.
// A client that names neither kind of elicitation means forms, the only kind at first.
func asks(req *sdk.CallToolRequest) bool {
	caps := req.ClientCapabilities()
	if req.ProtocolVersion() < currentSince || caps == nil || caps.Elicitation == nil {
		return false
	}
	return caps.Elicitation.Form != nil || caps.Elicitation.URL == nil
}

// The bounds of trace context in _meta: version 00 of traceparent has 55
// characters, and tracestate of 512 must be passed on (W3C Trace Context).
const (
	maxTraceParent = 128
	maxTraceState  = 512
)

// traceOf returns the trace context that a client gave with a call (SEP-414).
func traceOf(meta sdk.Meta) proxy.TraceContext {
	parent, _ := meta["traceparent"].(string)
	state, _ := meta["tracestate"].(string)
	return traceFrom(parent, state)
}

// traceFrom returns a trace context within the bounds.
func traceFrom(parent, state string) proxy.TraceContext {
	if parent == "" || len(parent) > maxTraceParent {
		return proxy.TraceContext{}
	}
	if len(state) > maxTraceState {
		state = ""
	}
	return proxy.TraceContext{Parent: parent, State: state}
}

// handle runs the chain. A panic below becomes an internal error, and so does
// an answer that is none.
func (e *endpoint) handle(ctx context.Context, c *proxy.Call) (res *proxy.Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			e.logPanic(c.RequestID, "tools/call", v)
			res, err = nil, proxy.AsError(nil)
		}
	}()
	res, err = e.opts.Handler.Handle(ctx, c)
	switch {
	case err != nil:
		res = nil
	case res == nil:
		err = errors.New("the chain returned neither result nor error")
	case res.Structured != nil && !json.Valid(res.Structured):
		err = errors.New("the structured content is not valid JSON")
	}
	if err != nil {
		if failed := proxy.AsError(err); failed.Kind == proxy.KindInternal {
			e.opts.Log.Error().Str("request_id", c.RequestID).AnErr("cause", failed.Err).
				Msg("a call failed by a defect")
		}
	}
	return res, err
}

// logPanic logs a panic without its value, which may hold anything, a token among
// it; the runtime's own errors name types and bounds only.
func (e *endpoint) logPanic(requestID, method string, v any) {
	ev := e.opts.Log.Error().Str("request_id", requestID).Str("method", method).
		Str("panic_type", fmt.Sprintf("%T", v))
	if re, ok := v.(runtime.Error); ok {
		ev = ev.Str("panic", re.Error())
	}
	ev.Bytes("stack", debug.Stack()).Msg("panic while answering an MCP request")
}

// success turns a result into the SDK's, its payloads into markers: the SDK encodes what
// it is given several times, and the payloads take the markers' places once it is done.
func (e *endpoint) success(r *request, c *proxy.Call, res *proxy.Result) *sdk.CallToolResult {
	out := &sdk.CallToolResult{
		Meta:    e.meta(c, res.Source),
		Content: []sdk.Content{&sdk.TextContent{Text: r.payloads.text(res.Text)}},
	}
	if res.TextBlock != nil {
		out.Content = append(out.Content, &sdk.TextContent{Text: r.payloads.text(res.TextBlock)})
	}
	if res.Structured != nil {
		out.StructuredContent = r.payloads.value(oneLine(res.Structured))
	}
	return out
}

// oneLine returns valid JSON without line ends, which would break the frame of
// an event: a line end there begins the next field (HTML, server-sent events). Gitea
// writes none, but a stage may have put the value together.
func oneLine(value []byte) []byte {
	if bytes.IndexByte(value, '\n') < 0 && bytes.IndexByte(value, '\r') < 0 {
		return value
	}
	var b bytes.Buffer
	_ = json.Compact(&b, value) // [endpoint.handle] has found it valid
	return b.Bytes()
}

// meta returns a fresh _meta; the SDK adds to it.
func (e *endpoint) meta(c *proxy.Call, source string) sdk.Meta {
	m := sdk.Meta{
		metaRequestID:   c.RequestID,
		metaGeneratedAt: e.now().UTC().Format(time.RFC3339),
	}
	if e.opts.CatalogVersion != "" {
		m[metaCatalogVersion] = e.opts.CatalogVersion
	}
	if source != "" {
		m[metaSource] = source
	}
	if c.Tool != nil && c.Tool.OperationID != "" {
		m[metaOperation] = c.Tool.OperationID
	}
	return m
}

// The bounds of what a client may say of itself, in runes.
const (
	maxClientName    = 64
	maxClientVersion = 32
)

// clientOf returns what the client says of itself. Before protocol 2026-07-28
// it says so at initialization only, which a stateless server does not
// remember; then the first product of User-Agent (RFC 9110 section 10.1.5)
// has to do.
func clientOf(r *request, req *sdk.CallToolRequest) proxy.Client {
	c := proxy.Client{Addr: r.info.Addr, Protocol: clean(req.ProtocolVersion(), maxClientVersion)}
	if info := req.ClientInfo(); info != nil {
		c.Name, c.Version = info.Name, info.Version
	} else if req.Extra != nil {
		c.Name, c.Version = product(req.Extra.Header)
	}
	c.Name, c.Version = clean(c.Name, maxClientName), clean(c.Version, maxClientVersion)
	return c
}

// isPlain reports whether s is printable ASCII.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// clean returns at most limit printable runes of s: names of clients go into the log, the
// audit log and pages that people read.
func clean(s string, limit int) string {
	if len(s) <= limit && isPlain(s) {
		return strings.Trim(s, " ")
	}
	var b strings.Builder
	for _, r := range s {
		if limit == 0 {
			break
		}
		if r != unicode.ReplacementChar && unicode.IsPrint(r) {
			b.WriteRune(r)
			limit--
		}
	}
	return strings.TrimSpace(b.String())
}
