package server

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"aegis/proxy/kv"
)

// Memberships are Gitea's to tell, and each replica asks for itself and believes the
// answer for a while. A replica that sees one end tells the others, so that they ask
// again at once.

const (
	// bulletinKey holds who lost a membership of late.
	bulletinKey = "meta/left"
	// maxLeavers bounds the record; of more at a time, the others hear late.
	maxLeavers = 500
	// bulletinLife is longer than anybody believes an answer of Gitea's.
	bulletinLife = 10 * time.Minute
)

// leavers are those whom the others have not been told of.
type leavers struct {
	mu   sync.Mutex
	keys []string
	wake chan struct{}
}

// left notes that a person lost a membership.
func (s *sharing) left(key string) {
	l := &s.leavers
	l.mu.Lock()
	if len(l.keys) < maxLeavers {
		l.keys = append(l.keys, key)
	}
	l.mu.Unlock()
	select {
	case l.waiting() <- struct{}{}:
	default: // somebody is on the way already
	}
}

// waiting returns what has a value when there is something to tell.
func (l *leavers) waiting() chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wake == nil {
		l.wake = make(chan struct{}, 1)
	}
	return l.wake
}

func (l *leavers) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := l.keys
	l.keys = nil
	return keys
}

// giveBack puts back what could not be told.
func (l *leavers) giveBack(keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys = append(keys, l.keys...); len(l.keys) > maxLeavers {
		l.keys = l.keys[:maxLeavers]
	}
}

// bulletin is what this replica has read of the record.
type bulletin struct {
	read bool   // at least once
	last uint64 // the newest note that was read
}

// notes are the record: numbered, the newest last.
type notes struct {
	Last uint64 `json:"last"`
	List []left `json:"list"`
}

type left struct {
	N   uint64 `json:"n"`
	Key string `json:"key"`
}

// exchange tells the others of our leavers, and calls recheck for theirs.
func (b *bulletin) exchange(ctx context.Context, store kv.Store, ours *leavers, recheck func(key string)) error {
	keys := ours.take()
	for range 20 {
		n, version, err := readNotes(ctx, store)
		if err != nil {
			ours.giveBack(keys)
			return err
		}
		b.learn(n, recheck)
		if len(keys) == 0 {
			return nil
		}
		for _, k := range keys {
			n.Last++
			n.List = append(n.List, left{n.Last, k})
		}
		if len(n.List) > maxLeavers {
			n.List = n.List[len(n.List)-maxLeavers:]
		}
		value, err := json.Marshal(n)
		if err != nil {
			return err
		}
		_, err = store.CompareAndSwap(ctx, bulletinKey, version, value, bulletinLife)
		if err == nil {
			b.last = n.Last
			return nil
		}
		if !errors.Is(err, kv.ErrConflict) {
			ours.giveBack(keys)
			return err
		}
	}
	ours.giveBack(keys)
	return errors.New("too many replicas write at the same time")
}

func readNotes(ctx context.Context, store kv.Store) (n notes, version uint64, err error) {
	e, err := store.Get(ctx, bulletinKey)
	if errors.Is(err, kv.ErrNotFound) {
		return notes{}, 0, nil
	}
	if err != nil {
		return notes{}, 0, err
	}
	if json.Unmarshal(e.Value, &n) != nil {
		return notes{}, e.Version, nil // nobody can use what cannot be read
	}
	return n, e.Version, nil
}

// learn calls recheck for each note that is new. At the first reading none is: this
// replica has believed nothing yet. A record that began anew counts from the start.
func (b *bulletin) learn(n notes, recheck func(key string)) {
	if n.Last < b.last {
		b.last = 0
	}
	for _, l := range n.List {
		if b.read && l.N > b.last {
			recheck(l.Key)
		}
	}
	b.read, b.last = true, n.Last
}
