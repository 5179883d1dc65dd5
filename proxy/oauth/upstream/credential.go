package upstream

import (
	"context"
	"errors"
	"strconv"
	"time"

	"aegis/proxy"
)

// Credential returns what a call of the user is made with, renewed when less than
// five minutes are left. The error is an [*Error]: Gone when the person must sign
// in, Config when Gitea refuses Aegis itself, Unavailable when Gitea or the store
// cannot be reached. While the old token still lives, trouble with renewing it
// concerns the operator alone: the token is returned.
//
// A caller that goes away does not end the refresh that it began.
func (g *Gitea) Credential(ctx context.Context, userID int64) (Credential, error) {
	r, err := g.usable(ctx, userID)
	if err != nil {
		return Credential{}, err
	}
	if r.fresh(g.o.Now()) {
		return g.credential(r), nil
	}
	renewed, err := g.fly(ctx, "renew/", userID, func(r *record) bool { return !r.fresh(g.o.Now()) })
	switch {
	case err == nil:
		return g.credential(renewed), nil
	case !isKind(err, Gone) && r.live(g.o.Now()):
		return g.credential(r), nil
	}
	return Credential{}, err
}

// tooSoon is how old a token must be before its refusal by Gitea is worth
// another refresh.
const tooSoon = 30 * time.Second

// Rejected is to be called when Gitea's API answered 401 to a call that was made
// with used: the grant may have been revoked in Gitea, of which Aegis
// gets no notice. It renews the credential. nil: the record holds another token now, and
// the call may be made again. The error is an [*Error] as of
// [Gitea.Credential]; Gone when the person must sign in.
func (g *Gitea) Rejected(ctx context.Context, userID int64, used proxy.Credential) error {
	r, err := g.usable(ctx, userID)
	if err != nil {
		return err
	}
	same := func(r *record) bool { return r.access.Reveal() == used.Secret() }
	if !same(r) {
		return nil
	}
	if g.o.Now().Before(r.expires.Add(tooSoon - r.life)) {
		return &Error{Kind: Unavailable, Public: textRefusing, RetryAfter: tooSoon}
	}
	_, err = g.fly(ctx, "rejected/", userID, same)
	return err
}

// State reports whether the user has a credential that is not known to be dead.
// Gitea is not asked, so that its outage ends no sign-in. An error is trouble
// of the store ([*Error], Unavailable).
func (g *Gitea) State(ctx context.Context, userID int64) (bool, error) {
	_, err := g.usable(ctx, userID)
	switch {
	case err == nil:
		return true, nil
	case isKind(err, Gone):
		return false, nil
	}
	return false, err
}

// Forget deletes the user's credential. Gitea has no call to give it back; people
// revoke the grant itself at [Gitea.RevokeURL].
func (g *Gitea) Forget(ctx context.Context, userID int64) error {
	g.members.drop(userID)
	g.unsaved.Take(userID)
	if err := g.o.Store.Delete(ctx, recordKey(userID)); err != nil {
		return storeTrouble(err)
	}
	g.report(EventForgotten, userID, "", "")
	return nil
}

// usable returns the user's record when it has tokens.
func (g *Gitea) usable(ctx context.Context, userID int64) (*record, error) {
	r, err := g.load(ctx, userID)
	if err != nil {
		return nil, err
	}
	if r.reauth != "" {
		return nil, g.ended(r.reauth)
	}
	return r, nil
}

// ended returns the error for a record that ended for the given reason.
func (g *Gitea) ended(why string) *Error {
	switch why {
	case reauthRevoked:
		return gone(textRevoked)
	case reauthWide:
		return gone(g.wideText(nil))
	}
	return gone(textExpired)
}

func (g *Gitea) credential(r *record) Credential {
	return Credential{
		Token:  proxy.NewCredential(proxy.ModeOAuth, r.access.Reveal()),
		Login:  r.login,
		Scopes: readGrant(r.scope).set.Within(g.scopeSet).Words(),
	}
}

// fly runs one refresh for all callers of this process that want the same.
func (g *Gitea) fly(ctx context.Context, what string, userID int64, needs func(*record) bool) (*record, error) {
	return join(ctx, g, what, userID, func(ctx context.Context) (*record, error) {
		if !g.running.TryRLock() {
			return nil, unavailable(textClosing, nil)
		}
		defer g.running.RUnlock()
		return g.refresh(ctx, userID, needs)
	})
}

// join runs f once for all callers of this process that want the same of a user, and
// lets each of them leave: f goes on when its first caller is gone.
func join[T any](
	ctx context.Context, g *Gitea, what string, userID int64, f func(context.Context) (T, error),
) (answer T, err error) {
	flight := g.flights.DoChan(what+strconv.FormatInt(userID, 10), func() (any, error) {
		return f(context.WithoutCancel(ctx))
	})
	select {
	case landed := <-flight:
		answer, _ = landed.Val.(T)
		return answer, landed.Err
	case <-ctx.Done():
		return answer, unavailable(textDown, ctx.Err())
	}
}

func isKind(err error, kind Kind) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == kind
}
