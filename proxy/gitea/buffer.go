package gitea

import (
	"errors"
	"io"
	"slices"
	"sync"
)

// buffers keep the memory of answers that clients have got, for further ones.
type buffers struct{ pool sync.Pool }

const (
	// firstBuffer is what a new buffer has in bytes.
	firstBuffer = 16 << 10
	// piece is what a long answer of unknown length is read in: growing one buffer
	// over and over would need several times its memory.
	piece = 1 << 20
	// maxPooled keeps one huge answer from holding its memory for ever.
	maxPooled = 2 << 20
)

func (p *buffers) get() *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 0, firstBuffer)
	return &b
}

func (p *buffers) put(b *[]byte) {
	if cap(*b) <= maxPooled {
		*b = (*b)[:0]
		p.pool.Put(b)
	}
}

// read takes all of r, of which size bytes are announced (-1: nobody says), for
// the body, into a buffer of the pool. release gives it back.
func (a *answer) read(r io.Reader, size int64, pool *buffers) error {
	b := pool.get()
	buf := *b
	if size > int64(cap(buf)) {
		buf = slices.Grow(buf, int(size)+1) // one more, to see the end without growing
	}
	var full [][]byte // what does not fit into one piece
	var err error
	for err == nil {
		switch {
		case len(buf) < cap(buf):
		case cap(buf) < piece:
			buf = slices.Grow(buf, cap(buf))
		default:
			full, buf = append(full, buf), make([]byte, 0, piece)
		}
		var n int
		n, err = r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
	}
	if full == nil {
		*b = buf
		a.body, a.release = buf, sync.OnceFunc(func() { pool.put(b) })
	} else {
		*b = full[0]
		a.body = slices.Concat(append(full, buf)...)
		pool.put(b)
	}
	a.size = int64(len(a.body))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err == nil && size > a.size {
		err = io.ErrUnexpectedEOF
	}
	return err
}
