// Package open opens the store that a configuration describes, in a file or in
// Redis, and the keys that its values are sealed with. It is the one place that
// picks between the two, and the only way to the keys of a store: what leaves it
// is sealed.
package open

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"aegis/config"
	"aegis/proxy/internal/seal"
	"aegis/proxy/kv"
	"aegis/proxy/kv/redis"
)

// Store is an opened store that seals its values. Closing it closes what is below.
type Store struct {
	*kv.SealedStore
	ring *seal.Ring
}

// Derive returns the secret keys of a purpose, which label names, the current one
// first: one for each key of the store.
func (s *Store) Derive(label string) [][]byte { return s.ring.Derive(label) }

// Backing is an opened store before its values are sealed. Keys may be changed
// while it is open, by a reload, so that it outlives the [Store]s made of it.
type Backing struct {
	inner kv.Store
	// Redis is what replicas share; nil when the store is this process's own.
	Redis *redis.Store
	// forMe is the key of a store in memory, which dies with it; nil for others.
	forMe *seal.Ring
}

// Needed reports whether a configuration keeps anything in the store.
func Needed(cfg *config.Config) bool { return cfg.Auth.OAuth.Enabled || cfg.Store.Shared() }

// Files returns where a configuration puts the store and its keys. The first one
// means nothing for a store in Redis.
func Files(cfg *config.Config) (store, keys string) {
	return cmp.Or(cfg.Store.Path, filepath.Join(cfg.DataDir, "aegis.db")),
		cmp.Or(cfg.Store.KeyFile, filepath.Join(cfg.DataDir, "store.keys"))
}

// Memory returns a store in memory with a random key: it serves where no store is
// needed, or none may be touched.
func Memory() (*Backing, error) {
	// The keys of a configuration, or of a file, could not protect more: what is sealed never
	// leaves the process.
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails: it ends the process instead
	ring, err := seal.New(key)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return &Backing{inner: kv.NewMemory(nil), forMe: ring}, nil
}

// Open opens the store of a configuration for serving, and makes its folder and its
// file when they are missing. A Redis that does not answer is an error: nothing is
// served without it. The error says what to do. The options mean nothing to Redis, which
// removes expired entries by itself.
func Open(ctx context.Context, cfg *config.Config, o kv.FileOptions) (*Backing, error) {
	if cfg.Store.Shared() {
		return connect(ctx, cfg)
	}
	path, _ := Files(cfg)
	f, err := kv.OpenFile(path, o)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	return &Backing{inner: f}, nil
}

// Existing opens the store of a configuration for a command, sealed. It makes no
// file. The error wraps [kv.ErrInUse] when a running Aegis has the file open.
func Existing(ctx context.Context, cfg *config.Config) (*Store, error) {
	if path, _ := Files(cfg); !cfg.Store.Shared() {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("there is no store yet: %w", err)
		}
	}
	return command(ctx, cfg)
}

// command opens a store for as long as a command takes: expired entries are left to
// the Aegis that serves it. A file that is missing is made, which is right for the target
// of a migration alone; see [Existing].
func command(ctx context.Context, cfg *config.Config) (*Store, error) {
	b, err := Open(ctx, cfg, kv.FileOptions{Sweep: -1})
	if err != nil {
		return nil, err
	}
	s, err := b.Seal(ctx, cfg)
	if err != nil {
		_ = b.Close() // nothing was written; why it cannot be used is what matters
	}
	return s, err
}

// Seal returns the store with its values sealed by the keys of a configuration, whose
// store it must be. It makes a missing key file, unless replicas share the store. It
// fails when a key is missing that values in the store need, or when other replicas
// have other keys.
func (b *Backing) Seal(ctx context.Context, cfg *config.Config) (*Store, error) {
	ring, err := b.ring(cfg)
	if err != nil {
		return nil, err
	}
	s := kv.Sealed(b.inner, ring)
	// First of all: with other keys every value would be reported as one of a key that is missing.
	if b.Redis != nil {
		if err := sameKeys(ctx, s); err != nil {
			return nil, err
		}
	}
	if err := s.Check(ctx); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return &Store{s, ring}, nil
}

// Close closes the store, and with it every [Store] made of it.
func (b *Backing) Close() error { return b.inner.Close() }

// ring returns the keys of the store: those in the configuration, those of its key
// file, or random ones for a store in memory. They are read at each reload, so that a new
// key is taken without a restart.
func (b *Backing) ring(cfg *config.Config) (*seal.Ring, error) {
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
	if b.forMe != nil {
		return b.forMe, nil
	}
	_, file := Files(cfg)
	if b.Redis != nil { // every replica needs the same keys; one made here would be another
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("store.key_file: %w; copy the file that the other replicas have, "+
				"or for the first one make it: "+
				"umask 077; openssl rand -hex 32 > %s", err, file)
		}
	}
	ring, err := seal.OpenFile(file)
	if err != nil {
		return nil, fmt.Errorf("store.key_file %s: %w", file, err)
	}
	return ring, nil
}

// keyProof is where the first replica leaves a value that all others must be able
// to open. The value itself says nothing.
const keyProof = "meta/keys"

// sameKeys fails when this replica's keys are not those of the others. Without it,
// two replicas that start on an empty store would notice only when people come.
func sameKeys(ctx context.Context, store *kv.SealedStore) error {
	_, err := store.Get(ctx, keyProof)
	if errors.Is(err, kv.ErrNotFound) {
		_, err = store.CompareAndSwap(ctx, keyProof, 0, []byte("aegis"), 0)
		if errors.Is(err, kv.ErrConflict) { // another one was faster
			_, err = store.Get(ctx, keyProof)
		}
	}
	if errors.Is(err, seal.ErrKey) {
		return fmt.Errorf("store: other replicas have other keys; give all the same store.keys, "+
			"or the same file as store.key_file: %w", err)
	}
	return err
}
