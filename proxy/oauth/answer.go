package oauth

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"aegis/proxy"
)

// The error codes of RFC 6749 sections 4.1.2.1 and 5.2, RFC 7009, RFC 8707 and,
// for what is our own trouble, temporarily_unavailable.
const (
	codeRequest      = "invalid_request"
	codeClient       = "invalid_client"
	codeGrant        = "invalid_grant"
	codeTarget       = "invalid_target"
	codeGrantType    = "unsupported_grant_type"
	codeResponseType = "unsupported_response_type"
	codeDenied       = "access_denied"
	codeServer       = "server_error"
	codeUnavailable  = "temporarily_unavailable"
	codeMany         = "too_many_requests"
)

// failure is what an endpoint answers instead of success. It is an error.
type failure struct {
	status int
	code   string
	// says is what the reader can do next: ASCII without quotes and backslashes
	// (RFC 6749 section 5.2), nothing of what was sent.
	says string
	// retry is when trying again makes sense; 0: it does not.
	retry time.Duration
	// cause is for the log; may be nil.
	cause error
}

func (f *failure) Error() string { return f.code + ": " + f.says }

func (f *failure) Unwrap() error { return f.cause }

func invalid(says string) *failure { return bad(codeRequest, says) }

// bad is a request that will fail however often it is sent.
func bad(code, says string) *failure {
	return &failure{status: http.StatusBadRequest, code: code, says: says}
}

// notAuthenticated is invalid_client, upon which clients register anew.
func notAuthenticated(says string) *failure {
	return &failure{status: http.StatusUnauthorized, code: codeClient, says: says}
}

// retryStore is when to come back after trouble of our own.
const retryStore = 5 * time.Second

// ours is a failure that is not the client's. It must never look like
// invalid_grant: clients would throw their tokens away.
func ours(cause error) *failure {
	return &failure{status: http.StatusServiceUnavailable, code: codeUnavailable, retry: retryStore, cause: cause,
		says: "Aegis cannot answer at the moment; try again shortly"}
}

// seconds is a Retry-After header.
func seconds(d time.Duration) string { return strconv.FormatInt(proxy.Seconds(d), 10) }

// endpoint makes an endpoint for programs of h: open to every origin without
// cookies, POST alone, failures in JSON.
func (s *Server) endpoint(h func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.preflight(w, r) {
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Pragma", "no-cache") // RFC 6749 section 5.1
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", "POST, OPTIONS")
			s.fail(w, r, &failure{status: http.StatusMethodNotAllowed, code: codeRequest, says: "use POST"})
			return
		}
		if err := h(w, r); err != nil {
			s.fail(w, r, err)
		}
	})
}

// fail is the one writer of failures that programs read (RFC 6749 section 5.2): JSON
// without nulls, which some clients cannot read.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	f, ok := errors.AsType[*failure](err)
	if !ok {
		f = ours(err)
	}
	if f.cause != nil {
		x := requestInfo(r)
		s.o.Log.Warn().Str("request_id", x.RequestID).Str("addr", x.Addr).Str("code", f.code).
			Err(f.cause).Msg("oauth request failed")
	}
	if f.retry > 0 {
		w.Header().Set("Retry-After", seconds(f.retry))
	}
	if f.status == http.StatusUnauthorized { // RFC 6749 section 5.2
		w.Header().Set("WWW-Authenticate", `Basic realm="aegis"`)
	}
	s.json(w, f.status, map[string]string{"error": f.code, "error_description": f.says})
}

// json answers a program.
func (s *Server) json(w http.ResponseWriter, status int, v any) {
	body, _ := json.Marshal(v) // texts and numbers always marshal
	raw(w, status, body)
}

func raw(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // it fails when the client has gone
}

// preflight opens an answer to every origin, without cookies (the Fetch standard,
// section 3.2), and reports whether it has answered an OPTIONS request. Clients
// that run in browsers read metadata and fetch tokens from pages anywhere; what
// they need to know they hold themselves.
func (s *Server) preflight(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Del("Access-Control-Allow-Credentials")
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, MCP-Protocol-Version")
	h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Retry-After, X-Request-Id")
	if r.Method != http.MethodOptions {
		return false
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// closeOrigins takes back what a layer above has allowed to other origins: pages
// and forms are not for scripts of other sites.
func closeOrigins(h http.Header) {
	maps.DeleteFunc(h, func(name string, _ []string) bool { return strings.HasPrefix(name, "Access-Control-") })
}
