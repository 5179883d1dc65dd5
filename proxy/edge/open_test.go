package edge_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"aegis/proxy/edge"
)

// opened is an edge with one path that judges origins itself.
func opened(t *testing.T) http.Handler {
	t.Helper()
	base, err := url.Parse("https://aegis.example.org")
	if err != nil {
		t.Fatal(err)
	}
	e := &edge.Edge{
		Hosts: edge.NewHosts(base, nil, []string{"https://app.example"}), Clients: edge.NewClients(nil, "X-Forwarded-For"),
		Heads: edge.HeadLimits{Bytes: 64 << 10, Lines: 100}, Log: zerolog.Nop(),
		Open: func(r *http.Request) bool { return r.URL.Path == "/open" },
	}
	return e.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }))
}

func ask(h http.Handler, method, path, host string, headers map[string]string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host = host
	for k, v := range headers {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestOpenPaths judge the Origin themselves; the Host is still the edge's matter,
// and nothing says that other pages may read them.
func TestOpenPaths(t *testing.T) {
	t.Parallel()
	h := opened(t)
	evil := map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
	if w := ask(h, "POST", "/open", "aegis.example.org", evil); w.Code != http.StatusAccepted || w.Header().Get("Access-Control-Allow-Origin") != "" || w.Header().Get("X-Content-Type-Options") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := ask(h, "POST", "/mcp", "aegis.example.org", evil); w.Code != http.StatusForbidden {
		t.Errorf("another path: %d", w.Code)
	}
	if w := ask(h, "GET", "/open", "evil.example", nil); w.Code != http.StatusForbidden {
		t.Errorf("another host: %d", w.Code)
	}
}

func TestPreflightAllowsParameterHeaders(t *testing.T) {
	t.Parallel()
	w := ask(opened(t), "OPTIONS", "/mcp", "aegis.example.org", map[string]string{
		"Origin": "https://app.example", "Access-Control-Request-Method": "POST",
		"Access-Control-Request-Headers": "authorization, Mcp-Param-Owner, mcp-param-x\"y, Cookie, mcp-param-" + strings.Repeat("z", 200),
	})
	allowed := w.Header().Get("Access-Control-Allow-Headers")
	if w.Code != http.StatusNoContent || !strings.HasSuffix(allowed, ", Mcp-Param-Owner") || strings.Contains(allowed, "Cookie") {
		t.Errorf("%d %q", w.Code, allowed)
	}
	many := ask(opened(t), "OPTIONS", "/mcp", "aegis.example.org", map[string]string{
		"Origin": "https://app.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": strings.Repeat("mcp-param-a,", 5000),
	})
	if n := len(many.Header().Get("Access-Control-Allow-Headers")); n > 2000 {
		t.Errorf("the answer has %d bytes", n)
	}
}
