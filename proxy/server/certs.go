package server

import (
	"context"
	"iter"
	"time"

	"github.com/caddyserver/certmagic"

	"aegis/proxy/kv"
	"aegis/proxy/kv/certstore"
)

// certificates returns where certificates are kept that all replicas serve; nil
// when this Aegis keeps its own in data_dir.
func (s *Server) certificates() func() certmagic.Storage {
	if !s.cfg.Store.Shared() {
		return nil
	}
	return func() certmagic.Storage {
		return certstore.New(latest{s}, certstore.Options{Poll: s.state.pace.poll, Failed: func(err error) {
			s.log.Warn().Err(err).Msg("certificates: a lock may be lost to another replica")
		}})
	}
}

// latest is the store with the keys in force: certificates outlive the server that
// they were first loaded by, and keys are changed by a reload.
type latest struct{ first *Server }

func (l latest) store() kv.Store { return l.first.state.latest.Load() }

// Get implements [kv.Store].
func (l latest) Get(ctx context.Context, key string) (kv.Entry, error) {
	return l.store().Get(ctx, key)
}

// Put implements [kv.Store].
func (l latest) Put(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	return l.store().Put(ctx, key, value, ttl)
}

// Take implements [kv.Store].
func (l latest) Take(ctx context.Context, key string) (kv.Entry, error) {
	return l.store().Take(ctx, key)
}

// CompareAndSwap implements [kv.Store].
func (l latest) CompareAndSwap(ctx context.Context, key string, version uint64, value []byte, ttl time.Duration) (uint64, error) {
	return l.store().CompareAndSwap(ctx, key, version, value, ttl)
}

// Delete implements [kv.Store].
func (l latest) Delete(ctx context.Context, key string) error { return l.store().Delete(ctx, key) }

// Keys implements [kv.Store].
func (l latest) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return l.store().Keys(ctx, prefix)
}

// Close does nothing: the store is not the certificates' own.
func (l latest) Close() error { return nil }
