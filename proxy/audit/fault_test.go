//go:build linux

package audit_test

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"aegis/proxy"
	"aegis/proxy/audit"
)

// disk is a file system that a test can fill and empty.
type disk struct {
	dir        string
	fill, free func(t *testing.T)
}

// disks are two real faults: a small tmpfs, where mounting is permitted, and a
// limit on the size of files, which always is.
func disks(t *testing.T, run func(t *testing.T, d disk)) {
	t.Run("file size limit", func(t *testing.T) { run(t, limitedDisk(t)) })
	t.Run("small tmpfs", func(t *testing.T) { run(t, smallDisk(t)) })
}

func mount(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("mounting is not permitted (%v); the file size limit shows the same", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

func smallDisk(t *testing.T) disk {
	dir := mount(t)
	ballast := filepath.Join(dir, "ballast")
	return disk{
		dir: dir,
		fill: func(t *testing.T) {
			f, err := os.Create(ballast)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for err == nil {
				_, err = f.Write(make([]byte, 512))
			}
			if !errors.Is(err, unix.ENOSPC) {
				t.Fatal(err)
			}
		},
		free: func(t *testing.T) {
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
		},
	}
}

func limitedDisk(t *testing.T) disk {
	dir := t.TempDir()
	signal.Ignore(syscall.SIGXFSZ)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	restore := func(t *testing.T) {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { restore(t) })
	return disk{
		dir: dir,
		fill: func(t *testing.T) {
			info, err := os.Stat(filepath.Join(dir, "audit", "audit.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			// In the middle of the next record.
			if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(info.Size()) + 100, Max: old.Max}); err != nil {
				t.Fatal(err)
			}
		},
		free: restore,
	}
}

func (r *rig) moveTo(dir string) {
	r.dir, r.path = dir, filepath.Join(dir, "audit", "audit.jsonl")
	r.o.Path, r.o.KeyFile = r.path, filepath.Join(dir, "audit.key")
}

// balanced holds that every start has one result and the chain is whole.
func (r *rig) balanced() []audit.Record {
	r.t.Helper()
	r.log.Close()
	rep := r.mustVerify()
	if rep.Unfinished != 0 {
		r.t.Errorf("%d calls without a result", rep.Unfinished)
	}
	list := r.records()
	started := map[uint64]int{}
	for _, rec := range of(list, audit.ToolInvocation) {
		started[rec.Started]++
	}
	for _, rec := range of(list, audit.ToolCallStarted) {
		if started[rec.Seq] != 1 {
			r.t.Errorf("the call of record %d has %d results", rec.Seq, started[rec.Seq])
		}
	}
	return list
}

// TestDiskFull: calls are refused, readiness turns red, and both recover
// without help once there is room again.
func TestDiskFull(t *testing.T) {
	disks(t, func(t *testing.T, d disk) {
		cfg := settings()
		cfg.Sync = "always"
		r := newRig(t, cfg)
		r.moveTo(d.dir)
		r.open()
		r.calls(5)
		d.fill(t)
		h := r.chain(found, answered)
		served, refused := 5, 0
		eventually(t, "the disk is full", func() bool { // the last page may still take some
			if _, err := h.Handle(context.Background(), newCall()); err == nil {
				served++
			}
			r.log.Upkeep() // when this cannot go on, nothing fits any more
			return r.log.Ready() != nil
		})
		for range 200 {
			_, err := h.Handle(context.Background(), newCall())
			if err == nil {
				t.Fatal("a call is served without a record")
			}
			if e := proxy.AsError(err); e.Kind != proxy.KindAuditUnavailable || strings.Contains(e.Public, d.dir) {
				t.Fatalf("error is %v", err)
			}
			refused++
		}
		if r.log.Ready() == nil {
			t.Error("a full disk is ready")
		}
		// Nothing that is refused may gather in memory, whatever the call is.
		waiting := r.log.Queued()
		unknown := r.chain(outcomes["unknown"].lookup, answered)
		for range 500 {
			_ = guarded(unknown, newCall())
			if _, err := r.log.Append(&audit.Record{Event: audit.ToolCallStarted}, false); err == nil {
				t.Fatal("a start is written to a full disk")
			}
		}
		if n := r.log.Queued(); n > waiting {
			t.Errorf("%d records wait, %d before the refused calls", n, waiting)
		}
		d.free(t)
		eventually(t, "the log recovers", func() bool { return r.log.Ready() == nil })
		r.calls(5)
		list := r.balanced()
		ok := 0
		for _, rec := range of(list, audit.ToolInvocation) {
			if rec.Result.Outcome == "ok" {
				ok++
			}
		}
		if ok < served+5 {
			t.Errorf("%d calls recorded, %d were served", ok, served+5)
		}
		rec := of(list, audit.LogRecovered)
		outages, counted := strings.Count(r.ops.String(), "the audit log cannot be written"), uint64(0)
		for _, r := range rec {
			if counted += r.Detail.Count; r.Detail.Since == nil {
				t.Errorf("a record about it: %+v", r)
			}
		}
		if len(rec) != outages || counted < uint64(refused) {
			t.Errorf("%d outages and at least %d calls refused; records about it: %+v", outages, refused, rec)
		}
	})
}

// TestDiskFullDuringACall: what Gitea has done is recorded as soon as there is
// room, once, and says that nobody got the answer.
func TestDiskFullDuringACall(t *testing.T) {
	disks(t, func(t *testing.T, d disk) {
		cfg := settings()
		cfg.Sync = "always"
		r := newRig(t, cfg)
		r.moveTo(d.dir)
		r.open()
		r.calls(1)
		inside, full := make(chan struct{}), make(chan struct{})
		h := r.chain(found, func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
			inside <- struct{}{}
			<-full
			return answered(ctx, c)
		})
		const n = 40
		errs := make([]error, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { _, errs[i] = h.Handle(context.Background(), newCall()) })
		}
		for range n {
			<-inside
		}
		d.fill(t)
		close(full)
		wg.Wait()
		withheld := 0
		for _, err := range errs {
			if err == nil {
				continue
			}
			withheld++
			if e := proxy.AsError(err); e.Kind != proxy.KindAuditUnavailable ||
				!strings.Contains(e.Public, "check before you repeat") {
				t.Errorf("error is %v", err)
			}
		}
		if withheld < n/2 {
			t.Fatalf("%d answers withheld", withheld)
		}
		d.free(t)
		eventually(t, "the log recovers", func() bool { return r.log.Ready() == nil })
		list := r.balanced()
		recorded := 0
		for _, rec := range of(list, audit.ToolInvocation) {
			if rec.Result.Outcome != "ok" || rec.Result.Object == nil {
				t.Errorf("result is %+v", rec.Result)
			}
			if rec.Result.Withheld {
				recorded++
			}
		}
		if len(of(list, audit.ToolInvocation)) != n+1 || recorded != withheld {
			t.Errorf("%d results, %d of them withheld; want %d and %d", len(of(list, audit.ToolInvocation)), recorded,
				n+1, withheld)
		}
	})
}
