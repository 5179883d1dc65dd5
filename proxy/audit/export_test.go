package audit

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"io"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// Hooks for the tests of this package.

// RotatedName and RotatedFiles are the names of rotated files.
var RotatedName = rotatedName

// RotatedFiles returns how many rotated files of a log are found.
func RotatedFiles(path string) (int, error) {
	files, err := rotatedFiles(path)
	return len(files), err
}

// MaxQueue is the bound of the records that wait in memory.
const MaxQueue = maxQueue

// Waits are the times that a log and its sinks wait, for tests: a call and a sink
// that work may take as long as a slow machine needs, and nobody waits long before
// trying again. farewell is how long the sinks may take at the end.
func (l *Log) Waits(farewell time.Duration) {
	l.waits = waits{patience: 10 * time.Minute, retry: 2 * time.Millisecond, delivery: 10 * time.Minute,
		farewell: farewell, sinkRetry: time.Millisecond, sinkRetryMax: 10 * time.Millisecond}
}

// Follower is Follow in two steps: first it goes to the end of the log, then
// run follows.
func Follower(name string, f Filter, p *Printer) (run func(context.Context) error, err error) {
	fo, err := newFollower(name, f, p)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return fo.run(ctx, time.Millisecond) }, nil
}

// Upkeep does what the log's goroutine does when it wakes up.
func (l *Log) Upkeep() { l.turn() }

// Hold keeps everybody from writing until it is released.
func (l *Log) Hold() (release func()) {
	l.writing.Lock()
	return l.letGo
}

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

// NewGenerator returns a generator and its verifier key. Both are the same in every
// process, so that a fuzz target's workers agree about its seeds.
func NewGenerator(n, every int, records [2]*Record) (*Generator, string, error) {
	seed := make([]byte, ed25519.SeedSize)
	public, err := verifierKey("aegis-audit-00000000", seed)
	if err != nil {
		return nil, "", err
	}
	name, rest, _ := strings.Cut(public, "+")
	hash, _, _ := strings.Cut(rest, "+")
	// The first byte is the number of Ed25519.
	private := "PRIVATE+KEY+" + name + "+" + hash + "+" + base64.StdEncoding.EncodeToString(append([]byte{1}, seed...))
	inner, err := note.NewSigner(private)
	if err != nil {
		return nil, "", err
	}
	s := &signer{inner, public}
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

// Encode encodes a record as it is written.
func Encode(r *Record) ([]byte, error) { return encode(r) }

// PublicKey returns the verifier key of the log's checkpoints; "" before Open.
func (l *Log) PublicKey() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writer == nil {
		return ""
	}
	return l.writer.signer.public
}
