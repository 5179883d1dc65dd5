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

// scanCount is how many keys Redis looks at for one answer. It serves no other client
// meanwhile; fewer keys would cost more round trips.
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
		pattern, seen := globQuote(s.name(prefix))+"*", map[string]struct{}{}
		for _, m := range masters {
			for cursor, more := uint64(0), true; more; more = cursor != 0 {
				// SCAN may name a key twice when the table of the server grows, and promises
				// those alone that are there from the beginning to the end.
				names, err := s.page(ctx, m, &cursor, pattern)
				if err != nil {
					yield("", err)
					return
				}
				for _, name := range names {
					if _, twice := seen[name]; twice {
						continue
					}
					seen[name] = struct{}{}
					if !yield(strings.TrimPrefix(name, s.name("")), nil) {
						return
					}
				}
			}
		}
	}
}

// masters returns each server that has keys.
func (s *Store) masters(ctx context.Context) (list []*node, err error) {
	if err := ctx.Err(); err != nil { // do goes on without the caller
		return nil, err
	}
	err = s.do(ctx, again, func(ctx context.Context) error {
		list, err = s.servers.masters(ctx)
		return err
	})
	return list, err
}

// page returns one page of the names of a master, and moves the cursor to the next one; 0:
// there is none. The cursor stays until the page is complete, so that it can be asked for
// again.
func (s *Store) page(ctx context.Context, m *node, cursor *uint64, pattern string) (names []string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = s.do(ctx, again, func(ctx context.Context) error {
		all, next, err := m.scan(ctx, *cursor, pattern)
		if err == nil {
			names, err = s.living(ctx, m, all)
		}
		if err == nil {
			*cursor = next
		}
		return err
	})
	return names, err
}

// scan returns one page of the names of hashes, and where the next one begins; 0: there
// is none. A page may be empty before the end. What is no hash is none of our entries.
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

// living leaves out what has expired by a clock that is not Redis's own, that of tests;
// Redis itself does not list what has expired by its clock.
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

// globQuote makes a pattern of Redis that matches s alone: keys and prefixes hold texts of
// clients and operators.
func globQuote(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "^", `\^`, "-", `\-`).Replace(s)
}

var _ kv.Store = (*Store)(nil)
