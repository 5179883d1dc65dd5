package grant

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"aegis/proxy/kv"
)

// Revoke ends the grant of an access or refresh token if it is this client's
// (RFC 7009); the client has been authenticated. An unknown, expired or foreign
// token is no error, and the answer is the same. A refresh token that was used up is good enough.
func (g *Grants) Revoke(ctx context.Context, token, clientID string) (revoked bool, err error) {
	id, err := g.owner(ctx, token, clientID)
	if err != nil || id == "" {
		return false, err
	}
	return g.end(ctx, Revoked, id)
}

// owner returns the id of the grant that a token of this client belongs to; ""
// when there is none.
func (g *Grants) owner(ctx context.Context, token, clientID string) (string, error) {
	id := ""
	t, isRefresh := parseRefresh(token)
	if isRefresh {
		id = t.id
	} else if _, ok := body(accessPrefix, token, secretSize); ok {
		var a access
		if _, err := g.load(ctx, accessKey(token), &a); err != nil {
			return "", unlessInvalid(err)
		}
		if g.o.Now().Before(a.Expires) {
			id = a.Family
		}
	}
	if id == "" {
		return "", nil
	}
	f, _, err := g.family(ctx, id)
	if err != nil {
		return "", unlessInvalid(err)
	}
	if f.Client != clientID {
		return "", nil
	}
	if d := digest(t.secret); isRefresh && !equal(f.Current, d) && find(f.Past, d) < 0 && !g.genuine(t) {
		return "", nil
	}
	return id, nil
}

// unlessInvalid returns the errors that are not about the token.
func unlessInvalid(err error) error {
	if errors.Is(err, ErrInvalid) {
		return nil
	}
	return err
}

// end ends a grant for the reason why, and reports whether this call did.
func (g *Grants) end(ctx context.Context, why Kind, id string) (bool, error) {
	f, dropped, err := g.drop(ctx, id)
	if err != nil {
		return false, err
	}
	if dropped {
		g.report(why, id, f)
	}
	return dropped, nil
}

// End ends a grant. That there is none is no error.
func (g *Grants) End(ctx context.Context, id string) error {
	if !isID(id) {
		return nil
	}
	_, err := g.end(ctx, Revoked, id)
	return err
}

// EndUser ends all grants of a person, and returns how many there were. Codes
// that were issued before become worthless. A store that is full still takes deletions:
// the grants are ended then, and the error is about the codes.
func (g *Grants) EndUser(ctx context.Context, userID int64) (n int, err error) {
	now := g.o.Now()
	marked := g.save(ctx, clearedKey(userID), now, now.Add(2*codeLife))
	if marked != nil && !errors.Is(marked, kv.ErrFull) {
		return 0, marked
	}
	for id, err := range g.ids(ctx, userPrefix(userID)) {
		if err != nil {
			return n, errors.Join(marked, err)
		}
		ended, err := g.end(ctx, Revoked, id)
		if err != nil {
			return n, errors.Join(marked, err)
		}
		if ended {
			n++
		}
	}
	return n, marked
}

// Get returns one grant. The error wraps [ErrInvalid] when there is none.
func (g *Grants) Get(ctx context.Context, id string) (Grant, error) {
	if !isID(id) {
		return Grant{}, invalid("it is unknown")
	}
	f, _, err := g.family(ctx, id)
	if err != nil {
		return Grant{}, err
	}
	grant := f.grant(id)
	var used time.Time
	if _, err := g.load(ctx, usedKey(id), &used); err != nil && !errors.Is(err, ErrInvalid) {
		return Grant{}, err
	}
	if used.After(grant.LastUsed) {
		grant.LastUsed = used
	}
	return grant, nil
}

// List returns a person's grants, the oldest first. It reads many records.
func (g *Grants) List(ctx context.Context, userID int64) ([]Grant, error) {
	var list []Grant
	for grant, err := range g.grants(ctx, userPrefix(userID)) {
		if err != nil {
			return nil, err
		}
		if grant.UserID == userID {
			list = append(list, grant)
		}
	}
	slices.SortFunc(list, func(a, b Grant) int { return a.Created.Compare(b.Created) })
	return list, nil
}

// All yields every grant, in no order. It reads the whole store. An error ends
// it.
func (g *Grants) All(ctx context.Context) iter.Seq2[Grant, error] {
	return g.grants(ctx, familyKey(""))
}

// grants yields the grants whose ids end the keys with the prefix.
func (g *Grants) grants(ctx context.Context, prefix string) iter.Seq2[Grant, error] {
	return func(yield func(Grant, error) bool) {
		for id, err := range g.ids(ctx, prefix) {
			var grant Grant
			if err == nil {
				grant, err = g.Get(ctx, id)
			}
			if errors.Is(err, ErrInvalid) {
				continue // ended since
			}
			if !yield(grant, err) || err != nil {
				return
			}
		}
	}
}

func (g *Grants) ids(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for key, err := range g.o.Store.Keys(ctx, prefix) {
			if !yield(strings.TrimPrefix(key, prefix), err) {
				return
			}
		}
	}
}

// isID reports whether s has the form of a grant's id.
func isID(s string) bool {
	return len(s) == idSize && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz234567") == ""
}
