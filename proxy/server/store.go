package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"aegis/config"
	"aegis/proxy/internal/seal"
	"aegis/proxy/kv"
	"aegis/proxy/kv/redis"
)

// openStore opens the store of a configuration for a command; create makes a file
// that is missing. The error says what to do.
func openStore(ctx context.Context, cfg *config.Config, create bool) (*kv.SealedStore, *seal.Ring, error) {
	st := &state{open: true}
	path, _ := stateFiles(cfg)
	if cfg.Store.Shared() {
		r, err := openRedis(ctx, cfg)
		if err != nil {
			return nil, nil, err
		}
		st.inner = r
	} else {
		if _, err := os.Stat(path); err != nil && (!create || !errors.Is(err, fs.ErrNotExist)) {
			return nil, nil, fmt.Errorf("there is no store yet: %w", err)
		}
		f, err := kv.OpenFile(path, kv.FileOptions{Sweep: -1})
		if err != nil {
			return nil, nil, fmt.Errorf("store %s: %w", path, err)
		}
		st.inner = f
	}
	store, ring, err := st.sealed(ctx, cfg)
	if err != nil {
		_ = st.inner.Close() // the error that counts is the other one
		return nil, nil, err
	}
	return store, ring, nil
}

// StoreFinding is one result of [CheckStore].
type StoreFinding struct {
	// Grade is ok, warning or failure.
	Grade string `json:"grade"`
	// What was found.
	What string `json:"what"`
	// Do is what to do about it; "" when all is well.
	Do string `json:"do,omitempty"`
}

// CheckStore looks whether the store of a configuration is fit for use, and whether
// its keys are those of what it holds.
func CheckStore(ctx context.Context, cfg *config.Config) []StoreFinding {
	var list []StoreFinding
	add := func(g redis.Grade, what, do string) { list = append(list, StoreFinding{string(g), what, do}) }
	if cfg.Store.Shared() {
		r, err := newRedis(cfg.Store)
		if err != nil {
			add(redis.Failure, err.Error(), "correct the configuration")
			return list
		}
		found := r.Inspect(ctx)
		_ = r.Close() // nothing was written that is to stay
		for _, f := range found {
			add(f.Grade, f.What, f.Do)
			if f.Grade == redis.Failure && len(found) == 1 {
				return list
			}
		}
		if !cfg.Store.Encrypted() {
			add(redis.Warning, "the connection is not encrypted", "use rediss:// unless the network is trusted")
		}
	}
	s, ring, err := openStore(ctx, cfg, false)
	if err != nil {
		add(redis.Failure, err.Error(), "mend that first")
		return list
	}
	defer s.Close()
	n := 0
	for _, err := range s.Keys(ctx, "") {
		if err != nil {
			add(redis.Failure, "the entries cannot be listed: "+err.Error(), "mend that first")
			return list
		}
		n++
	}
	add(redis.OK, fmt.Sprintf("%d entries, which the keys %s open", n, strings.Join(ring.KeyIDs(), ", ")), "")
	return list
}

// Migration is what [MigrateStore] has done.
type Migration struct {
	// Copied is how many entries were copied, Skipped how many were not, since
	// they are of use to running replicas alone or expired meanwhile.
	Copied, Skipped int
}

// passingKeys begin the keys of entries that say something of running replicas.
var passingKeys = [...]string{"lease/", "meta/", "check/"}

// MigrateStore copies the store of one configuration into that of another, sealed
// with the latter's keys, with what is left of every lifetime. No Aegis may use
// either of them. It refuses a target that holds anything, and keys that lack one
// of the source's: client ids and refresh tokens are derived from those.
func MigrateStore(ctx context.Context, from, to *config.Config) (m Migration, err error) {
	source, ring, err := openStore(ctx, from, false)
	if err != nil {
		return m, fmt.Errorf("source: %w", err)
	}
	defer source.Close()
	target, fresh, err := openStore(ctx, to, true)
	if err != nil {
		return m, fmt.Errorf("target: %w", err)
	}
	defer func() {
		if cerr := target.Close(); err == nil {
			err = cerr
		}
	}()
	for _, id := range ring.KeyIDs() {
		if !fresh.Has(id) {
			return m, fmt.Errorf("the target's keys lack key %s of the source; put the lines of the source's key file (or its store.keys) into the target's, the first one first", id)
		}
	}
	if ring.KeyIDs()[0] != fresh.KeyIDs()[0] {
		return m, errors.New("the target's first key is not the source's; put that one first, and rotate afterwards if you like")
	}
	for key, err := range target.Keys(ctx, "") {
		if err != nil {
			return m, fmt.Errorf("target: %w", err)
		}
		if !isPassing(key) {
			return m, errors.New("the target holds entries already; give it another path or prefix, or empty it")
		}
	}
	for key, err := range source.Keys(ctx, "") {
		if err != nil {
			return m, fmt.Errorf("source: %w", err)
		}
		done, err := copyEntry(ctx, source, target, key)
		if err != nil {
			return m, err
		}
		if done {
			m.Copied++
		} else {
			m.Skipped++
		}
	}
	return m, nil
}

func isPassing(key string) bool {
	for _, p := range passingKeys {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	return false
}

// copyEntry copies one entry, unless it is not for others or has expired.
func copyEntry(ctx context.Context, source, target *kv.SealedStore, key string) (bool, error) {
	if isPassing(key) {
		return false, nil
	}
	e, err := source.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("source: %w", err)
	}
	ttl := time.Duration(0)
	if !e.Expires.IsZero() {
		if ttl = e.Expires.Sub(source.Now()); ttl <= 0 {
			return false, nil
		}
	}
	if err := target.Put(ctx, key, e.Value, ttl); err != nil {
		return false, fmt.Errorf("target: %w", err)
	}
	return true, nil
}
