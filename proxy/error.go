package proxy

import (
	"errors"
	"time"
)

// Kind is the stable, machine-readable name of a failure. Clients may branch
// on it; the names do not change.
type Kind string

// The kinds of failure.
const (
	KindInvalidArguments    Kind = "invalid_arguments"     // the arguments do not fit the tool's schema
	KindUnknownTool         Kind = "unknown_tool"          // no such tool for this caller
	KindBadRequest          Kind = "bad_request"           // Gitea: 400
	KindUnauthorized        Kind = "unauthorized"          // Gitea: 401, the Gitea token is not accepted
	KindForbidden           Kind = "forbidden"             // Gitea: 403
	KindNotFound            Kind = "not_found"             // Gitea: 404
	KindMethodNotAllowed    Kind = "method_not_allowed"    // Gitea: 405
	KindConflict            Kind = "conflict"              // Gitea: 409
	KindGone                Kind = "gone"                  // Gitea: 410
	KindPreconditionFailed  Kind = "precondition_failed"   // Gitea: 412
	KindPayloadTooLarge     Kind = "payload_too_large"     // a body over a bound, ours or Gitea's (413)
	KindValidation          Kind = "validation"            // Gitea: 422
	KindLocked              Kind = "locked"                // Gitea: 423, an archived repository
	KindRateLimited         Kind = "rate_limited"          // 429, ours or a proxy's before Gitea
	KindMoved               Kind = "moved"                 // Gitea: 3xx, a renamed repository
	KindUpstreamError       Kind = "upstream_error"        // Gitea: 5xx, or an answer that makes no sense
	KindUpstreamUnavailable Kind = "upstream_unavailable"  // Gitea cannot be reached, 502 to 504
	KindTimeout             Kind = "timeout"               // the call's time is up
	KindCancelled           Kind = "cancelled"             // the client went away
	KindBasicAuthOnly       Kind = "basic_auth_only"       // the route never accepts a token
	KindPolicyDenied        Kind = "policy_denied"         // the team's rules forbid it
	KindConfirm             Kind = "confirmation_required" // a person must permit the call first
	KindSecretBlocked       Kind = "secret_blocked"        // masking withheld the result or the arguments
	KindAuditUnavailable    Kind = "audit_unavailable"     // the audit log cannot be written
	KindInternal            Kind = "internal"              // a defect in Aegis
)

// Error is a failure with a public face. Only Kind, Status, Public and
// RetryAfter ever leave the process; Err is for the log.
type Error struct {
	Kind Kind
	// Status is Gitea's HTTP status, 0 when Gitea was not asked.
	Status int
	// Public says to the caller what happened and what to do next. It is
	// bounded, has no control characters and carries no secret.
	Public string
	// Quoted is how many bytes at the start of Public are the upstream's own
	// words. They stay long until masking has seen secrets in them whole, and
	// are then cut by [Error.Shorten].
	Quoted int
	// Untrusted reports that Public has words of the upstream's, which anyone may have written.
	// It stays when Quoted goes.
	Untrusted bool
	// RetryAfter is when trying again makes sense; 0 when unknown.
	RetryAfter time.Duration
	// Question is what the client is to ask its user, for KindConfirm and clients
	// that can; nil otherwise.
	Question *Question
	// Err is the cause; may be nil.
	Err error
}

// maxQuoted is how many characters of the upstream's words an error keeps.
const maxQuoted = 500

// Shorten cuts the upstream's words in Public to 500 characters, the last one
// "…" when some are missing.
func (e *Error) Shorten() {
	words, rest := e.Public[:min(e.Quoted, len(e.Public))], e.Public[min(e.Quoted, len(e.Public)):]
	e.Public = Shorten(words, maxQuoted) + rest
	e.Quoted = 0
}

// Error returns the kind, the public text and the cause, for logs.
func (e *Error) Error() string {
	s := string(e.Kind) + ": " + e.Public
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf would invite secrets into messages; NewError takes the public text
// and the cause apart.
func NewError(kind Kind, public string, cause error) *Error {
	return &Error{Kind: kind, Public: public, Err: cause}
}

// AsError returns err as an [*Error]. Anything else becomes KindInternal with
// a text that gives nothing away.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: KindInternal, Public: "internal error; the request id names it in the server's log", Err: err}
}
