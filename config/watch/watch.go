// Package watch reports when the content of files changes. The operating system's
// notices make it prompt; looking again from time to time makes it certain where
// there are none (network file systems, some container mounts). What decides is
// the content: a file that is written anew with the same bytes has not changed.
package watch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// every is how often files are looked at without a notice.
	every = 5 * time.Second
	// gathering is how long notices that follow one another are taken as one.
	gathering = 50 * time.Millisecond
	// settle is how long files must stay as they are before a change is told:
	// programs write in several steps, and replace one file after the other. Half
	// a file may be valid and mean something else.
	settle = 200 * time.Millisecond
	// patience is how often a file that keeps changing is waited for.
	patience = 25
)

// Watcher watches files.
type Watcher struct {
	// Files returns the paths to watch. It is asked before each look, so the
	// list may change; a path that joins it later does not count as a change.
	Files func() []string
	// Changed is called from the goroutine of [Watcher.Run] after the content of
	// a file has changed, or a file has come or gone.
	Changed func()
	// Since is when the files were first read: one that was modified after it
	// counts as changed at the first look. Zero: the first look is the reference.
	Since time.Time

	seen map[string]look
	// For tests: other waits than those of the constants; 0 is theirs.
	every, gathering, settle time.Duration
}

// look is what a file was when it was last looked at.
type look struct {
	info   os.FileInfo // nil: it is not there
	digest [sha256.Size]byte
}

// Run watches until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	w.seen = map[string]look{}
	var events chan fsnotify.Event
	var errs chan error
	notices, err := fsnotify.NewWatcher()
	if err == nil { // without notices, looking from time to time has to do
		defer notices.Close()
		events, errs = notices.Events, notices.Errors
	}
	dirs := map[string]bool{}
	tick := time.NewTicker(cmp.Or(w.every, every))
	defer tick.Stop()
	var named map[string]bool
	for since := w.Since; ; since = (time.Time{}) {
		// Before the look: there is a notice of whatever changes after it.
		watchDirs(notices, dirs, w.Files())
		if w.look(named, since) && w.settled(ctx) {
			w.Changed()
		}
		named = map[string]bool{}
		select {
		case <-ctx.Done():
			return
		case <-errs: // such as an overflow of notices
		case e := <-events:
			named[e.Name] = true
			w.gather(ctx, events, named)
		case <-tick.C:
		}
	}
}

// settled waits until the files stay as they are, and reports whether ctx lasts.
func (w *Watcher) settled(ctx context.Context) bool {
	for range patience {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(cmp.Or(w.settle, settle)):
		}
		if !w.look(nil, time.Time{}) {
			break
		}
	}
	return ctx.Err() == nil
}

// gather takes the notices that follow one another closely, and adds the files
// that they name.
func (w *Watcher) gather(ctx context.Context, events <-chan fsnotify.Event, named map[string]bool) {
	quiet := time.After(cmp.Or(w.gathering, gathering))
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			named[e.Name] = true
		case <-quiet:
			return
		}
	}
}

// watchDirs asks for notices of the files' folders: a file that is replaced is
// another file, and its folder is the same.
func watchDirs(notices *fsnotify.Watcher, dirs map[string]bool, files []string) {
	if notices == nil {
		return
	}
	for _, f := range files {
		dir := filepath.Dir(f)
		if !dirs[dir] {
			dirs[dir] = notices.Add(dir) == nil // a folder that is missing is tried again
		}
	}
}

// look compares the files with what they were, and reports a change. Those that
// a notice named are read even when their time and size are as before, as two
// writes may fall into one tick of the file system's clock.
func (w *Watcher) look(named map[string]bool, since time.Time) (changed bool) {
	for _, f := range w.Files() {
		old, known := w.seen[f]
		now := lookAt(f, old, named[filepath.Clean(f)] || !known)
		w.seen[f] = now
		switch {
		case known:
			changed = changed || (now.info == nil) != (old.info == nil) || now.digest != old.digest
		case !since.IsZero():
			changed = changed || now.info != nil && now.info.ModTime().After(since)
		}
	}
	return changed
}

// lookAt returns what the file is now; its content is read when it may differ.
func lookAt(file string, old look, read bool) look {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return look{}
	}
	now := look{info: info, digest: old.digest}
	if !read && old.info != nil && os.SameFile(info, old.info) &&
		info.ModTime().Equal(old.info.ModTime()) && info.Size() == old.info.Size() {
		return now
	}
	f, err := os.Open(file)
	if err != nil {
		return look{}
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return look{}
	}
	h.Sum(now.digest[:0])
	return now
}
