package server

import (
	"reflect"
	"slices"

	"aegis/config"
)

// setting is one that belongs to the [Process] and is taken at its start.
type setting struct {
	key  string
	same func(a, b *config.Config) bool
	keep func(from, to *config.Config)
}

// startOnly are the settings that a reload cannot change.
var startOnly = []setting{
	whole("listen", func(c *config.Config) *string { return &c.Listen }),
	whole("data_dir", func(c *config.Config) *string { return &c.DataDir }),
	whole("tls", func(c *config.Config) *config.TLS { return &c.TLS }),
	whole("server.read_timeout", func(c *config.Config) *config.Duration { return &c.Server.ReadTimeout }),
	whole("server.idle_timeout", func(c *config.Config) *config.Duration { return &c.Server.IdleTimeout }),
	whole("server.shutdown_timeout", func(c *config.Config) *config.Duration { return &c.Server.ShutdownTimeout }),
	{"server (connections, max_header_bytes, trusted_proxies, proxy_protocol)", sameListener, keepListener},
	whole("metrics", func(c *config.Config) *config.Metrics { return &c.Metrics }),
	whole("audit", func(c *config.Config) *config.Audit { return &c.Audit }),
	{"store (all but keys, key_file and grace)", sameStore, keepStore},
	// Not kept: links and metadata follow at once, only certificates for a new host need a start.
	{"public_url", sameCertificates, func(from, to *config.Config) {}},
}

// whole is a setting that is compared and kept as it is.
func whole[T any](key string, at func(*config.Config) *T) setting {
	return setting{
		key:  key,
		same: func(a, b *config.Config) bool { return reflect.DeepEqual(*at(a), *at(b)) },
		keep: func(from, to *config.Config) { *at(to) = *at(from) },
	}
}

// sameCertificates reports whether both configurations need certificates for
// the same hosts.
func sameCertificates(a, b *config.Config) bool {
	return a.TLS.Mode != "auto" || reflect.DeepEqual(a.TLSHosts(), b.TLSHosts())
}

// sameListener reports whether both configurations want the same of connections.
func sameListener(a, b *config.Config) bool {
	x, y := a.Server, b.Server
	return x.MaxConnections == y.MaxConnections && x.MaxConnectionsPerAddress == y.MaxConnectionsPerAddress &&
		x.ProxyProtocol == y.ProxyProtocol && x.MaxHeaderBytes == y.MaxHeaderBytes &&
		slices.Equal(x.TrustedProxies, y.TrustedProxies)
}

// keepListener keeps what the listener was opened with. Hosts, origins and bounds of bodies
// are read by each request, so they follow a reload.
func keepListener(from, to *config.Config) {
	x, y := from.Server, &to.Server
	y.MaxConnections, y.MaxConnectionsPerAddress = x.MaxConnections, x.MaxConnectionsPerAddress
	y.ProxyProtocol, y.MaxHeaderBytes, y.TrustedProxies = x.ProxyProtocol, x.MaxHeaderBytes, x.TrustedProxies
}

// sameStore reports whether both configurations have one store. Keys may change
// while it is open.
// By what keepStore keeps: a setting of the store that is added later counts by itself.
func sameStore(a, b *config.Config) bool {
	kept := *b
	keepStore(a, &kept)
	return reflect.DeepEqual(kept.Store, b.Store)
}

// keepStore keeps the store but its keys, which may be rotated while it is open, and its
// grace, which only sign-in reads.
func keepStore(from, to *config.Config) {
	keys, file, grace := to.Store.Keys, to.Store.KeyFile, to.Store.Grace
	to.Store = from.Store
	to.Store.Keys, to.Store.KeyFile, to.Store.Grace = keys, file, grace
}

// keepStartOnly returns cfg with the settings of running that only a start can
// change, and their keys where they differ. Where none does, it is cfg itself.
func keepStartOnly(running, cfg *config.Config) (kept *config.Config, ignored []string) {
	kept = cfg
	for _, s := range startOnly {
		if s.same(running, kept) {
			continue
		}
		if ignored = append(ignored, s.key); kept == cfg {
			own := *cfg
			kept = &own
		}
		s.keep(running, kept)
	}
	return kept, ignored
}
