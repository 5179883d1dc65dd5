package kv

import (
	"bytes"
	"context"
	"errors"
	"time"
)

// ops are the operations on one key, written once for [Memory] and [File]: what is
// checked, in which order, and who wins must be the same in both. [Store] in Redis has
// its own, as there the decision is a script's.
type ops struct{ in table }

// table is what each of the two has of its own.
type table interface {
	// read returns the entry of key, with a value that is the caller's own.
	read(key string) (Entry, error)
	// holds reports whether there is an entry of key, also one whose time has come.
	holds(key string) (bool, error)
	// edit calls decide with the entry of key, or with why there is none. Unless that
	// fails it writes next, or removes the key for nil, all in one step, and returns the
	// new version. decide may be called more than once, and the value that it sees is
	// the table's.
	edit(key string, next *value, decide func(Entry, error) error) (version uint64, err error)
}

// value is what a key is to hold.
type value struct {
	bytes []byte
	ttl   time.Duration
}

// always lets an edit happen, whatever is there.
func always(Entry, error) error { return nil }

// Get implements [Store].
func (o ops) Get(ctx context.Context, key string) (Entry, error) {
	if err := CheckKey(ctx, key); err != nil {
		return Entry{}, err
	}
	return o.in.read(key)
}

// Put implements [Store].
func (o ops) Put(ctx context.Context, key string, val []byte, ttl time.Duration) error {
	if err := CheckWrite(ctx, key, val, ttl); err != nil {
		return err
	}
	_, err := o.in.edit(key, &value{val, ttl}, always)
	return err
}

// Take implements [Store].
func (o ops) Take(ctx context.Context, key string) (e Entry, err error) {
	// Most calls with a key that is not there come from guesses; they must not
	// cost a write.
	if _, err := o.Get(ctx, key); err != nil {
		return Entry{}, err
	}
	_, err = o.in.edit(key, nil, func(old Entry, err error) error {
		e = old
		e.Value = bytes.Clone(old.Value)
		return err
	})
	if err != nil { // a removal that was not made durable gives the entry to no caller
		return Entry{}, err
	}
	return e, nil
}

// CompareAndSwap implements [Store].
func (o ops) CompareAndSwap(
	ctx context.Context, key string, version uint64, val []byte, ttl time.Duration,
) (uint64, error) {
	if err := CheckWrite(ctx, key, val, ttl); err != nil {
		return 0, err
	}
	same := func(old Entry, err error) error {
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if old.Version != version { // an absent entry has version 0
			return ErrConflict
		}
		return nil
	}
	if err := same(o.in.read(key)); err != nil { // a race that is lost already costs no write
		return 0, err
	}
	fresh, err := o.in.edit(key, &value{val, ttl}, same)
	if err != nil {
		return 0, err
	}
	return fresh, nil
}

// Delete implements [Store].
func (o ops) Delete(ctx context.Context, key string) error {
	if err := CheckKey(ctx, key); err != nil {
		return err
	}
	// Guesses must not cost a write. An entry whose time has come goes, too: a clock that is set
	// back would bring it to life again.
	if found, err := o.in.holds(key); err != nil || !found {
		return err
	}
	_, err := o.in.edit(key, nil, always)
	return err
}
