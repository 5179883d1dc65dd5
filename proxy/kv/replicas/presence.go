package replicas

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"aegis/proxy/kv"
)

const (
	// presenceKey holds the replicas that are there.
	presenceKey = "meta/replicas"
	// presenceLife is how long the record outlives the last replica.
	presenceLife = time.Minute
	// silence is how long a replica may give no sign of life before it is counted out.
	silence = 15 * time.Second
	// maxReplicas bounds the record, whatever is in it.
	maxReplicas = 1000
)

// presence is how a replica learns which others there are: one record, in which
// each counts up its own number. Clocks need not agree: a replica takes out whose
// number has not changed for long enough by its own clock.
type presence struct {
	id    string
	now   func() time.Time
	known map[string]sign
}

// sign is the last sign of life of a replica: its number, and when that was seen to change.
type sign struct {
	beat uint64
	at   time.Time
}

func newPresence(id string, now func() time.Time) *presence {
	return &presence{id: id, now: now, known: map[string]sign{}}
}

// beat gives a sign of life and returns how many replicas there are.
func (p *presence) beat(ctx context.Context, store kv.Store) (int, error) {
	return p.edit(ctx, store, func(beats map[string]uint64) { beats[p.id]++ })
}

// leave takes this replica out.
func (p *presence) leave(ctx context.Context, store kv.Store) error {
	_, err := p.edit(ctx, store, func(beats map[string]uint64) { delete(beats, p.id) })
	return err
}

// edit changes the record and returns how many replicas it then has.
func (p *presence) edit(ctx context.Context, store kv.Store, edit func(map[string]uint64)) (n int, err error) {
	err = change(ctx, store, presenceKey, presenceLife, func(old []byte) any {
		// What cannot be read is begun anew: all who live are back within one beat.
		beats := map[string]uint64{}
		if old != nil && (json.Unmarshal(old, &beats) != nil || len(beats) > maxReplicas) {
			beats = map[string]uint64{}
		}
		p.dropSilent(beats)
		edit(beats)
		n = len(beats)
		return beats
	})
	return n, err
}

// dropSilent takes out the replicas that have given no sign of life for too long.
func (p *presence) dropSilent(beats map[string]uint64) {
	now := p.now()
	for id, n := range beats {
		if last, known := p.known[id]; !known || last.beat != n {
			p.known[id] = sign{n, now}
		}
		if id != p.id && now.Sub(p.known[id].at) >= silence {
			delete(beats, id)
		}
	}
	maps.DeleteFunc(p.known, func(id string, _ sign) bool { _, there := beats[id]; return !there })
}
