package watch_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"aegis/config/watch"
)

const (
	// patience is how long a test waits for what must happen.
	patience = 2 * time.Minute
	// often is how often files are looked at without a notice.
	often = 10 * time.Millisecond
)

// run runs a watcher until the test ends.
func run(t *testing.T, w *watch.Watcher, interval time.Duration) {
	t.Helper()
	w.Hurry(interval)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// watched is a watcher of files.
type watched struct {
	t *testing.T
	// changed has what was in the last file at each notice.
	changed chan string
	// asked counts how often the watcher has asked for the files: twice for each look.
	asked atomic.Int64
}

func watching(t *testing.T, since time.Time, interval time.Duration, files ...string) *watched {
	t.Helper()
	w := &watched{t: t, changed: make(chan string, 1000)}
	run(t, &watch.Watcher{
		Files: func() []string { w.asked.Add(1); return files },
		Changed: func() {
			text, err := os.ReadFile(files[len(files)-1])
			if err != nil {
				text = []byte("gone")
			}
			w.changed <- string(text)
		},
		Since: since,
	}, interval)
	return w
}

// looks waits until the watcher has looked some more times, from the beginning to the end.
func (w *watched) looks(more int64) {
	w.t.Helper()
	for began, end := w.asked.Load(), time.Now().Add(patience); w.asked.Load() < began+2*more+2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatal("the files are not looked at")
		}
	}
}

// wait waits for the notice of what is in the file.
func (w *watched) wait(want, what string) {
	w.t.Helper()
	for end := time.After(patience); ; {
		select {
		case got := <-w.changed:
			if got == want {
				return
			}
		case <-end:
			w.t.Fatalf("not noticed: %s", what)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestEveryWayToChangeAFile: by the notices of the operating system alone.
func TestEveryWayToChangeAFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	write(t, file, "one")
	w := watching(t, time.Time{}, time.Hour, file)
	// Nothing tells when the first look is over; what is written after it is noticed.
	for n, end := 0, time.Now().Add(patience); len(w.changed) == 0; n++ {
		if time.Now().After(end) {
			t.Fatal("not noticed: the first changes")
		}
		write(t, file, fmt.Sprint("before ", n))
		time.Sleep(20 * time.Millisecond)
	}

	write(t, file, "two")
	w.wait("two", "writing in place")
	write(t, file+".new", "three")
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	w.wait("three", "replacing")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	w.wait("gone", "removing")
	write(t, file, "four")
	w.wait("four", "making again")
}

// TestLinkedFolder: container platforms swap a link to a folder of the files.
func TestLinkedFolder(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"v1", "v2"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, d, "a.yaml"), d)
	}
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("v1", "..data")
	link(filepath.Join("..data", "a.yaml"), "a.yaml")
	w := watching(t, time.Time{}, often, filepath.Join(dir, "a.yaml"))
	w.looks(1)
	link("v2", "..new")
	if err := os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	w.wait("v2", "the link's new target")
}

func TestSameContentIsNoChange(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write(t, a, "one")
	write(t, b, "one")
	w := watching(t, time.Time{}, often, a, b)
	w.looks(1)
	// Written in place it would be empty for a moment.
	write(t, a+".new", "one")
	if err := os.Rename(a+".new", a); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "stranger"), "x")
	w.looks(5) // one of them would have been followed by a notice
	if len(w.changed) > 0 {
		t.Error("a file with the same content, or one that is not watched, counted as changed")
	}
	write(t, b, "two")
	w.wait("two", "the second file")
}

func TestChangedSinceItWasRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	write(t, file, "one")
	watching(t, time.Now().Add(-time.Hour), time.Hour, file).wait("one", "a file newer than its reading")
}

// TestFolderThatComesLater: a secret's folder may be mounted after the start.
func TestFolderThatComesLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	file := filepath.Join(dir, "a")
	w := watching(t, time.Time{}, often, file)
	w.looks(1)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, file, "one")
	w.wait("one", "a file in a new folder")
}

// TestSlowWriter: a file that is written in steps is told of when it is whole, and no
// step goes unnoticed, whatever the watcher is just doing.
func TestSlowWriter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	write(t, file, "")
	var steps atomic.Int64
	told := make(chan int64, 100)
	run(t, &watch.Watcher{
		// Each look finds more than the one before it, however fast the machine is.
		Files: func() []string {
			if n := steps.Load(); n < 20 {
				if err := os.WriteFile(file, bytes.Repeat([]byte("line\n"), int(n+1)), 0o600); err != nil {
					t.Error(err)
				}
				steps.Add(1)
			}
			return []string{file}
		},
		Changed: func() { told <- steps.Load() },
	}, time.Hour)
	select {
	case n := <-told:
		if n != 20 {
			t.Errorf("told of a part of the file, after %d of 20 steps", n)
		}
	case <-time.After(patience):
		t.Fatal("not noticed: the whole file")
	}
}
