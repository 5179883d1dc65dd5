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

// reloader loads the configuration anew when a signal or a change of its files
// asks for it.
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
	watching.Go(func() { w.Run(ctx) })
	defer watching.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			r.live.ReloadCertificates()
		case <-changed:
		}
		r.service.reloading(r.live, r.reload)
	}
}

// watched returns the files to watch. The watcher calls it on its own goroutine.
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
	read := env.ReadFile
	env.ReadFile = func(path string, limit int64) ([]byte, fs.FileMode, error) {
		files = append(files, path)
		return read(path, limit)
	}
	cfg, err := config.LoadEnv(r.file, env)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		files = append(files, cfg.Gitea.CAFile, cfg.Gitea.Catalog)
		if cfg.Store.Shared() { // a key that another replica uses already must be known here at once
			files = append(files, cfg.Store.KeyFile)
		}
		r.files = slices.DeleteFunc(files, func(f string) bool { return f == "" })
		return cfg, nil
	}
	for _, f := range files {
		if !slices.Contains(r.files, f) {
			r.files = append(r.files, f)
		}
	}
	return nil, err
}
