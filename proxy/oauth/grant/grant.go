// Package grant keeps what people have allowed OAuth clients: authorization
// codes, and the grants that they become, each with one refresh token at a time
// and access tokens (OAuth 2.1).
//
// Tokens are opaque and random; the store sees their SHA-256 alone. A grant is
// one record: using its refresh token, replaying an old one and ending it are one
// compare-and-swap or one deletion of that record, so whatever happens at the
// same time, one of them comes first. Access tokens point to it and are worth
// nothing without it. A grant that has ended is gone from the store.
//
// A code is used up by one compare-and-swap too, which leaves a mark in its
// place for 10 minutes. Everything that the code leads to has been written before,
// so that a failure in between leaves at most a grant that is listed and whose
// tokens no client has, and never a token without a grant to end. Presenting
// a marked code ends the grant that came of it (OAuth 2.1 section 4.1.3), even
// when it is the same client in a hurry: of several redemptions at once, one gets
// tokens, and the others end them.
//
// A refresh token is used up when it is used, and its successor derived from it,
// so that for a grace period a second use by the same client gets the same
// successor: processes of one client that share their tokens race. After it, a
// use is a sign of theft and ends the grant. Tokens carry proof that this server
// made them; someone who knows only a grant's id cannot end it by making them up.
package grant

import (
	"errors"
	"fmt"
	"time"

	"aegis/config"
	"aegis/proxy/kv"
)

// The errors that the token endpoint branches on. Every other error is trouble
// of our own, for which the client is not to blame (503).
var (
	// ErrInvalid is wrapped when a code or token is unknown, expired, used up,
	// ended or another client's: invalid_grant of RFC 6749 section 5.2. The text
	// says why, for the log; it never quotes what was presented.
	ErrInvalid = errors.New("the grant is invalid")
	// ErrTarget is wrapped when another resource is asked for than was granted:
	// invalid_target of RFC 8707 section 2.
	ErrTarget = errors.New("the resource is not the one that was granted")
	// ErrDenied is what Refresh.Allow wraps when the person may no longer use
	// Aegis. The grant ends then.
	ErrDenied = errors.New("the person is no longer allowed")
)

func invalid(why string) error { return fmt.Errorf("%w: %s", ErrInvalid, why) }

// codeLife is how long a code can be redeemed, codeMark how long its use is
// remembered.
const (
	codeLife = time.Minute
	codeMark = 10 * time.Minute
)

// Kind says what an [Event] is about.
type Kind string

// The kinds of events.
const (
	Issued       Kind = "issued"         // a code was redeemed; a grant began
	Refreshed    Kind = "refreshed"      // a refresh token was used
	Revoked      Kind = "revoked"        // the client, the person or an administrator ended a grant
	Denied       Kind = "denied"         // a grant ended since the person is no longer allowed
	CodeRefused  Kind = "code_refused"   // a code was used up with a wrong verifier or redirect URI
	CodeReplayed Kind = "code_replayed"  // a grant ended since its code came again
	Reused       Kind = "refresh_reused" // a grant ended since an old refresh token came again
)

// Event is something that the audit log should know. It holds no secret.
type Event struct {
	Kind                 Kind
	Grant                string // id; "" for [CodeRefused]
	ClientID, ClientName string
	UserID               int64
	Login                string
	At                   time.Time
}

// Options are what [New] needs.
type Options struct {
	// Store keeps the records; a sealed one, since names and logins are in them.
	Store kv.Store
	// Keys returns secret keys for a label, the current one first: Derive of a
	// seal.Ring.
	Keys func(label string) [][]byte
	// Config is auth.oauth, of which the lifetimes are read: those of access and refresh
	// tokens are positive.
	Config config.OAuth
	// Outage is how long a token that was verified is taken without the store,
	// while that cannot be reached; 0: not at all.
	Outage time.Duration
	// Now is the clock; nil: [time.Now].
	Now func() time.Time
	// Event is called with what happens, before the caller gets its answer; may be
	// nil. It is called from many goroutines and must not block.
	Event func(Event)
}

// Grants are all grants of a store. It is safe for concurrent use.
type Grants struct {
	o     Options
	keys  [][]byte // the current one first
	cache *cache
}

// New returns the grants in o.Store.
func New(o Options) (*Grants, error) {
	c := o.Config
	if c.AccessTTL <= 0 || c.RefreshTTL <= 0 || c.MaxTTL < 0 || c.RefreshGrace < 0 {
		return nil, errors.New("grants: access and refresh lifetimes must be positive, the others not negative")
	}
	if o.Store == nil || o.Keys == nil {
		return nil, errors.New("grants: a store and keys are needed")
	}
	keys := o.Keys("oauth refresh tokens")
	if len(keys) == 0 {
		return nil, errors.New("grants: there is no key")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Event == nil {
		o.Event = func(Event) {}
	}
	return &Grants{o: o, keys: keys, cache: newCache()}, nil
}

// Grant is what a person has allowed a client. Its form in JSON is what "aegis oauth
// list --json" prints, and what the control socket speaks.
type Grant struct {
	// ID names it in the audit log and on pages; it is no secret.
	ID string `json:"id"`
	// Login is the person's name at the sign-in, UserID Gitea's number of them.
	Login  string `json:"login"`
	UserID int64  `json:"user_id"`
	// ClientName and ClientID are the client's; the name is the client's own word
	// unless Verified.
	ClientName string `json:"client_name"`
	ClientID   string `json:"client_id"`
	Verified   bool   `json:"verified"`
	// Scopes are Gitea's words. Those of [Grants.Verify] are the access token's,
	// which may be fewer.
	Scopes []string `json:"scopes"`
	// Resource is the MCP endpoint that the tokens are for.
	Resource string `json:"resource"`
	// Created, LastUsed (to the minute) and Expires (unless it is used before).
	Created  time.Time `json:"created"`
	LastUsed time.Time `json:"last_used"`
	Expires  time.Time `json:"expires"`
}

// Code is what a person has just allowed, on its way through the browser.
type Code struct {
	ClientID, ClientName string
	Verified             bool
	// RedirectURI is where the code is sent; Challenge is the S256 code_challenge
	// (RFC 7636).
	RedirectURI, Challenge string
	UserID                 int64
	Login                  string
	Scopes                 []string
	Resource               string
}

// Tokens are what the token endpoint answers.
type Tokens struct {
	Access, Refresh string
	// ExpiresIn is the access token's lifetime, Scopes what it is good for.
	ExpiresIn time.Duration
	Scopes    []string
	Grant     Grant
}
