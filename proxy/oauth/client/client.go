package client

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"slices"

	"aegis/config"
)

// Kind is how a client became known.
type Kind string

// The kinds of clients.
const (
	Static     Kind = "static"     // named by the configuration
	Registered Kind = "registered" // registered itself; nothing it says is proved
	Document   Kind = "document"   // described by the document at the URL that is its id
)

// How a client proves itself at the token endpoint (RFC 7591 section 2).
const (
	AuthNone  = "none"
	AuthBasic = "client_secret_basic"
	AuthPost  = "client_secret_post"
)

// Client is a client as it was found. It is immutable once published, and holds
// its secret so that nothing prints it.
type Client struct {
	// ID is the client_id, exactly as it was asked for.
	ID string
	// Name is for people to read: 1 to 60 characters, without any that are
	// invisible or change the direction of text. It is the client's own word
	// unless Verified.
	Name string
	Kind Kind
	// Verified marks clients that the configuration names or whose document came
	// from the host in their id.
	Verified bool
	// RedirectURIs are where it may be sent back to; each passes [Redirectable].
	RedirectURIs []string
	// AuthMethod is [AuthNone] for public clients, else [AuthBasic] or [AuthPost];
	// one that has a secret may show it in either way.
	AuthMethod string
	// Host is the host of a document's URL, in ASCII ("xn--…" for others); ""
	// for clients of other kinds.
	Host string
	// LoopbackOnly marks clients that are only ever sent back to programs on the
	// person's own machine, where any program can listen.
	LoopbackOnly bool

	secret config.Secret
}

// Redirect reports whether the client may be sent back to uri: one of its
// redirect URIs byte for byte, or one on a loopback host with another port
// (RFC 8252 section 7.3). Host word, path and query must be the same there too.
func (c *Client) Redirect(uri string) bool {
	return slices.ContainsFunc(c.RedirectURIs, func(have string) bool { return sameRedirect(have, uri) })
}

// Secret reports whether secret is the client's, in time that does not depend on
// where they differ. A public client has none, so it is false for every secret.
func (c *Client) Secret(secret string) bool {
	if c.secret.IsZero() || secret == "" {
		return false
	}
	// Digests have one length, so that not even the secret's length shows.
	have, got := sha256.Sum256([]byte(c.secret.Reveal())), sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(have[:], got[:]) == 1
}

// finish fills in what follows from the other fields.
func (c *Client) finish() *Client {
	c.LoopbackOnly = len(c.RedirectURIs) > 0 && !slices.ContainsFunc(c.RedirectURIs, func(uri string) bool {
		r, err := parseRedirect(uri)
		return err != nil || !r.loopback
	})
	return c
}

// ErrorKind says what to do about an error.
type ErrorKind string

// The kinds of errors.
const (
	// Unknown: no such client here; it should register again (401 invalid_client).
	Unknown ErrorKind = "unknown"
	// Refused: the client is known or could be, and may not be used; trying again
	// does not help.
	Refused ErrorKind = "refused"
	// Unavailable: its document cannot be had now; trying again may help (503).
	Unavailable ErrorKind = "unavailable"
)

// Error says why there is no client.
type Error struct {
	Kind ErrorKind
	// Public says to people what happened and what to do, in ASCII without quotes
	// and backslashes, so that it fits an error_description (RFC 6749 section
	// 4.1.2.1). It repeats nothing that was sent.
	Public string
	// Err is the cause, for the log; may be nil.
	Err error
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

// unknown makes clients register anew, so it is for ids alone that will never be good again.
func unknown(public string) *Error { return &Error{Kind: Unknown, Public: public} }

func refused(public string, cause error) *Error {
	return &Error{Kind: Refused, Public: public, Err: cause}
}

func unavailable(public string, cause error) *Error {
	return &Error{Kind: Unavailable, Public: public, Err: cause}
}

// notFetched is [Unavailable] for a document that its host does not give out now.
func notFetched(cause error) *Error {
	return unavailable("the metadata document of the client cannot be fetched; try again in a minute", cause)
}

// badDocument is [Refused] for a document that is there; what is said of it is no
// secret.
func badDocument(what string) *Error {
	return refused("the metadata document of the client "+what, nil)
}

func isKind(err error, kind ErrorKind) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == kind
}
