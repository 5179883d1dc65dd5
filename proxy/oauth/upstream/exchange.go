package upstream

import (
	"context"
	"errors"
	"time"

	"aegis/config"
)

// concurrent is how far apart two sign-ins of one person can be stored and still
// have crossed: the one that was answered later is then kept.
const concurrent = 10 * time.Minute

// Exchange completes a sign-in: it trades the code, asks Gitea at once whose
// token it is and what it may do, and stores the credential. The error is an
// [*Error]: Denied when the sign-in must begin anew, Narrow or Wide when an older
// grant is in the way, Config, Unavailable.
//
// Whether the person may use Aegis at all is the caller's to decide
// ([Gitea.Member]); call [Gitea.Forget] when not. A caller that goes away does
// not stop the exchange: the answer may have ended the refresh token before it.
func (g *Gitea) Exchange(ctx context.Context, code, verifier string) (*User, error) {
	if !g.running.TryRLock() {
		return nil, unavailable(textClosing, nil)
	}
	defer g.running.RUnlock()
	// Gitea takes a code once: a browser that leaves must not end this half-way.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.pace.lease)
	defer cancel()
	if err := g.granular(ctx, ""); err != nil {
		return nil, err
	}
	answer, err := g.trade(ctx, g.oauth(), code, verifier)
	if err != nil {
		e := refusedCode(err)
		if e.Kind == Config {
			g.report(EventClient, 0, "", "completing a sign-in: "+err.Error())
		}
		return nil, e
	}
	// Once more for a Gitea that shows its version to signed-in people alone.
	if err := g.granular(ctx, answer.access.Reveal()); err != nil {
		return nil, err
	}
	info, err := g.identify(ctx, answer.access)
	if err != nil {
		return nil, err
	}
	return g.admit(ctx, info, answer)
}

// identify introspects a token that was just issued, patiently: giving up may
// leave the person's older record with a dead refresh token.
func (g *Gitea) identify(ctx context.Context, access config.Secret) (*introspection, error) {
	var info *introspection
	var err error
	for range 4 {
		info, err = g.introspect(ctx, access.Reveal())
		if _, failed := errors.AsType[*failure](err); !failed || wait(ctx, g.pace.again) != nil {
			break
		}
	}
	_, refused := errors.AsType[*refusal](err)
	switch {
	case err == nil:
		return info, nil
	case errors.Is(err, errInactive):
		return nil, &Error{Kind: Denied, Public: textAgain, Err: err}
	case refused:
		g.report(EventClient, 0, "", "introspecting a token: "+err.Error())
		return nil, misconfigured(textClient, err)
	}
	return nil, unavailable(textDown, err)
}

// admit stores the credential of a grant that is as it should be.
func (g *Gitea) admit(ctx context.Context, info *introspection, answer *pair) (*User, error) {
	got := readGrant(info.scope)
	r := &record{
		id: info.id, login: info.login, scope: info.scope,
		access: answer.access, refresh: answer.refresh,
		life: answer.life, expires: g.o.Now().Add(answer.life), seen: g.o.Now(),
	}
	if problem := g.judge(got); problem != nil {
		g.report(EventRefused, info.id, info.login, string(problem.Kind))
		if !got.all { // a token with full access is not kept at all
			g.replace(ctx, r)
		}
		return nil, problem
	}
	if err := g.saveSignIn(ctx, r); err != nil {
		return nil, err
	}
	g.hold.clear(r.id)
	g.members.drop(r.id)
	g.unsaved.Take(r.id)
	g.report(EventSignedIn, r.id, r.login, "")
	return &User{ID: info.id, Credential: g.credential(r)}, nil
}

// saveSignIn stores the credential of a sign-in over whatever is there, unless another
// sign-in or a refresh that crossed this one was answered later.
func (g *Gitea) saveSignIn(ctx context.Context, r *record) error {
	cur, err := g.load(ctx, r.id)
	switch {
	case err != nil && !replaceable(err):
		return err
	case cur.outdates(r) && g.o.Now().Sub(cur.seen) < concurrent:
		return nil
	}
	r.version = cur.version
	_, err = g.save(ctx, r, true)
	return err
}

// replace gives the tokens of a refused sign-in to the person's record, if there
// is a live one: this answer may have ended its refresh token, and the clients
// that use it should not suffer from the attempt.
func (g *Gitea) replace(ctx context.Context, r *record) {
	cur, err := g.usable(ctx, r.id)
	if err != nil || cur.outdates(r) {
		return
	}
	r.version = cur.version
	// It is the person's second loss when this fails too; the answer tells them to
	// sign in again in any case.
	_, _ = g.save(ctx, r, false)
}
