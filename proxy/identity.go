package proxy

import (
	"context"
	"log/slog"
)

// Mode says how an identity was established.
type Mode string

// The ways to establish an identity.
const (
	ModeStatic Mode = "static" // a bearer token of auth.tokens
	ModeOAuth  Mode = "oauth"  // a person who signed in through Gitea
)

// Identity is on whose behalf a call runs. It is immutable once published.
type Identity struct {
	// Login is the Gitea user name that the credential belongs to.
	Login string
	// Mode is how the caller proved it.
	Mode Mode
	// TokenName is the configured name of the static token; "" otherwise.
	TokenName string
	// Credential is what Gitea is shown.
	Credential Credential
	// UserID is Gitea's number of the user, which a renaming does not change; 0
	// when it is not known. OAuth identities always have it.
	UserID int64
	// Grant describes the OAuth grant that the caller's token belongs to; nil for
	// static tokens.
	Grant *Grant
	// AllowSudo permits the sudo argument: a static identity of a Gitea site
	// administrator whose configuration says allow_sudo.
	AllowSudo bool
}

// Person is a Gitea user, the owner of a credential.
type Person struct {
	// ID is Gitea's number of the user, which a renaming does not change.
	ID int64
	// Login is the user name.
	Login string
	// Admin reports whether the user administers the instance.
	Admin bool
}

// Grant is what a person allowed an OAuth client. It is immutable once published.
type Grant struct {
	// ID names the grant in audit and on /account; it is no secret.
	ID string
	// ClientID and ClientName are the client's; the name is the client's own word
	// unless Verified.
	ClientID, ClientName string
	// Verified marks clients that the configuration names or whose metadata
	// document was fetched from the host in their id.
	Verified bool
	// Scopes are the Gitea scopes that the person allowed this client. write
	// includes read; nothing else is implied.
	Scopes []string
}

// Credential is a Gitea access token and the scheme it is sent with. It cannot
// print itself in any of fmt's, slog's or JSON's ways.
type Credential struct {
	// A function prints as an address, also where fmt cannot call String: in an
	// unexported field of whatever keeps a Credential.
	parts func() (scheme, token string)
}

// NewCredential returns the credential of mode's scheme: "token" for static
// tokens, "Bearer" for OAuth access tokens (Gitea accepts either for both; the
// difference shows in its logs).
func NewCredential(mode Mode, token string) Credential {
	scheme := "token"
	if mode == ModeOAuth {
		scheme = "Bearer"
	}
	return Credential{func() (string, string) { return scheme, token }}
}

// Authorization returns the value of the Authorization header, "" when the
// credential is empty.
func (c Credential) Authorization() string {
	if c.parts == nil {
		return ""
	}
	scheme, token := c.parts()
	if token == "" {
		return ""
	}
	return scheme + " " + token
}

// Secret returns the bare token, for the layers that must recognise it in
// order to remove it.
func (c Credential) Secret() string {
	if c.parts == nil {
		return ""
	}
	_, token := c.parts()
	return token
}

const redacted = "<secret>"

// String hides the token.
func (c Credential) String() string { return redacted }

// GoString hides the token from %#v.
func (c Credential) GoString() string { return redacted }

// MarshalText hides the token from JSON, YAML and text encoders.
func (c Credential) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue hides the token from slog.
func (c Credential) LogValue() slog.Value { return slog.StringValue(redacted) }

// RequestInfo is what the HTTP layers know of a request before it becomes a
// [Call]: the edge makes it, authentication sets Identity, the MCP layer reads it.
type RequestInfo struct {
	// RequestID is a fresh identifier, never one that the client chose.
	RequestID string
	// Addr is the client's address without port.
	Addr string
	// Team is the endpoint's name; "" is the default team.
	Team string
	// Identity is set by authentication; nil on public endpoints.
	Identity *Identity
}

type requestInfoKey struct{}

// WithRequestInfo returns a context that carries x.
func WithRequestInfo(ctx context.Context, x *RequestInfo) context.Context {
	return context.WithValue(ctx, requestInfoKey{}, x)
}

// RequestInfoFrom returns the information that ctx carries, nil when there is none.
func RequestInfoFrom(ctx context.Context) *RequestInfo {
	x, _ := ctx.Value(requestInfoKey{}).(*RequestInfo)
	return x
}
