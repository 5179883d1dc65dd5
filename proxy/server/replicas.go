package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"aegis/config"
	"aegis/proxy/kv"
	"aegis/proxy/kv/redis"
	"aegis/proxy/limit"
	"aegis/proxy/telemetry"
)

// sharing is what this replica knows of the others and of the store between them.
// All servers of a process share one.
type sharing struct {
	id       string       // of this process
	replicas atomic.Int64 // the last known number; 0: never counted
	failed   atomic.Int64 // calls that could not be counted together
	leavers  leavers      // whom the others have to be told of
}

func newSharing() *sharing { return &sharing{id: rand.Text()} }

// count returns the last known number of replicas, at least 1.
func (s *sharing) count() int { return max(1, int(s.replicas.Load())) }

// sharedLimits returns what counts calls for all replicas; nil when each counts its
// own.
func (s *Server) sharedLimits() *limit.Shared {
	if !s.cfg.Limits.Shared {
		return nil
	}
	return &limit.Shared{
		Counter: counter{s.process}, Refuse: s.cfg.Limits.OnStoreFailure == "refuse",
		Replicas: func() int { return s.process.sharing.count() },
		Failed:   func(error) { s.process.sharing.failed.Add(1) },
	}
}

// counter counts in the store that replicas share.
type counter struct{ process *Process }

// Spend implements [limit.Counter].
func (c counter) Spend(ctx context.Context, list []limit.Budget) ([]time.Duration, error) {
	store := c.process.storage.shared()
	if store == nil {
		return nil, errors.New("limits: the store is not open")
	}
	budgets := make([]redis.Budget, len(list))
	for i, b := range list {
		every := time.Duration(float64(time.Second) / b.Limit.Rate.PerSecond())
		budgets[i] = redis.Budget{Key: b.Key, Every: max(every, 1), Burst: b.Limit.Size()}
	}
	spent, err := store.Spend(ctx, budgets)
	if err != nil {
		return nil, err
	}
	waits := make([]time.Duration, len(spent))
	for i, s := range spent {
		waits[i] = s.Wait
	}
	return waits, nil
}

// shared returns the store that replicas share; nil while it is not open.
func (st *storage) shared() *redis.Store {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.backing.Redis
}

// replicaName returns the name of this replica.
func replicaName(cfg *config.Config) string {
	if cfg.Store.Replica != "" {
		return cfg.Store.Replica
	}
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "aegis"
}

const (
	// presenceKey holds the replicas that are there.
	presenceKey = "meta/replicas"
	// beatEvery is between two signs of life, silence after which a replica is
	// counted out.
	beatEvery = 3 * time.Second
	silence   = 15 * time.Second
	// maxReplicas bounds the record, whatever is in it.
	maxReplicas = 1000
)

// presence is how a replica learns which others there are: one record, in which
// each counts up its own number. Clocks need not agree: who sees a number stand
// still for long enough takes it out.
type presence struct {
	id    string
	now   func() time.Time
	beats map[string]uint64    // as last read
	moved map[string]time.Time // when a number was last seen to have changed
}

func newPresence(id string, now func() time.Time) *presence {
	return &presence{id: id, now: now, beats: map[string]uint64{}, moved: map[string]time.Time{}}
}

// beat gives a sign of life and returns how many replicas there are.
func (p *presence) beat(ctx context.Context, store kv.Store) (int, error) {
	return p.change(ctx, store, func(m map[string]uint64) { m[p.id]++ })
}

// leave takes this replica out.
func (p *presence) leave(ctx context.Context, store kv.Store) error {
	_, err := p.change(ctx, store, func(m map[string]uint64) { delete(m, p.id) })
	return err
}

func (p *presence) change(ctx context.Context, store kv.Store, edit func(map[string]uint64)) (int, error) {
	for range 20 {
		e, err := store.Get(ctx, presenceKey)
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return 0, err
		}
		m := map[string]uint64{}
		if e.Value != nil && (json.Unmarshal(e.Value, &m) != nil || len(m) > maxReplicas) {
			m = map[string]uint64{} // nobody can use what cannot be read
		}
		p.bury(m)
		edit(m)
		value, err := json.Marshal(m)
		if err != nil {
			return 0, err
		}
		if _, err = store.CompareAndSwap(ctx, presenceKey, e.Version, value, time.Minute); !errors.Is(err, kv.ErrConflict) {
			return len(m), err
		}
	}
	return 0, errors.New("too many replicas write at the same time")
}

// bury takes out those that have been silent.
func (p *presence) bury(m map[string]uint64) {
	now := p.now()
	for id, n := range m {
		if last, known := p.beats[id]; !known || last != n {
			p.beats[id], p.moved[id] = n, now
		}
		if id != p.id && now.Sub(p.moved[id]) >= silence {
			delete(m, id)
		}
	}
	for id := range p.beats {
		if _, there := m[id]; !there {
			delete(p.beats, id)
			delete(p.moved, id)
		}
	}
}

// beat gives signs of life until ctx ends.
func (l *Live) beat(ctx context.Context) {
	sharing := l.process.sharing
	p := newPresence(sharing.id, time.Now)
	news := &bulletin{}
	tick := time.NewTicker(l.process.pace.beat)
	defer tick.Stop()
	down := false
	for {
		s := l.Server()
		n, err := p.beat(ctx, s.store)
		if err == nil {
			err = news.exchange(ctx, s.store, &sharing.leavers, s.gitea.people.Recheck)
		}
		switch {
		case err == nil:
			sharing.replicas.Store(int64(n))
			if down {
				s.log.Info().Int("replicas", n).Msg("the store is back")
			}
			down = false
		case ctx.Err() == nil && !down:
			down = true
			s.log.Error().Err(err).Msg("the store does not answer; calls with static tokens go on, those of people who signed in for store.grace")
		}
		select {
		case <-ctx.Done():
			leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			_ = p.leave(leave, s.store) // else the others notice by its silence
			cancel()
			return
		case <-tick.C:
		case <-sharing.leavers.waiting():
		}
	}
}

// storeMetrics is the state of the store that replicas share.
func (s *Server) storeMetrics() telemetry.Store {
	store := s.process.storage.shared()
	return telemetry.Store{Up: store != nil && !store.Down(), Replicas: s.process.sharing.count(), Uncounted: int(s.process.sharing.failed.Load())}
}
