package limit

import (
	"hash/maphash"
	"net/netip"

	"aegis/config"
	"aegis/proxy/internal/lru"
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
// forgotten first, as strangers can make up addresses without end. It is safe for
// concurrent use.
type store struct {
	limit config.Limit
	seed  maphash.Seed
	parts [shards]*lru.Cache[key, *bucket]
}

// newStore returns a store of at most maxKeys buckets, or nil when the limit is
// off.
func newStore(l config.Limit, maxKeys int) *store {
	if l.Rate.Off() {
		return nil
	}
	s := &store{limit: l, seed: maphash.MakeSeed()}
	for i := range s.parts {
		s.parts[i] = lru.New[key, *bucket](max(1, maxKeys/shards))
	}
	return s
}

// bucket returns the caller's bucket, a full one when the caller is new.
func (s *store) bucket(k key) *bucket {
	part := s.parts[maphash.Comparable(s.seed, k)%shards]
	return part.Ensure(k, func() *bucket { return newBucket(s.limit) })
}
