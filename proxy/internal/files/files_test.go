//go:build unix

package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"aegis/proxy/internal/files"
)

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// left returns the names in a folder.
func left(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestOpenRegularFollowsAndWaitsForNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("file"), "text", 0o600)
	for _, err := range []error{os.Symlink(at("file"), at("link")), os.Symlink(at("nothing"), at("dangling")), unix.Mkfifo(at("pipe"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]error{
		at("file"): nil, at("link"): files.ErrLink, at("dangling"): files.ErrLink, at("pipe"): files.ErrIrregular, dir: files.ErrIrregular, at("none"): fs.ErrNotExist,
	} {
		f, err := files.OpenRegular(path, os.O_RDONLY, 0)
		if !errors.Is(err, want) || (f == nil) != (want != nil) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
		_, err = files.ReadSmall(path, 4, nil)
		if !errors.Is(err, want) {
			t.Errorf("read %s: %v, want %v", path, err, want)
		}
	}
	if _, err := files.ReadSmall(at("file"), 3, nil); err == nil {
		t.Error("a file over the bound is read")
	}
	refused := errors.New("refused")
	if _, err := files.ReadSmall(at("file"), 4, func(*os.File) error { return refused }); !errors.Is(err, refused) {
		t.Error(err)
	}
}

// TestReplace: what a crash or somebody else left beside the file is neither followed nor
// written to, as others may have it open.
func TestReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, theirs := filepath.Join(dir, "file"), filepath.Join(t.TempDir(), "theirs")
	write(t, theirs, "theirs", 0o666)
	for name, beside := range map[string]func() error{
		"nothing": func() error { return nil },
		"a link":  func() error { return os.Symlink(theirs, path+".tmp") },
		"a file":  func() error { return os.Link(theirs, path+".tmp") },
	} {
		if err := beside(); err != nil {
			t.Fatal(err)
		}
		if err := files.Replace(path, []byte(name), 0o600); err != nil {
			t.Fatal(name, err)
		}
		text, err := os.ReadFile(path)
		info, _ := os.Stat(path)
		if err != nil || string(text) != name || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %q, %v, %v", name, text, info.Mode(), err)
		}
		if names := left(t, dir); len(names) != 1 {
			t.Errorf("%s: %v", name, names)
		}
	}
	if text, _ := os.ReadFile(theirs); string(text) != "theirs" {
		t.Errorf("another file was written to: %s", text)
	}
}

func TestCreateReplacesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := files.Create(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := files.Create(path, []byte("second")); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	text, err := files.ReadSmall(path, 100, nil)
	if names := left(t, filepath.Dir(path)); err != nil || string(text) != "first" || len(names) != 1 {
		t.Errorf("%q, %v, %v", text, err, names)
	}
}

func TestLocks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	f, err := files.TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := files.TryLock(path); !errors.Is(err, files.ErrLocked) {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	unlock, err := files.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := files.TryLock(path); !errors.Is(err, files.ErrLocked) {
		t.Error(err)
	}
	unlock()
	again, err := files.TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}
