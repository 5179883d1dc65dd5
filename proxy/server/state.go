package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"aegis/config"
	"aegis/proxy/internal/seal"
	"aegis/proxy/kv"
	"aegis/proxy/kv/redis"
	"aegis/proxy/oauth/client"
)

// state is what outlives a restart: the store and its keys. All servers of a
// process share one. Until it is opened, which only serving does, a store in
// memory stands in, so that a configuration can be built and checked beside a
// running Aegis that has the files.
type state struct {
	mu      sync.Mutex
	inner   kv.Store
	open    bool                           // inner is the configured one
	redis   *redis.Store                   // inner, when replicas share it; nil: they do not
	forMe   *seal.Ring                     // of the store in memory
	sharing *sharing                       // with other replicas
	latest  atomic.Pointer[kv.SealedStore] // inner with the keys of the last configuration
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
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	ring, err := seal.New(key)
	usual := pace{now: time.Now, after: time.After, beat: beatEvery}
	return &state{inner: kv.NewMemory(nil), forMe: ring, sharing: newSharing(), pace: usual}, err
}

// needed reports whether a configuration keeps anything in the store.
func stateNeeded(cfg *config.Config) bool { return cfg.Auth.OAuth.Enabled || cfg.Store.Shared() }

// stateFiles returns where a configuration puts the store and its keys.
func stateFiles(cfg *config.Config) (store, keys string) {
	store, keys = cfg.Store.Path, cfg.Store.KeyFile
	if store == "" {
		store = filepath.Join(cfg.DataDir, "aegis.db")
	}
	if keys == "" {
		keys = filepath.Join(cfg.DataDir, "store.keys")
	}
	return store, keys
}

// start opens the configured store, once. The error says what to do.
func (st *state) start(s *Server) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.open {
		return nil
	}
	if s.cfg.Store.Shared() {
		r, err := openRedis(context.Background(), s.cfg)
		if err != nil {
			return err
		}
		st.inner, st.redis, st.open = r, r, true
		return nil
	}
	path, _ := stateFiles(s.cfg)
	log := s.log
	f, err := kv.OpenFile(path, kv.FileOptions{Wait: st.pace.wait, Failed: func(err error) { log.Error().Err(err).Msg("expired entries of the store could not be removed") }})
	if err != nil {
		return fmt.Errorf("store %s: %w", path, err)
	}
	st.inner, st.open = f, true
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
	_ = st.inner.Close() // nothing can be done about it any more
}

// ring returns the keys of the store: those of the configuration, those of the
// key file once the store is open, else random ones for the store in memory.
func (st *state) ring(cfg *config.Config) (*seal.Ring, error) {
	if len(cfg.Store.Keys) > 0 {
		keys := make([][]byte, len(cfg.Store.Keys))
		for i, k := range cfg.Store.Keys {
			keys[i] = []byte(k.Reveal())
		}
		ring, err := seal.New(keys...)
		if err != nil {
			return nil, fmt.Errorf("store.keys: %w", err)
		}
		return ring, nil
	}
	if st.opened() {
		_, file := stateFiles(cfg)
		if cfg.Store.Shared() { // every replica needs the same keys; one made here would be another
			if _, err := os.Stat(file); err != nil {
				return nil, fmt.Errorf("store.key_file: %w; copy the file that the other replicas have, or for the first one make it: umask 077; openssl rand -hex 32 > %s", err, file)
			}
		}
		ring, err := seal.OpenFile(file)
		if err != nil {
			return nil, fmt.Errorf("store.key_file %s: %w", file, err)
		}
		return ring, nil
	}
	return st.forMe, nil
}

// sealed returns the store, sealed with the configured keys. It fails when a key
// is missing that values in the store need.
func (st *state) sealed(ctx context.Context, cfg *config.Config) (*kv.SealedStore, *seal.Ring, error) {
	ring, err := st.ring(cfg)
	if err != nil {
		return nil, nil, err
	}
	st.mu.Lock()
	store := kv.Sealed(st.inner, ring)
	st.mu.Unlock()
	if cfg.Store.Shared() && st.opened() {
		if err := sameKeys(ctx, store); err != nil {
			return nil, nil, err
		}
	}
	if err := store.Check(ctx); err != nil {
		return nil, nil, fmt.Errorf("store: %w", err)
	}
	return store, ring, nil
}

// RotateKeys puts a new key in front of the store's key file and seals the store
// anew with it. Inuse reports that a running Aegis has the store: it takes the new
// key at its next reload.
func RotateKeys(ctx context.Context, cfg *config.Config) (r kv.Rotation, err error) {
	store, keys := stateFiles(cfg)
	if len(cfg.Store.Keys) > 0 {
		return r, errors.New(`the keys are in the configuration (store.keys): put a new one in front, keep the others behind it, and reload; make one with "openssl rand -hex 32"`)
	}
	if cfg.Store.Shared() {
		id, err := seal.Rotate(keys)
		return kv.Rotation{KeyID: id, InUse: true}, err
	}
	return kv.Rotate(ctx, keys, store)
}
