package redis

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"

	"aegis/proxy/kv"
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

// masters returns each server that has keys.
func (s *Store) masters(ctx context.Context) (list []*node, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = s.do(ctx, again, func(ctx context.Context) error {
		list, err = s.servers.masters(ctx)
		return err
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
func (l *listing) scan(ctx context.Context, m *node) bool {
	cursor := uint64(0)
	for {
		var names []string
		err := ctx.Err()
		if err == nil {
			err = l.s.do(ctx, again, func(ctx context.Context) error {
				page, next, err := m.scan(ctx, cursor, l.pattern)
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

// scan returns one page of the names of hashes, and where the next one begins; 0: there
// is none.
func (n *node) scan(ctx context.Context, cursor uint64, pattern string) (names []string, next uint64, err error) {
	m := &command{name: "SCAN", args: []any{
		strconv.FormatUint(cursor, 10), "MATCH", pattern, "COUNT", scanCount, "TYPE", "hash",
	}}
	if err := n.run(ctx, m); err != nil {
		return nil, 0, err
	}
	pair, err := redis.Values(m.reply, m.err)
	if err == nil && len(pair) != 2 {
		err = errors.New("redis: SCAN gave an odd answer")
	}
	if err != nil {
		return nil, 0, err
	}
	if next, err = redis.Uint64(pair[0], nil); err != nil {
		return nil, 0, err
	}
	names, err = redis.Strings(pair[1], nil)
	return names, next, err
}

// living leaves out what has expired by a clock that is not Redis's own.
func (s *Store) living(ctx context.Context, m *node, names []string) ([]string, error) {
	if s.o.Now == nil || len(names) == 0 {
		return names, nil
	}
	all := make([]*command, len(names))
	for i, n := range names {
		all[i] = &command{name: "HMGET", args: []any{n, "v", "n", "x"}}
	}
	if err := m.run(ctx, all...); err != nil {
		return nil, err
	}
	var out []string
	for i, c := range all {
		if fields, err := redis.Values(c.reply, c.err); err == nil {
			if _, err := s.entry(fields); err == nil {
				out = append(out, names[i])
			}
		}
	}
	return out, nil
}

// globQuote makes a pattern of Redis that matches s alone.
func globQuote(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "^", `\^`, "-", `\-`).Replace(s)
}

var _ kv.Store = (*Store)(nil)
