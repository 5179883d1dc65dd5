package edge

import "time"

// Deadline is the rule for bodies.
func (b Pace) Deadline(began time.Time, read int64) time.Time { return b.deadline(began, read) }

// Remembered returns how many addresses are counted.
func (l *Listener) Remembered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.by)
}

// Deadline is a connection's deadline of one direction.
type Deadline = deadline

// NewDeadline returns one that may end slack earlier.
func NewDeadline(slack time.Duration) *Deadline { return &Deadline{slack: slack} }

// Ask, Begin and End are those of the connection.
func (d *deadline) Ask(t time.Time, apply func(time.Time) error) error { return d.ask(t, apply) }
func (d *deadline) Begin(apply func(time.Time) error) error            { return d.begin(apply) }
func (d *deadline) End()                                               { d.end() }
