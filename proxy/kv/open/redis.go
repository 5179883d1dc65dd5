package open

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"aegis/config"
	"aegis/proxy/kv/redis"
)

// newRedis returns the store that replicas share, without connecting.
func newRedis(cfg config.Store) (*redis.Store, error) {
	o := redis.Options{
		Addresses: cfg.Addresses(), Username: cfg.Username, Password: cfg.Password.Reveal(), Database: cfg.Database(),
		Master: cfg.Sentinel.Master, SentinelUsername: cfg.Sentinel.Username,
		SentinelPassword: cfg.Sentinel.Password.Reveal(),
		Cluster:          cfg.Cluster, Prefix: cfg.Prefix, Timeout: cfg.Timeout.Std(),
	}
	if cfg.Encrypted() {
		var err error
		if o.TLS, err = clientTLS(cfg.TLS); err != nil {
			return nil, err
		}
	}
	return redis.New(o)
}

// connect connects to the store that replicas share. It fails rather than wait: a start
// that hangs would look like one that works, and what supervises the process tries again.
func connect(ctx context.Context, cfg *config.Config) (*Backing, error) {
	s, err := newRedis(cfg.Store)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := s.Ping(ctx); err != nil {
		_ = s.Close() // nothing was sent over it
		return nil, fmt.Errorf(`store %s: %w; see that Redis runs and can be reached from here `+
			`("aegis store check" tells more)`, cfg.Store.URL, err)
	}
	return &Backing{inner: s, Redis: s}, nil
}

// clientTLS reads the files of store.tls. They are read once: the connections of a store live
// as long as the process.
func clientTLS(cfg config.StoreTLS) (*tls.Config, error) {
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
