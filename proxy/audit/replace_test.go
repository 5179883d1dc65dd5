//go:build linux

package audit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"aegis/proxy"
	"aegis/proxy/audit"
)

// refusedThen holds that a fault refuses calls with the words, and that mending
// it is enough.
func refusedThen(t *testing.T, r *rig, words string, mend func()) {
	t.Helper()
	eventually(t, "calls are refused", func() bool {
		_, err := r.chain(found, answered).Handle(context.Background(), newCall())
		return err != nil && proxy.AsError(err).Kind == proxy.KindAuditUnavailable
	})
	if err := r.log.Ready(); err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("readiness is %v, want %q", err, words)
	}
	mend()
	eventually(t, "the log recovers", func() bool { return r.log.Ready() == nil })
	r.calls(2)
}

func TestReplacedBySymlink(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	r.open()
	r.calls(3)
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.WriteFile(elsewhere, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(r.path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, r.path); err != nil {
		t.Fatal(err)
	}
	refusedThen(t, r, "somebody put another in its place", func() {
		if err := os.Remove(r.path); err != nil {
			t.Fatal(err)
		}
	})
	list := r.balanced()
	if n := len(of(list, audit.ToolInvocation)); n < 5 {
		t.Errorf("%d results", n)
	}
	if b, err := os.ReadFile(elsewhere); err != nil || len(b) != 0 {
		t.Errorf("something was written through the link: %q %v", b, err)
	}
}

func TestReplacedByAnotherFile(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	r.open()
	r.calls(3)
	if err := os.Rename(r.path, r.path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.path, []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refusedThen(t, r, "is not the file that Aegis opened", func() {
		if err := os.Rename(r.path+".old", r.path); err != nil {
			t.Fatal(err)
		}
	})
	r.balanced()
}

func TestFolderRemoved(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	r.open()
	r.calls(3)
	before := r.text()
	if err := os.RemoveAll(filepath.Dir(r.path)); err != nil {
		t.Fatal(err)
	}
	r.calls(3)
	if !strings.HasPrefix(r.text(), before) {
		t.Error("records were lost")
	}
	if err := audit.New(r.o).Open(); err == nil {
		t.Error("the log is no longer locked")
	}
	list := r.balanced()
	if rec := of(list, audit.LogRecovered); len(rec) != 1 ||
		!strings.Contains(rec[0].Detail.Reason, "removed or renamed") {
		t.Errorf("records about it: %+v", rec)
	}
}

// TestChangedByOthers: the evidence stays, the log goes on, verify finds it.
func TestChangedByOthers(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path string) error{
		"appended": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("no record, no line end")
			return errors.Join(err, f.Close())
		},
		"emptied":   func(path string) error { return os.Truncate(path, 0) },
		"shortened": func(path string) error { return os.Truncate(path, 1500) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, settings())
			r.open()
			r.calls(3)
			if err := change(r.path); err != nil {
				t.Fatal(err)
			}
			r.calls(3)
			r.log.Close()
			if r.verify().Problem == nil {
				t.Error("the change is not found")
			}
			rec := of(r.records(), audit.LogRecovered)
			if len(rec) != 1 || !strings.Contains(rec[0].Detail.Reason, "somebody else changed") {
				t.Errorf("records about it: %+v", rec)
			}
			if n := len(of(r.records(), audit.ToolInvocation)); n < 3 {
				t.Errorf("%d results after the change", n)
			}
		})
	}
}

func TestSecondProcess(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	r.open()
	err := audit.New(r.o).Open()
	if err == nil || !strings.Contains(err.Error(), "another Aegis writes this audit log") {
		t.Errorf("a second log opens: %v", err)
	}
	r.calls(1)
	r.log.Close()
	r.open()
	r.balanced()
}

func TestRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spoil func(t *testing.T, r *rig)
		want  string
	}{
		"symlink": {func(t *testing.T, r *rig) {
			must(t, os.MkdirAll(filepath.Dir(r.path), 0o700))
			must(t, os.Symlink(filepath.Join(r.dir, "x"), r.path))
		}, "is a symbolic link"},
		"pipe": {func(t *testing.T, r *rig) {
			must(t, os.MkdirAll(filepath.Dir(r.path), 0o700))
			must(t, unix.Mkfifo(r.path, 0o600))
		}, "is not a regular file"},
		"folder": {func(t *testing.T, r *rig) { must(t, os.MkdirAll(r.path, 0o700)) }, "is a directory"},
		"lock is a symlink": {func(t *testing.T, r *rig) {
			must(t, os.MkdirAll(filepath.Dir(r.path), 0o700))
			must(t, os.Symlink("/etc/passwd", r.path+".lock"))
		}, "is a symbolic link"},
		"key is a symlink": {func(t *testing.T, r *rig) { must(t, os.Symlink("/etc/hostname", r.o.KeyFile)) }, "is a symbolic link"},
		"no folder": {func(t *testing.T, r *rig) {
			must(t, os.WriteFile(filepath.Dir(r.path), nil, 0o600))
		}, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, settings())
			tc.spoil(t, r)
			log := audit.New(r.o)
			if err := log.Open(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
			if log.Ready() == nil {
				t.Error("a log that does not open is ready")
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestReadOnly: a file system that turned read-only.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	dir := mount(t)
	r := newRig(t, settings())
	r.moveTo(dir)
	r.open()
	r.calls(2)
	r.log.Close()
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	if err := audit.New(r.o).Open(); !errors.Is(err, unix.EROFS) {
		t.Errorf("error is %v", err)
	}
	r.mustVerify() // reading works
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT, ""))
	r.open()
	r.calls(2)
	r.balanced()
}

// TestImmutable takes the right to write from a log that is open.
func TestImmutable(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	r.open()
	r.calls(2)
	f, err := os.Open(r.path)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	const immutable = 0x10
	set := func(flags int) error { return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags) }
	old, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		err = set(old | immutable)
	}
	if err != nil {
		t.Skipf("this file system has no immutable files (%v); the full disk shows the same", err)
	}
	t.Cleanup(func() { _ = set(old) })
	if _, err := r.log.Append(&audit.Record{Event: audit.Login}, false); err == nil {
		t.Skip("files of this file system that are open stay writable; the full disk shows the same")
	}
	refusedThen(t, r, "not permitted", func() { must(t, set(old)) })
	r.balanced()
}

// TestPermission: without the right to its folder the log does not open.
func TestPermission(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to become somebody else")
	}
	r := newRig(t, settings())
	r.open()
	r.log.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const nobody = 65534
	old, _, _ := unix.RawSyscall(unix.SYS_SETFSUID, nobody, 0, 0)
	defer unix.RawSyscall(unix.SYS_SETFSUID, old, 0, 0)
	err := audit.New(r.o).Open()
	if !errors.Is(err, os.ErrPermission) ||
		!strings.Contains(err.Error(), "choose another with data_dir or audit.path") {
		t.Errorf("error is %v", err)
	}
}
