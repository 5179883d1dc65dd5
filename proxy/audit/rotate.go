package audit

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"aegis/proxy/internal/files"
)

// rotated is one file that rotation made.
type rotated struct {
	first uint64 // sequence number that its name states
	path  string
}

// rotatedFiles returns the rotated files of the log at path, oldest first, each
// once: while a file is being compressed, the plain one is taken.
func rotatedFiles(path string) ([]rotated, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	// By the path, not by [logOf]: an extension may look like the number of a rotation, as in
	// audit.log-202612010000.
	ext := filepath.Ext(path)
	prefix := strings.TrimSuffix(filepath.Base(path), ext) + "-"
	var out []rotated
	for _, e := range entries {
		name, ok := strings.CutPrefix(strings.TrimSuffix(e.Name(), ".gz"), prefix)
		digits, isLog := strings.CutSuffix(name, ext)
		first, err := strconv.ParseUint(digits, 10, 64)
		// rotatedName writes twelve digits at least; other names are not of this log.
		if ok && isLog && err == nil && len(digits) >= 12 && e.Type().IsRegular() {
			out = append(out, rotated{first, filepath.Join(filepath.Dir(path), e.Name())})
		}
	}
	slices.SortFunc(out, func(a, b rotated) int {
		return cmp.Or(cmp.Compare(a.first, b.first), len(a.path)-len(b.path)) // the plain one first
	})
	return slices.CompactFunc(out, func(a, b rotated) bool { return a.first == b.first }), nil
}

// pack compresses, in the background, the rotated files that are not compressed yet, those of
// an earlier run too. One that cannot be stays as it is, until the next start or rotation.
func (w *writer) pack() {
	w.packers.Go(func() {
		w.packing.Lock() // a rotation may come before the last one's file is packed
		defer w.packing.Unlock()
		files, err := rotatedFiles(w.o.Path)
		if err != nil {
			return // the folder was readable a moment ago; the next rotation sees
		}
		for _, f := range files {
			if strings.HasSuffix(f.path, ".gz") {
				continue
			}
			if err := packFile(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) { // removed by retention
				w.o.Log.Warn().Err(err).Str("file", filepath.Base(f.path)).
					Msg("a rotated audit file was not compressed")
			}
		}
	})
}

// packFile replaces a file by its compressed form, which has the same name with
// .gz, and is complete before the plain one goes.
func packFile(name string) error {
	in, err := openRegular(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	// A file of this name is what a crash left, and is written over. No reader takes it for a
	// part of the log, since it does not end in .gz.
	tmp := name + ".gz.tmp"
	out, err := openRegular(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(out)
	_, err = io.Copy(z, in)
	err = errors.Join(err, z.Close())
	if err == nil {
		// Durable before it gets its name, which a power cut must not leave on half a file.
		err = out.Sync()
	}
	err = errors.Join(err, out.Close())
	if err == nil {
		err = os.Rename(tmp, name+".gz")
	}
	if err != nil {
		_ = os.Remove(tmp) // the earlier error is returned
		return err
	}
	if err := files.SyncFolder(filepath.Dir(name)); err != nil {
		return err
	}
	// With both names there, rotatedFiles takes the plain one: a crash here loses nothing.
	return os.Remove(name)
}

// prune removes rotated files whose newest record is older than keep. The log
// says so first, so that the missing beginning is explained.
func (w *writer) prune(now time.Time) error {
	keep := time.Duration(w.o.Config.Keep) * 24 * time.Hour
	if keep == 0 { // nothing is ever removed
		return nil
	}
	files, err := rotatedFiles(w.store.path)
	if err != nil {
		return nil // seen by the next write, if it matters
	}
	var old []rotated
	var next head
	for i, f := range files {
		// The file after it begins where this one ends. The newest one stays, as
		// nothing but the log itself comes after it.
		if i+1 == len(files) || !strings.HasSuffix(f.path, ".gz") {
			break
		}
		// By the time of the record, not of the file, which a copy or a restore changes.
		h, err := firstHead(files[i+1].path)
		if err != nil || now.Sub(h.time) < keep {
			break
		}
		old, next = append(old, f), h
	}
	if len(old) == 0 {
		return nil
	}
	d := &Detail{
		Reason: "retention (audit.keep)", First: old[0].first, Last: next.seq - 1, LastHash: next.prev.String(),
	}
	// On record, durably, before the first file goes.
	if err := w.commit([]*entry{ownEntry(&Record{Event: LogPruned, Detail: d}, now)}, false); err != nil {
		return err
	}
	if err := w.sync(); err != nil {
		return err
	}
	// One that cannot be removed is found again at the next rotation, and put on record again.
	for _, f := range old {
		if err := os.Remove(f.path); err != nil {
			w.o.Log.Warn().Err(err).Msg("an old audit file was not removed")
		}
	}
	return nil
}

// ownEntry is a record of the log about itself. One that cannot be encoded makes
// [writer.commit] fail.
func ownEntry(r *Record, at time.Time) *entry {
	body, err := encode(r)
	return &entry{body: body, out: body, err: err, at: at, keep: true, done: make(chan struct{})}
}

// openLog opens a log file for reading, compressed or not. Links are followed: this is for
// commands, which read with the rights of the person who gives the name.
func openLog(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(path, ".gz") {
		return f, nil
	}
	z, err := gzip.NewReader(bufio.NewReaderSize(f, 64<<10))
	if err != nil {
		_ = f.Close() // the earlier error is returned
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &packed{z, f}, nil
}

// packed is a compressed file that is read.
type packed struct {
	*gzip.Reader
	file *os.File
}

// Close closes the file too, which the library leaves open.
func (p *packed) Close() error { return errors.Join(p.Reader.Close(), p.file.Close()) }

// firstHead reads the first record of a file.
func firstHead(path string) (head, error) {
	in, err := openRotated(path)
	if err != nil {
		return head{}, err
	}
	defer in.Close()
	line, err := newLines(in).next()
	if err != nil {
		return head{}, err
	}
	return parseHead(line)
}
