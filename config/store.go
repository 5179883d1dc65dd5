package config

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Store keeps what must outlive a restart: grants, tokens (as digests) and the
// Gitea credentials of people who signed in, sealed with AES-256-GCM. In Redis or
// Valkey it is shared by several replicas: see docs/scaling.md.
type Store struct {
	// Kind is "file", for one Aegis, or "redis", for several that share a Redis
	// or Valkey. Default file.
	Kind string `yaml:"kind" enum:"file redis"`
	// Path is the database file, with kind file. A relative path starts at the
	// folder of the configuration file. Empty: aegis.db in data_dir.
	Path string `yaml:"path" file:"true" length:"0 4096" example:"/var/lib/aegis/aegis.db"`
	// KeyFile holds the keys that seal the store. With kind file it is made at
	// the first start; with redis it must be there already, the same on every
	// replica. "aegis keys rotate" adds a new key. Not with keys. Empty:
	// store.keys in data_dir, with kind file.
	KeyFile string `yaml:"key_file" file:"true" length:"0 4096" example:"/etc/aegis/store.keys"`
	// Keys are the keys themselves, 32 characters or longer: the first one
	// seals, all open. To rotate, put a new one in front. Not with key_file.
	Keys []Secret `yaml:"keys" length:"32 4096" example:"${AEGIS_STORE_KEY}"`
	// URL is the address of Redis or Valkey, with kind redis:
	// redis://host:port/database, or rediss:// for TLS; without user and
	// password, which have keys of their own. Port 6379 and database 0 may be
	// left out. With sentinel.master it is the address of a Sentinel, with
	// cluster that of a node.
	URL string `yaml:"url" pattern:"^(rediss?://[^/@?#\\s]+(/[0-9]{1,3})?)?$" says:"an address such as redis://10.0.0.5:6379/0 or rediss://redis.example.org, without user and password" example:"rediss://redis.example.org:6379/0"`
	// Nodes are the addresses, host:port, of further Sentinels or nodes of the
	// cluster, in case that of url does not answer.
	Nodes []string `yaml:"nodes" length:"1 300" example:"10.0.0.6:26379"`
	// Username is the ACL user to connect as. Empty: the default one.
	Username string `yaml:"username" length:"0 200" example:"aegis"`
	// Password is that user's. Empty: none is sent.
	Password Secret `yaml:"password" length:"1 4096" example:"${AEGIS_REDIS_PASSWORD}"`
	// Sentinel finds the master through Redis Sentinel.
	Sentinel Sentinel `yaml:"sentinel"`
	// Cluster says that url and nodes are those of a Redis Cluster. Default
	// false.
	Cluster bool `yaml:"cluster"`
	// Prefix begins every key, so that several programs can share a database. Up
	// to 64 characters of A-Z a-z 0-9 _ . : -. Default aegis:.
	Prefix string `yaml:"prefix" pattern:"^[A-Za-z0-9_.:-]{0,64}$" says:"letters, digits and _ . : - such as aegis:" example:"aegis:"`
	// TLS is used for rediss:// addresses.
	TLS StoreTLS `yaml:"tls"`
	// Timeout bounds one request to Redis. 100ms to 30s, default 2s.
	Timeout Duration `yaml:"timeout" range:"100ms 30s"`
	// Grace is how long calls with an access token that was verified go on while
	// Redis does not answer; 0s: not at all. Static tokens do not need the store.
	// 0s to 10m, default 1m.
	Grace Duration `yaml:"grace" range:"0s 10m"`
	// Replica is the name of this Aegis among those that share the store, and of
	// its audit log. Up to 64 characters of A-Z a-z 0-9 _ . -. Empty: the host
	// name.
	Replica string `yaml:"replica" pattern:"^[A-Za-z0-9_.-]{0,64}$" says:"letters, digits and _ . - such as aegis-1" example:"aegis-1"`
}

// Sentinel is how the master of Redis is found.
type Sentinel struct {
	// Master is the name of the master in the Sentinels' configuration. Empty:
	// there are none.
	Master string `yaml:"master" length:"0 200" example:"mymaster"`
	// Username is the ACL user of the Sentinels. Empty: the default one.
	Username string `yaml:"username" length:"0 200" example:"aegis"`
	// Password is that user's. Empty: none is sent.
	Password Secret `yaml:"password" length:"1 4096" example:"${AEGIS_SENTINEL_PASSWORD}"`
}

// StoreTLS is how the connection to Redis is encrypted.
type StoreTLS struct {
	// CAFile is a PEM file of the authorities to trust in place of the system's.
	// A relative path starts at the folder of the configuration file. Empty: the
	// system's.
	CAFile string `yaml:"ca_file" file:"true" length:"0 4096" example:"/etc/aegis/tls/redis-ca.pem"`
	// CertFile is a PEM file with a certificate to show. Needs key_file.
	CertFile string `yaml:"cert_file" file:"true" length:"0 4096" example:"/etc/aegis/tls/redis-client.pem"`
	// KeyFile is a PEM file with the private key of cert_file.
	KeyFile string `yaml:"key_file" file:"true" length:"0 4096" example:"/etc/aegis/tls/redis-client-key.pem"`
	// ServerName is the name that Redis's certificate must have. Empty: the host
	// of the address.
	ServerName string `yaml:"server_name" length:"0 253" example:"redis.example.org"`
}

func defaultStore() Store {
	return Store{Kind: "file", Prefix: "aegis:", Timeout: Duration(2 * time.Second), Grace: Duration(time.Minute)}
}

// Shared reports whether several replicas share the store.
func (s Store) Shared() bool { return s.Kind == "redis" }

// Addresses returns the addresses of Redis, host:port, that of url first.
func (s Store) Addresses() []string {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" {
		return nil
	}
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), "6379")
	}
	return append([]string{host}, s.Nodes...)
}

// Encrypted reports whether the connection to Redis is by TLS.
func (s Store) Encrypted() bool { return strings.HasPrefix(s.URL, "rediss://") }

// Database returns the number of the database in Redis.
func (s Store) Database() int {
	u, err := url.Parse(s.URL)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(u.Path, "/")) // a pattern holds it to digits; none are database 0
	return n
}
