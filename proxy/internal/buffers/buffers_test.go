package buffers_test

import (
	"bytes"
	"sync"
	"testing"

	"aegis/proxy/internal/buffers"
)

func TestRoom(t *testing.T) {
	t.Parallel()
	var p buffers.Pool
	for _, n := range []int{0, 1, 16 << 10, 100 << 10, 256 << 10, 256<<10 + 1, 1 << 20, 2 << 20, 5 << 20, 1} {
		b := p.Get(n)
		if len(*b) != 0 || cap(*b) < n || cap(*b) == 0 {
			t.Errorf("room for %d: length %d, capacity %d", n, len(*b), cap(*b))
		}
		*b = append(*b, "rest"...)
		p.Put(b)
	}
}

// TestSmallStaysSmall: a buffer that grew for a large answer serves no small one.
func TestSmallStaysSmall(t *testing.T) {
	t.Parallel()
	var p buffers.Pool
	for range 100 {
		b := p.Grow(p.Get(10), 1<<20)
		if cap(*b) < 1<<20 {
			t.Fatalf("capacity %d", cap(*b))
		}
		p.Put(b)
		s := p.Get(10)
		if cap(*s) > 256<<10 {
			t.Fatalf("a small answer got %d bytes", cap(*s))
		}
		p.Put(s)
	}
}

// TestGrowKeeps: what a buffer holds comes along.
func TestGrowKeeps(t *testing.T) {
	t.Parallel()
	var p buffers.Pool
	b := p.Get(0)
	*b = append(*b, "kept"...)
	for n := range 25 {
		b = p.Grow(b, 1<<n)
		if string(*b) != "kept" || cap(*b) < 4+1<<n {
			t.Fatalf("%d: %q, capacity %d", n, *b, cap(*b))
		}
	}
}

func TestNoTwoShareABuffer(t *testing.T) {
	t.Parallel()
	var p buffers.Pool
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for k := range 300 {
				size := 1 + k*k*7
				b := p.Grow(p.Get(n), size)
				*b = append(*b, bytes.Repeat([]byte{byte(n)}, size)...)
				if bytes.Count(*b, []byte{byte(n)}) != size {
					t.Errorf("%d: another's bytes", n)
				}
				p.Put(b)
			}
		})
	}
	all.Wait()
}
