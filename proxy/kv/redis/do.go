package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"aegis/proxy/kv"
)

// repeat says whether an operation may be sent again when its answer is lost.
type repeat bool

const (
	again repeat = true  // it may: the second time changes nothing more
	once  repeat = false // it may not
)

// do runs an operation, bounded in time. What has begun goes on when the caller
// leaves, so that its outcome is known.
func (s *Store) do(ctx context.Context, r repeat, op func(ctx context.Context) error) error {
	if s.closed.Load() {
		return kv.ErrClosed
	}
	// Before the context is made: a spared call costs nothing.
	probe, ok := s.breaker.enter()
	if !ok {
		return errSpared
	}
	// All attempts and pauses together have this time: a call waits for the store no longer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Timeout)
	defer cancel()
	err := s.attempt(ctx, r, op)
	s.breaker.leave(probe, errors.Is(err, kv.ErrUnavailable))
	return err
}

// attempt tries op again while Redis cannot be reached and a repetition changes nothing. The
// pauses bridge a failover of Sentinel or of the cluster only in part: it takes seconds, and a
// call must not wait for those.
func (s *Store) attempt(ctx context.Context, r repeat, op func(ctx context.Context) error) error {
	wait := pause
	for n := 1; ; n++ {
		err := sort(op(ctx))
		if !errors.Is(err, kv.ErrUnavailable) || n == attempts || r == once && !undone(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
			wait *= 2
		}
	}
}

// undone reports whether nothing was done: Redis itself declined, or could not be asked. An
// operation that must not be repeated may then be sent again all the same.
func undone(err error) bool {
	var re redis.Error
	var u unsent
	return errors.As(err, &re) || errors.As(err, &u)
}

// passing are the replies of a Redis that is starting, failing over or recovering: trouble
// that ends by itself. MOVED and ASK are among them when a command was redirected too often.
var passing = []string{
	"LOADING", "READONLY", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "NOREPLICAS", "MISCONF", "BUSY", "MOVED", "ASK",
}

// sort gives an error of the library its place among those of kv. What is no reply of Redis
// is trouble of the connection, and nothing is known of the outcome.
func sort(err error) error {
	var re redis.Error
	switch {
	case err == nil, errors.Is(err, kv.ErrNotFound), errors.Is(err, kv.ErrConflict), errors.Is(err, errDamaged):
		return err
	case !errors.As(err, &re):
		return fmt.Errorf("redis: %w: %w", kv.ErrUnavailable, err)
	}
	switch word, _, _ := strings.Cut(string(re), " "); {
	case slices.Contains(passing, word):
		return fmt.Errorf("redis: %w: %w", kv.ErrUnavailable, err)
	case word == "OOM":
		return fmt.Errorf("redis: %w: %w", kv.ErrFull, err)
	case word == "NOPERM":
		return fmt.Errorf(`redis: the user may not do this, see "aegis store check": %w`, err)
	case word == "NOAUTH" || word == "WRONGPASS":
		return fmt.Errorf("redis: it does not accept store.username and store.password: %w", err)
	case word == "WRONGTYPE":
		return errDamaged // another program keeps something else under the name
	}
	return fmt.Errorf("redis: %w", err)
}

// errSpared is one value for all callers: an outage makes many.
var errSpared = fmt.Errorf("redis: %w: it did not answer a moment ago", kv.ErrUnavailable)

// breaker spares callers the wait for a Redis that does not answer: after some
// failures in a row, one call at a time tries and the others fail at once.
type breaker struct {
	spare time.Duration

	mu      sync.Mutex
	failed  int // in a row
	until   time.Time
	probing bool
}

const (
	// tolerated is how many calls in a row may fail before others are spared: more than one,
	// since a restart of Redis ends all idle connections at once.
	tolerated = 3
	// spare is how long they are, until one of them tries again. It is short, as it is also
	// how long calls fail after Redis is back.
	spare = 250 * time.Millisecond
)

// enter reports whether a call may go on, and whether others wait for its outcome.
func (b *breaker) enter() (probe, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed < tolerated {
		return false, true
	}
	if b.probing || time.Now().Before(b.until) {
		return false, false
	}
	b.probing = true
	return true, true
}

// leave notes the outcome of a call that enter let through.
func (b *breaker) leave(probe, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if probe {
		b.probing = false
	}
	if !failed {
		b.failed = 0
		return
	}
	b.failed++ // also by calls that began before the breaker opened
	b.until = time.Now().Add(b.spare)
}

// Down reports whether calls fail at once, as Redis did not answer the last ones.
func (s *Store) Down() bool {
	s.breaker.mu.Lock()
	defer s.breaker.mu.Unlock()
	return s.breaker.failed >= tolerated
}

// command sends one command to the server of an entry, whose key is its first argument.
func (s *Store) command(ctx context.Context, key, name string, args ...any) (any, error) {
	m := &command{key: key, name: name, args: append([]any{key}, args...)}
	if err := s.servers.run(ctx, m); err != nil {
		return nil, err
	}
	return m.reply, m.err
}
