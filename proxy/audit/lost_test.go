package audit_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aegis/proxy/audit"
)

// rotatedRig is a closed log of several files.
func rotatedRig(t *testing.T) *rig {
	cfg := settings()
	cfg.RotateSize = 8 << 10
	r := newRig(t, cfg)
	r.open()
	r.calls(20)
	r.log.Close()
	if len(r.rotatedNames()) < 2 {
		t.Fatalf("rotated files: %v", r.rotatedNames())
	}
	r.mustVerify()
	return r
}

func (r *rig) remove(files ...string) {
	r.t.Helper()
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			r.t.Fatal(err)
		}
	}
}

// TestRemovedFilesAreNamed: whatever of a log is removed, what is left says so,
// for a log that is named by its folder as for one of a configuration.
func TestRemovedFilesAreNamed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		remove func(r *rig) []string
		file   string // of the problem
		want   string
	}{
		"newest": {func(r *rig) []string { return []string{r.path} }, "audit.jsonl", "the newest file of the log is missing"},
		"newest and checkpoint": {
			func(r *rig) []string { return []string{r.path, r.path + ".checkpoint"} }, "audit.jsonl", "the newest file of the log is missing",
		},
		"newest and key": {
			func(r *rig) []string { return []string{r.path, r.path + ".pub"} }, "audit.jsonl", "the newest file of the log is missing",
		},
		"all": {
			func(r *rig) []string { return append(r.rotatedNames(), r.path) }, "audit.jsonl", "the log is missing with all of its files",
		},
		"all but the key": {
			func(r *rig) []string { return append(r.rotatedNames(), r.path, r.path+".checkpoint") }, "audit.jsonl", "the log is missing",
		},
		"all but the checkpoint": {
			func(r *rig) []string { return append(r.rotatedNames(), r.path, r.path+".pub") }, "audit.jsonl", "the log is missing",
		},
		"all rotated":   {func(r *rig) []string { return r.rotatedNames() }, "", "records 1 to"},
		"first rotated": {func(r *rig) []string { return r.rotatedNames()[:1] }, "", "records 1 to"},
		"checkpoint":    {func(r *rig) []string { return []string{r.path + ".checkpoint"} }, "audit.jsonl.checkpoint", "the checkpoint is missing"},
		"key":           {func(r *rig) []string { return []string{r.path + ".pub"} }, "audit.jsonl.pub", "the public key is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			r := rotatedRig(t)
			r.remove(tc.remove(r)...)
			for _, named := range []struct {
				name  string
				whole bool
			}{{r.path, true}, {filepath.Dir(r.path), false}} {
				at, err := audit.Locate([]string{named.name}, named.whole)
				if err != nil {
					t.Fatal(err)
				}
				rep, err := audit.Verify(at.Sources, audit.VerifyOptions{Keys: at.Keys, Checkpoints: at.Checkpoints})
				if err != nil {
					t.Fatal(err)
				}
				p := rep.Problem
				if p == nil || !strings.Contains(p.What, tc.want) || tc.file != "" && filepath.Base(p.File) != tc.file {
					t.Errorf("%s: problem is %v, want %q of %q", named.name, p, tc.want, tc.file)
				}
			}
		})
	}
}

// TestRemovedNewestFileNamesTheCheckpoint says up to where records are known.
func TestRemovedNewestFileNamesTheCheckpoint(t *testing.T) {
	t.Parallel()
	r := rotatedRig(t)
	last := r.mustVerify().Last
	r.remove(r.path)
	if p := r.verify().Problem; p == nil || !strings.Contains(p.What, "knows records up to") || p.Seq >= last {
		t.Errorf("problem is %v", p)
	}
	// Named by itself it is missed too, and its records cannot be shown.
	at, err := audit.Locate([]string{r.path}, false)
	if err != nil {
		t.Fatal(err)
	}
	if rep, err := audit.Verify(at.Sources, audit.VerifyOptions{Keys: at.Keys}); err != nil || rep.Problem == nil {
		t.Errorf("%+v, %v", rep, err)
	}
	if _, err := audit.Show(at.Sources, audit.Filter{}, &audit.Printer{W: &syncBuffer{}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("showing it: %v", err)
	}
	// The rotated files alone are no whole log, and as a part they are good.
	at, err = audit.Locate(r.rotatedNames(), false)
	if err != nil {
		t.Fatal(err)
	}
	o := audit.VerifyOptions{Keys: at.Keys, Checkpoints: at.Checkpoints}
	if rep, err := audit.Verify(at.Sources, o); err != nil || rep.Problem == nil ||
		!strings.Contains(rep.Problem.What, "the tail was cut, or a file was not named") {
		t.Errorf("%+v, %v", rep, err)
	}
	o.Part = true
	if rep, err := audit.Verify(at.Sources, o); err != nil || rep.Problem != nil || rep.Records == 0 {
		t.Errorf("%+v, %v", rep, err)
	}
}

// TestLogsWithoutAnythingBeside: without key and checkpoint a folder's log is
// read all the same; nothing at all is said plainly, and is never good.
func TestLogsWithoutAnythingBeside(t *testing.T) {
	t.Parallel()
	r := rotatedRig(t)
	r.remove(r.path+".pub", r.path+".checkpoint")
	at, err := audit.Locate([]string{filepath.Dir(r.path)}, false)
	if err != nil || len(at.Sources) != len(r.rotatedNames())+1 {
		t.Fatalf("%d sources, %v", len(at.Sources), err)
	}
	rep, err := audit.Verify(at.Sources, audit.VerifyOptions{})
	if err != nil || rep.Problem != nil || !slices.ContainsFunc(rep.Notes, func(p audit.Place) bool { return strings.Contains(p.What, "no signature was checked") }) {
		t.Errorf("report is %+v, %v", rep, err)
	}
	nothing := filepath.Join(r.dir, "nothing.jsonl")
	for _, path := range []string{nothing, filepath.Join(r.dir, "no", "folder.jsonl")} {
		_, err = audit.Locate([]string{path}, true)
		if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "there is no audit log at "+path) {
			t.Errorf("a log that never was: %v", err)
		}
	}
	if _, err = audit.Locate([]string{t.TempDir()}, false); err == nil ||
		!strings.Contains(err.Error(), "all of it was removed") {
		t.Errorf("an empty folder: %v", err)
	}
	if err := os.WriteFile(nothing, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	at, err = audit.Locate([]string{nothing}, false)
	if err != nil {
		t.Fatal(err)
	}
	rep, err = audit.Verify(at.Sources, audit.VerifyOptions{Part: true})
	if err != nil || rep.Problem == nil || !strings.Contains(rep.Problem.What, "there are no records") {
		t.Errorf("an empty file: %+v, %v", rep, err)
	}
}

// TestRotatedFilesAreFound: a log finds its own rotated files whatever it is called, else it
// would report records that nobody has removed, and keep files for ever.
func TestRotatedFilesAreFound(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"audit.jsonl", "audit", "audit-202612010000.jsonl", "audit.", ".audit", "a.b.jsonl",
		"audit.log-202612011635", "audit-000000000001.log-202612011635"} {
		path := filepath.Join(t.TempDir(), name)
		for _, rotated := range []string{audit.RotatedName(path, 7), audit.RotatedName(path, 9) + ".gz", filepath.Join(filepath.Dir(path), "other-000000000007"+filepath.Ext(name))} {
			if err := os.WriteFile(rotated, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := audit.RotatedFiles(path); n != 2 || err != nil {
			t.Errorf("%s: %d of its 2 rotated files are found, %v", name, n, err)
		}
	}
}
