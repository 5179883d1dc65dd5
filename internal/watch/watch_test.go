package watch_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"aegis/internal/watch"
)

// watched runs a watcher of files and returns where its notices arrive.
func watched(t *testing.T, since time.Time, files ...string) <-chan struct{} {
	t.Helper()
	changed := make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	first := make(chan struct{}, 100)
	w := &watch.Watcher{
		Files:   func() []string { first <- struct{}{}; return files },
		Changed: func() { changed <- struct{}{} },
		Since:   since,
	}
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	<-first // the first look
	<-first // and the folders are watched next
	go func() {
		for range first {
		}
	}()
	return changed
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func wait(t *testing.T, changed <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(20 * time.Second):
		t.Fatalf("not noticed: %s", what)
	}
}

func TestEveryWayToChangeAFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	write(t, file, "one")
	changed := watched(t, time.Time{}, file)

	write(t, file, "two")
	wait(t, changed, "writing in place")
	write(t, file+".new", "three")
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	wait(t, changed, "replacing")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	wait(t, changed, "removing")
	write(t, file, "four")
	wait(t, changed, "making again")
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
	changed := watched(t, time.Time{}, filepath.Join(dir, "a.yaml"))
	link("v2", "..new")
	if err := os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	wait(t, changed, "the link's new target")
}

func TestSameContentIsNoChange(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write(t, a, "one")
	write(t, b, "one")
	changed := watched(t, time.Time{}, a, b)
	write(t, a, "one")
	write(t, filepath.Join(dir, "stranger"), "x")
	write(t, b, "two") // proves that the notices before it have been handled
	wait(t, changed, "the second file")
	select {
	case <-changed:
		t.Error("a file with the same content, or one that is not watched, counted as changed")
	case <-time.After(time.Second):
	}
}

func TestChangedSinceItWasRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	write(t, file, "one")
	wait(t, watched(t, time.Now().Add(-time.Hour), file), "a file newer than its reading")
}

// TestFolderThatComesLater: a secret's folder may be mounted after the start.
func TestFolderThatComesLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	file := filepath.Join(dir, "a")
	changed := watched(t, time.Time{}, file)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, file, "one")
	wait(t, changed, "a file in a new folder")
}

// TestSlowWriter: a file that is written in steps is told of when it is whole.
func TestSlowWriter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	write(t, file, "")
	changed := watched(t, time.Time{}, file)
	text, last, paused := "", time.Now(), false
	for range 10 {
		text += "line\n"
		write(t, file, text)
		time.Sleep(60 * time.Millisecond)
		// A machine that is busy makes pauses that nobody can tell from the end.
		paused = paused || time.Since(last) > 150*time.Millisecond
		last = time.Now()
		select {
		case <-changed:
			if !paused {
				t.Fatal("told of a part of the file")
			}
		default:
		}
	}
	write(t, file, text+"end\n")
	wait(t, changed, "the whole file")
}
