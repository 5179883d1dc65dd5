package watch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"aegis/config/watch"
)

// A file that was written after Since has changed when it is first looked at.
func ExampleWatcher() {
	dir, err := os.MkdirTemp("", "watch-")
	if err != nil {
		fmt.Println(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "aegis.yaml")
	since := time.Now().Add(-time.Minute)
	if err := os.WriteFile(file, []byte("log: {level: debug}\n"), 0o600); err != nil {
		fmt.Println(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &watch.Watcher{
		Files:   func() []string { return []string{file} },
		Changed: func() { fmt.Println("changed"); cancel() },
		Since:   since,
	}
	w.Run(ctx)
	// Output: changed
}
