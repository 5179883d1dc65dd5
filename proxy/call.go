package proxy

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

// Call is one tools/call on its way down the chain. The MCP layer makes it,
// the catalog stage fills Tool and Args, and every stage may read it. A Call
// belongs to one goroutine at a time and lives for one request.
type Call struct {
	// RequestID names the HTTP request in logs, audit and answers.
	RequestID string
	// Team is the endpoint's name; "" is the default team at /mcp.
	Team string
	// Name is the tool's name as the client spelled it.
	Name string
	// RawArgs is the client's arguments object, unparsed; nil when absent.
	RawArgs json.RawMessage
	// Identity is on whose behalf the call runs; never nil.
	Identity *Identity
	// Client is what the MCP client says of itself, and where it connects from.
	Client Client
	// Received is when the HTTP request's head had been read.
	Received time.Time
	// Trace is the trace context of the call's own _meta, as the client wrote it.
	Trace TraceContext
	// TraceID names the call's trace; set by tracing, "" without it.
	TraceID string
	// CanAsk reports that the client can put a question to its user and come back
	// with the answer (MCP input requests); an [Error] may then carry a [Question].
	CanAsk bool
	// TakesCode reports that the endpoint accepts confirmation codes, so that the
	// argument for them exists.
	TakesCode bool
	// Answer is what the user answered to the question of an earlier call; nil when
	// the call begins anew.
	Answer *Answer

	// Reply is where the result's text is to be written; nil: the result has Text.
	Reply *Reply

	// Tool is what Name means; set by the catalog stage. For the tool that reaches
	// any route it has the risk and the ways of the operation that the call reaches.
	Tool *Tool
	// Args are the validated arguments by the names of Tool, without the ones that
	// steer Aegis itself (see Options); set by the catalog stage. What they ask of
	// Gitea is in Wire.
	Args Arguments
	// Op is the operation that the call reaches, by whichever tool; nil for a route
	// that the catalog lacks. Op, Wire and Target are set by the catalog stage: they
	// are the one form of a call that decisions and records rest on.
	Op *Tool
	// Wire is the request that the call means. Stages on the way down may change
	// its values, never its method or route.
	Wire Wire
	// Target is what the call is about; empty without Op.
	Target Target
	// Options are the arguments that steer Aegis, not Gitea.
	Options CallOptions
	// Stats gathers what stages learn that the audit and access records need.
	Stats CallStats
}

// Arguments are validated and coerced tool arguments by argument name. The
// values are string, bool, json.Number, []any and map[string]any, as decoded
// from JSON; an absent or null argument has no entry.
type Arguments map[string]any

// CallOptions are the arguments of a call that Aegis answers itself.
type CallOptions struct {
	// Cursor continues a truncated result; "" when the call begins one.
	Cursor string
	// Fields keeps only these paths of the result's data; nil keeps all.
	Fields []string
	// Needs are paths of the data that stages read on the way back though Fields
	// does not name them. Stages add theirs on the way down; the envelope drops
	// what Fields does not name.
	Needs []string
	// Code confirms a call that a person must permit; "" when none was given.
	Code string
	// Sudo is the login to act as (Gitea's Sudo header); "" for none. It is
	// set only when Identity.AllowSudo holds.
	Sudo string
}

// Question asks the person behind the client to permit a call.
type Question struct {
	// State comes back with the answer. It is opaque and authenticated.
	State string
	// Message is the question in plain text; it names what would happen to what.
	Message string
	// Retype is what the person must type to permit it; "" when a yes is enough.
	Retype string
}

// Answer is the person's answer to a [Question], as the client gave it.
type Answer struct {
	// State is the question's, unchecked.
	State string
	// Accepted reports that the person permitted it; Typed is what they typed.
	Accepted bool
	Typed    string
}

// Client describes the MCP client of a call. Name and Version are the client's
// own words and prove nothing.
type Client struct {
	Name, Version string
	// Addr is the client's network address without port, after trusted proxies.
	Addr string
	// Protocol is the MCP protocol version that the request speaks.
	Protocol string
}

// TraceContext is W3C trace context, unparsed; the zero value is none.
type TraceContext struct {
	// Parent and State are the values of traceparent and tracestate, at most 128
	// and 512 bytes long.
	Parent, State string
}

// CallStats are what is known of a call once it has been answered.
type CallStats struct {
	// Upstream is the time spent waiting for Gitea, retries included.
	Upstream time.Duration
	// Attempts is how many HTTP requests were sent to Gitea (0 to 2).
	Attempts int
	// BytesIn and BytesOut are body bytes received from and sent to Gitea.
	BytesIn, BytesOut int64
	// MaskHits counts masked secrets by rule name.
	MaskHits map[string]int
	// Limiter is the bucket that refused the call; "" when none did.
	Limiter string
	// Policy is the policy rule that refused the call, such as "repos.deny[1]" or
	// "branches.allow"; "" when none did.
	Policy string
	// WriteToken reports that the call ran with the team's own credential for
	// writes, not with that of its identity.
	WriteToken bool
	// SchemaMismatch is the place of the tool's output schema that the data broke, so that
	// the result has no structured content; "" when it fits or was not checked.
	SchemaMismatch string
}

// Handler answers a call. A returned error is an [*Error] or is treated as
// [KindInternal]. Exactly one of result and error is non-nil.
type Handler interface {
	Handle(ctx context.Context, c *Call) (*Result, error)
}

// HandlerFunc makes a function a [Handler].
type HandlerFunc func(ctx context.Context, c *Call) (*Result, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, c *Call) (*Result, error) { return f(ctx, c) }

// Stage wraps a handler with one concern.
type Stage func(next Handler) Handler

// Chain returns last wrapped in the stages so that the first stage sees a call
// first and its result last. Nil stages are left out.
func Chain(last Handler, stages ...Stage) Handler {
	for _, s := range slices.Backward(stages) {
		if s != nil {
			last = s(last)
		}
	}
	return last
}
