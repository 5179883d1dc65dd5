package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"aegis/config"
	"aegis/proxy"
)

// Options describe a log.
type Options struct {
	// Path is the log's file. Required.
	Path string
	// KeyFile holds the key that signs checkpoints; it is made when it is
	// missing. Required.
	KeyFile string
	// Config has the rest; its Path and KeyFile are not looked at.
	Config config.Audit
	// Version is Aegis's, for the record of the start.
	Version string
	// Replica is the name of this process among those that share a store; "":
	// there are no others.
	Replica string
	// Clean masks a text of a client before it is recorded; nil leaves it.
	Clean func(string) string
	// Log receives what an operator must know.
	Log zerolog.Logger
	// Stdout is what sinks of type stdout write to.
	Stdout io.Writer
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// waits are the times that a log and its sinks wait.
type waits struct {
	// patience is how long a call waits for its record to be written.
	patience time.Duration
	// retry is the time between attempts to write a log that failed.
	retry time.Duration
	// delivery bounds one delivery to a sink.
	delivery time.Duration
	// farewell is how long a sink may take to empty its buffer at the end.
	farewell time.Duration
	// A delivery that failed is tried again after sinkRetry, then after twice as
	// long each time, up to sinkRetryMax.
	sinkRetry, sinkRetryMax time.Duration
}

// usualWaits are those outside of tests. patience is short, so that a client learns
// why its call was refused before it gives up.
func usualWaits() waits {
	return waits{
		patience: 5 * time.Second, retry: 250 * time.Millisecond,
		delivery: 10 * time.Second, farewell: 2 * time.Second,
		sinkRetry: 250 * time.Millisecond, sinkRetryMax: 30 * time.Second,
	}
}

const (
	// maxQueue bounds the records that wait in memory. Calls that could add
	// more are refused before that.
	maxQueue = 16384
	// maxBatch bounds what one write takes.
	maxBatch = 1024
)

// Log is the audit log. Make one with [New], open it with [Log.Open].
type Log struct {
	o      Options
	waits  waits
	sinks  []*sink
	events throttle

	mu    sync.Mutex
	queue []*entry
	room  int // entries taken from the queue and not yet settled
	// taken is when the oldest of them was made, unsynced when the oldest record
	// was written that may not be on the disk; zero without one.
	taken, unsynced time.Time
	state           state
	wake            chan struct{}
	ended           chan struct{}
	writer          *writer
	// writing is held while the writer is used. It is taken before mu.
	writing sync.Mutex

	outage  atomic.Pointer[outage]
	refused atomic.Uint64
	busy    atomic.Int64 // when the current write began, ns since 1970; 0 is idle
}

type state uint8

const (
	stateNew state = iota
	stateOpen
	stateClosed
)

// outage is a time in which the log cannot be written.
type outage struct {
	since time.Time
	err   error
}

// entry is a record on its way to the file.
type entry struct {
	body []byte
	out  []byte // body as it is being written
	at   time.Time
	// keep holds the record through an outage; without it the record is dropped
	// and the waiting call gets the error.
	keep bool
	// answer is the record of an answer that leaves only once it is written; nil for
	// others.
	answer *Record
	pos    position
	err    error
	done   chan struct{} // closed once pos or err is set
	ended  bool          // done is closed; the entry may still wait to be written
}

// New returns a log that is not open yet. It touches no file.
func New(o Options) *Log {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Clean == nil {
		o.Clean = func(s string) string { return s }
	}
	l := &Log{o: o, waits: usualWaits(), wake: make(chan struct{}, 1), ended: make(chan struct{})}
	l.events.now, l.events.rate = o.Now, rate.NewLimiter(eventRate, eventBurst)
	return l
}

// Open makes or continues the log, and holds its lock until [Log.Close]. The
// error says what to do.
func (l *Log) Open() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != stateNew {
		return nil
	}
	for _, cfg := range l.o.Config.Sinks {
		l.sinks = append(l.sinks, newSink(cfg, l))
	}
	w, err := openWriter(&l.o, l.offer)
	if err != nil {
		l.stopSinks()
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("audit log: %w; "+
				"make that place writable for Aegis, or choose another with data_dir or audit.path", err)
		}
		return fmt.Errorf("audit log: %w", err)
	}
	w.takeUnsaved()() // each start has one
	l.writer, l.state = w, stateOpen
	go l.run()
	return nil
}

// unavailableError is why a record could not be written.
type unavailableError struct {
	err error
	// dropped: the record is certainly not in the log and never will be.
	dropped bool
}

func (e *unavailableError) Error() string { return "audit log: " + e.err.Error() }
func (e *unavailableError) Unwrap() error { return e.err }

// Why records are not taken. Operators read these in /readyz and in the log.
var (
	errNotOpen = errors.New("it is not open")
	errFull    = errors.New("too many records wait to be written")
	errSlow    = errors.New("the disk does not answer in time")
)

// enqueue hands a record to the writer. keep is as in entry.
func (l *Log) enqueue(r *Record, keep bool) (*entry, error) {
	e := &entry{keep: keep}
	err := l.add(r, e)
	if err == nil {
		l.wakeUp()
	}
	return e, err
}

// add puts a record into the queue. It is written once a call waits for it, or
// wakes the writer. Encoding is done outside the lock, as it takes longer than
// everything else here.
func (l *Log) add(r *Record, e *entry) (err error) {
	if e.body, err = encode(r); err != nil {
		return &unavailableError{err, true}
	}
	e.done = make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	switch o := l.outage.Load(); {
	case l.state != stateOpen:
		return &unavailableError{errNotOpen, true}
	case !e.keep && o != nil:
		return &unavailableError{o.err, true}
	case len(l.queue)+l.room >= maxWaiting(r.Event, e.keep):
		return &unavailableError{errFull, true}
	}
	e.at = l.o.Now() // in the lock, so that times rise with the sequence
	l.queue = append(l.queue, e)
	return nil
}

// maxWaiting is how many records may wait for one more to be taken. The results
// of calls come last to be refused, and what strangers cause first.
func maxWaiting(e Event, keep bool) int {
	switch {
	case refused(e):
		return maxQueue / 4
	case !keep:
		return maxQueue / 2
	}
	return maxQueue
}

// signal wakes the goroutine. A signal that is waiting already is enough for both.
func (l *Log) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// wait returns the entry's sequence number once it is written.
func (l *Log) wait(ctx context.Context, e *entry) (uint64, error) {
	l.push()
	select {
	case <-e.done:
		return e.settled()
	default:
	}
	timer := time.NewTimer(l.waits.patience)
	defer timer.Stop()
	select {
	case <-e.done:
		return e.settled()
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-timer.C:
		return 0, &unavailableError{err: errSlow}
	}
}

// settled returns what became of an entry whose writing has ended.
func (e *entry) settled() (uint64, error) {
	if e.err != nil {
		return 0, &unavailableError{e.err, !e.keep}
	}
	return e.pos.seq, nil
}

// withhold marks the record of an answer, which still waits to be written, as one that
// does not leave. The log is locked.
func (e *entry) withhold() {
	if e.answer == nil {
		return
	}
	e.answer.Result.Withheld = true
	if body, err := encode(e.answer); err == nil { // else the record stays as it was
		e.body = body
	}
}

// Ready reports why calls would be refused; nil when they would not.
func (l *Log) Ready() error {
	if l == nil {
		return nil
	}
	if o := l.outage.Load(); o != nil {
		return &unavailableError{err: o.err}
	}
	if since := l.busy.Load(); since != 0 && time.Since(time.Unix(0, since)) > l.waits.patience {
		return &unavailableError{err: errSlow}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.state != stateOpen:
		return &unavailableError{err: errNotOpen}
	case len(l.queue)+l.room >= maxQueue/2: // where starts of calls are refused, see maxWaiting
		return &unavailableError{err: errFull}
	}
	return nil
}

// Event records something that is not a call. It does not wait. Events of
// strangers that come too fast are counted in the next one that is recorded.
func (l *Log) Event(event Event, x *proxy.RequestInfo, d Detail) {
	if l != nil {
		_ = l.event(event, x, d) // said in the operational log
	}
}

// event is Event; the error is why the event is not in the log.
func (l *Log) event(event Event, x *proxy.RequestInfo, d Detail) error {
	r := &Record{Event: event, Detail: &d}
	if x != nil {
		r.RequestID, r.Team = x.RequestID, x.Team
		r.Client, r.Identity = &Client{Addr: proxy.Clip(x.Addr, 64)}, identityOf(x.Identity, "")
	}
	d.Reason = proxy.Clip(d.Reason, maxDetail)
	strangers := refused(event) || event == Consent && r.Identity == nil
	if strangers {
		ok, suppressed := l.events.take()
		if !ok {
			return nil
		}
		d.Suppressed = suppressed // each event is counted once, in the next that is recorded
	}
	_, err := l.enqueue(r, true)
	if err != nil {
		if strangers {
			l.events.miss(d.Suppressed + 1)
		}
		l.o.Log.Error().Str("event", string(event)).Err(err).Msg("event not recorded in the audit log")
	}
	return err
}

// refused reports whether anybody can cause an event at will. So can a visitor who denies
// a client on the consent page, before anybody has signed in.
func refused(e Event) bool { return e == BearerRefused || e == AccessRefused }

// Close writes the record of the stop and a last checkpoint, and lets the
// files go. Records that are still kept because of an outage are lost then,
// and the operational log says how many.
func (l *Log) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	was := l.state
	if was == stateOpen {
		l.state = stateClosed
		close(l.wake)
	}
	l.mu.Unlock()
	if was == stateOpen {
		<-l.ended // the last records are written, and offered to the sinks
		l.stopSinks()
	}
}
