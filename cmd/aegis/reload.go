package main

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"aegis/config"
	"aegis/config/watch"
	"aegis/proxy/server"
)

// reloader loads the configuration anew when a signal or a change of its files asks for
// it. It runs one reload at a time, on one goroutine, since generations have an order.
type reloader struct {
	file    string
	live    *server.Live
	stderr  io.Writer
	service *service

	mu    sync.Mutex
	files []string // what the last loading read, the configuration first
}

// run reloads until ctx ends. The hangup signal also makes certificates be read
// again; since is when the configuration was first loaded.
func (r *reloader) run(ctx context.Context, hangup <-chan os.Signal, since time.Time) {
	// One place is enough: a reload reads the files as they are then, so that changes
	// that come together need one.
	changed := make(chan struct{}, 1)
	w := &watch.Watcher{
		Files: r.watched,
		Changed: func() {
			select {
			case changed <- struct{}{}:
			default: // one is waiting already, and will see this change too
			}
		},
		Since: since,
	}
	var watching sync.WaitGroup
	// It ends with ctx, and must have ended before run returns: it calls back into r.
	watching.Go(func() { w.Run(ctx) })
	defer watching.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			// Certificates have a watcher of their own; after the signal all files must
			// have been read anew.
			r.live.ReloadCertificates()
		case <-changed:
		}
		r.service.reloading(r.live, r.reload)
	}
}

// watched returns the files to watch. The watcher calls it on its own goroutine. It
// returns a copy, since a loading under way changes the list.
func (r *reloader) watched() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.files)
}

// reload makes the next generation. A configuration that cannot be loaded changes
// nothing; /readyz and the log say so.
func (r *reloader) reload() {
	cfg, err := r.load()
	if err != nil {
		r.live.Failed(err)
		return
	}
	// Level and format may have changed, so each generation has its own log.
	log, err := newLog(cfg, r.stderr)
	if err != nil {
		r.live.Failed(err)
		return
	}
	_ = r.live.Reload(cfg, log) // it logs its error, and goes on with the old
}

// load loads the configuration and remembers which files it read, found or not,
// so that a correction of any of them is noticed too.
func (r *reloader) load() (*config.Config, error) {
	dir, err := filepath.Abs(filepath.Dir(r.file))
	if err != nil {
		return nil, err
	}
	files := []string{r.file}
	env := config.OSEnv(dir)
	// Only the loader knows which files the secrets of a configuration name, so it is
	// asked while it reads them.
	read := env.ReadFile
	env.ReadFile = func(path string, limit int64) ([]byte, fs.FileMode, error) {
		files = append(files, path)
		return read(path, limit)
	}
	cfg, err := config.LoadEnv(r.file, env)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		// These are read when the server is built, not by the loader.
		files = append(files, cfg.Gitea.CAFile, cfg.Gitea.Catalog)
		if cfg.Store.Shared() { // a key that another replica uses already must be known here at once
			files = append(files, cfg.Store.KeyFile)
		}
		r.files = slices.DeleteFunc(files, func(f string) bool { return f == "" })
		return cfg, nil
	}
	// Of a file that could not be loaded, the list may be short. What was watched
	// before stays, since one of these files may be what must be corrected.
	for _, f := range files {
		if !slices.Contains(r.files, f) {
			r.files = append(r.files, f)
		}
	}
	return nil, err
}
