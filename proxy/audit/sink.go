package audit

import (
	"bytes"
	"cmp"
	"context"
	"sync"
	"time"

	"aegis/config"
)

// Bounds of what a sink holds: a receiver that is down must not cost memory without
// limit, nor one request be too large for the usual receivers.
const (
	// sinkBatch bounds the lines of one delivery.
	sinkBatch = 500
	// sinkBuffer is the number of records that a sink holds when the
	// configuration says nothing.
	sinkBuffer = 10_000
	// lineEstimate times the buffer's records bounds its bytes.
	lineEstimate = 2 << 10
)

// delivery hands lines, each with its line end, to a receiver. When it fails
// the same lines come again, so a receiver may see a line twice.
type delivery interface {
	deliver(ctx context.Context, lines [][]byte) error
	close()
}

// sink is a second receiver of the records. It holds a bounded number of them
// and never makes the log wait.
type sink struct {
	name  string
	to    delivery
	log   *Log
	limit int // lines

	mu sync.Mutex
	// lines are those that were not delivered yet, bytes is their size. dropped counts those
	// that did not fit since the last time that this was put on record.
	lines   [][]byte
	bytes   int
	dropped uint64

	wake  chan struct{} // has a value when there is something new; capacity 1
	stop  chan struct{} // closed at the end of the log
	ended chan struct{} // closed when nothing is delivered any more
}

// newSink starts the sink's goroutine; stopSinks ends it.
func newSink(cfg config.AuditSink, l *Log) *sink {
	s := &sink{
		name: cfg.Type, log: l, limit: cmp.Or(cfg.Buffer, sinkBuffer),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	switch cfg.Type {
	case "http":
		s.to = newHTTPDelivery(cfg)
	case "syslog":
		s.to = newSyslogDelivery(cfg.Address)
	default: // stdout; the configuration knows no others
		s.to = writerDelivery{l.o.Stdout}
	}
	go s.run()
	return s
}

// offer adds what was written, as far as it fits. What does not is dropped rather than what
// came before it: the receiver then has one gap, with a record of its length behind it.
func (s *sink) offer(written []byte) {
	// The writer uses its buffer again.
	lines := bytes.SplitAfter(bytes.Clone(written), []byte{'\n'})
	s.mu.Lock()
	for _, line := range lines {
		switch {
		case len(line) == 0:
		case len(s.lines) >= s.limit || s.bytes+len(line) > s.limit*lineEstimate:
			s.dropped++
		default:
			s.lines, s.bytes = append(s.lines, line), s.bytes+len(line)
		}
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run delivers whenever something was offered. At the end deliveries have the time of
// waits.farewell in all, then they are cut off.
func (s *sink) run() {
	defer close(s.ended)
	defer s.to.close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-s.stop
		time.AfterFunc(s.log.waits.farewell, cancel)
	}()
	for open := true; open; {
		select {
		case <-s.wake:
		case <-s.stop:
			open = false
		}
		s.empty(ctx)
	}
}

// empty delivers until the buffer is empty or ctx ends.
func (s *sink) empty(ctx context.Context) {
	pause, failed := s.log.waits.sinkRetry, false
	for ctx.Err() == nil {
		s.mu.Lock()
		batch := s.lines[:min(len(s.lines), sinkBatch)]
		s.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		// Outside the lock: offer appends behind the batch and never changes it.
		err := s.attempt(ctx, batch)
		if err == nil {
			s.delivered(len(batch))
			pause = s.log.waits.sinkRetry
			continue
		}
		if !failed { // once per trouble, not per attempt
			failed = true
			s.log.o.Log.Warn().Str("sink", s.name).Err(err).
				Msg("a second audit sink takes no records; the log itself is not affected")
		}
		s.sleep(ctx, pause)
		// Twice as long each time: a receiver that comes back must not be met by everyone at once.
		pause = min(2*pause, s.log.waits.sinkRetryMax)
	}
}

// sleep waits; the end of the log cuts it short.
func (s *sink) sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	case <-s.stop:
		time.Sleep(min(d, 50*time.Millisecond)) // the rest of the farewell is for attempts
	}
}

// attempt bounds one delivery, as a receiver that accepts and never answers would hold
// the sink for good.
func (s *sink) attempt(ctx context.Context, batch [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, s.log.waits.delivery)
	defer cancel()
	return s.to.deliver(ctx, batch)
}

// delivered takes n lines out of the buffer, and records what had not fitted.
func (s *sink) delivered(n int) {
	s.mu.Lock()
	for _, line := range s.lines[:n] {
		s.bytes -= len(line)
	}
	if s.lines = s.lines[n:]; len(s.lines) == 0 {
		s.lines = nil
	}
	s.mu.Unlock()
	// Only now that the receiver takes records again, so that the record of the gap gets there.
	dropped := s.takeDropped()
	if dropped > 0 && s.log.event(SinkGap, nil, Detail{Sink: s.name, Count: dropped, Reason: sinkGapReason}) != nil {
		s.mu.Lock()
		s.dropped += dropped // for the next attempt
		s.mu.Unlock()
	}
}

const sinkGapReason = "the sink took no records for so long that its buffer was full"

// takeDropped returns how many records did not fit since the last call.
func (s *sink) takeDropped() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.dropped
	s.dropped = 0
	return n
}

// farewell logs the number of records that the sink did not get before the end.
func (s *sink) farewell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := uint64(len(s.lines)) + s.dropped; n > 0 {
		s.log.o.Log.Warn().Str("sink", s.name).Uint64("records", n).
			Msg("a second audit sink did not get the last records; the log itself has them")
	}
}

// stopSinks signals all sinks first, so that their farewells run at the same time.
func (l *Log) stopSinks() {
	for _, s := range l.sinks {
		close(s.stop)
	}
	for _, s := range l.sinks {
		<-s.ended
		s.farewell()
	}
}
