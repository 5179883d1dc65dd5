package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// poolSize is how many connections one process keeps to a server. A call that needs
	// another one waits for it within its own time.
	poolSize = 64
	// keep is how long an unused connection stays open.
	keep = 5 * time.Minute
	// rested is after how long without use a connection is tried before it is used: a
	// command that may not be repeated must not be spent on one that has ended.
	rested = time.Second
)

// command is one command for the server that keeps a key, and what became of it.
type command struct {
	key  string
	name string
	args []any

	at    *node // who answered last
	reply any
	err   error // a [redis.Error]: the server declined
}

// node is one server and the connections to it.
type node struct {
	address string // for the redirections of a cluster; "": it is asked for at each dial
	pool    *redis.Pool
	// broken is when a connection failed last. Those that rest since before are not
	// used again: they most probably ended with it.
	broken atomic.Pointer[time.Time]
}

var errStale = errors.New("redis: the connection is older than the last failure")

// newNode returns a server without connecting. locate returns its address each time
// that a connection is made.
func (o Options) newNode(locate func(ctx context.Context) (string, error)) *node {
	n := &node{}
	n.pool = &redis.Pool{
		MaxIdle: poolSize, MaxActive: poolSize, Wait: true, IdleTimeout: keep,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			address, err := locate(ctx)
			if err != nil {
				return nil, err
			}
			return o.dial(ctx, address, o.Username, o.Password, o.Database)
		},
		TestOnBorrowContext: func(ctx context.Context, c redis.Conn, used time.Time) error {
			if at := n.broken.Load(); at != nil && !used.After(*at) {
				return errStale
			}
			if time.Since(used) < rested {
				return nil
			}
			_, err := redis.DoWithTimeout(c, left(ctx), "PING")
			return err
		},
	}
	if o.Master != "" {
		n.pool.MaxConnLifetime = keep // the master may be another one by then
	}
	return n
}

// run sends commands in one trip: all are written before the first answer is read. Its
// error is that of the connection: whether Redis got them is not known. What Redis declined is in the commands.
func (n *node) run(ctx context.Context, list ...*command) (err error) {
	c, err := n.pool.GetContext(ctx)
	if err != nil {
		return unsent{err}
	}
	defer func() {
		if err != nil {
			n.distrust()
		}
		_ = c.Close() // back to the pool, unless it is broken
	}()
	for _, m := range list {
		// A command that is sent again must not keep what became of it before.
		m.at, m.reply, m.err = n, nil, nil
		if err := c.Send(m.name, m.args...); err != nil {
			return err
		}
	}
	if err := c.Flush(); err != nil {
		return err
	}
	// What Redis declines is an answer like any other: those behind it are still to be read,
	// or the next user of the connection would get them.
	for _, m := range list {
		var declined redis.Error
		m.reply, m.err = redis.ReceiveWithTimeout(c, left(ctx))
		if m.err != nil && !errors.As(m.err, &declined) {
			return m.err
		}
	}
	return nil
}

// unsent is the error of commands that never left.
type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }

// distrust keeps the connections that rest from being used again. After a failover they
// hang rather than fail, and each would cost a call all of its time.
func (n *node) distrust() {
	now := time.Now()
	n.broken.Store(&now)
}

// left returns the time that ctx leaves, at least a nanosecond, since the library
// takes zero for no limit.
func left(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return max(time.Until(deadline), 1)
}

// dial connects, says who calls, and chooses the database.
func (o Options) dial(ctx context.Context, address, user, password string, database int) (redis.Conn, error) {
	c, err := redis.DialContext(ctx, "tcp", address, redis.DialContextFunc(o.connect),
		redis.DialReadTimeout(o.Timeout), redis.DialWriteTimeout(o.Timeout))
	if err != nil {
		return nil, err
	}
	// Not by the library's options, which name no user without a password. Redis takes an empty
	// one for a user that has been given that, and any for a user with nopass.
	var steps [][]any
	switch {
	case user != "":
		steps = append(steps, []any{"AUTH", user, password})
	case password != "":
		steps = append(steps, []any{"AUTH", password})
	}
	if database != 0 {
		steps = append(steps, []any{"SELECT", database})
	}
	for _, s := range steps {
		if _, err := redis.DoWithTimeout(c, left(ctx), s[0].(string), s[1:]...); err != nil {
			_ = c.Close() // the step's error says why
			return nil, err
		}
	}
	return c, nil
}

// connect opens a connection, TLS included: the library's own handshake goes on when ctx
// has ended.
func (o Options) connect(ctx context.Context, network, address string) (net.Conn, error) {
	if o.TLS == nil { // store.url says redis, not rediss
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return (&tls.Dialer{Config: o.TLS}).DialContext(ctx, network, address)
}

// declined reports whether Redis itself refused, with a reply whose first word this is: the
// words are fixed, the texts behind them are not.
func declined(err error, word string) bool {
	var re redis.Error
	return errors.As(err, &re) && (string(re) == word || strings.HasPrefix(string(re), word+" "))
}
