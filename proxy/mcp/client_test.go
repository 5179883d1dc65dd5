package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"aegis/proxy"
)

// connect returns the official client's session. Without a version the client
// begins with server/discover; with an older one it shakes hands.
func connect(t *testing.T, url, version string) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "probe", Version: "9.8"}, nil)
	session, err := client.Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true, HTTPClient: direct},
		&sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// forEachGeneration runs f with the official client in each protocol version.
func forEachGeneration(t *testing.T, url string, f func(*testing.T, *sdk.ClientSession, string)) {
	t.Helper()
	for _, v := range generations {
		t.Run(v, func(t *testing.T) {
			s := connect(t, url, v)
			if got := s.InitializeResult().ProtocolVersion; got != v {
				t.Fatalf("negotiated %s, want %s", got, v)
			}
			f(t, s, v)
		})
	}
}

func TestClientSeesServer(t *testing.T) {
	t.Parallel()
	srv := serve(t, settings(textChain("{}")))
	forEachGeneration(t, srv.URL, func(t *testing.T, s *sdk.ClientSession, _ string) {
		init := s.InitializeResult()
		want := &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}
		if diff := cmp.Diff(want, init.Capabilities); diff != "" {
			t.Errorf("capabilities (-want +got):\n%s", diff)
		}
		if init.ServerInfo.Name != "aegis" || init.ServerInfo.Version != "1.2.3" || init.ServerInfo.Title != "Aegis" {
			t.Errorf("server info: %+v", init.ServerInfo)
		}
		if init.Instructions != "Use these tools." {
			t.Errorf("instructions: %q", init.Instructions)
		}
	})
}

func TestClientListsEveryToolOnce(t *testing.T) {
	t.Parallel()
	o := settings(textChain("{}"))
	o.Tools, o.PageSize = toolSet(25), 4
	srv := serve(t, o)
	forEachGeneration(t, srv.URL, func(t *testing.T, s *sdk.ClientSession, _ string) {
		var names []string
		for tool, err := range s.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
		}
		if len(names) != 25 {
			t.Errorf("%d tools, want 25", len(names))
		}
		for i := 1; i < len(names); i++ {
			if names[i-1] >= names[i] {
				t.Errorf("%s stands before %s", names[i-1], names[i])
			}
		}
	})
}

func TestClientCalls(t *testing.T) {
	t.Parallel()
	calls := make(chan proxy.Call, 1)
	srv := serve(t, settings(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
		calls <- *c
		c.Tool = &proxy.Tool{OperationID: "issueGet"}
		return &proxy.Result{
			Text: []byte(`{"data":{"title":"\u2028 <b>"}}`), TextBlock: []byte("line 1\r\nline 2\n"),
			Structured: []byte("{\"a\":\n 1}\n"), Source: "gitea 28.1.0",
		}, nil
	}))
	forEachGeneration(t, srv.URL, func(t *testing.T, s *sdk.ClientSession, v string) {
		res, err := s.CallTool(t.Context(), &sdk.CallToolParams{
			Name: "gitea_issue_get", Arguments: json.RawMessage(`{"index": 1.0, "index2" : "x"}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		c := <-calls
		if c.Name != "gitea_issue_get" || c.Team != "core" || c.RequestID != "req-1" || c.Identity.Login != "alice" {
			t.Errorf("call: %+v", c)
		}
		if got := c.Client; got.Addr != "192.0.2.7" || got.Protocol != v || v == current && (got.Name != "probe" || got.Version != "9.8") {
			t.Errorf("client: %+v", got)
		}
		if c.Received.IsZero() {
			t.Error("the call has no time of receipt")
		}
		if got := res.Content[0].(*sdk.TextContent).Text; got != `{"data":{"title":"\u2028 <b>"}}` {
			t.Errorf("text: %s", got)
		}
		if got := res.Content[1].(*sdk.TextContent).Text; got != "line 1\r\nline 2\n" {
			t.Errorf("text block: %q", got)
		}
		if diff := cmp.Diff(map[string]any{"a": 1.0}, res.StructuredContent); diff != "" {
			t.Errorf("structured content (-want +got):\n%s", diff)
		}
		for key, want := range map[string]string{
			"aegis/request_id": "req-1", "aegis/source": "gitea 28.1.0",
			"aegis/operation": "issueGet", "aegis/catalog_version": "28.1.0",
		} {
			if res.Meta[key] != want {
				t.Errorf("_meta %s: %v, want %s", key, res.Meta[key], want)
			}
		}
	})
}

func TestClientSeesFailures(t *testing.T) {
	t.Parallel()
	srv := serve(t, settings(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
		if c.Name == "gitea_gone" {
			return nil, proxy.NewError(proxy.KindUnknownTool, "unknown tool", nil)
		}
		return nil, &proxy.Error{Kind: proxy.KindNotFound, Status: http.StatusNotFound, Public: "no such issue", Err: errTest}
	}))
	forEachGeneration(t, srv.URL, func(t *testing.T, s *sdk.ClientSession, _ string) {
		res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "gitea_issue_get"})
		if err != nil || !res.IsError || len(res.Content) != 1 {
			t.Fatalf("result %+v, error %v", res, err)
		}
		want := `{"error":{"status":404,"kind":"not_found","message":"no such issue","request_id":"req-1","retry_after":null}}`
		if got := res.Content[0].(*sdk.TextContent).Text; got != want {
			t.Errorf("text:\n%s\nwant:\n%s", got, want)
		}
		_, err = s.CallTool(t.Context(), &sdk.CallToolParams{Name: "gitea_gone"})
		var rpc *jsonrpc.Error
		if !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("unknown tool: %v", err)
		}
	})
}
