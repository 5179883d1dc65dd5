package replicas

import (
	"context"
	"time"

	"aegis/proxy/kv"
)

// Presence is one replica's part of knowing the others.
type Presence struct{ p *presence }

// NewPresence returns that of a new replica.
func NewPresence(id string, now func() time.Time) Presence { return Presence{newPresence(id, now)} }

// Beat gives a sign of life and returns how many replicas there are.
func (p Presence) Beat(ctx context.Context, store kv.Store) (int, error) {
	return p.p.beat(ctx, store)
}

// Leave takes the replica out.
func (p Presence) Leave(ctx context.Context, store kv.Store) error { return p.p.leave(ctx, store) }

// The keys and bounds of what replicas share.
const (
	PresenceKey    = presenceKey
	RevocationsKey = revocationsKey
	Silence        = silence
	MaxRevocations = maxRevocations
)

// Feed is one replica's part of telling who lost a membership.
type Feed struct {
	*Replica
	f feed
}

// NewFeed returns that of a new replica.
func NewFeed() *Feed { return &Feed{Replica: New()} }

// Exchange tells the others, and returns what they told.
func (f *Feed) Exchange(ctx context.Context, store kv.Store) (heard []string, err error) {
	err = f.f.exchange(ctx, store, &f.ours, func(key string) { heard = append(heard, key) })
	return heard, err
}
