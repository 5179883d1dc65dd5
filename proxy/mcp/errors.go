package mcp

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"aegis/proxy"
)

// failure is the one translation of an [proxy.Error] to MCP. An unknown tool
// is a protocol error, as the specification has it; every other failure is a
// result that the model can read and act on.
func (e *endpoint) failure(c *proxy.Call, err *proxy.Error) (*sdk.CallToolResult, error) {
	if err.Question != nil && c.CanAsk {
		return e.ask(c, err.Question)
	}
	if err.Kind == proxy.KindUnknownTool {
		return nil, protocolError(c, err)
	}
	return &sdk.CallToolResult{
		Meta:    e.meta(c, ""),
		Content: []sdk.Content{&sdk.TextContent{Text: string(failureText(c, err))}},
		IsError: true,
	}, nil
}

// failureText returns what a model reads of a failure.
func failureText(c *proxy.Call, err *proxy.Error) []byte {
	var body struct {
		Error errorBody `json:"error"`
	}
	body.Error = errorBody{Kind: err.Kind, Message: err.Public, RequestID: c.RequestID}
	if err.Untrusted {
		body.Error.Untrusted = proxy.Untrusted
	}
	if err.Status != 0 {
		body.Error.Status = &err.Status
	}
	if err.RetryAfter > 0 {
		body.Error.RetryAfter = new(proxy.Seconds(err.RetryAfter))
	}
	text, _ := proxy.Encode(body) // texts and numbers always encode
	return text
}

// protocolError is the JSON-RPC error of a tool that is not known.
func protocolError(c *proxy.Call, err *proxy.Error) *jsonrpc.Error {
	// Marshalling two strings cannot fail; without data the error is still one.
	data, _ := json.Marshal(map[string]string{"kind": string(err.Kind), "request_id": c.RequestID})
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Public, Data: data}
}

// errorBody is what a client reads of a failure. Members that are not known are null and not
// left out: a model that sees the member knows that there is such a thing to wait for.
type errorBody struct {
	// Status is Gitea's HTTP status; null when Gitea was not asked.
	Status *int       `json:"status"`
	Kind   proxy.Kind `json:"kind"`
	// Untrusted stands before a message that quotes Gitea, as it does before data.
	Untrusted string `json:"untrusted_content,omitempty"`
	Message   string `json:"message"`
	RequestID string `json:"request_id"`
	// RetryAfter is in seconds; null when unknown.
	RetryAfter *int64 `json:"retry_after"`
}
