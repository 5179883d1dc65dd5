package rediskv

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
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
	// Timeout bounds one operation with all its attempts; 0: 2 s.
	Timeout time.Duration
	// Now tells the time, for tests; nil: Redis does, so that all processes agree.
	Now func() time.Time
}

const (
	// poolSize is how many connections one process keeps to a server.
	poolSize = 64
	// attempts is how often an operation is tried that may be repeated.
	attempts = 3
	// pause is between two attempts, doubled each time.
	pause = 20 * time.Millisecond
)

func (o Options) check() error {
	switch {
	case len(o.Addresses) == 0:
		return errors.New("redis: no address")
	case o.Cluster && o.Master != "":
		return errors.New("redis: a cluster has no Sentinels")
	case o.Cluster && o.Database != 0:
		return errors.New("redis: a cluster has database 0 alone")
	case o.Timeout < 0:
		return errors.New("redis: a negative timeout")
	}
	return nil
}

// silent keeps the library from writing to the standard error: what matters comes
// back as errors.
type silent struct{}

// Printf drops a message.
func (silent) Printf(context.Context, string, ...any) {}

// hush silences the library before its first use; its logger is one for the process.
var hush = sync.OnceFunc(func() { redis.SetLogger(silent{}) })

// client returns the library's client. It does not connect.
func (o Options) client() redis.UniversalClient {
	hush()
	u := &redis.UniversalOptions{
		Addrs: o.Addresses, Username: o.Username, Password: o.Password, DB: o.Database, TLSConfig: o.TLS,
		MasterName: o.Master, SentinelUsername: o.SentinelUsername, SentinelPassword: o.SentinelPassword, IsClusterMode: o.Cluster,
		// Whether an operation may be repeated is decided here, by what it is.
		MaxRetries: -1, DialerRetries: 1,
		DialTimeout: o.Timeout, ReadTimeout: o.Timeout, WriteTimeout: o.Timeout, PoolTimeout: o.Timeout,
		ContextTimeoutEnabled: true,
		PoolSize:              poolSize, MinIdleConns: 1,
		// Nothing that an ACL of this program's needs does not cover.
		DisableIdentity:          true,
		Protocol:                 2,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	return redis.NewUniversalClient(u)
}
