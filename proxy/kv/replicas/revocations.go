package replicas

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"aegis/proxy/kv"
)

// Gitea decides who is a member of what. Each replica asks it and believes the answer
// for a while. A replica that sees a membership end tells the others, so that they ask
// again at once instead of when their own answer is too old.

const (
	// revocationsKey holds who lost a membership of late.
	revocationsKey = "meta/left"
	// maxRevocations bounds the record; of more at a time, the others hear late.
	maxRevocations = 500
	// revocationsLife is longer than any replica believes an answer of Gitea's.
	revocationsLife = 10 * time.Minute
)

// revocations are those that the others have not been told of.
type revocations struct {
	pending chan struct{} // has a value when there are some; capacity 1
	mu      sync.Mutex
	keys    []string
}

// add notes one.
func (r *revocations) add(key string) {
	r.mu.Lock()
	if len(r.keys) < maxRevocations {
		r.keys = append(r.keys, key)
	}
	r.mu.Unlock()
	select {
	case r.pending <- struct{}{}:
	default: // the next exchange has not begun yet, and takes this one too
	}
}

// take returns all and forgets them.
func (r *revocations) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := r.keys
	r.keys = nil
	return keys
}

// restore puts back what take returned and could not be written.
func (r *revocations) restore(keys []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys = append(keys, r.keys...); len(r.keys) > maxRevocations {
		r.keys = r.keys[:maxRevocations]
	}
}

// record is what the replicas share: numbered notes, the newest last.
type record struct {
	Last uint64 `json:"last"`
	List []note `json:"list"`
}

type note struct {
	N   uint64 `json:"n"`
	Key string `json:"key"`
}

// feed is what this replica has read of the record.
type feed struct {
	read bool   // at least once
	last uint64 // the newest note that was read
}

// exchange publishes our revocations, and calls recheck for those of others. When the write
// fails after theirs were read, they count as read: recheck has been called.
func (f *feed) exchange(ctx context.Context, store kv.Store, ours *revocations, recheck func(key string)) error {
	keys := ours.take()
	written := uint64(0)
	err := change(ctx, store, revocationsKey, revocationsLife, func(old []byte) any {
		var rec record
		if old != nil && json.Unmarshal(old, &rec) != nil {
			rec = record{}
		}
		f.learn(rec, recheck)
		if len(keys) == 0 {
			return nil
		}
		for _, k := range keys {
			rec.Last++
			rec.List = append(rec.List, note{rec.Last, k})
		}
		rec.List = rec.List[max(0, len(rec.List)-maxRevocations):]
		written = rec.Last
		return rec
	})
	if err != nil {
		ours.restore(keys)
		return err
	}
	f.last = max(f.last, written) // our own notes are no news to us
	return nil
}

// learn calls recheck for each note that is new. At the first reading none is: this
// replica has believed nothing yet. A record that began anew counts from the start.
func (f *feed) learn(rec record, recheck func(key string)) {
	if rec.Last < f.last {
		f.last = 0
	}
	for _, n := range rec.List {
		if f.read && n.N > f.last {
			recheck(n.Key)
		}
	}
	f.read, f.last = true, rec.Last
}
