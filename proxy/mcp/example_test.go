package mcp_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"aegis/proxy"
	"aegis/proxy/mcp"
)

// An endpoint answers requests that carry an identity, and hands their calls to a chain.
func ExampleNew() {
	chain := proxy.HandlerFunc(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
		return nil, proxy.NewError(proxy.KindUnknownTool, "unknown tool "+c.Name, nil)
	})
	h, err := mcp.New(mcp.Options{Name: "aegis", Version: "1", Handler: chain})
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequest("POST", "/mcp", strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"no_such"}}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("MCP-Protocol-Version", "2025-11-25")
	x := &proxy.RequestInfo{RequestID: "R7", Identity: &proxy.Identity{Login: "alice"}}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(proxy.WithRequestInfo(r.Context(), x)))
	fmt.Println(w.Body)
	// Output: {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown tool no_such","data":{"kind":"unknown_tool","request_id":"R7"}}}
}
