package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"reflect"

	"aegis/config"
	"aegis/proxy/envelope"
	"aegis/proxy/internal/seal"
	"aegis/proxy/kv"
	"aegis/proxy/kv/redis"
)

// newRedis returns the store that replicas share, without connecting.
func newRedis(cfg config.Store) (*redis.Store, error) {
	o := redis.Options{
		Addresses: cfg.Addresses(), Username: cfg.Username, Password: cfg.Password.Reveal(), Database: cfg.Database(),
		Master: cfg.Sentinel.Master, SentinelUsername: cfg.Sentinel.Username, SentinelPassword: cfg.Sentinel.Password.Reveal(),
		Cluster: cfg.Cluster, Prefix: cfg.Prefix, Timeout: cfg.Timeout.Std(),
	}
	if cfg.Encrypted() {
		var err error
		if o.TLS, err = storeTLS(cfg.TLS); err != nil {
			return nil, err
		}
	}
	return redis.New(o)
}

// openRedis connects to the store that replicas share. Nothing is served without
// it: it fails rather than wait.
func openRedis(ctx context.Context, cfg *config.Config) (*redis.Store, error) {
	s, err := newRedis(cfg.Store)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := s.Ping(ctx); err != nil {
		_ = s.Close() // the error that counts is the other one
		return nil, fmt.Errorf(`store %s: %w; see that Redis runs and can be reached from here ("aegis store check" tells more)`, cfg.Store.URL, err)
	}
	return s, nil
}

// storeTLS reads the files of store.tls.
func storeTLS(cfg config.StoreTLS) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: cfg.ServerName}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("store.tls.ca_file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("store.tls.ca_file: %s holds no PEM certificate", cfg.CAFile)
		}
	}
	if cfg.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("store.tls.cert_file: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// keyProof is where the first replica leaves a value that all others must be able
// to open.
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
		return fmt.Errorf("store: other replicas have other keys; give all the same store.keys, or the same file as store.key_file: %w", err)
	}
	return err
}

// shareCursors makes cursors that every replica can open, unless a key of their own
// is configured.
func (s *Server) shareCursors() (err error) {
	if s.cfg.Store.Shared() && s.cfg.Server.CursorKey.IsZero() {
		s.cursors, err = envelope.NewCursors(hex.EncodeToString(s.derive("cursor")[0]))
	}
	return err
}

// sameStore reports whether both configurations have one store. Keys may change
// while it is open.
func sameStore(a, b *config.Config) bool {
	kept := *b
	keepStore(a, &kept)
	return reflect.DeepEqual(kept.Store, b.Store)
}

func keepStore(from, to *config.Config) {
	keys, file, grace := to.Store.Keys, to.Store.KeyFile, to.Store.Grace
	to.Store = from.Store
	to.Store.Keys, to.Store.KeyFile, to.Store.Grace = keys, file, grace
}
