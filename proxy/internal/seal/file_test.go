//go:build unix

package seal_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"aegis/proxy/internal/seal"
)

func open(t *testing.T, path string) *seal.Ring {
	t.Helper()
	r, err := seal.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func TestKeyFileIsMadeOnceForItsOwner(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "dir", "store.keys")
	s := sealed(t, open(t, path), "c", "kept")
	if got, stale, err := open(t, path).Open("c", s); err != nil || stale || string(got) != "kept" {
		t.Errorf("opened again: %q, %v, %v", got, stale, err)
	}
	if m := mode(t, path); m != 0o600 {
		t.Errorf("file mode %o", m)
	}
	if m := mode(t, filepath.Dir(path)); m != 0o700 {
		t.Errorf("folder mode %o", m)
	}
	onlyFile(t, path)
}

// onlyFile checks that nothing is left beside the key file.
func onlyFile(t *testing.T, path string) {
	t.Helper()
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the key file: %v, %v", left, err)
	}
}

func TestStartersAtOnceShareOneKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.keys")
	ids := make([]string, 16)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			r, err := seal.OpenFile(path)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = r.KeyIDs()[0]
		})
	}
	wg.Wait()
	if len(slices.Compact(ids)) != 1 {
		t.Errorf("keys: %v", ids)
	}
	onlyFile(t, path)
}

func TestRotateKeepsOldKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.keys")
	first := open(t, path)
	s := sealed(t, first, "c", "kept")
	id, err := seal.Rotate(path)
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, path)
	if want := []string{id, first.KeyIDs()[0]}; !slices.Equal(r.KeyIDs(), want) || id == want[1] {
		t.Errorf("keys %v, want %v", r.KeyIDs(), want)
	}
	if got, stale, err := r.Open("c", s); err != nil || !stale || string(got) != "kept" {
		t.Errorf("%q, %v, %v", got, stale, err)
	}
	if m := mode(t, path); m != 0o600 {
		t.Errorf("file mode %o", m)
	}
	onlyFile(t, path)
}

func TestRotationsAtOnceLoseNoKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.keys")
	want := open(t, path).KeyIDs()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			id, err := seal.Rotate(path)
			mu.Lock()
			defer mu.Unlock()
			want = append(want, id)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := open(t, path).KeyIDs()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("keys %v, want %v", got, want)
	}
	onlyFile(t, path)
}

func TestRotateNeedsAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.keys")
	if _, err := seal.Rotate(path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "first start") {
		t.Errorf("%v", err)
	}
}

func TestUnfitKeyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := keyA + "\n"
	write := func(name, text string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(write("target", good, 0o600), link); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "nothing"), dangling); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		write("world", good, 0o604):                         "chmod 600",
		write("group", good, 0o640):                         "chmod 600",
		write("writable", good, 0o620):                      "chmod 600",
		write("empty", "", 0o600):                           "has no key",
		write("comments", "# nothing\n\n", 0o600):           "has no key",
		write("short", good+"tooshort\n", 0o600):            "short:2: not a key",
		write("spaces", keyA+" x\n", 0o600):                 "spaces:1: not a key",
		write("binary", keyA+"\x00\n", 0o600):               "not a key",
		write("twice", good+good, 0o600):                    "key 2 is there twice",
		write("huge", strings.Repeat(good, 4000), 0o600):    "larger than",
		write("many", strings.Repeat("x", 5000)+"\n", 0600): "not a key",
		link:     "symbolic link",
		dangling: "symbolic link",
		pipe:     "not a regular file",
		dir:      "not a regular file",
	} {
		for name, err := range map[string]error{"open": openErr(path), "rotate": rotateErr(path)} {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), keyA) || strings.Contains(err.Error(), "tooshort") {
				t.Errorf("%s %s: %v; want %q", name, filepath.Base(path), err, want)
			}
		}
	}
}

func openErr(path string) error {
	_, err := seal.OpenFile(path)
	return err
}

func rotateErr(path string) error {
	_, err := seal.Rotate(path)
	return err
}

func TestLinesAreKeysOfTheConfiguration(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.keys")
	if err := os.WriteFile(path, []byte("# mine\r\n\r\n"+keyA+"\r\n"+keyB), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := open(t, path).KeyIDs(), ring(t, keyA, keyB).KeyIDs(); !slices.Equal(got, want) {
		t.Errorf("keys %v, want %v", got, want)
	}
}

func FuzzKeyFile(f *testing.F) {
	f.Add([]byte(keyA + "\n# x\n" + keyB))
	f.Add([]byte("\n\r\n#"))
	f.Add([]byte(keyA + "\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := seal.Parse(text)
		if (r == nil) != (err != nil) {
			t.Fatalf("%v, %v", r, err)
		}
		if err != nil && strings.Contains(err.Error(), keyA) {
			t.Error("the error quotes a key")
		}
		if err == nil && len(r.KeyIDs()) > strings.Count(string(text), "\n")+1 {
			t.Error("more keys than lines")
		}
	})
}
