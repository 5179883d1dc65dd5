package audit

import (
	"cmp"
	"fmt"
	"path/filepath"
	"time"

	"aegis/config"
)

// Paths returns where a configuration puts the log and its private key; dataDir is
// its data_dir.
func Paths(cfg config.Audit, dataDir string) (path, key string) {
	return cmp.Or(cfg.Path, filepath.Join(dataDir, "audit", "audit.jsonl")),
		cmp.Or(cfg.KeyFile, filepath.Join(dataDir, "audit.key"))
}

// FilesOptions say which files [VerifyFiles] reads besides the log.
type FilesOptions struct {
	// Whole takes a name for the log itself, with all of its rotated files; without
	// it only a folder stands for more than one file. See [Locate].
	Whole bool
	// KeyFiles hold verifier keys; empty: the one beside the log.
	KeyFiles []string
	// NoteFiles hold signed checkpoints that were kept elsewhere.
	NoteFiles []string
	// Part accepts files that are not the beginning of the log.
	Part bool
}

// VerifyFiles verifies a log by the names of its files. It also returns where the key
// came from, "" for nowhere. What a writing Aegis makes look torn is read again.
func VerifyFiles(names []string, o FilesOptions) (report *Report, keys string, err error) {
	// A last line without its end is what a reader sees while Aegis writes.
	for range 3 { // each time from the beginning: files may have been rotated meanwhile
		at, err := Locate(names, o.Whole)
		if err != nil {
			return nil, "", err
		}
		v := VerifyOptions{Keys: at.Keys, Checkpoints: at.Checkpoints, Part: o.Part}
		keys = at.KeyFile
		if len(o.KeyFiles) > 0 {
			v.Keys, keys = nil, fmt.Sprint(o.KeyFiles)
		}
		for _, f := range o.KeyFiles {
			list, err := ReadKeys(f)
			if err != nil {
				return nil, "", err
			}
			v.Keys = append(v.Keys, list...)
		}
		for _, f := range o.NoteFiles {
			signed, err := readSmall(f, maxNote)
			if err != nil {
				return nil, "", err
			}
			v.Checkpoints = append(v.Checkpoints, signed)
		}
		if report, err = Verify(at.Sources, v); err != nil || !report.Torn {
			return report, keys, err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return report, keys, nil
}

// Logs returns the logs that names stand for, each to be verified by itself: folders
// that each hold a log with a key of its own, as replicas write them, are one log
// each; everything else is files of one log.
func Logs(names []string) [][]string {
	own := 0
	for _, name := range names {
		// By the keys, as the files of one log may lie in several folders, but not its key.
		if keys, err := filepath.Glob(filepath.Join(name, "*.pub")); err == nil && len(keys) > 0 {
			own++
		}
	}
	if own < 2 || own != len(names) {
		return [][]string{names}
	}
	var logs [][]string
	for _, name := range names {
		logs = append(logs, []string{name})
	}
	return logs
}

// MergeFiles gives p the records of several logs that f selects, in the order of
// time; each name is a log. It returns how many lines were no records.
func MergeFiles(names []string, f Filter, p *Printer) (skipped int, err error) {
	var chains []Chain
	for _, name := range names {
		at, err := Locate([]string{name}, false)
		if err != nil {
			return 0, err
		}
		chains = append(chains, Chain{Name: name, Sources: at.Sources})
	}
	return Merge(chains, f, p)
}
