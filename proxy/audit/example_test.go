package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy/audit"
)

// A log is written, and then verified by the name of its folder, where its public key and
// its newest checkpoint are as well.
func ExampleVerifyFiles() {
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path, key := filepath.Join(dir, "log", "audit.jsonl"), filepath.Join(dir, "audit.key")
	cfg := config.Audit{
		CheckpointRecords: 100, CheckpointInterval: config.Duration(time.Minute),
		RotateSize: 1 << 20, RotateAge: config.Duration(time.Hour),
	}
	log := audit.New(audit.Options{Path: path, KeyFile: key, Config: cfg, Log: zerolog.Nop()})
	if err := log.Open(); err != nil {
		fmt.Println(err)
		return
	}
	log.Event(audit.Login, nil, audit.Detail{Reason: "example"})
	log.Close()
	report, _, err := audit.VerifyFiles([]string{filepath.Dir(path)}, audit.FilesOptions{})
	// The start, its checkpoint, the login, the stop, the last checkpoint.
	fmt.Println(report.Records, report.Problem, err)
	// Output: 5 <nil> <nil>
}
