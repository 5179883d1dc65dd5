// Package replicas is what the processes that share a [kv.Store] know of each other:
// how many they are, and who lost a membership that one of them has seen end. Both are
// one record in the store each, so that replicas need no connection among themselves.
package replicas

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"aegis/proxy/kv"
)

// Replica is this process among the others. Make one with [New].
type Replica struct {
	id    string
	count atomic.Int64 // the last known number; 0: never counted
	ours  revocations
}

// New returns the replica that this process is. It writes nothing before [Replica.Run].
func New() *Replica {
	return &Replica{id: rand.Text(), ours: revocations{pending: make(chan struct{}, 1)}}
}

// Count returns the last known number of replicas, at least 1.
func (r *Replica) Count() int { return max(1, int(r.count.Load())) }

// Revoke notes that a person lost a membership, of which the others are told at once.
func (r *Replica) Revoke(key string) { r.ours.add(key) }

// Options say what [Replica.Run] works with. All functions are called from its goroutine.
type Options struct {
	// Store is the one that the replicas share.
	Store kv.Store
	// Every is the time between two signs of life.
	Every time.Duration
	// Recheck is called with each person of whom another replica says that a membership ended.
	Recheck func(key string)
	// Down is called when the store stops answering, Up when it answers again.
	Down func(error)
	Up   func(replicas int)
}

// Run gives signs of life, and exchanges revocations, until ctx ends.
func (r *Replica) Run(ctx context.Context, o Options) {
	p, feed := newPresence(r.id, time.Now), &feed{}
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	down := false
	for {
		n, err := p.beat(ctx, o.Store)
		if err == nil {
			err = feed.exchange(ctx, o.Store, &r.ours, o.Recheck)
		}
		switch {
		case err == nil:
			r.count.Store(int64(n))
			if down {
				o.Up(n)
			}
			down = false
		case ctx.Err() == nil && !down: // an outage is one event, however many beats fall into it
			down = true
			o.Down(err)
		}
		select {
		case <-ctx.Done():
			leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			_ = p.leave(leave, o.Store) // else the others notice by its silence
			cancel()
			return
		case <-tick.C:
		case <-r.ours.pending:
		}
	}
}

// change edits the record under a key, as often as it takes to do so between two writes of
// others. edit returns the new value; nil: nothing is to be written. What cannot be read
// is of use to no replica, so edit gets nil for it as for a record that is missing.
func change(ctx context.Context, store kv.Store, key string, life time.Duration, edit func(old []byte) any) error {
	for range maxConflicts {
		e, err := store.Get(ctx, key)
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return err
		}
		record := edit(e.Value)
		if record == nil {
			return nil
		}
		value, err := json.Marshal(record)
		if err != nil {
			return err
		}
		if _, err = store.CompareAndSwap(ctx, key, e.Version, value, life); !errors.Is(err, kv.ErrConflict) {
			return err
		}
	}
	return errors.New("too many replicas write at the same time")
}

// maxConflicts is how often a record is read again because another replica wrote it. Each try
// that fails is one that succeeded elsewhere, so that this many replicas can write at once.
const maxConflicts = 20
