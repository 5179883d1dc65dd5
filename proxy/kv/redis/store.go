package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"aegis/proxy/kv"
)

// Store is a [kv.Store] in Redis. It is safe for concurrent use.
type Store struct {
	servers servers
	o       Options
	breaker breaker
	closed  atomic.Bool
}

// New returns the store without connecting; see [Store.Ping]. The error is about
// the options.
func New(o Options) (*Store, error) {
	o.Timeout = cmp.Or(o.Timeout, 2*time.Second)
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Store{servers: o.servers(), o: o, breaker: breaker{spare: spare}}, nil
}

// Ping fails unless Redis answers and serves writes. Its error says what is wrong
// and never holds a password.
func (s *Store) Ping(ctx context.Context) error {
	return s.do(ctx, again, func(ctx context.Context) error {
		list, err := s.servers.masters(ctx)
		if err != nil {
			return err
		}
		m := &command{name: "PING"}
		return cmp.Or(list[0].run(ctx, m), m.err)
	})
}

// Now returns the time by the store's clock, for who must compare with expiries.
func (s *Store) Now() time.Time {
	if s.o.Now != nil {
		return s.o.Now()
	}
	return time.Now()
}

// Close implements [kv.Store].
func (s *Store) Close() error {
	if s.closed.Swap(true) { // closing twice is no error, as in the other stores
		return nil
	}
	return s.servers.close()
}

// name returns the key in Redis of an entry: "kv:" keeps entries apart from limits, so that
// no name of a limit can be that of an entry.
func (s *Store) name(key string) string { return s.o.Prefix + "kv:" + key }

// clock returns the time for a script; "": that of Redis.
func (s *Store) clock() string {
	if s.o.Now == nil {
		return ""
	}
	return strconv.FormatInt(s.o.Now().UnixMicro(), 10)
}

// newVersion returns a number that was never a version before.
func newVersion() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the process instead
	n := binary.BigEndian.Uint64(b[:])
	return strconv.FormatUint(max(n, 1), 10) // 0 is for an absent entry
}

// micros rounds a lifetime up to microseconds, so that an entry never goes before its time
// and one of a nanosecond is not one without an end.
func micros(ttl time.Duration) string {
	n := ttl.Microseconds()
	if ttl%time.Microsecond != 0 {
		n++
	}
	return strconv.FormatInt(n, 10)
}

// Get implements [kv.Store].
func (s *Store) Get(ctx context.Context, key string) (e kv.Entry, err error) {
	if err := kv.CheckKey(ctx, key); err != nil {
		return kv.Entry{}, err
	}
	err = s.do(ctx, again, func(ctx context.Context) error {
		fields, err := redis.Values(s.command(ctx, s.name(key), "HMGET", "v", "n", "x"))
		if err == nil {
			e, err = s.entry(fields)
		}
		return err
	})
	return e, err
}

// entry reads the fields v, n and x. HMGET gives nulls for a key that is not there. All else
// that is not as it was written is an error: what it means is not guessed.
func (s *Store) entry(fields []any) (kv.Entry, error) {
	if len(fields) != 3 || fields[0] == nil {
		return kv.Entry{}, kv.ErrNotFound
	}
	value, ok := fields[0].([]byte)
	n, _ := fields[1].([]byte)
	version, err := strconv.ParseUint(string(n), 10, 64)
	if !ok || err != nil || version == 0 {
		return kv.Entry{}, errDamaged
	}
	e := kv.Entry{Value: value, Version: version}
	if x, _ := fields[2].([]byte); len(x) > 0 {
		at, err := strconv.ParseInt(string(x), 10, 64)
		if err != nil {
			return kv.Entry{}, errDamaged
		}
		e.Expires = time.UnixMicro(at)
		if _, alive := e.Left(s.Now()); s.o.Now != nil && !alive {
			return kv.Entry{}, kv.ErrNotFound
		}
	}
	return e, nil
}

var errDamaged = errors.New("redis: an entry is not one of Aegis's; does another program use store.prefix?")

// Put implements [kv.Store].
func (s *Store) Put(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	if err := kv.CheckWrite(ctx, key, value, ttl); err != nil {
		return err
	}
	v := newVersion()
	return s.do(ctx, again, func(ctx context.Context) error {
		_, err := s.run(ctx, putScript, s.name(key), s.clock(), v, value, micros(ttl))
		return err
	})
}

// Take implements [kv.Store]. It is not repeated: when its answer is lost,
// the entry is gone and no caller has it, which is safe for codes that must work once.
func (s *Store) Take(ctx context.Context, key string) (e kv.Entry, err error) {
	if err := kv.CheckKey(ctx, key); err != nil {
		return kv.Entry{}, err
	}
	err = s.do(ctx, once, func(ctx context.Context) error {
		fields, err := redis.Values(s.run(ctx, takeScript, s.name(key), s.clock()))
		if errors.Is(err, redis.ErrNil) {
			return kv.ErrNotFound
		}
		if err == nil {
			e, err = s.entry(fields)
		}
		return err
	})
	return e, err
}

// CompareAndSwap implements [kv.Store]. It may be sent again: the script recognises the new
// version as that of an attempt whose answer was lost.
func (s *Store) CompareAndSwap(
	ctx context.Context, key string, version uint64, value []byte, ttl time.Duration,
) (uint64, error) {
	if err := kv.CheckWrite(ctx, key, value, ttl); err != nil {
		return 0, err
	}
	fresh := newVersion()
	err := s.do(ctx, again, func(ctx context.Context) error {
		won, err := redis.Int(s.run(ctx, swapScript, s.name(key), s.clock(),
			fresh, value, micros(ttl), strconv.FormatUint(version, 10)))
		if err == nil && won != 1 {
			err = kv.ErrConflict
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(fresh, 10, 64)
}

// Delete implements [kv.Store]. A deletion that is repeated may hit an entry that was made in
// between; the caller who wanted the key gone cannot know the difference.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := kv.CheckKey(ctx, key); err != nil {
		return err
	}
	return s.do(ctx, again, func(ctx context.Context) error {
		_, err := s.command(ctx, s.name(key), "DEL")
		return err
	})
}
