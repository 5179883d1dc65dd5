package audit

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

// followEvery is the time between two looks at a log that is followed: notices of changes do
// not come for files on a network, and for some volumes of containers.
const followEvery = 200 * time.Millisecond

// Follow prints what the filter selects of the records that are written to the
// log at name from now on, across rotations, until ctx ends. Where records are
// missing it says so: as a JSON object with the member "missing" that has first
// and last, or as a line of text.
func Follow(ctx context.Context, name string, f Filter, p *Printer) error {
	fo, err := newFollower(name, f, p)
	if err != nil {
		return err
	}
	return fo.run(ctx, followEvery)
}

// newFollower returns a follower that has seen all that is in the log now.
func newFollower(name string, f Filter, p *Printer) (*follower, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	fo := &follower{name: name, filter: f, printer: p, file: file}
	if err := fo.skip(); err != nil {
		_ = file.Close() // only read
		return nil, err
	}
	return fo, nil
}

// run looks again and again, until ctx ends, and closes the file.
func (f *follower) run(ctx context.Context, every time.Duration) error {
	defer func() { _ = f.file.Close() }() // only read
	for {
		again, err := f.look()
		if err != nil {
			return err
		}
		if again && ctx.Err() == nil { // the new file may have records already
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// follower is the state between two looks.
type follower struct {
	name    string
	filter  Filter
	printer *Printer
	file    *os.File // the log, or what was the log until a rotation
	at      int64    // what was read of it
	last    uint64   // sequence number of the newest record that was seen; 0 before any
}

// skip goes to the end of what was written before.
func (f *follower) skip() error {
	size, err := f.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	// Two of the longest lines have one whole line in them.
	begin := max(0, size-2*maxLine)
	in := newLines(io.NewSectionReader(f.file, begin, size-begin))
	for {
		h, err := in.record()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		f.last = h.seq
	}
	f.at = begin + in.end
	if f.last == 0 {
		var last position
		last, err = lastRotated(f.name)
		f.last = last.seq
	}
	return err
}

// look prints what is new, and goes on to the next file after a rotation.
func (f *follower) look() (again bool, err error) {
	// Look before reading: what a rotation left in the old file is read first.
	rotated := moved(f.name, f.file)
	if err := f.grown(); err != nil || !rotated {
		return false, err
	}
	next, err := os.Open(f.name)
	if err != nil {
		return false, nil // it will be there in a moment
	}
	// Files that were rotated between two looks come before the one that is open
	// now; if that is among them by now, the next look sees it.
	_ = f.file.Close() // only read
	f.file, f.at = next, 0
	if err := f.between(); err != nil {
		return false, err
	}
	return true, nil
}

// between prints the rotated files that begin after what was read.
func (f *follower) between() error {
	files, err := rotatedFiles(f.name)
	if err != nil {
		return err
	}
	for _, r := range files {
		if r.first <= f.last {
			continue
		}
		in, err := openRotated(r.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed by retention; the next record shows the gap
		}
		if err == nil {
			_, err = f.lines(newLines(in))
			err = errors.Join(err, in.Close())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openRotated opens a rotated file, which may have been compressed since its
// name was read.
func openRotated(path string) (io.ReadCloser, error) {
	in, err := openLog(path)
	if errors.Is(err, fs.ErrNotExist) && !strings.HasSuffix(path, ".gz") {
		return openLog(path + ".gz")
	}
	return in, err
}

// moved reports whether another file has taken the name.
func moved(name string, file *os.File) bool {
	a, err := os.Stat(name)
	if err != nil {
		return false // it will be there in a moment
	}
	b, err := file.Stat()
	return err == nil && !os.SameFile(a, b)
}

// grown prints the whole lines that the file has more than before.
func (f *follower) grown() error {
	info, err := f.file.Stat()
	if err != nil || info.Size() <= f.at {
		return err
	}
	end, err := f.lines(newLines(io.NewSectionReader(f.file, f.at, info.Size()-f.at)))
	f.at += end
	return err
}

// lines prints whole lines, each record once, and returns the offset behind them.
func (f *follower) lines(r *lines) (end int64, err error) {
	for ; ; end = r.end {
		h, err := r.record()
		if errors.Is(err, io.EOF) {
			// A line without its end is being written; it is read again from its beginning.
			return r.end, nil
		}
		if err != nil {
			return end, err
		}
		if h.seq <= f.last {
			continue
		}
		if f.last != 0 && h.seq > f.last+1 {
			if err := f.printer.gap(f.last+1, h.seq-1); err != nil {
				return end, err
			}
		}
		f.last = h.seq
		if _, err := showHead(h, f.filter, f.printer); err != nil {
			return end, err
		}
	}
}
