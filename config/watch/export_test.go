package watch

import "time"

// Hurry makes w look at its files at a short interval, and wait less for what follows.
// Call it before Run.
func (w *Watcher) Hurry(interval time.Duration) {
	w.every, w.gathering, w.settle = interval, time.Millisecond, 10*time.Millisecond
}
