// Package mcp binds the tools of a team to the Model Context Protocol over
// HTTP. The official SDK speaks the protocol: versions, headers, JSON-RPC,
// framing. This package decides what tools/list and tools/call answer, and
// keeps large payloads out of the SDK, which would encode them several times:
// the SDK answers with a marker, and the payload takes the marker's place
// while the HTTP response is written. Plain calls, and lists, of clients that take
// JSON do not need the SDK at all; see fastpath.go.
//
// The server is stateless. No POST depends on another, so any replica may answer
// any request and nothing is kept between two of them.
package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"aegis/proxy"
	"aegis/proxy/internal/buffers"
)

// The bounds of what is optional in [Options], and of what a client may send.
const (
	defaultPageSize     = 1000
	defaultMaxBodyBytes = 8 << 20
	// maxBatch bounds the messages of one JSON-RPC batch, which only protocol
	// 2025-03-26 knows. Without it one small body could start thousands of calls.
	maxBatch = 16
)

// protocolVersions are the versions that Aegis speaks, newest first. 2024-11-05, the first,
// needs a stream beside each connection, which a server without sessions cannot have.
func protocolVersions() []string {
	return []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"}
}

// Options describe one MCP endpoint.
type Options struct {
	// Name, Title and Version identify the server to clients. Name and Version
	// are required; an empty Title is not sent.
	Name, Title, Version string
	// Instructions tell a model how to use the tools; "" sends none.
	Instructions string
	// Tools are what clients see, in any order; names must be unique.
	Tools []*proxy.Tool
	// SudoTools returns what identities with AllowSudo see instead of Tools: the same tools
	// with the sudo argument in their schemas. It is called once, by the first such identity
	// that asks for a list: most servers have none. Nil: Tools.
	SudoTools func() []*proxy.Tool
	// TakesCode is [proxy.Call]'s, for all calls.
	TakesCode bool
	// OutputSchemas lists the tools' output schemas, for endpoints whose
	// results carry structured content.
	OutputSchemas bool
	// Handler answers calls. It sees every name that a client sends, known or
	// not. Required.
	Handler proxy.Handler
	// PageSize is the number of tools in one page of tools/list; 0 means 1000.
	PageSize int
	// ListTTL is how long clients may keep lists (protocol 2026-07-28),
	// in whole milliseconds; 0 forbids it.
	ListTTL time.Duration
	// MaxBodyBytes bounds a request body; 0 means 8 MiB.
	MaxBodyBytes int64
	// Permits, when not nil, judges a body that was found to be one JSON text, before any
	// of it runs: the caller's token may not cover its calls. False: it has answered the
	// request.
	Permits func(w http.ResponseWriter, x *proxy.RequestInfo, body []byte) bool
	// CatalogVersion is stamped on every result.
	CatalogVersion string
	// Hold, when not nil, keeps the pieces of an answer back until release is called,
	// so that they go out in one write.
	Hold func(r *http.Request) (release func())
	// Log receives defects: panics below and answers that make no sense.
	Log zerolog.Logger
}

// endpoint is the HTTP handler of one team. It is immutable but for its buffers.
type endpoint struct {
	opts        Options
	list        *toolList
	sudo        func() (*toolList, error)
	json, event http.Handler // the SDK, answering with JSON and with events
	buffers     buffers.Pool
	marks       marks
	lw          fastWords
	now         func() time.Time
}

// New returns the endpoint's HTTP handler. Every request that reaches it must
// carry a [proxy.RequestInfo] with an identity in its context; one without is
// answered with 500, since it means that authentication was left out.
func New(o Options) (http.Handler, error) {
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("mcp endpoint: %w", err)
	}
	e := &endpoint{opts: o, now: time.Now, lw: newFastWords(&o)}
	var err error
	if e.marks, err = newMarks(); err != nil {
		return nil, fmt.Errorf("mcp endpoint: %w", err)
	}
	if e.list, err = e.newList(o.Tools); err != nil {
		return nil, fmt.Errorf("mcp endpoint: tool list: %w", err)
	}
	e.sudo = sync.OnceValues(func() (*toolList, error) {
		if o.SudoTools == nil {
			return e.list, nil
		}
		return e.newList(o.SudoTools())
	})
	srv := e.newServer()
	e.json, e.event = sdkHandler(srv, true), sdkHandler(srv, false)
	return e, nil
}

// complete fills in what was left out and refuses what cannot work. The lists are copied:
// the caller may go on to change its own.
func (o *Options) complete() error {
	switch {
	case o.Handler == nil:
		return errors.New("no handler")
	case o.Name == "" || o.Version == "":
		return errors.New("no name or version")
	case o.PageSize < 0 || o.ListTTL < 0 || o.MaxBodyBytes < 0:
		return errors.New("page size, list TTL and body bound must not be negative")
	}
	o.PageSize = cmp.Or(o.PageSize, defaultPageSize)
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, defaultMaxBodyBytes)
	o.Tools = slices.Clone(o.Tools)
	return nil
}

// newServer returns the SDK's server. It has one tool for all: adding each
// would parse every schema at start and let the SDK, not the handler, decide
// which names exist.
func (e *endpoint) newServer() *sdk.Server {
	srv := sdk.NewServer(
		e.opts.implementation(),
		&sdk.ServerOptions{
			Instructions:              e.opts.Instructions,
			Capabilities:              &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
			SupportedProtocolVersions: protocolVersions(),
			SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) {
				*c = e.opts.cacheable()
			},
		})
	srv.AddTool(&sdk.Tool{Name: onlyTool, InputSchema: json.RawMessage(`{"type":"object"}`)}, handOver)
	srv.AddReceivingMiddleware(e.receive)
	return srv
}

// implementation is who answers, in the SDK's words.
func (o *Options) implementation() *sdk.Implementation {
	return &sdk.Implementation{Name: o.Name, Title: o.Title, Version: o.Version}
}

// cacheable is the permission to keep a list (protocol 2026-07-28): for the caller alone, since an
// intermediary would serve it to strangers.
func (o *Options) cacheable() sdk.Cacheable {
	return sdk.Cacheable{TTLMs: int(o.ListTTL.Milliseconds()), CacheScope: "private"}
}

// sdkHandler returns the SDK's HTTP handler. Its own checks of host and body
// size are off: the edge and [endpoint.ServeHTTP] make them, and answer in the one form
// of errors.
func sdkHandler(srv *sdk.Server, asJSON bool) http.Handler {
	return sdk.NewStreamableHTTPHandler(
		func(*http.Request) *sdk.Server { return srv },
		&sdk.StreamableHTTPOptions{
			Stateless:                    true,
			JSONResponse:                 asJSON,
			DisableLocalhostProtection:   true,
			MaxRequestBodyBytes:          -1,
			PropagateRequestCancellation: true,
		})
}
