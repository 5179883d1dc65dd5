package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/rs/zerolog"

	"aegis/proxy"
)

// Verifier turns a bearer token into an identity.
type Verifier interface {
	Verify(ctx context.Context, token string) (*proxy.Identity, error)
}

// Guard lets requests with a known bearer token through and challenges all
// others. Requests must carry a [proxy.Exchange].
type Guard struct {
	Verifier Verifier
	// MetadataURL is the protected resource metadata (RFC 9728) that challenges
	// point to.
	MetadataURL string
	Log         zerolog.Logger
	// Refused is told of every refusal and why; nil: nobody is. The reason holds
	// nothing that the client sent.
	Refused func(x *proxy.Exchange, reason string)
}

// Wrap returns next behind the guard.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := proxy.ExchangeFrom(r.Context())
		if x == nil { // a wiring mistake must not become an open door
			http.Error(w, "internal error", http.StatusInternalServerError)
			return
		}
		token, err := bearer(r.Header)
		var id *proxy.Identity
		if err == nil {
			id, err = g.Verifier.Verify(r.Context(), token)
		}
		if err != nil {
			g.refuse(w, x, err)
			return
		}
		x.Identity = id
		// Nothing below needs the bearer token, so nothing below can leak it.
		r.Header.Del("Authorization")
		next.ServeHTTP(w, r)
	})
}

// refuse answers 401 with a challenge (RFC 6750 section 3), or 503 when the
// token is known and Gitea cannot say whose it is.
func (g *Guard) refuse(w http.ResponseWriter, x *proxy.Exchange, err error) {
	var pe *proxy.Error
	if errors.As(err, &pe) {
		g.Log.Error().Str("request_id", x.RequestID).Str("addr", x.Addr).Err(err).Msg("identity not established")
		g.refused(x, "the token is known, and Gitea could not confirm its identity: "+string(pe.Kind))
		w.Header().Set("Retry-After", strconv.Itoa(int(resolveAgain.Seconds())))
		writeError(w, http.StatusServiceUnavailable, string(pe.Kind), pe.Public, x.RequestID)
		return
	}
	g.Log.Warn().Str("request_id", x.RequestID).Str("addr", x.Addr).Str("reason", err.Error()).Msg("bearer refused")
	g.refused(x, err.Error())
	challenge := `Bearer realm="aegis", resource_metadata="` + g.MetadataURL + `"`
	if !errors.Is(err, errNoToken) {
		challenge += `, error="invalid_token", error_description="the access token is malformed, unknown or no longer valid"`
	}
	w.Header().Set("WWW-Authenticate", challenge)
	writeError(w, http.StatusUnauthorized, "unauthorized",
		"send a valid token as \"Authorization: Bearer …\"; whoever runs this server hands them out", x.RequestID)
}

func (g *Guard) refused(x *proxy.Exchange, reason string) {
	if g.Refused != nil {
		g.Refused(x, reason)
	}
}

func writeError(w http.ResponseWriter, status int, kind, message, requestID string) {
	body, err := json.Marshal(map[string]any{"error": map[string]string{"kind": kind, "message": message, "request_id": requestID}})
	if err != nil { // strings always marshal
		body = []byte(`{"error":{"kind":"internal"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client has gone when this fails; there is nobody to tell
}

// Metadata returns the handler of the protected resource metadata (RFC 9728
// section 3) of the MCP endpoint at resource, an absolute URL.
func Metadata(resource string) (http.Handler, error) {
	body, err := json.Marshal(map[string]any{
		"resource":                 resource,
		"bearer_methods_supported": []string{"header"},
		"resource_name":            "Aegis, an MCP gateway for Gitea",
	})
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		// Public facts, meant to be read by browser-based clients anywhere.
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "max-age=300")
		_, _ = w.Write(body) // as above
	}), nil
}
