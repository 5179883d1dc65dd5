package audit

import (
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Chain is one log of several that [Merge] reads.
type Chain struct {
	// Name stands for the log until a record says which replica wrote it.
	Name string
	// Sources are its files, in the order of the chain.
	Sources []Source
}

// Merge prints the records of several logs that a filter selects, in the order of
// time. The order within each log stays, also where a clock was set back. Each
// record comes with the name of its replica: in JSON as the first member, without
// which the line is that of the log. Lines that are no records are counted, not
// shown: [Verify] is for them. Memory is one record for each log.
func Merge(chains []Chain, f Filter, p *Printer) (skipped int, err error) {
	var queue chainQueue
	defer func() {
		for _, c := range queue {
			c.close()
		}
	}()
	for i, c := range chains {
		r := &chainReader{name: c.Name, order: i, left: c.Sources}
		more, err := r.next()
		if err != nil {
			return skipped, err
		}
		if more {
			queue = append(queue, r)
		} else {
			skipped += r.skipped
		}
	}
	heap.Init(&queue)
	for len(queue) > 0 {
		r := queue[0]
		p.Replica = r.name
		if bad, err := showHead(r.head, r.line, f, p); err != nil {
			return skipped, err
		} else if bad {
			skipped++
		}
		more, err := r.next()
		switch {
		case err != nil:
			return skipped, err
		case more:
			heap.Fix(&queue, 0)
		default:
			skipped += r.skipped
			heap.Pop(&queue)
		}
	}
	return skipped, nil
}

// chainReader stands at a record of a log.
type chainReader struct {
	name    string
	order   int // among the logs, for records of one time
	left    []Source
	in      io.ReadCloser
	file    string
	lines   *lines
	line    []byte // the record's, its own copy
	head    head
	at      time.Time // of the record, or of a later one before it
	skipped int
}

// next goes to the next record; false at the end.
func (c *chainReader) next() (more bool, err error) {
	for {
		if c.lines == nil {
			if more, err = c.open(); !more || err != nil {
				return false, err
			}
		}
		line, err := c.lines.next()
		switch {
		case errors.Is(err, io.EOF):
			c.close()
			continue
		case errors.Is(err, errLong), errors.Is(err, errTorn):
			c.skipped++
			continue
		case err != nil:
			return false, fmt.Errorf("%s: %w", c.file, err)
		}
		c.line = append(c.line[:0], line...)
		if c.head, err = parseHead(c.line); err != nil {
			c.skipped++
			continue
		}
		if c.head.event == Start {
			if r, err := c.head.record(); err == nil && r.Detail != nil && r.Detail.Replica != "" {
				c.name = r.Detail.Replica
			}
		}
		if c.head.time.After(c.at) {
			c.at = c.head.time
		}
		return true, nil
	}
}

// open opens the next file that is there; false when there is none.
func (c *chainReader) open() (bool, error) {
	for len(c.left) > 0 {
		s := c.left[0]
		c.left = c.left[1:]
		if s.lost == lostKey || s.lost == lostCheckpoint {
			continue // what is missing is no file with records
		}
		in, err := s.Open()
		if err != nil {
			return false, err
		}
		c.in, c.file, c.lines = in, s.Name, newLines(in)
		return true, nil
	}
	return false, nil
}

func (c *chainReader) close() {
	if c.in != nil {
		_ = c.in.Close() // it was only read
	}
	c.in, c.lines = nil, nil
}

// chainQueue has the log with the oldest next record first.
type chainQueue []*chainReader

func (q chainQueue) Len() int { return len(q) }
func (q chainQueue) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].order < q[j].order
}
func (q chainQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push is of no use here; container/heap asks for it.
func (q *chainQueue) Push(x any) { *q = append(*q, x.(*chainReader)) }

// Pop removes the last one.
func (q *chainQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// withReplica puts the name in front of a record's other members.
func withReplica(name string, line []byte) []byte {
	text, err := json.Marshal(name)
	if err != nil || len(line) < 2 || line[0] != '{' {
		return line
	}
	out := append([]byte(`{"replica":`), text...)
	return append(append(out, ','), line[1:]...)
}

// column begins a line of the table with the replica, when there are several.
func (p *Printer) column(text string) error {
	if p.Replica == "" {
		return nil
	}
	_, err := fmt.Fprintf(p.W, "%-14s ", text)
	return err
}
