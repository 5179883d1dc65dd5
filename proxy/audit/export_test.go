package audit

import (
	"io"
	"time"
)

// Hooks for the tests of this package.

// MaxQueue is the bound of the records that wait in memory.
const MaxQueue = maxQueue

// ParseLine parses a line and reports whether its hash fits.
func ParseLine(line []byte) (r *Record, fits bool, err error) {
	h, err := parseHead(line)
	if err != nil {
		return nil, false, err
	}
	r, err = h.record()
	return r, h.sum == h.hash, err
}

// Generator writes a chain of n records without a file, with a checkpoint every
// so many.
type Generator struct {
	N, Every int
	pos      position
	buf      []byte
	off      int
	signer   *signer
	bodies   [2][]byte
	at       time.Time
}

// NewGenerator returns a generator and its verifier key.
func NewGenerator(keyFile string, n, every int, records [2]*Record) (*Generator, string, error) {
	s, err := loadSigner(keyFile)
	if err != nil {
		return nil, "", err
	}
	g := &Generator{N: n, Every: every, signer: s, at: time.Unix(1_900_000_000, 0)}
	for i, r := range records {
		if g.bodies[i], err = encode(r); err != nil {
			return nil, "", err
		}
	}
	return g, s.public, nil
}

// Read makes the next records.
func (g *Generator) Read(p []byte) (int, error) {
	if g.off == len(g.buf) {
		g.buf, g.off = g.buf[:0], 0
		for len(g.buf) < 1<<16 && g.pos.seq < uint64(g.N) {
			g.at = g.at.Add(time.Millisecond)
			body := g.bodies[g.pos.seq%2]
			if (g.pos.seq+1)%uint64(g.Every) == 0 {
				signed, err := g.signer.sign(pin{g.pos, g.at})
				if err != nil {
					return 0, err
				}
				if body, err = encode(&Record{Event: Checkpoint, Detail: &Detail{Note: signed}}); err != nil {
					return 0, err
				}
			}
			g.buf, g.pos = appendLine(g.buf, g.pos, g.at, body)
		}
		if len(g.buf) == 0 {
			return 0, io.EOF
		}
	}
	n := copy(p, g.buf[g.off:])
	g.off += n
	return n, nil
}

// Close does nothing.
func (g *Generator) Close() error { return nil }

// Append writes a record and waits for it.
func (l *Log) Append(r *Record, keep bool) (uint64, error) {
	e, err := l.enqueue(r, keep)
	if err != nil {
		return 0, err
	}
	<-e.done
	return e.pos.seq, e.err
}

// Flushes returns how often a closed log was made durable.
func (l *Log) Flushes() uint64 { return l.writer.store.flushes }

// Queued returns how many records wait.
func (l *Log) Queued() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue) + l.room
}

// Rehash gives a line the sequence number, the predecessor and the hash that
// fit after the line before, as a forger without the key would.
func Rehash(before, line []byte) ([]byte, error) {
	h, err := parseHead(line)
	if err != nil {
		return nil, err
	}
	r, err := h.record()
	if err != nil {
		return nil, err
	}
	var p position
	if before != nil {
		b, err := parseHead(before)
		if err != nil {
			return nil, err
		}
		p = position{b.seq, b.sum}
	}
	body, err := encode(r)
	if err != nil {
		return nil, err
	}
	out, _ := appendLine(nil, p, h.time, body)
	return out[:len(out)-1], nil
}

// Encode encodes a record as it is written, and as encoding/json would.
func Encode(r *Record) (written, plain []byte, err error) {
	if written, err = encode(r); err != nil {
		return nil, nil, err
	}
	plain, err = encodeAny(r)
	return written, plain, err
}
