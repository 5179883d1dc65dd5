package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy/audit"
)

func TestRestartsContinueTheChain(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	for range 3 {
		r.open()
		r.calls(2)
		r.log.Close()
	}
	list := r.records()
	for i, rec := range list {
		if rec.Seq != uint64(i+1) {
			t.Fatalf("record %d has number %d", i+1, rec.Seq)
		}
	}
	if len(of(list, audit.Start)) != 3 || len(of(list, audit.Stop)) != 3 || len(of(list, audit.ToolInvocation)) != 6 {
		t.Errorf("records are %+v", list)
	}
	if rep := r.mustVerify(); len(rep.Notes) != 0 {
		t.Errorf("notes: %v", rep.Notes)
	}
}

// TestTornEnd: whatever a crash leaves at the end is kept aside, recorded, and
// the chain goes on.
func TestTornEnd(t *testing.T) {
	t.Parallel()
	for name, torn := range map[string]string{
		"half a record":  `{"seq":7,"time":"2030-01-01T00:0`,
		"zeros":          strings.Repeat("\x00", 5000),
		"a foreign line": "hello\n",
		"long":           strings.Repeat("x", 300_000),
		"two":            "{}\n{\"seq\"",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, settings())
			r.open()
			r.calls(3)
			r.log.Close()
			whole := r.text()
			if err := os.WriteFile(r.path, []byte(whole+torn), 0o600); err != nil {
				t.Fatal(err)
			}
			r.open()
			r.calls(1)
			r.log.Close()
			r.mustVerify()
			rec := of(r.records(), audit.LogRecovered)
			if len(rec) != 1 || rec[0].Detail.Bytes != int64(len(torn)) {
				t.Fatalf("records about it: %+v", rec)
			}
			aside, err := os.ReadFile(filepath.Join(filepath.Dir(r.path), rec[0].Detail.File))
			if err != nil || string(aside) != torn {
				t.Errorf("kept aside are %d bytes (%v), want %d", len(aside), err, len(torn))
			}
			if !strings.HasPrefix(r.text(), whole) {
				t.Error("what was whole before has changed")
			}
		})
	}
}

// TestCutBeforeTheStart: a log that is shorter than its checkpoint stays
// visibly broken, and goes on.
func TestCutBeforeTheStart(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(text string) string{
		"the tail":   func(s string) string { return strings.Join(strings.SplitAfter(s, "\n")[:5], "") },
		"one record": func(s string) string { return s[:strings.LastIndexByte(s[:len(s)-1], '\n')+1] },
		"everything": func(string) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, settings())
			r.open()
			r.calls(5)
			r.log.Close()
			n := len(r.records())
			if err := os.WriteFile(r.path, []byte(cut(r.text())), 0o600); err != nil {
				t.Fatal(err)
			}
			if p := r.verify().Problem; p == nil {
				t.Error("the cut is not found")
			}
			r.open()
			r.calls(5)
			r.log.Close()
			p := r.verify().Problem
			if p == nil || !strings.Contains(p.What, fmt.Sprintf("to %d are missing", n)) {
				t.Errorf("after the next start the problem is %v", p)
			}
			if rec := of(r.records(), audit.LogCut); len(rec) != 1 || rec[0].Detail.Last != uint64(n) ||
				rec[0].Seq != uint64(n+1) {
				t.Errorf("records about it: %+v", rec)
			}
			if !strings.Contains(r.ops.String(), "has been cut") {
				t.Error("the operational log does not say so")
			}
		})
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	r.open()
	r.calls(1)
	r.log.Close()
	info, err := os.Stat(r.o.KeyFile)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the key is %v (%v)", info.Mode(), err)
	}
	first, err := audit.ReadKeys(r.path + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := audit.ReadKeys(r.o.KeyFile); err == nil || !strings.Contains(err.Error(), "private key") {
		t.Errorf("the private key is taken for a public one: %v", err)
	}
	// Another key: the log goes on, and the .pub file has both.
	if err := os.Remove(r.o.KeyFile); err != nil {
		t.Fatal(err)
	}
	r.open()
	r.log.Close()
	rep := r.mustVerify()
	if rep.Checkpoints < 4 || !strings.Contains(fmt.Sprint(rep.Notes), "the private key is another one than before") {
		t.Errorf("report is %+v", rep)
	}
	at, err := audit.Locate([]string{filepath.Dir(r.path)}, false)
	if err != nil || len(at.Keys) != 2 || at.Keys[0] != first[0] || at.Keys[1] != r.log.PublicKey() {
		t.Fatalf("keys are %v, before %v (%v)", at.Keys, first, err)
	}
	rep, err = audit.Verify(at.Sources, audit.VerifyOptions{Keys: at.Keys[1:]})
	if err != nil || rep.Problem == nil || !strings.Contains(rep.Problem.What, "another key") {
		t.Errorf("with the new key alone: %+v %v", rep, err)
	}
	rep, err = audit.Verify(at.Sources,
		audit.VerifyOptions{Keys: append(first, at.Keys...), Checkpoints: at.Checkpoints})
	if err != nil || rep.Problem != nil {
		t.Errorf("with both keys: %+v %v", rep, err)
	}
	// A file that is no key is refused and not repeated.
	if err := os.WriteFile(r.o.KeyFile, []byte("PRIVATE+KEY+hunter2+x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err = audit.New(r.o).Open()
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "remove the file") {
		t.Errorf("error is %v", err)
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	cfg := settings()
	cfg.RotateSize = 8 << 10
	r := newRig(t, cfg)
	r.open()
	r.calls(100)
	r.log.Close()
	names := r.rotatedNames()
	if len(names) < 5 {
		t.Fatalf("rotated files: %v", names)
	}
	for _, n := range names {
		if !strings.HasSuffix(n, ".jsonl.gz") {
			t.Errorf("%s is not compressed", n)
		}
	}
	rep := r.mustVerify()
	if rep.First != 1 || rep.Records != rep.Last || len(rep.Notes) != 0 {
		t.Errorf("report is %+v", rep)
	}
	r.open() // and on over a restart
	r.calls(20)
	r.log.Close()
	r.mustVerify()
	gone := names[2]
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if p := r.verify().Problem; p == nil || !strings.Contains(p.What, "a rotated file is missing") ||
		p.File != names[3] {
		t.Errorf("a missing rotated file: %v", p)
	}
}

func (r *rig) rotatedNames() []string {
	r.t.Helper()
	names, err := filepath.Glob(filepath.Join(filepath.Dir(r.path), "audit-*"))
	if err != nil {
		r.t.Fatal(err)
	}
	return names
}

// TestRotationByAgeAndRetention, with a clock that the test moves.
func TestRotationByAgeAndRetention(t *testing.T) {
	t.Parallel()
	cfg := settings()
	cfg.Keep = 3
	r := newRig(t, cfg)
	c := &clock{at: time.Now()}
	r.o.Now = c.now
	for range 10 {
		r.open()
		r.calls(1)
		r.log.Close()
		c.add(25 * time.Hour)
	}
	names := r.rotatedNames()
	if len(names) < 2 || len(names) > 4 {
		t.Errorf("rotated files: %v", names)
	}
	rep := r.mustVerify()
	if rep.First == 1 || !strings.Contains(fmt.Sprint(rep.Notes), "retention removed records 1 to") {
		t.Errorf("report is %+v", rep)
	}
	pruned := of(r.records(), audit.LogPruned)
	if len(pruned) == 0 || pruned[len(pruned)-1].Detail.Last != rep.First-1 {
		t.Errorf("records about it: %+v", pruned)
	}
	// What retention did not remove is missing all the same.
	if err := os.Remove(names[0]); err != nil {
		t.Fatal(err)
	}
	if p := r.verify().Problem; p == nil || !strings.Contains(p.What, "no record says that retention removed it") {
		t.Errorf("problem is %v", p)
	}
}

// TestRotationThatCannotMove goes on in the same file.
func TestRotationThatCannotMove(t *testing.T) {
	t.Parallel()
	cfg := settings()
	cfg.RotateSize = 4 << 10
	r := newRig(t, cfg)
	r.open()
	if err := os.Mkdir(filepath.Join(filepath.Dir(r.path), "audit-000000000001.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.calls(30)
	r.log.Close()
	if rep := r.mustVerify(); rep.Records < 60 {
		t.Errorf("%d records", rep.Records)
	}
	if !strings.Contains(r.ops.String(), "cannot be rotated") {
		t.Error("the operational log does not say so")
	}
}

// TestInterruptedRotation: a crash between moving the file and compressing it.
func TestInterruptedRotation(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	r.open()
	r.calls(3)
	r.log.Close()
	moved := filepath.Join(filepath.Dir(r.path), "audit-000000000001.jsonl")
	if err := os.Rename(r.path, moved); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(moved+".gz.tmp", []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p := r.verify().Problem; p == nil || !strings.Contains(p.What, "killed in the middle of a rotation") {
		t.Errorf("before the next start: %v", p)
	}
	r.open()
	r.calls(3)
	r.log.Close()
	rep := r.mustVerify()
	if rep.First != 1 || rep.Records != rep.Last || len(of(r.records(), audit.LogCut)) != 0 {
		t.Errorf("report is %+v", rep)
	}
	if names := r.rotatedNames(); len(names) != 1 || names[0] != moved+".gz" {
		t.Errorf("rotated files: %v", names)
	}
}

func TestSyncModes(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"always", "interval", "none"} {
		cfg := settings()
		cfg.Sync = mode
		r := newRig(t, cfg)
		r.open()
		r.calls(10)
		r.log.Close()
		r.mustVerify()
	}
}

// TestCheckpointByTime: a quiet log is signed too, once.
func TestCheckpointByTime(t *testing.T) {
	t.Parallel()
	cfg := settings()
	cfg.CheckpointInterval = config.Duration(20 * time.Millisecond) // the configuration has seconds
	r := newRig(t, cfg)
	c := &clock{at: time.Now()}
	r.o.Now = c.now
	r.open()
	r.calls(1)
	if n := len(of(r.records(), audit.Checkpoint)); n != 1 {
		t.Errorf("%d checkpoints before it is time", n)
	}
	c.add(20 * time.Millisecond)
	eventually(t, "a checkpoint", func() bool { return len(of(r.records(), audit.Checkpoint)) == 2 })
	for range 10 {
		c.add(time.Second)
		r.log.Upkeep()
	}
	if n := len(of(r.records(), audit.Checkpoint)); n != 2 {
		t.Errorf("%d checkpoints of a log in which nothing happens", n)
	}
	r.log.Close()
	r.mustVerify()
}

// TestFlushes: always makes every write durable, concurrent calls share
// flushes, and the other modes flush for checkpoints and by time alone.
func TestFlushes(t *testing.T) {
	t.Parallel()
	flushes := func(mode string, calls, workers int) (flushes uint64, records int) {
		cfg := settings()
		cfg.Sync = mode
		r := newRig(t, cfg)
		r.o.Now = (&clock{at: time.Now()}).now // no flush is due by time
		r.open()
		release := r.log.Hold()
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() { r.calls(calls / workers) })
		}
		eventually(t, "all workers wait", func() bool { return r.log.Queued() == workers })
		release()
		wg.Wait()
		r.log.Close()
		return r.log.Flushes(), len(r.records())
	}
	if n, records := flushes("always", 50, 1); n < 100 {
		t.Errorf("always: %d flushes for %d records one after the other", n, records)
	}
	// The first records of all calls wait together.
	if n, records := flushes("always", 100, 100); n > uint64(records)*3/4 {
		t.Errorf("always: %d flushes for %d records of 100 calls at a time", n, records)
	}
	for _, mode := range []string{"interval", "none"} {
		if n, _ := flushes(mode, 200, 1); n > 10 {
			t.Errorf("%s: %d flushes", mode, n)
		}
	}
	cfg := settings()
	cfg.Sync, cfg.Interval = "interval", config.Duration(5*time.Millisecond)
	r := newRig(t, cfg)
	c := &clock{at: time.Now()}
	r.o.Now = c.now
	r.open()
	for range 10 {
		r.calls(1)
		c.add(5 * time.Millisecond)
		eventually(t, "the records are flushed", func() bool {
			pending, oldest := r.log.Lag()
			return pending == 0 && oldest == 0
		})
	}
	r.log.Close()
	if n := r.log.Flushes(); n < 10 {
		t.Errorf("interval: %d flushes in ten intervals", n)
	}
}
