package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"
)

// servers knows which server keeps what.
type servers interface {
	// run sends each command to the server of its key, as node.run does.
	run(ctx context.Context, list ...*command) error
	// masters returns each server that keeps keys.
	masters(ctx context.Context) ([]*node, error)
	close() error
}

// servers returns those of the options. It does not connect.
func (o Options) servers() servers {
	switch {
	case o.Cluster:
		return &cluster{o: o, nodes: map[string]*node{}}
	case o.Master != "":
		return single{o.newNode(o.master)}
	}
	return single{o.newNode(func(context.Context) (string, error) { return o.Addresses[0], nil })}
}

// single is one server, or the one that Sentinels call the master at the moment of a dial.
type single struct{ n *node }

// run sends all to the one server.
func (s single) run(ctx context.Context, list ...*command) error {
	err := s.n.run(ctx, list...)
	if slices.ContainsFunc(list, func(m *command) bool { return declined(m.err, "READONLY") }) {
		// It is no master any more: connect anew, perhaps elsewhere. Connections that a
		// master keeps when it becomes a replica would go on to be refused.
		s.n.distrust()
	}
	return err
}

func (s single) masters(context.Context) ([]*node, error) { return []*node{s.n}, nil }

func (s single) close() error { return s.n.pool.Close() }

// master asks the Sentinels for the master's address, at each dial: the answer changes with
// a failover, and connections live long enough to make the question cheap.
func (o Options) master(ctx context.Context) (address string, err error) {
	err = o.ask(ctx, o.Addresses, func(ctx context.Context, sentinel string) error {
		c, err := o.dial(ctx, sentinel, o.SentinelUsername, o.SentinelPassword, 0)
		if err != nil {
			return err
		}
		defer c.Close()
		pair, err := redis.Strings(redis.DoWithTimeout(c, left(ctx), "SENTINEL", "get-master-addr-by-name", o.Master))
		// A Sentinel that watches other masters has a null for this one.
		if errors.Is(err, redis.ErrNil) || err == nil && len(pair) != 2 {
			return fmt.Errorf("it knows no master %q; see store.sentinel.master", o.Master)
		}
		if err == nil {
			address = net.JoinHostPort(pair[0], pair[1])
		}
		return err
	})
	if err != nil {
		// Not wrapped: that a Sentinel does not take a password is not the same as that
		// Redis does not.
		return "", fmt.Errorf("no Sentinel tells where the master is: %v", err)
	}
	return address, nil
}

// ask asks servers one after another in a random order until one answers; each gets
// half of the time that is left, so that one that hangs does not hide the others.
func (o Options) ask(
	ctx context.Context, addresses []string, question func(ctx context.Context, address string) error,
) error {
	var errs []error
	for _, i := range rand.Perm(len(addresses)) {
		half, cancel := context.WithTimeout(ctx, max(left(ctx), time.Millisecond)/2)
		err := question(half, addresses[i])
		cancel()
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", addresses[i], err))
	}
	return errors.Join(errs...)
}
