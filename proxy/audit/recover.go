package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"aegis/proxy/internal/files"
)

// openWriter opens the log, repairs what a crash left, and writes the record of
// the start.
func openWriter(o *Options, emit func(written []byte)) (*writer, error) {
	s, err := openStore(o.Path)
	if err != nil {
		return nil, err
	}
	w := &writer{o: o, store: s, emit: emit}
	if err := w.begin(); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// begin reads the log, sets aside what a crash left, and compares what it found with
// the checkpoint. No record is written before all of that succeeded; then those about
// it are one write with the start.
func (w *writer) begin() error {
	var err error
	if w.signer, err = loadSigner(w.o.KeyFile); err != nil {
		return err
	}
	found, err := w.scan()
	if err != nil {
		return err
	}
	replaced, err := w.publish()
	if err != nil {
		return err
	}
	torn, err := w.setAside(found)
	if err != nil {
		return err
	}
	if err := w.continueFrom(found); err != nil {
		return err
	}
	about, err := w.compare()
	if err != nil {
		return err
	}
	// The distance between checkpoints counts from the start of this run.
	w.pinned = w.last.seq
	start := Detail{Version: w.o.Version, Replica: w.o.Replica, Key: w.signer.public}
	now := w.o.Now()
	var batch []*entry
	for _, r := range slices.Concat(replaced, torn, about, []*Record{{Event: Start, Detail: &start}}) {
		batch = append(batch, ownEntry(r, now))
	}
	// With a checkpoint, which covers all that earlier runs wrote.
	if err := w.commit(batch, true); err != nil {
		return fmt.Errorf("the first record cannot be written: %w", err)
	}
	w.pack()
	return w.prune(now)
}

// found is the outcome of a scan of the log's file.
type found struct {
	last  position // of the last valid record; seq 0 without one
	first uint64   // sequence number of the first valid record, which names the file at rotation
	born  time.Time
	end   int64 // offset behind the last valid record
	size  int64
}

// scan reads the file for its last valid record. What is wrong before that is
// for verify to name. The file is the one that is locked and written to: its name may
// lead to another one by now.
func (w *writer) scan() (found, error) {
	f := w.store.f
	info, err := f.Stat()
	if err != nil {
		return found{}, err
	}
	out, err := scanLines(newLines(io.NewSectionReader(f, 0, info.Size())))
	if err != nil {
		return found{}, fmt.Errorf("%s cannot be read: %w", w.o.Path, err)
	}
	out.size = info.Size()
	return out, nil
}

// scanLines accepts any line whose hash fits, whatever is before it: a gap is for
// verify to report, and the chain must go on from the newest record all the same.
func scanLines(in *lines) (found, error) {
	var out found
	for {
		h, err := in.record()
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return out, err
		case h.sum != h.hash:
			continue
		}
		if out.first == 0 {
			out.first, out.born = h.seq, h.time
		}
		out.last, out.end = position{h.seq, h.hash}, in.end
	}
}

// setAside moves what follows the last valid record, which a crash in the
// middle of a write leaves, to a file of its own. It returns the record about
// it, nil when there is nothing.
func (w *writer) setAside(f found) ([]*Record, error) {
	w.store.size = f.end
	if f.size == f.end {
		return nil, nil
	}
	plain := strings.TrimSuffix(w.o.Path, filepath.Ext(w.o.Path))
	name := fmt.Sprintf("%s.torn-%012d-%s", plain, f.last.seq+1, w.stamp())
	// Never over an earlier one, which is evidence, too.
	out, err := openRegular(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	// The digest is on record, so that the copy can be shown to be what was cut off.
	_, err = io.Copy(io.MultiWriter(out, sum), io.NewSectionReader(w.store.f, f.end, f.size-f.end))
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return nil, fmt.Errorf("the torn end of the log cannot be kept aside: %w", err)
	}
	if err := files.SyncFolder(filepath.Dir(name)); err != nil {
		return nil, err
	}
	// Only now that the copy is durable.
	if err := w.store.f.Truncate(f.end); err != nil {
		return nil, err
	}
	w.o.Log.Warn().Str("file", name).Int64("bytes", f.size-f.end).
		Msg("the audit log ended in a torn record, which was kept aside")
	return []*Record{{Event: LogRecovered, Detail: &Detail{
		Reason: "the log ended in something that is no record, as a crash leaves it", Bytes: f.size - f.end,
		SHA256: hex.EncodeToString(sum.Sum(nil)), File: filepath.Base(name),
	}}}, nil
}

// stamp is the time in the names of files that are kept aside, so that two of one record differ.
func (w *writer) stamp() string { return w.o.Now().UTC().Format("20060102T150405.000") }

// continueFrom sets the place where the chain goes on: after the last record of
// the file, or of the newest rotated one when the file has none.
func (w *writer) continueFrom(f found) (err error) {
	w.store.first, w.store.born = f.first, f.born
	// A log that was just rotated, or whose file was removed while nothing ran.
	if w.last = f.last; f.last.seq == 0 {
		w.last, err = lastRotated(w.o.Path)
	}
	return err
}

// lastRotated returns the last record of the newest rotated file, or the zero
// position when there is none. A crash between the two steps of a rotation leaves a log
// whose newest record is there.
func lastRotated(path string) (position, error) {
	files, err := rotatedFiles(path)
	if err != nil || len(files) == 0 {
		return position{}, err
	}
	newest := files[len(files)-1].path
	in, err := openRotated(newest)
	if err != nil {
		return position{}, err
	}
	defer in.Close()
	end, err := scanLines(newLines(in))
	if err != nil {
		return position{}, fmt.Errorf("%s cannot be read: %w", newest, err)
	}
	return end.last, nil
}
