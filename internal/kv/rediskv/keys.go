package rediskv

import (
	"context"
	"iter"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"aegis/internal/kv"
)

// scanCount is how many keys Redis looks at for one answer.
const scanCount = 512

// Keys implements [kv.Store]. In a cluster it asks each master in turn. It keeps
// the keys that it has yielded in mind, as Redis may name one twice.
func (s *Store) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		masters, err := s.masters(ctx)
		if err != nil {
			yield("", err)
			return
		}
		l := listing{s: s, pattern: globQuote(s.name(prefix)) + "*", seen: map[string]struct{}{}, yield: yield}
		for _, m := range masters {
			if !l.scan(ctx, m) {
				return
			}
		}
	}
}

// masters returns a client for each server that has keys.
func (s *Store) masters(ctx context.Context) (list []redis.Cmdable, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return []redis.Cmdable{s.client}, nil
	}
	var mu sync.Mutex // the library asks the masters at the same time
	err = s.do(ctx, again, func(ctx context.Context) error {
		list = nil
		return cluster.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			list = append(list, c)
			return nil
		})
	})
	return list, err
}

// listing is one run over the keys.
type listing struct {
	s       *Store
	pattern string
	seen    map[string]struct{}
	yield   func(string, error) bool
}

// scan yields the keys of one master; false ends the run.
func (l *listing) scan(ctx context.Context, m redis.Cmdable) bool {
	cursor := uint64(0)
	for {
		var names []string
		err := ctx.Err()
		if err == nil {
			err = l.s.do(ctx, again, func(ctx context.Context) error {
				page, next, err := m.ScanType(ctx, cursor, l.pattern, scanCount, "hash").Result()
				if err == nil {
					names, err = l.s.living(ctx, m, page)
				}
				if err == nil {
					cursor = next
				}
				return err
			})
		}
		if err != nil {
			l.yield("", err)
			return false
		}
		for _, name := range names {
			if _, twice := l.seen[name]; twice {
				continue
			}
			l.seen[name] = struct{}{}
			if !l.yield(strings.TrimPrefix(name, l.s.name("")), nil) {
				return false
			}
		}
		if cursor == 0 {
			return true
		}
	}
}

// living leaves out what has expired by a clock that is not Redis's own.
func (s *Store) living(ctx context.Context, m redis.Cmdable, names []string) ([]string, error) {
	if s.o.Now == nil || len(names) == 0 {
		return names, nil
	}
	var all []*redis.SliceCmd
	_, err := m.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, n := range names {
			all = append(all, p.HMGet(ctx, n, "v", "n", "x"))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []string
	for i, c := range all {
		if _, err := s.entry(c.Val()); err == nil {
			out = append(out, names[i])
		}
	}
	return out, nil
}

// globQuote makes a pattern of Redis that matches s alone.
func globQuote(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "^", `\^`, "-", `\-`).Replace(s)
}

var _ kv.Store = (*Store)(nil)
