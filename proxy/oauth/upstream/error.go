package upstream

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind says what went wrong and so who must do something.
type Kind string

// The kinds of [Error].
const (
	Narrow      Kind = "narrow"      // the grant has fewer scopes than configured; the person must revoke it
	Wide        Kind = "wide"        // the grant has more scopes than configured; the person must revoke it
	Denied      Kind = "denied"      // Gitea refused this sign-in; the person may start again
	Gone        Kind = "gone"        // no live credential; the person must sign in
	Config      Kind = "config"      // the operator must act; records are kept
	Unavailable Kind = "unavailable" // Gitea or the store cannot be reached; records are kept
)

// Error is a failure with a public face.
type Error struct {
	Kind Kind
	// Public says to the person what happened and what to do next. It has no
	// secret and no word of Gitea's answer.
	Public string
	// RetryAfter is when trying again makes sense; 0 when unknown.
	RetryAfter time.Duration
	// Err is the cause, for the log; may be nil. It carries no secret.
	Err error
}

// Error returns the kind, the public text and the cause, for logs.
func (e *Error) Error() string {
	s := "gitea sign-in: " + string(e.Kind) + ": " + e.Public
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

const (
	textClient = "Gitea does not accept Aegis as an application; its operator must check auth.oauth.client_id " +
		"and auth.oauth.client_secret. Nothing was lost: sign-ins work again once that is done."
	textRedirect = "Gitea does not know Aegis' redirect URI; its operator must add <public_url>/oauth/callback " +
		"to the redirect URIs of the application in Gitea."
	textDown     = "Gitea cannot be reached at the moment; try again shortly. You stay signed in."
	textStore    = "Aegis cannot use its store at the moment; try again shortly."
	textRefusing = "Gitea refuses a token that it has just given out; its operator should look into Gitea's log."
	textAgain    = "Gitea did not accept this sign-in: it took longer than Gitea allows or was finished before. " +
		"Start again from your client."
	textSignIn  = "Aegis has no Gitea credential for you; sign in again from your client."
	textExpired = "Your Gitea sign-in has expired; sign in again from your client."
	textRevoked = "Aegis' access was revoked in Gitea; sign in again from your client to allow it anew."
	textClosing = "Aegis is shutting down; try again shortly."
	textOld     = "This Gitea is older than 1.23 and would give Aegis full access to your account " +
		"whatever is asked for; its operator must upgrade it before anybody can sign in."
	textScopes = "Gitea does not let Aegis read which organisations and teams you belong to; " +
		"Aegis' operator must have read:user and read:organization among auth.oauth.scopes, " +
		"and you must then sign in again."
)

// narrowText says to a person whose grant lacks scopes what to do.
func (g *Gitea) narrowText(missing []string) string {
	return fmt.Sprintf("An older permission in Gitea gives Aegis less than it needs (missing: %s), "+
		"and Gitea keeps to it. Revoke Aegis at %s and sign in again.", strings.Join(missing, ", "), g.RevokeURL())
}

// wideText says to a person whose grant goes too far what to do. The excess is
// not named when it is not made of Gitea's own words.
func (g *Gitea) wideText(excess []string) string {
	what := "full access to your account"
	if len(excess) > 0 {
		what = "more than it wants (" + strings.Join(excess, ", ") + ")"
	}
	return fmt.Sprintf("An older permission in Gitea gives Aegis %s. "+
		"Aegis does not use it: revoke Aegis at %s and sign in again.", what, g.RevokeURL())
}

func unavailable(text string, cause error) *Error {
	e := &Error{Kind: Unavailable, Public: text, Err: cause}
	if f, ok := errors.AsType[*failure](cause); ok {
		e.RetryAfter = f.retryAfter
	}
	return e
}

// retryStore is how long a client should wait when the store fails.
const retryStore = 5 * time.Second

func storeTrouble(err error) *Error {
	return &Error{Kind: Unavailable, Public: textStore, RetryAfter: retryStore, Err: fmt.Errorf("store: %w", err)}
}

// misconfigured is trouble that the operator alone can end.
func misconfigured(text string, cause error) *Error {
	return &Error{Kind: Config, Public: text, Err: cause}
}

func gone(text string) *Error { return &Error{Kind: Gone, Public: text} }
