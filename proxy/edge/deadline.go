package edge

import (
	"sync"
	"time"
)

// net/http sets some eight deadlines for a request, and most never matter: the next
// one comes before anything is read or written. Each that reaches the network poller
// may wake a thread. So a connection notes them, and sets the last one when it is
// about to wait.

// deadline is that of one direction of a connection.
type deadline struct {
	mu        sync.Mutex
	want, set time.Time
	busy      int // reads or writes under way
	// slack is how much earlier than wanted it may end.
	slack time.Duration
}

// ask notes a new deadline. It holds at once for what is under way.
func (d *deadline) ask(t time.Time, apply func(time.Time) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.want = t
	if d.busy > 0 {
		return d.applyLocked(apply)
	}
	return nil
}

// begin sets the deadline that was asked for last, and must be followed by end.
func (d *deadline) begin(apply func(time.Time) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.applyLocked(apply); err != nil {
		return err
	}
	d.busy++
	return nil
}

func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy--
}

func (d *deadline) applyLocked(apply func(time.Time) error) error {
	if d.want.Equal(d.set) {
		return nil
	}
	if later := d.want.Sub(d.set); later > 0 && later < d.slack && !d.set.IsZero() && time.Until(d.set) > d.slack {
		return nil
	}
	if err := apply(d.want); err != nil {
		return err
	}
	d.set = d.want
	return nil
}
