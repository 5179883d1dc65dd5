package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"aegis/proxy/audit"
)

// TestFollow sees everything from its beginning on, across rotations.
func TestFollow(t *testing.T) {
	t.Parallel()
	cfg := settings()
	cfg.RotateSize = 16 << 10
	r := newRig(t, cfg)
	r.open()
	r.calls(3)
	ctx, cancel := context.WithCancel(context.Background())
	out := &syncBuffer{}
	run, err := audit.Follower(r.path, audit.Filter{Event: "tool_invocation"}, &audit.Printer{W: out, JSON: true})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	for i := range 10 { // slower than a rotation per look
		r.calls(4)
		eventually(t, "all records are printed", func() bool { return strings.Count(out.String(), "\n") >= 4*(i+1) })
	}
	if len(r.rotatedNames()) == 0 {
		t.Error("nothing was rotated")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	var last uint64
	for line := range strings.SplitSeq(strings.TrimSpace(out.String()), "\n") {
		var rec audit.Record
		if err := json.Unmarshal([]byte(line), &rec); err != nil || rec.Seq <= last {
			t.Fatalf("%v: record %d after %d", err, rec.Seq, last)
		}
		last = rec.Seq
	}
	if n := strings.Count(out.String(), "\n"); n != 40 {
		t.Errorf("%d records", n)
	}
}

// TestFollowEnds with its context, and says that there is no log.
func TestFollowEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	r.open()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p := &audit.Printer{W: &syncBuffer{}}
	if err := audit.Follow(ctx, r.path, audit.Filter{}, p); err != nil {
		t.Error(err)
	}
	if err := audit.Follow(ctx, r.path+".none", audit.Filter{}, p); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no log: %v", err)
	}
}

// gate is a reader's screen that takes nothing after the first line until it
// is open.
type gate struct {
	syncBuffer
	open chan struct{}
}

func (g *gate) Write(p []byte) (int, error) {
	n, err := g.syncBuffer.Write(p)
	<-g.open
	return n, err
}

// followed follows the log from its end on: first makes a record, and while its line
// is being printed meanwhile runs. It goes on until done holds for what was printed.
func (r *rig) followed(json bool, first, meanwhile func(), done func(text string) bool) string {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out := &gate{open: make(chan struct{})}
	run, err := audit.Follower(r.path, audit.Filter{}, &audit.Printer{W: out, JSON: json, Quiet: true})
	if err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	first()
	eventually(r.t, "the first line is printed", func() bool { return out.String() != "" })
	meanwhile()
	close(out.open)
	eventually(r.t, "all is printed", func() bool { return done(out.String()) })
	cancel()
	if err := <-ended; err != nil {
		r.t.Error(err)
	}
	return out.String()
}

// TestFollowAcrossManyRotations between two looks prints each record once.
func TestFollowAcrossManyRotations(t *testing.T) {
	t.Parallel()
	cfg := settings()
	cfg.RotateSize = 2 << 10
	r := newRig(t, cfg)
	r.open()
	r.calls(7)
	var last uint64
	text := r.followed(true, func() { r.calls(1) }, func() {
		r.calls(40)
		if len(r.rotatedNames()) < 10 {
			t.Errorf("rotated files: %v", r.rotatedNames())
		}
		var err error
		if last, err = r.log.Append(&audit.Record{Event: audit.Consent}, true); err != nil {
			t.Fatal(err)
		}
	}, func(text string) bool { return strings.Contains(text, `"event":"consent"`) })
	var before uint64
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		var rec audit.Record
		if err := json.Unmarshal([]byte(line), &rec); err != nil || before != 0 && rec.Seq != before+1 {
			t.Fatalf("%v: record %d after %d: %s", err, rec.Seq, before, line)
		}
		before = rec.Seq
	}
	if before < last || strings.Count(text, "\n") < 80 {
		t.Errorf("%d lines up to record %d, want more than 80 up to %d", strings.Count(text, "\n"), before, last)
	}
}

// TestFollowReportsWhatIsGone: rotated files that were removed before they were
// read.
func TestFollowReportsWhatIsGone(t *testing.T) {
	t.Parallel()
	for name, json := range map[string]bool{`"missing":{"first":`: true, "are missing": false} {
		cfg := settings()
		cfg.RotateSize = 2 << 10
		r := newRig(t, cfg)
		r.open()
		r.calls(1)
		r.followed(json, func() { r.calls(1) }, func() {
			r.calls(30)
			r.log.Close()
			r.remove(r.rotatedNames()...)
		}, func(text string) bool { return strings.Contains(text, name) })
	}
}

// TestFollowBeginsAfterARotation: the log is empty and the newest record is in
// a rotated file.
func TestFollowBeginsAfterARotation(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	r.open()
	r.calls(3)
	r.log.Close()
	before := r.mustVerify().Last
	moved := strings.TrimSuffix(r.path, ".jsonl") + "-000000000001.jsonl"
	if err := os.Rename(r.path, moved); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	text := r.followed(true, func() { r.open() }, func() { r.calls(1) }, func(text string) bool { return strings.Count(text, "\n") >= 4 })
	var rec audit.Record
	first, _, _ := strings.Cut(text, "\n")
	if err := json.Unmarshal([]byte(first), &rec); err != nil || rec.Seq != before+1 {
		t.Errorf("the first line is %s after record %d", first, before)
	}
}
