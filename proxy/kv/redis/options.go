package redis

import (
	"crypto/tls"
	"errors"
	"time"
)

// Options say where Redis is and how to talk to it.
type Options struct {
	// Addresses are host:port: of the server, or of Sentinels with Master, or of
	// nodes with Cluster. At least one.
	Addresses []string
	// Username and Password are those of the ACL user; empty: the default user,
	// and no password.
	Username, Password string
	// Master is the name of the master that the Sentinels watch; "": none do.
	Master string
	// SentinelUsername and SentinelPassword are for the Sentinels themselves.
	SentinelUsername, SentinelPassword string
	// Cluster says that the addresses are those of a cluster.
	Cluster bool
	// Database is the number of the database; 0 in a cluster.
	Database int
	// TLS encrypts the connections; nil: they are not.
	TLS *tls.Config
	// Prefix begins every key in Redis.
	Prefix string
	// Timeout bounds one operation with all its attempts; 0: 2 s. It is also how long an
	// answer of a server may take, so that a hanging one is given up.
	Timeout time.Duration
	// Now is the clock, for tests; nil: that of Redis, so that all processes agree.
	Now func() time.Time
}

const (
	// attempts is how often an operation is tried that may be repeated. Together with the
	// pauses it bridges a restart of a connection, not one of Redis.
	attempts = 3
	// pause is between two attempts, doubled each time.
	pause = 20 * time.Millisecond
)

// check refuses combinations that would connect and then do something else than was meant.
func (o Options) check() error {
	switch {
	case len(o.Addresses) == 0:
		return errors.New("redis: no address")
	case o.Cluster && o.Master != "":
		return errors.New("redis: a cluster has no Sentinels")
	case o.Cluster && o.Database != 0: // SELECT would fail at each connection
		return errors.New("redis: a cluster has database 0 alone")
	case o.Timeout < 0:
		return errors.New("redis: a negative timeout")
	}
	return nil
}
