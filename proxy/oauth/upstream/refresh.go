package upstream

import (
	"context"
	"errors"
	"strconv"
	"time"

	"aegis/proxy/kv"
)

// refresh renews the user's record unless needs no longer says so: alone in the
// process by [Gitea.fly], alone among the replicas by a lease in the store.
func (g *Gitea) refresh(ctx context.Context, userID int64, needs func(*record) bool) (*record, error) {
	ctx, cancel := context.WithTimeout(ctx, g.pace.lease)
	defer cancel()
	for {
		r, err := g.usable(ctx, userID)
		if err != nil || !needs(r) {
			return r, err
		}
		if err := g.hold.check(userID, g.o.Now()); err != nil {
			return nil, err
		}
		lease, err := g.acquire(ctx, userID)
		if err != nil {
			return nil, err
		}
		// Another replica may be at it; its answer is in the record then.
		if lease != 0 {
			return g.leased(ctx, r, lease, needs)
		}
		if wait(ctx, g.pace.poll) != nil {
			return nil, unavailable(textDown, errors.New("another replica holds the lease of this user's refresh"))
		}
	}
}

// leased renews the record under a lease, which it gives back.
func (g *Gitea) leased(ctx context.Context, r *record, lease uint64, needs func(*record) bool) (*record, error) {
	defer g.release(ctx, r.id, lease)
	// The holder of the lease before may have written since r was read.
	r, err := g.usable(ctx, r.id)
	if err != nil {
		return nil, err
	}
	if u, ok := g.unsaved.Take(r.id); ok && !r.outdates(u) {
		if r, err = g.keep(ctx, u); err != nil {
			return nil, err
		}
	}
	for range 3 {
		if !needs(r) {
			return r, nil
		}
		next, again, err := g.attempt(ctx, r)
		if err != nil || !again {
			return next, err
		}
		r = next
	}
	return nil, &Error{
		Kind: Unavailable, Public: textDown, RetryAfter: time.Second,
		Err: errors.New("others came in between, time and again"),
	}
}

// attempt sends the record's refresh token to Gitea once. again: nothing was
// decided; look at the returned record, which may be newer, and try once more.
func (g *Gitea) attempt(ctx context.Context, r *record) (next *record, again bool, err error) {
	answer, err := g.renew(ctx, r.refresh)
	if err == nil {
		g.hold.clear(r.id)
		next, err = g.adopt(ctx, r, answer)
		return next, false, err
	}
	switch classify(err) {
	case raced:
		next, err = g.newer(ctx, r)
		return next, true, err
	case used:
		// By another replica whose answer is still on its way, or by someone who stole it:
		// only when no newer record comes is the sign-in over.
		next, err := g.newer(ctx, r)
		if err != nil || next.version != r.version {
			return next, true, err
		}
		return g.finish(ctx, next, reauthUsed)
	case expired:
		return g.finish(ctx, r, reauthExpired)
	case revoked:
		return g.finish(ctx, r, reauthRevoked)
	case client:
		// Aegis itself is refused: all wait, and no sign-in ends for it.
		e := &Error{Kind: Config, Public: textClient, RetryAfter: firstHold, Err: err}
		if g.hold.fail(allUsers, e, g.o.Now()) {
			g.report(EventClient, 0, "", "refreshing a credential: "+err.Error())
		}
		return nil, false, e
	}
	e := unavailable(textDown, err)
	g.hold.fail(r.id, e, g.o.Now())
	return nil, false, e
}

// newer returns the record as it is now. While it is still r, it waits once for
// the process that used r's token to write down the answer.
func (g *Gitea) newer(ctx context.Context, r *record) (*record, error) {
	cur, err := g.usable(ctx, r.id)
	if err != nil || cur.version != r.version {
		return cur, err
	}
	if wait(ctx, g.pace.again) != nil {
		return nil, unavailable(textDown, ctx.Err())
	}
	return g.usable(ctx, r.id)
}

// finish writes down that r is dead. A record that another process has written
// meanwhile is left alone and returned for another try.
func (g *Gitea) finish(ctx context.Context, r *record, why string) (next *record, again bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.pace.save)
	defer cancel()
	err = g.swap(ctx, r.end(why))
	if errors.Is(err, kv.ErrConflict) {
		next, err = g.usable(ctx, r.id)
		return next, true, err
	}
	if err != nil {
		return nil, false, err
	}
	// A revoked grant is a decision of the person's, and has an event of its own.
	kind := EventReauth
	if why == reauthRevoked {
		kind = EventRevoked
	}
	g.members.drop(r.id)
	g.report(kind, r.id, r.login, why)
	return nil, false, g.ended(why)
}

// adopt stores an answer of Gitea before anybody uses it, and then asks what
// else has changed.
func (g *Gitea) adopt(ctx context.Context, r *record, answer *pair) (*record, error) {
	next := *r
	next.access, next.refresh = answer.access, answer.refresh
	next.life, next.expires = answer.life, g.o.Now().Add(answer.life)
	kept, err := g.keep(ctx, &next)
	if err != nil {
		return nil, err
	}
	g.report(EventRefreshed, kept.id, kept.login, "")
	return g.look(ctx, kept)
}

// keep stores a record, in memory when the store fails: with
// INVALIDATE_REFRESH_TOKENS its refresh token is the only one.
func (g *Gitea) keep(ctx context.Context, r *record) (*record, error) {
	kept, err := g.save(ctx, r, false)
	if isKind(err, Unavailable) {
		g.unsaved.Put(r.id, r)
	}
	return kept, err
}

// save writes r, however the record in the store has changed meanwhile, unless
// that is newer, which is then returned. Without create a record that was
// deleted stays so (Gone). The time is its own: an answer of Gitea must not be
// lost because a request's time is up.
func (g *Gitea) save(ctx context.Context, r *record, create bool) (*record, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.pace.save)
	defer cancel()
	var err error
	for range 8 {
		if err = g.swap(ctx, r); err == nil {
			return r, nil
		}
		if !errors.Is(err, kv.ErrConflict) { // trouble of the store: try again after a moment
			if wait(ctx, g.pace.again) != nil {
				return nil, err
			}
			continue
		}
		cur, loadErr := g.load(ctx, r.id)
		switch {
		case loadErr != nil && !(create && replaceable(loadErr)):
			return nil, loadErr
		case cur.outdates(r): // it has the newer refresh token
			return cur, nil
		}
		r.version = cur.version
	}
	if errors.Is(err, kv.ErrConflict) {
		return nil, storeTrouble(err)
	}
	return nil, err
}

// replaceable reports whether what is stored in a person's place is no credential
// of this application that could be lost.
func replaceable(loadErr error) bool {
	return isKind(loadErr, Gone) || errors.Is(loadErr, errUnreadable)
}

// look asks Gitea for the user's login and scope after a refresh and writes down
// what has changed. It is a courtesy: when it fails, the record stays as it is.
// Only a grant that has turned into full access ends it.
func (g *Gitea) look(ctx context.Context, r *record) (*record, error) {
	info, err := g.introspect(ctx, r.access.Reveal())
	if err != nil || info.id != r.id {
		return r, nil
	}
	if readGrant(info.scope).all {
		next, _, err := g.finish(ctx, r, reauthWide)
		return next, err
	}
	return g.note(ctx, r, info), nil
}

// note writes down what Gitea said of a user and returns the record with it; r
// when another process has written meanwhile.
func (g *Gitea) note(ctx context.Context, r *record, info *introspection) *record {
	next := *r
	next.login, next.scope, next.seen = info.login, info.scope, g.o.Now()
	if err := g.swap(ctx, &next); err != nil {
		return r
	}
	if next.login != r.login {
		g.members.drop(r.id)
		g.report(EventRenamed, r.id, next.login, "")
	}
	return &next
}

func leaseKey(id int64) string { return "lease/cred/" + strconv.FormatInt(id, 10) }

const (
	leaseHeld = "held"
	leaseFree = "free"
)

// keepFree is how long a lease that was given back stays in the store.
const keepFree = time.Minute

// acquire takes the lease of a user's refresh and returns its version; 0 when
// another process has it. A lease that is not given back ends by itself.
func (g *Gitea) acquire(ctx context.Context, id int64) (uint64, error) {
	entry, err := g.o.Store.Get(ctx, leaseKey(id))
	switch {
	case errors.Is(err, kv.ErrNotFound):
	case err != nil:
		return 0, storeTrouble(err)
	case string(entry.Value) != leaseFree:
		return 0, nil
	}
	version, err := g.o.Store.CompareAndSwap(ctx, leaseKey(id), entry.Version, []byte(leaseHeld), g.pace.lease)
	switch {
	case errors.Is(err, kv.ErrConflict):
		return 0, nil
	case err != nil:
		return 0, storeTrouble(err)
	}
	return version, nil
}

// release gives the lease back, if it is still this one.
func (g *Gitea) release(ctx context.Context, id int64, version uint64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.pace.save)
	defer cancel()
	// A failure costs the next one the wait until the lease ends by itself.
	_, _ = g.o.Store.CompareAndSwap(ctx, leaseKey(id), version, []byte(leaseFree), keepFree)
}

// wait waits for d, or for ctx and returns its error.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
