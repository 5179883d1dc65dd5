package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/rs/zerolog"

	"aegis/proxy"
)

// Verifier turns a bearer token into an identity.
type Verifier interface {
	Verify(ctx context.Context, token string) (*proxy.Identity, error)
}

// Guard lets requests with a known bearer token through and challenges all
// others. Requests must carry a [proxy.RequestInfo]. It looks at heads alone; who has read a
// body asks [Guard.Permits] about the calls in it.
type Guard struct {
	Verifier Verifier
	// Team is the endpoint's name, which requests carry before anything is decided.
	Team string
	// MetadataURL is the protected resource metadata (RFC 9728) that challenges
	// point to.
	MetadataURL string
	// Scopes are the scopes that challenges of requests without a token name; nil
	// without OAuth.
	Scopes []string
	// Offered are all scopes that a sign-in can bring; nil: that is not known.
	Offered []string
	// Needs says what calls of OAuth identities need; nil: nothing.
	Needs Needs
	// Admit decides whether an identity may use this endpoint; nil: every one may.
	// It turns one away by [NotAdmitted]; any other [*proxy.Error] is trouble, and
	// answered 503.
	Admit func(ctx context.Context, id *proxy.Identity) error
	// Log gets the causes, which no answer has.
	Log zerolog.Logger
	// Refused is called with every refusal and why; may be nil. The reason holds
	// nothing that the client sent.
	Refused func(x *proxy.RequestInfo, reason string)
}

// Wrap returns next behind the guard. Who calls is decided before what: whatever
// the method, a request without a token is challenged, as clients learn where to
// sign in by GET and HEAD too.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := proxy.RequestInfoFrom(r.Context())
		if x == nil { // a wiring mistake must not become an open door
			http.Error(w, "internal error", http.StatusInternalServerError)
			return
		}
		x.Team = g.Team
		if r.Method == http.MethodOptions { // browsers send no token with a preflight
			w.Header().Set("Allow", "GET, POST, DELETE, OPTIONS")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		token, err := bearer(r.Header)
		var id *proxy.Identity
		if err == nil {
			id, err = g.Verifier.Verify(r.Context(), token)
		}
		if err == nil && g.Admit != nil {
			err = g.Admit(r.Context(), id)
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

// refuse answers 401 with a challenge, 403 when the identity is known and not
// wanted here, or 503 when the token is known and its identity cannot be had now.
func (g *Guard) refuse(w http.ResponseWriter, x *proxy.RequestInfo, err error) {
	pe, ok := errors.AsType[*proxy.Error](err)
	if !ok {
		g.challenge(w, x, err)
		return
	}
	if errors.Is(err, errNotAdmitted) {
		g.Log.Warn().Str("request_id", x.RequestID).Str("addr", x.Addr).
			Str("reason", err.Error()).Msg("not admitted")
		g.refused(x, pe.Public)
		writeError(w, x, http.StatusForbidden, proxy.NewError(pe.Kind, pe.Public, nil))
		return
	}
	g.Log.Error().Str("request_id", x.RequestID).Str("addr", x.Addr).Err(err).Msg("identity not established")
	g.refused(x, "the token is known, and its identity could not be confirmed: "+string(pe.Kind))
	w.Header().Set("Retry-After", seconds(max(pe.RetryAfter, resolveAgain)))
	writeError(w, x, http.StatusServiceUnavailable, proxy.NewError(pe.Kind, pe.Public, nil))
}

// errNotAdmitted marks the refusals of [NotAdmitted].
var errNotAdmitted = errors.New("not admitted")

// NotAdmitted returns the error by which Guard.Admit turns an identity away. The
// text says what the person can do.
func NotAdmitted(public string) error {
	return proxy.NewError(proxy.KindForbidden, public, errNotAdmitted)
}

// challenge answers 401 (RFC 6750 section 3, RFC 9728 section 5.1): one header,
// every value quoted, in a form that simple parsers get right too.
func (g *Guard) challenge(w http.ResponseWriter, x *proxy.RequestInfo, err error) {
	g.Log.Warn().Str("request_id", x.RequestID).Str("addr", x.Addr).Str("reason", err.Error()).Msg("bearer refused")
	g.refused(x, reason(err))
	text := "Bearer "
	// Without a token there is no error to name (RFC 6750 section 3.1).
	if !errors.Is(err, errNoToken) {
		text += `error="invalid_token", error_description="the access token is malformed, unknown or no longer valid", `
	}
	text += `resource_metadata="` + g.MetadataURL + `"`
	if len(g.Scopes) > 0 {
		text += `, scope="` + strings.Join(g.Scopes, " ") + `"`
	}
	w.Header().Set("WWW-Authenticate", text)
	says := `send a valid token as "Authorization: Bearer …"; whoever runs this server hands them out`
	if len(g.Scopes) > 0 {
		says = "sign in: an MCP client that knows OAuth does so by itself; " +
			`or send a token that whoever runs this server gave you, as "Authorization: Bearer …"`
	}
	writeError(w, x, http.StatusUnauthorized, proxy.NewError(proxy.KindUnauthorized, says, nil))
}

// reason returns why there is no identity in fixed words; causes are for the log.
func reason(err error) string {
	for _, known := range []error{
		errNoToken, errTwoTokens, errScheme, errMalformed, errUnknown, errEnded, errAudience, errSignIn,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "the bearer token was refused"
}

// refused reports a refusal to the audit log.
func (g *Guard) refused(x *proxy.RequestInfo, reason string) {
	if g.Refused != nil {
		g.Refused(x, reason)
	}
}

// writeError answers for the guard; what it says holds for this request alone.
func writeError(w http.ResponseWriter, x *proxy.RequestInfo, status int, err *proxy.Error) {
	w.Header().Set("Cache-Control", "no-store")
	proxy.WriteError(w, x, status, err)
}

// Metadata returns the handler of the protected resource metadata (RFC 9728
// section 3) of the MCP endpoint at resource, an absolute URL, without a sign-in
// there. A [Server] serves its own.
func Metadata(resource string) http.Handler {
	body, _ := json.Marshal(resourceMetadata{ // texts always marshal
		Resource: resource, BearerMethods: []string{"header"}, ResourceName: resourceName,
	})
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
		_, _ = w.Write(body) // it fails when the client has gone
	})
}
