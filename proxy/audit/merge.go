package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Chain is one log of several that [Merge] reads.
type Chain struct {
	// Name stands for the log until a record says which replica wrote it; "": the
	// records of this one are printed without a replica.
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
	var logs []*chainReader
	defer func() {
		for _, r := range logs {
			r.close()
			skipped += r.skipped
		}
	}()
	for _, c := range chains {
		r := &chainReader{name: c.Name, left: c.Sources}
		logs = append(logs, r)
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	for {
		// The oldest record; of several of one time that of the first log. Replicas
		// are few, so looking at all of them costs less than reading the line.
		var oldest *chainReader
		for _, r := range logs {
			if !r.ended && (oldest == nil || r.at.Before(oldest.at)) {
				oldest = r
			}
		}
		if oldest == nil {
			return 0, nil
		}
		p.Replica = oldest.name
		bad, err := showHead(oldest.head, f, p)
		if bad {
			oldest.skipped++
		}
		if err != nil {
			return 0, err
		}
		if err := oldest.next(); err != nil {
			return 0, err
		}
	}
}

// chainReader is at a record of a log.
type chainReader struct {
	name    string
	left    []Source
	in      io.ReadCloser
	file    string
	lines   *lines
	head    head      // of the record, with a line of its own
	at      time.Time // of the record, or of a later one before it; logs are merged by it
	skipped int       // lines that are no records
	ended   bool      // there is no record any more
}

// next goes to the next record.
func (c *chainReader) next() error {
	for {
		if c.lines == nil {
			if more, err := c.open(); !more || err != nil {
				c.ended = true
				return err
			}
		}
		h, err := c.lines.record()
		if errors.Is(err, io.EOF) {
			c.close()
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.file, err)
		}
		// A copy, as records of other logs may be printed before this one.
		h.line = append(c.head.line[:0], h.line...)
		c.head = h
		// The log alone knows which replica wrote it; folders are named by people.
		if c.head.event == Start && c.name != "" {
			if r, err := c.head.record(); err == nil && r.Detail != nil && r.Detail.Replica != "" {
				c.name = r.Detail.Replica
			}
		}
		// A clock that was set back must not change the order within the log.
		if c.head.time.After(c.at) {
			c.at = c.head.time
		}
		return nil
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

// close closes the file that is being read, if any.
func (c *chainReader) close() {
	if c.in != nil {
		_ = c.in.Close() // it was only read
		c.skipped += c.lines.skipped
	}
	c.in, c.lines = nil, nil
}

// withReplica puts the name in front of a record's other members, which stay as they are: taken
// out again, it leaves the bytes that the hash is over.
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
