package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"aegis/config"
	"aegis/proxy/kv/open"
	"aegis/proxy/oauth/client"
)

// state is what outlives a restart: the store and its keys. All servers of a
// process share one. Until it is opened, which only serving does, a store in
// memory stands in, so that a configuration can be built and checked beside a
// running Aegis that has the files.
type state struct {
	mu      sync.Mutex
	backing *open.Backing
	open    bool                       // backing is the configured one
	sharing *sharing                   // with other replicas
	latest  atomic.Pointer[open.Store] // backing with the keys of the last configuration
	// documents changes how client documents are fetched; nil but in tests,
	// which have no public addresses to fetch from.
	documents func(*client.Options)
	pace      pace
}

// pace is what goes by time. Tests have another one, so that they need not wait and
// do not depend on how fast a machine is.
type pace struct {
	now   func() time.Time                     // by which what was learned is believed
	after func(time.Duration) <-chan time.Time // time.After
	beat  time.Duration                        // between two signs of life
	poll  time.Duration                        // between two looks at another's lock; 0: as certstore has it
	wait  time.Duration                        // for a process that has the store's file; 0: as kv has it
}

// now is the clock by which Gitea's answers and sign-ins are believed.
func (s *Server) now() time.Time { return s.state.pace.now() }

func newState() (*state, error) {
	backing, err := open.Memory()
	usual := pace{now: time.Now, after: time.After, beat: beatEvery}
	return &state{backing: backing, sharing: newSharing(), pace: usual}, err
}

// start opens the configured store, once. The error says what to do.
func (st *state) start(s *Server) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.open {
		return nil
	}
	log := s.log
	b, err := open.Open(context.Background(), s.cfg, open.Options{Wait: st.pace.wait, Failed: func(err error) {
		log.Error().Err(err).Msg("expired entries of the store could not be removed")
	}})
	if err != nil {
		return err
	}
	st.backing, st.open = b, true
	return nil
}

// opened reports whether the configured store is in use.
func (st *state) opened() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.open
}

func (st *state) close() {
	st.mu.Lock()
	defer st.mu.Unlock()
	_ = st.backing.Close() // nothing can be done about it any more
}

// sealed returns the store, sealed with the configured keys. It fails when a key
// is missing that values in the store need.
func (st *state) sealed(ctx context.Context, cfg *config.Config) (*open.Store, error) {
	st.mu.Lock()
	b := st.backing
	st.mu.Unlock() // calls must not wait until the whole store has been read
	return b.Seal(ctx, cfg)
}
