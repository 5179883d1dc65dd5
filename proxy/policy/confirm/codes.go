package confirm

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"aegis/proxy"
	"aegis/proxy/kv"
)

// Bounds of what waits for one person.
const (
	maxWaiting = 16 // calls; the oldest gives way
	maxWrong   = 10 // wrong codes before all that wait are thrown away
	casRetries = 8
)

// Pending is a call that waits for its code, as /account shows it.
type Pending struct {
	// Code is what the person gives to their agent.
	Code string `json:"code"`
	// Tool and Summary say what it permits.
	Tool    string `json:"tool"`
	Summary string `json:"summary"`
	// Expires is when it ends.
	Expires time.Time `json:"expires"`
	// Digest binds the code to the call.
	Digest []byte `json:"digest"`
}

// waiting is the record of one person.
type waiting struct {
	Calls []Pending `json:"calls"`
	Wrong int       `json:"wrong"`
}

// codesKey names the record of a person: by id, as a login can be given to somebody
// else.
func codesKey(userID int64) string { return fmt.Sprintf("confirm/%d", userID) }

// Waiting returns what waits for a user now, oldest first, for /account. The store is that
// of [Options], and the error is the store's.
func Waiting(ctx context.Context, store kv.Store, userID int64, now time.Time) ([]Pending, error) {
	w, _, err := load(ctx, store, userID, now)
	return w.Calls, err
}

// load returns a person's record without what has expired.
func load(ctx context.Context, store kv.Store, userID int64, now time.Time) (waiting, uint64, error) {
	var w waiting
	e, err := store.Get(ctx, codesKey(userID))
	if errors.Is(err, kv.ErrNotFound) {
		return w, 0, nil
	}
	if err != nil {
		return w, 0, fmt.Errorf("confirm: %w", err)
	}
	if err := json.Unmarshal(e.Value, &w); err != nil {
		return waiting{}, e.Version, nil // a code that cannot be read cannot be used: begin anew
	}
	w.Calls = slices.DeleteFunc(w.Calls, func(p Pending) bool { return !now.Before(p.Expires) })
	return w, e.Version, nil
}

// change rewrites a person's record; edit may run more than once.
func (c *Confirm) change(ctx context.Context, userID int64, edit func(*waiting)) error {
	// Replicas share the record, so it is changed by comparing versions and not under a
	// lock.
	for range casRetries {
		w, version, err := load(ctx, c.o.Store, userID, c.o.Now())
		if err != nil {
			return err
		}
		edit(&w)
		value, err := json.Marshal(w)
		if err != nil {
			return fmt.Errorf("confirm: %w", err)
		}
		_, err = c.o.Store.CompareAndSwap(ctx, codesKey(userID), version, value, c.rules.TTL.Std()+time.Minute)
		if err == nil {
			return nil
		}
		if !errors.Is(err, kv.ErrConflict) {
			return fmt.Errorf("confirm: %w", err)
		}
	}
	return errors.New("confirm: too many calls of this person at the same time")
}

// wait makes a code for the call, unless one waits already, and says where the
// person reads it.
func (c *Confirm) wait(ctx context.Context, call *proxy.Call, digest []byte) error {
	// Codes are kept by user id, and read on a page that needs a sign-in; a static
	// token has neither.
	if call.Identity.UserID == 0 || c.o.AccountURL == "" {
		return proxy.NewError(proxy.KindPolicyDenied, "a person must confirm calls of "+call.Tool.Name+
			", and there is no page where this identity could read a code; nothing was sent", nil)
	}
	s, code := c.subject(ctx, call), newCode()
	err := c.change(ctx, call.Identity.UserID, func(w *waiting) {
		// A model that repeats its call must not fill the list, nor make the code void
		// that the person is about to read.
		for _, p := range w.Calls {
			if subtle.ConstantTimeCompare(p.Digest, digest) == 1 {
				return
			}
		}
		if len(w.Calls) >= maxWaiting {
			w.Calls = w.Calls[1:]
		}
		w.Calls = append(w.Calls, Pending{
			Code: code, Tool: call.Tool.Name, Summary: s.text,
			Expires: c.o.Now().Add(c.rules.TTL.Std()), Digest: digest,
		})
	})
	if err != nil {
		return unavailable(err)
	}
	return proxy.NewError(proxy.KindConfirm, "a person must confirm this call: "+s.text+
		". Nothing was sent. Ask your user to open "+c.o.AccountURL+
		", to read the code for this call there and to give it to you; "+
		"then make exactly the same call with the further argument confirmation_code", nil)
}

// redeem takes a code. It works once, for the call that it was made for.
func (c *Confirm) redeem(ctx context.Context, call *proxy.Call, digest []byte) error {
	if call.Identity.UserID == 0 {
		return refused("this identity has no confirmation codes", nil)
	}
	given := normal(call.Options.Code)
	var ok, gone bool
	err := c.change(ctx, call.Identity.UserID, func(w *waiting) {
		ok, gone = false, false
		// Codes are compared in constant time, and a right one for another call
		// counts as wrong.
		for i, p := range w.Calls {
			right := subtle.ConstantTimeCompare([]byte(normal(p.Code)), []byte(given)) == 1
			if right && subtle.ConstantTimeCompare(p.Digest, digest) == 1 {
				ok = true
				w.Calls = slices.Delete(w.Calls, i, i+1)
				w.Wrong = 0
				return
			}
		}
		// 60 bits cannot be guessed in ten tries; the bound is against a client that
		// tries for ever.
		if w.Wrong++; w.Wrong >= maxWrong {
			w.Calls, w.Wrong, gone = nil, 0, true
		}
	})
	switch {
	case err != nil:
		return unavailable(err)
	case gone:
		return refused("there were too many wrong confirmation codes, and all that waited are void", nil)
	case !ok:
		return refused("the confirmation code is wrong, was used already, came too late, or is for another call", nil)
	}
	return nil
}

// newCode returns 60 random bits in groups of four that are easy to read aloud.
func newCode() string {
	s := rand.Text()[:12] // base32: five bits a letter
	return s[:4] + "-" + s[4:8] + "-" + s[8:]
}

// normal forgives case, spaces and hyphens. People read codes aloud and type them by hand;
// none of the three carries a bit of the code.
func normal(code string) string {
	return strings.NewReplacer("-", "", " ", "").Replace(strings.ToUpper(code))
}
