package limit

import (
	"container/list"
	"hash/maphash"
	"net/netip"
	"sync"

	"aegis/config"
)

// key names a caller: a network address or a name.
type key struct {
	addr netip.Addr
	name string
}

// addressKey returns the key of a client address: the address itself for IPv4,
// mapped into IPv6 or not, and the /64 network for IPv6, since a client with one
// address of it usually has all. What is no address has a key of its own.
func addressKey(addr string) key {
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return key{name: clip(addr)}
	}
	a = a.Unmap().WithZone("")
	if a.Is6() {
		// The length fits every IPv6 address, so there is no error.
		if p, err := a.Prefix(64); err == nil {
			a = p.Addr()
		}
	}
	return key{addr: a}
}

// maxName bounds the bytes of a name in a key.
const maxName = 256

func clip(s string) string { return s[:min(len(s), maxName)] }

// shards divide a store, so that callers rarely wait for one another's lookup.
// It is a power of two.
const shards = 16

// store holds the buckets of one limit by caller, the least recently used
// forgotten first. It is safe for concurrent use.
type store struct {
	limit config.Limit
	seed  maphash.Seed
	parts [shards]part
}

// part is one shard: a map, and a list in order of use.
type part struct {
	mu   sync.Mutex
	max  int
	keys map[key]*list.Element // of *caller
	// order has the caller seen last in front.
	order list.List
}

type caller struct {
	key    key
	bucket *bucket
}

// newStore returns a store of at most maxKeys buckets, or nil when the limit is
// off.
func newStore(l config.Limit, maxKeys int) *store {
	if l.Rate.Off() {
		return nil
	}
	s := &store{limit: l, seed: maphash.MakeSeed()}
	for i := range s.parts {
		p := &s.parts[i]
		p.max = max(1, maxKeys/shards)
		p.keys = map[key]*list.Element{}
	}
	return s
}

// bucket returns the caller's bucket, a full one when the caller is new.
func (s *store) bucket(k key) *bucket {
	p := &s.parts[maphash.Comparable(s.seed, k)%shards]
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.keys[k]; e != nil {
		p.order.MoveToFront(e)
		return e.Value.(*caller).bucket // the list holds nothing else
	}
	if len(p.keys) >= p.max {
		delete(p.keys, p.order.Remove(p.order.Back()).(*caller).key)
	}
	c := &caller{k, newBucket(s.limit)}
	p.keys[k] = p.order.PushFront(c)
	return c.bucket
}
