package edge

import (
	"net/http"
	"time"
)

// Deadline is the rule for bodies.
func (b Pace) Deadline(began time.Time, read int64) time.Time { return b.deadline(began, read) }

// Wrap returns next with the rules on its requests and answers.
func (b Pace) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.serve(next, w, r) })
}

// Remembered returns how many addresses are counted.
func (l *Listener) Remembered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.by)
}

// Lingering returns how many connections are kept open for an answer.
func (e *Edge) Lingering() int64 { return e.lingering.Load() }
