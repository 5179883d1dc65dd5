package server_test

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// TestGoSDKClient: the official SDK's client finds its way from a bare address,
// registers, signs in, and signs in again when a call needs more than it has.
func TestGoSDKClient(t *testing.T) {
	h := newHouse(t, houseOptions{oauth: "default_scopes: [read:user, read:repository]\n"})
	alice := h.person("alice")
	var asked []string
	var logins atomic.Int32
	flow, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		Client: direct,
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Go SDK client", RedirectURIs: []string{"http://127.0.0.1:4712/callback"}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"},
		}},
		RequestRefreshToken: true,
		AuthorizationCodeFetcher: func(_ context.Context, a *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			logins.Add(1)
			u, err := url.Parse(a.URL)
			if err != nil {
				return nil, err
			}
			asked = append(asked, u.Query().Get("scope"))
			got := alice.allow(a.URL)
			if got.Get("code") == "" {
				return nil, errors.New("no code")
			}
			return &auth.AuthorizationResult{Code: got.Get("code"), State: got.Get("state"), Iss: got.Get("iss")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "go-sdk", Version: "1"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: h.endpoint, DisableStandaloneSSE: true, OAuthHandler: flow, HTTPClient: direct}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	call := func(tool string, args map[string]any) string {
		t.Helper()
		res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		text := res.Content[0].(*sdk.TextContent).Text
		if res.IsError {
			t.Fatalf("%s: %s", tool, text)
		}
		return text
	}
	if got := call("gitea_user_get_me", nil); !strings.Contains(got, `"login":"alice"`) {
		t.Errorf("who am I: %s", got)
	}
	if n := logins.Load(); n != 1 {
		t.Fatalf("%d sign-ins before anything more was needed", n)
	}
	// A write needs more; the client reads the challenge and asks the person again.
	if got := call("gitea_issue_create", map[string]any{"owner": "acme", "repo": "garden", "title": "by the SDK"}); !strings.Contains(got, "by the SDK") {
		t.Errorf("issue: %s", got)
	}
	if n := logins.Load(); n != 2 {
		t.Errorf("%d sign-ins", n)
	}
	if len(asked) == 2 {
		want := []string{"read:repository", "read:user", "write:issue"}
		got := strings.Fields(asked[1])
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("the step-up asks for %q, without %s", asked[1], w)
			}
		}
	}
	call("gitea_repository_get", map[string]any{"owner": "acme", "repo": "garden"})
	if n := logins.Load(); n != 2 {
		t.Errorf("%d sign-ins after all that was needed", n)
	}
}
