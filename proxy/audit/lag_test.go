package audit_test

import (
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy/audit"
)

// TestLagOfUnsyncedRecords: with sync none a record is behind until something
// flushes it; with always it is not once its call goes on.
func TestLagOfUnsyncedRecords(t *testing.T) {
	t.Parallel()
	for sync, behind := range map[string]bool{"always": false, "none": true} {
		r := newRig(t, settings())
		c := &clock{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		r.o.Now, r.o.Config.Sync = c.now, sync
		r.o.Config.CheckpointInterval, r.o.Config.CheckpointRecords = config.Duration(time.Hour), 10_000
		l := r.open()
		r.calls(3)
		c.add(time.Minute)
		eventually(t, "nothing waits, and the flush is known", func() bool {
			pending, oldest := l.Lag()
			return pending == 0 && (oldest >= time.Minute) == behind && (oldest == 0) != behind
		})
		l.Close()
		if pending, oldest := l.Lag(); pending != 0 || oldest != 0 {
			t.Errorf("%s: a closed log lags: %d, %v", sync, pending, oldest)
		}
	}
	if pending, oldest := (*audit.Log)(nil).Lag(); pending != 0 || oldest != 0 {
		t.Errorf("no log lags: %d, %v", pending, oldest)
	}
}
