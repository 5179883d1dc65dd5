package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"aegis/proxy"
)

// plainSDK is the official SDK used as its documentation shows it: the
// measure of both speed and truth.
func plainSDK(tools []*proxy.Tool, h func() *sdk.CallToolResult) http.Handler {
	srv := sdk.NewServer(&sdk.Implementation{Name: "aegis", Title: "Aegis", Version: "1.2.3"},
		&sdk.ServerOptions{Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}})
	for _, t := range tools {
		srv.AddTool(&sdk.Tool{
			Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
			Annotations: &sdk.ToolAnnotations{
				ReadOnlyHint: t.ReadOnly, DestructiveHint: &t.Destructive,
				IdempotentHint: t.Idempotent, OpenWorldHint: &t.OpenWorld,
			},
		}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return h(), nil })
	}
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return srv },
		&sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: 64 << 20})
}

// envelopeText is text like the envelope stage makes, about n bytes long.
func envelopeText(n int) string {
	var b strings.Builder
	b.WriteString(`{"status":200,"data":[`)
	for i := 0; b.Len() < n-200; i++ {
		fmt.Fprintf(&b, `{"id":%d,"number":%d,"title":"Login fails after the update — again","state":"open","user":{"login":"alice","email":"alice@example.org"},"labels":["bug","p1"]},`, i+1000, i)
	}
	b.WriteString(`null]}`)
	return b.String()
}

// discard is a ResponseWriter without a network behind it.
type discard struct {
	header http.Header
	n      int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { d.n += len(p); return len(p), nil }

func bench(b *testing.B, h http.Handler, version, method, params string) {
	b.Helper()
	proto := newRequest(b, "http://127.0.0.1/mcp", version, method, params)
	body, err := io.ReadAll(proto.Body)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		w := &discard{header: http.Header{}}
		r := proto.Clone(context.Background())
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
		if w.n < 60 {
			b.Fatal("no answer")
		}
	}
}

// BenchmarkCall compares a call's answer with the plain SDK's.
func BenchmarkCall(b *testing.B) {
	for _, size := range []int{4 << 10, 120 << 10, 1 << 20} {
		text := envelopeText(size)
		plain := plainSDK(toolSet(538), func() *sdk.CallToolResult {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
		})
		ours := identified(newHandler(b, settings(textChain(text))))
		for _, v := range []string{legacy, current} {
			b.Run(fmt.Sprintf("%dKiB/%s/sdk", size>>10, v), func(b *testing.B) {
				bench(b, plain, v, "tools/call", `{"name":"gitea_issue_action_001","arguments":{"owner":"acme"}}`)
			})
			b.Run(fmt.Sprintf("%dKiB/%s/aegis", size>>10, v), func(b *testing.B) {
				bench(b, ours, v, "tools/call", `{"name":"gitea_issue_action_001","arguments":{"owner":"acme"}}`)
			})
		}
	}
}

// BenchmarkUpload compares a call with a large argument.
func BenchmarkUpload(b *testing.B) {
	params := `{"name":"gitea_issue_action_001","arguments":{"content":"` + strings.Repeat("QUFB", 256<<10) + `"}}`
	plain := plainSDK(toolSet(538), func() *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "{}"}}}
	})
	ours := identified(newHandler(b, settings(textChain("{}"))))
	for _, v := range []string{legacy, current} {
		b.Run(v+"/sdk", func(b *testing.B) { bench(b, plain, v, "tools/call", params) })
		b.Run(v+"/aegis", func(b *testing.B) { bench(b, ours, v, "tools/call", params) })
	}
}

// BenchmarkList compares the list of the whole catalog.
func BenchmarkList(b *testing.B) {
	o := settings(textChain("{}"))
	o.Tools = toolSet(538)
	plain, ours := plainSDK(o.Tools, nil), identified(newHandler(b, o))
	for _, v := range []string{legacy, current} {
		b.Run(v+"/sdk", func(b *testing.B) { bench(b, plain, v, "tools/list", `{}`) })
		b.Run(v+"/aegis", func(b *testing.B) { bench(b, ours, v, "tools/list", `{}`) })
	}
}

// BenchmarkStart compares what an endpoint of 538 tools costs to make.
func BenchmarkStart(b *testing.B) {
	tools := toolSet(538)
	b.Run("sdk", func(b *testing.B) {
		for b.Loop() {
			plainSDK(tools, nil)
		}
	})
	b.Run("aegis", func(b *testing.B) {
		o := settings(textChain("{}"))
		o.Tools = tools
		for b.Loop() {
			newHandler(b, o)
		}
	})
}
