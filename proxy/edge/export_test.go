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
