package gitea

import (
	"errors"
	"io"
	"slices"
	"sync"

	"aegis/proxy/internal/buffers"
)

// piece is what a long answer of unknown length is read in: growing one buffer
// over and over would need several times its memory.
const piece = 1 << 20

// read takes all of r, of which size bytes are announced (-1: it is not known), for the
// body, into a buffer of the pool. release gives it back. Until then no other answer may use
// it: the body is read by the stages above, and written into the answer last.
func (a *answer) read(r io.Reader, size int64, pool *buffers.Pool) error {
	b := pool.Get(int(max(size, 0)) + 1) // one more, to see the end without growing
	buf := *b
	var full [][]byte // what does not fit into one piece
	var err error
	for err == nil {
		switch {
		case len(buf) < cap(buf):
		// Small answers grow in place: one buffer in the end, which the pool takes
		// back.
		case cap(buf) < piece:
			*b = buf
			b = pool.Grow(b, cap(buf))
			buf = *b
		default:
			full, buf = append(full, buf), make([]byte, 0, piece)
		}
		var n int
		n, err = r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
	}
	if full == nil {
		*b = buf
		a.body, a.release = buf, sync.OnceFunc(func() { pool.Put(b) })
	} else {
		// The body is a copy here, so the first piece can serve the next answer at
		// once.
		*b = full[0]
		a.body = slices.Concat(append(full, buf)...)
		pool.Put(b)
	}
	a.size = int64(len(a.body))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	// Short of what was announced: a part must never pass for the whole.
	if err == nil && size > a.size {
		err = io.ErrUnexpectedEOF
	}
	return err
}
