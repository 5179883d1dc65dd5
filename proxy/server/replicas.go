package server

import (
	"context"
	"errors"
	"os"
	"time"

	"aegis/config"
	"aegis/proxy/kv/redis"
	"aegis/proxy/kv/replicas"
	"aegis/proxy/limit"
	"aegis/proxy/telemetry"
)

// beatEvery is between two signs of life of a replica. Shared limits are divided by the
// number of those that are alive when the store is gone, so it need not be exact.
const beatEvery = 3 * time.Second

// sharedLimits returns what counts calls for all replicas; nil when each counts its
// own.
func (p *Process) sharedLimits(cfg config.Limits) *limit.Shared {
	if !cfg.Shared {
		return nil
	}
	return &limit.Shared{
		Counter: counter{p}, Refuse: cfg.OnStoreFailure == "refuse", Replicas: p.replica.Count,
		Failed: func(error) { p.uncounted.Add(1) },
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
		// The store counts in whole nanoseconds between two calls; 0 would be no limit.
		budgets[i] = redis.Budget{Key: b.Key, Every: max(every, 1), Burst: b.Limit.Size()}
	}
	return store.Spend(ctx, budgets)
}

// shared returns the store that replicas share; nil while it is not open.
func (st *storage) shared() *redis.Store {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.backing.Redis
}

// replicaName returns the name of this replica. Audit records carry it, so that those of
// several files can be told apart; containers have host names of their own.
func replicaName(cfg *config.Config) string {
	if cfg.Store.Replica != "" {
		return cfg.Store.Replica
	}
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "aegis"
}

// tellReplicas gives signs of life to the other replicas and hears theirs until ctx ends.
// Whichever generation is in force logs, and is told who lost a membership.
func (l *Live) tellReplicas(ctx context.Context) {
	l.process.replica.Run(ctx, replicas.Options{
		Store: l.process.storage.latest, Every: l.process.pace.beat,
		Recheck: func(key string) { l.Server().gitea.people.Recheck(key) },
		Up:      func(n int) { l.Server().log.Info().Int("replicas", n).Msg("the store is back") },
		Down: func(err error) {
			l.Server().log.Error().Err(err).
				Msg("the store does not answer; calls with static tokens go on, " +
					"those of people who signed in for store.grace")
		},
	})
}

// storeMetrics is the state of the store that replicas share.
func (p *Process) storeMetrics() telemetry.Store {
	store := p.storage.shared()
	return telemetry.Store{
		Up: store != nil && !store.Down(), Replicas: p.replica.Count(), Uncounted: int(p.uncounted.Load()),
	}
}
