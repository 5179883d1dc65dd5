package rediskv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"aegis/internal/kv"
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
	probe, ok := s.breaker.enter()
	if !ok {
		return fmt.Errorf("redis: %w: it did not answer a moment ago", kv.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Timeout)
	defer cancel()
	err := s.attempt(ctx, r, op)
	s.breaker.leave(probe, errors.Is(err, kv.ErrUnavailable))
	return err
}

func (s *Store) attempt(ctx context.Context, r repeat, op func(ctx context.Context) error) error {
	wait := pause
	for n := 1; ; n++ {
		err := sort(op(ctx))
		if !errors.Is(err, kv.ErrUnavailable) || n == attempts || r == once && !refused(err) {
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

// refused reports whether Redis itself declined, so that nothing was done.
func refused(err error) bool {
	var re redis.Error
	return errors.As(err, &re)
}

// passing are the replies of a Redis that is starting, failing over or mending
// itself.
var passing = []string{"LOADING", "READONLY", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "NOREPLICAS", "MISCONF", "BUSY"}

// sort gives an error of the library its place among those of kv.
func sort(err error) error {
	var re redis.Error
	switch {
	case err == nil, errors.Is(err, kv.ErrNotFound), errors.Is(err, kv.ErrConflict), errors.Is(err, errDamaged):
		return err
	case errors.Is(err, redis.ErrClosed):
		return kv.ErrClosed
	case !errors.As(err, &re):
		return fmt.Errorf("redis: %w: %w", kv.ErrUnavailable, err)
	}
	text := re.Error()
	switch word, _, _ := strings.Cut(text, " "); {
	case word == "OOM":
		return fmt.Errorf("redis: %w: %w", kv.ErrFull, err)
	case word == "NOPERM":
		return fmt.Errorf(`redis: the user may not do this, see "aegis store check": %w`, err)
	case word == "NOAUTH" || word == "WRONGPASS":
		return fmt.Errorf("redis: it does not accept store.username and store.password: %w", err)
	case word == "WRONGTYPE":
		return errDamaged
	default:
		for _, p := range passing {
			if word == p {
				return fmt.Errorf("redis: %w: %w", kv.ErrUnavailable, err)
			}
		}
		return fmt.Errorf("redis: %w", err)
	}
}

// breaker spares callers the wait for a Redis that does not answer: after some
// failures in a row, one call at a time tries and the others fail at once.
type breaker struct {
	mu      sync.Mutex
	failed  int // in a row
	until   time.Time
	probing bool
}

const (
	// tolerated is how many calls in a row may fail before others are spared.
	tolerated = 3
	// spare is how long they are, until one of them tries again.
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
	b.failed++
	b.until = time.Now().Add(spare)
}

// Down reports whether calls fail at once, as Redis did not answer the last ones.
func (s *Store) Down() bool {
	s.breaker.mu.Lock()
	defer s.breaker.mu.Unlock()
	return s.breaker.failed >= tolerated
}

// onceCmd is a command that the library must not send twice.
type onceCmd struct{ *redis.Cmd }

// NoRetry tells the library so.
func (onceCmd) NoRetry() bool { return true }

// runOnce runs a script that must not run twice.
func (s *Store) runOnce(ctx context.Context, script *redis.Script, source, key string, args ...any) *redis.Cmd {
	for _, how := range [][2]string{{"evalsha", script.Hash()}, {"eval", source}} {
		cmd := redis.NewCmd(ctx, append([]any{how[0], how[1], 1, key}, args...)...)
		if err := s.client.Process(ctx, onceCmd{cmd}); err == nil || !redis.HasErrorPrefix(err, "NOSCRIPT") {
			return cmd
		}
	}
	return redis.NewCmd(ctx) // the second way needs no cached script
}
