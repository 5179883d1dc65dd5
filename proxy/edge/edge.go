package edge

import (
	"crypto/rand"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/rs/zerolog"

	"aegis/proxy"
)

// Edge wraps the whole server.
type Edge struct {
	// Hosts are the names that the server answers to. Required.
	Hosts *Hosts
	// Clients finds where requests come from; nil trusts no proxy.
	Clients *Clients
	// Heads bounds the heads of requests, Pace the time that bodies and answers take.
	Heads HeadLimits
	Pace  Pace
	// Foreign answers the requests that Own does not claim, such as those that
	// are passed through to Gitea. They are held to the Host check and the head
	// limits alone: who may do what, from which pages, is for the other server to
	// say. Nil: every request is the server's own.
	Foreign http.Handler
	// Own reports whether a request is the server's own; needed with Foreign.
	Own func(*http.Request) bool
	// Open reports whether a request is for a page or an endpoint that judges the
	// Origin itself, such as those of the authorization server; nil: none is.
	Open func(*http.Request) bool
	// Limit holds refused requests to a limit, so that a stranger cannot fill the
	// log with them; nil: there is none. Requests that pass are not its matter.
	Limit func(http.Handler) http.Handler
	// Linger is how many connections at a time may stay open for half a second after an answer
	// to a body that was not read; see linger. They count as open connections, which strangers
	// must not use up. 0: none.
	Linger int
	// Log receives refusals, and at debug level a line for each request that passes.
	Log zerolog.Logger

	lingering atomic.Int64
}

// Wrap returns next behind the edge. Requests that pass carry a fresh
// [proxy.RequestInfo] in their context.
func (e *Edge) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &proxy.RequestInfo{RequestID: rand.Text(), Addr: e.Clients.Addr(r)}
		w.Header().Set("X-Request-Id", x.RequestID)
		r, done := e.linger(w, r)
		defer done()
		r = r.WithContext(proxy.WithRequestInfo(r.Context(), x))
		if why := e.Heads.check(r); why != "" {
			e.refuse(w, r, refusal{http.StatusRequestHeaderFieldsTooLarge, "head_too_large", why})
			return
		}
		if !e.Hosts.AllowsHost(r.Host) {
			e.refuse(w, r, forbidden("this server does not answer to that Host; "+
				"if it should, set public_url or add the name to server.allowed_hosts"))
			return
		}
		if e.Foreign != nil && !e.Own(r) {
			e.pass(e.Foreign, nil, w, r)
			return
		}
		e.own(next, w, r)
	})
}

// own answers a request for the server itself.
func (e *Edge) own(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if e.Open != nil && e.Open(r) {
		secure(w.Header(), r)
		e.pass(next, &e.Pace, w, r)
		return
	}
	if why := e.check(r); why != "" {
		e.refuse(w, r, forbidden(why))
		return
	}
	secure(w.Header(), r)
	if origin := r.Header.Get("Origin"); origin != "" {
		cors(w.Header(), origin)
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			allowParams(w.Header(), r.Header.Get("Access-Control-Request-Headers"))
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	e.pass(next, &e.Pace, w, r)
}

// check returns why the Origin of a request is refused, "" when it is not. The
// reason names what to configure and repeats nothing that the client sent.
func (e *Edge) check(r *http.Request) string {
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

// hsts keeps browsers on https for half a year (RFC 6797 section 6.1), on this
// host alone.
const hsts = "max-age=15552000"

// secure sets the headers of every answer. Nothing that Aegis serves is a page
// to be framed, sniffed or kept.
func secure(h http.Header, r *http.Request) {
	if r.TLS != nil {
		h.Set("Strict-Transport-Security", hsts)
	}
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
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, Last-Event-ID, "+
		"MCP-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name, Traceparent, Tracestate")
	h.Set("Access-Control-Expose-Headers",
		"WWW-Authenticate, Mcp-Session-Id, Retry-After, RateLimit, RateLimit-Policy, X-Request-Id")
	h.Set("Access-Control-Max-Age", "600")
}

// allowParams allows the requested headers that repeat arguments of a call (MCP
// 2026-07-28: Mcp-Param-…), whose names depend on the tools.
func allowParams(h http.Header, requested string) {
	n := 0
	for name := range strings.SplitSeq(requested, ",") {
		name = strings.TrimSpace(name)
		isParam := strings.HasPrefix(strings.ToLower(name), "mcp-param-")
		if !isParam || len(name) > 100 || strings.ContainsFunc(name, notToken) {
			continue
		}
		if n++; n > 50 {
			return
		}
		h.Set("Access-Control-Allow-Headers", h.Get("Access-Control-Allow-Headers")+", "+name)
	}
}

// notToken reports whether a header name may not have r, letters, digits and
// hyphens aside (RFC 9110 section 5.1 allows a few more).
func notToken(r rune) bool {
	return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

// refusal is an answer of the edge itself.
type refusal struct {
	status int
	kind   proxy.Kind
	why    string
}

func forbidden(why string) refusal { return refusal{http.StatusForbidden, proxy.KindForbidden, why} }

// refuse answers a request without reading its body.
func (e *Edge) refuse(w http.ResponseWriter, r *http.Request, f refusal) {
	secure(w.Header(), r)
	w.Header().Set("Connection", "close") // the body stays unread
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := proxy.RequestInfoFrom(r.Context())
		e.Log.Warn().Str("request_id", x.RequestID).Str("addr", x.Addr).Str("reason", f.why).
			Msg("request refused at the edge")
		proxy.WriteError(w, x, f.status, proxy.NewError(f.kind, f.why, nil))
	})
	if e.Limit != nil {
		h = e.Limit(h)
	}
	h.ServeHTTP(w, r)
}
