package server

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

// The keys of what replicas tell each other.
const (
	PresenceKey = presenceKey
	BulletinKey = bulletinKey
	Silence     = silence
	MaxLeavers  = maxLeavers
)

// Bulletin is one replica's part of telling who lost a membership.
type Bulletin struct {
	b bulletin
	s *sharing
}

// NewBulletin returns that of a new replica.
func NewBulletin() *Bulletin { return &Bulletin{s: newSharing()} }

// Left notes a loss.
func (b *Bulletin) Left(key string) { b.s.left(key) }

// Exchange tells the others, and returns what they told.
func (b *Bulletin) Exchange(ctx context.Context, store kv.Store) (heard []string, err error) {
	err = b.b.exchange(ctx, store, &b.s.leavers, func(key string) { heard = append(heard, key) })
	return heard, err
}
