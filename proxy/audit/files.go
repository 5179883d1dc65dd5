package audit

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Located are the files of a log and what lies beside them.
type Located struct {
	// Sources are in the order of the chain.
	Sources []Source
	// Live is the file that is written to; "" when it is not among the sources.
	Live string
	// Keys are verifier keys that lie beside the files, KeyFile where: the
	// names of the files, separated by commas.
	Keys    []string
	KeyFile string
	// Checkpoints are signed notes that lie beside the files.
	Checkpoints []string
}

// rotationMark is what rotatedName adds: at least twelve digits, so that a log named
// audit-2026.jsonl is no rotated one.
var rotationMark = regexp.MustCompile(`(?s)^(.*)-([0-9]{12,})(\.[^./]*)?$`)

// logOf returns the log that a file belongs to. first is the sequence number that the name
// of a rotated file states, 0 for the file that is written to.
func logOf(file string) (log string, first uint64) {
	plain := strings.TrimSuffix(file, ".gz")
	if m := rotationMark.FindStringSubmatch(plain); m != nil {
		if first, err := strconv.ParseUint(m[2], 10, 64); err == nil && first != 0 {
			return m[1] + m[3], first
		}
	}
	return plain, 0
}

// part is what was found of one log. Several may be of the same log, as when a shell has
// expanded a pattern to its files.
type part struct {
	log   string
	files []string
	// whole is set when all of the log is meant, its newest file at least.
	whole bool
	lost  lost
}

// Locate finds the files of a log: those that are named, and all files of the
// log for a name that is a folder. whole adds the rotated files of each name.
// Files that should be there and are not become sources that [Verify] reports.
func Locate(names []string, whole bool) (*Located, error) {
	var parts []part
	for _, name := range names {
		found, err := expand(name, whole)
		if err != nil {
			return nil, err
		}
		parts = append(parts, found...)
	}
	out := &Located{}
	if err := out.order(parts); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	// The parts that are whole come first: they say what must lie beside a log.
	slices.SortStableFunc(parts, func(a, b part) int {
		if a.whole == b.whole {
			return 0
		}
		return map[bool]int{true: -1, false: 1}[a.whole]
	})
	for _, p := range parts {
		if p.lost != present {
			out.lack(p.log, p.lost)
		}
		if seen[p.log] {
			continue
		}
		seen[p.log] = true
		if err := out.beside(p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// order adds the files that are there, in the order of the chain.
func (l *Located) order(parts []part) error {
	type ordered struct {
		path  string
		first uint64
	}
	var list []ordered
	for _, p := range parts {
		for _, f := range p.files {
			h, err := firstHead(f)
			// By the first record and not by the name, which anyone who moves files can change.
			first := h.seq
			switch {
			case errors.Is(err, io.EOF):
				first = 1<<64 - 1 // an empty file is the newest
			// What opens and cannot be parsed is for Verify, which says where.
			case err != nil && errors.As(err, new(*fs.PathError)):
				return err
			}
			list = append(list, ordered{f, first})
			if _, rotated := logOf(f); rotated == 0 {
				l.Live = f
			}
		}
	}
	slices.SortStableFunc(list, func(a, b ordered) int { return cmp.Compare(a.first, b.first) })
	for _, f := range list {
		// Opened one at a time, when it is read: a log may have more files than a process may open.
		open := func() (io.ReadCloser, error) { return openRotated(f.path) }
		l.Sources = append(l.Sources, Source{Name: f.path, Open: open})
	}
	return nil
}

// expand returns what there is of the logs that a name stands for.
func expand(name string, whole bool) ([]part, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		logs, err := logsIn(name)
		if err != nil {
			return nil, err
		}
		var parts []part
		for _, log := range logs {
			p, err := wholeLog(log)
			if err != nil {
				return nil, err
			}
			parts = append(parts, p)
		}
		return parts, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case whole: // also for a name without a file, whose rotated files may be there
		p, err := wholeLog(name)
		return []part{p}, err
	}
	log, rotated := logOf(name)
	switch {
	case err == nil:
		return []part{{log: log, files: []string{name}, whole: rotated == 0}}, nil
	case rotated == 0 && besideExists(name): // it was there; Verify says what is missing
		return []part{{log: name, whole: true, lost: lostLog}}, nil
	}
	return nil, err
}

// logsIn returns the logs in a folder: what a key or a checkpoint says is one
// and, without those, what looks like one.
func logsIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var known, likely []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		log, rotated := logOf(path)
		switch ext := filepath.Ext(path); {
		case ext == filepath.Ext(publicPath("")), ext == filepath.Ext(notePath("")):
			known = append(known, strings.TrimSuffix(path, ext))
		case !e.IsDir() && (rotated != 0 || ext == ".jsonl"):
			likely = append(likely, log)
		}
	}
	// A key or a checkpoint is proof of a log, also when its files are gone; any other
	// file may have nothing to do with one.
	if len(known) == 0 {
		known = likely
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("%s has no audit log in it: no log, no public key (.pub) and no checkpoint; "+
			"if it had one, all of it was removed; otherwise name the log's files", dir)
	}
	slices.Sort(known)
	return slices.Compact(known), nil
}

// wholeLog returns a log with its rotated files.
func wholeLog(log string) (part, error) {
	p := part{log: log, whole: true}
	older, err := rotatedFiles(log)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, err
	}
	for _, r := range older {
		p.files = append(p.files, r.path)
	}
	switch _, err := os.Stat(log); {
	case err == nil:
		p.files = append(p.files, log)
	case !errors.Is(err, fs.ErrNotExist):
		return p, err
	case len(older) > 0: // a rotation makes the new file at once
		p.lost = lostLog
	case besideExists(log):
		p.lost = lostAll
	default:
		return p, fmt.Errorf("there is no audit log at %s, and no key or checkpoint beside it: "+
			"nothing was recorded yet, or all of it was removed: %w", log, fs.ErrNotExist)
	}
	return p, nil
}

// besideExists reports whether a key or a checkpoint says that there is a log.
func besideExists(log string) bool {
	for _, path := range []string{publicPath(log), notePath(log)} {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	return false
}

// beside reads the keys and the checkpoint of a log. Either may be missing, which is no error
// here: the log may have been copied without them, and keys may be given by hand.
func (l *Located) beside(p part) error {
	keys, err := ReadKeys(publicPath(p.log))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	signed, noteErr := readSmall(notePath(p.log), maxNote)
	if noteErr != nil && !errors.Is(noteErr, fs.ErrNotExist) {
		return noteErr
	}
	if err == nil {
		l.Keys = append(l.Keys, keys...)
		l.KeyFile = strings.TrimPrefix(l.KeyFile+", "+publicPath(p.log), ", ")
	}
	if noteErr == nil {
		l.Checkpoints = append(l.Checkpoints, signed)
	}
	switch {
	// Aegis writes both at its first start, so one without the other was removed.
	case err != nil && noteErr == nil:
		l.lack(publicPath(p.log), lostKey)
	case err == nil && noteErr != nil && p.whole:
		l.lack(notePath(p.log), lostCheckpoint)
	}
	return nil
}

// lack adds a file that is not there. It comes last among the sources, so that what is there
// is verified first, and it cannot be shown.
func (l *Located) lack(file string, how lost) {
	l.Sources = append(l.Sources, Source{Name: file, lost: how, Open: func() (io.ReadCloser, error) {
		return nil, fmt.Errorf("%s is missing; \"aegis audit verify\" says more: %w", file, fs.ErrNotExist)
	}})
}

// ReadKeys reads verifier keys, one a line.
func ReadKeys(file string) ([]string, error) {
	text, err := readSmall(file, maxKeyFile)
	if err != nil {
		return nil, err
	}
	// A private key in the hands of a verifier would be one leak more.
	keys := strings.Fields(text)
	if slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, "PRIVATE+KEY+") }) {
		return nil, fmt.Errorf("%s holds the private key; verification takes the public one, the log's .pub file", file)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s holds no key", file)
	}
	return keys, nil
}
