package edge

import (
	"crypto/rand"
	"encoding/json"
	"net"
	"net/http"
	"strings"

	"github.com/rs/zerolog"

	"aegis/proxy"
)

// Edge wraps the whole server.
type Edge struct {
	Hosts *Hosts
	Log   zerolog.Logger
}

// Wrap returns next behind the edge. Requests that pass carry a fresh
// [proxy.Exchange] in their context.
func (e *Edge) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &proxy.Exchange{RequestID: rand.Text(), Addr: clientAddr(r.RemoteAddr)}
		secure(w.Header())
		w.Header().Set("X-Request-Id", x.RequestID)
		if why := e.check(r); why != "" {
			e.Log.Warn().Str("request_id", x.RequestID).Str("addr", x.Addr).Str("reason", why).Msg("request refused at the edge")
			refuse(w, why, x.RequestID)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			cors(w.Header(), origin)
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		next.ServeHTTP(w, r.WithContext(proxy.WithExchange(r.Context(), x)))
	})
}

// check returns why a request is refused, "" when it is not. The reason names
// what to configure and repeats nothing that the client sent.
func (e *Edge) check(r *http.Request) string {
	if !e.Hosts.AllowsHost(r.Host) {
		return "this server does not answer to that Host; if it should, set public_url or add the name to server.allowed_hosts"
	}
	origins := r.Header.Values("Origin")
	switch {
	case len(origins) > 1:
		return "more than one Origin header"
	case len(origins) == 1 && !e.Hosts.AllowsOrigin(origins[0]):
		return "web pages of that Origin may not call this server; if they should, add it to server.allowed_origins"
	case len(origins) == 0 && r.Header.Get("Sec-Fetch-Site") == "cross-site":
		return "a web page of another site may not call this server"
	}
	return ""
}

// clientAddr is the peer's address without its port and zone.
func clientAddr(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	host, _, _ = strings.Cut(host, "%")
	return host
}

// secure sets the headers of every answer. Nothing that Aegis serves is a page
// to be framed, sniffed or kept.
func secure(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
}

// cors lets a browser-based client of an allowed origin read answers (the Fetch
// standard, section 3.2). Credentials are bearer tokens that the page holds
// itself, so cookies are not allowed.
func cors(h http.Header, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, Last-Event-ID, MCP-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name")
	h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Mcp-Session-Id, Retry-After, X-Request-Id")
	h.Set("Access-Control-Max-Age", "600")
}

func refuse(w http.ResponseWriter, why, requestID string) {
	body, err := json.Marshal(map[string]any{"error": map[string]string{"kind": "forbidden", "message": why, "request_id": requestID}})
	if err != nil { // strings always marshal
		body = []byte(`{"error":{"kind":"internal"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Connection", "close") // the body stays unread
	w.WriteHeader(http.StatusForbidden)
	_, _ = w.Write(body) // the client has gone when this fails
}
