// Package buffers keeps memory that answers have used for further ones.
//
// One pool for all sizes would end with nothing but large buffers: whatever a large
// answer has once made longer stays so, and serves small ones. So there are two.
package buffers

import "sync"

const (
	// first is what a new buffer has in bytes.
	first = 16 << 10
	// small is what a buffer for usual answers may have.
	small = 256 << 10
	// most is the longest that is kept; one huge answer shall not hold its memory for
	// ever.
	most = 2 << 20
)

// Pool keeps buffers. The zero value is ready, and is safe for concurrent use.
type Pool struct{ small, large sync.Pool }

// Get returns an empty buffer with room for n bytes.
func (p *Pool) Get(n int) *[]byte {
	from := &p.small
	if n > small {
		from = &p.large
	}
	b, ok := from.Get().(*[]byte)
	if !ok {
		b = new([]byte)
	}
	if cap(*b) < n || cap(*b) == 0 {
		*b = make([]byte, 0, max(n, first))
	}
	return b
}

// Put takes a buffer that is no longer used.
func (p *Pool) Put(b *[]byte) {
	*b = (*b)[:0]
	switch n := cap(*b); {
	case n <= small:
		p.small.Put(b)
	case n <= most:
		p.large.Put(b)
	}
}

// Grow returns b with room for n bytes more; when it has not, another buffer takes
// what it holds, and b goes back.
func (p *Pool) Grow(b *[]byte, n int) *[]byte {
	if cap(*b)-len(*b) >= n {
		return b
	}
	out := p.Get(len(*b) + n)
	*out = append(*out, *b...)
	p.Put(b)
	return out
}
