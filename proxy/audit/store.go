package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"aegis/proxy/internal/files"
)

// store is the log's file. One goroutine at a time uses it.
type store struct {
	path string
	f    *os.File
	id   fs.FileInfo // of f, to compare with what is at path; nil: not known yet
	lock *os.File
	// size is how much of the file is good: whole records, and durable ones
	// when every write is synced. Anything beyond it is a failed write.
	size int64
	// first is the sequence number of the file's first record, 0 when it has
	// none; born is that record's time.
	first uint64
	born  time.Time
	dirty bool // the file may be longer than size
	// flushes counts the times that the log's file was made durable.
	flushes uint64
	// moved is the name that rotation gave the file while its successor could
	// not be made yet; "" otherwise.
	moved string
}

// lockPath is where the lock of a log is: not the log itself, which rotation
// replaces.
func lockPath(path string) string { return path + ".lock" }

// openStore locks and opens the log, and makes it when it is missing.
func openStore(path string) (*store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the audit log's folder: %w", err)
	}
	lock, err := lockFile(lockPath(path))
	if err != nil {
		return nil, err
	}
	f, err := openRegular(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		_ = lock.Close() // the earlier error is returned
		return nil, err
	}
	s := &store{path: path, f: f, lock: lock}
	if err := files.SyncFolder(filepath.Dir(path)); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *store) close() {
	_ = s.f.Close() // what had to be durable was synced before
	_ = s.lock.Close()
}

// write appends whole records. When it fails the file is as it was, or is made
// so before the next write.
func (s *store) write(b []byte, sync bool) error {
	if err := s.ready(); err != nil {
		return err
	}
	_, err := s.f.Write(b)
	if err == nil && sync {
		err = s.flush()
	}
	if err != nil {
		s.dirty = true
		_ = s.restoreEnd() // tried again before the next write
		return err
	}
	s.size += int64(len(b))
	return nil
}

// changedError reports that another process had changed the log's file and that
// it can be written again. The write that found out is to be tried again.
type changedError struct{ what string }

func (e *changedError) Error() string { return e.what }

// flush makes what was written durable.
func (s *store) flush() error {
	s.flushes++
	return s.f.Sync()
}

// ready makes sure that the path leads to the file that is open, and that the
// file ends where it should.
func (s *store) ready() error {
	if s.moved != "" {
		if err := s.create(); err != nil {
			return err
		}
	}
	// Before each write: records behind a name that leads elsewhere would be written and gone.
	at, err := os.Lstat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return s.putBack()
	}
	if err != nil {
		return err
	}
	// Asked once a file, not before each write: that is a system call.
	if s.id == nil {
		if s.id, err = s.f.Stat(); err != nil {
			return err
		}
	}
	if !os.SameFile(at, s.id) {
		return fmt.Errorf("%s is not the file that Aegis opened; somebody put another in its place: "+
			"move that away and the log goes on", s.path)
	}
	if s.dirty {
		return s.restoreEnd()
	}
	if at.Size() != s.size {
		return s.adopt(at.Size())
	}
	return nil
}

// adopt accepts a file that another process made longer or shorter: repairing it
// would destroy the evidence. It makes sure that the next record begins a line.
func (s *store) adopt(size int64) error {
	what := fmt.Sprintf("somebody else changed the log's file: it had %d bytes and now has %d", s.size, size)
	if size > 0 {
		var last [1]byte
		if _, err := s.f.ReadAt(last[:], size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			if _, err := s.f.Write([]byte{'\n'}); err != nil {
				return err
			}
			size++
		}
	}
	s.size = size
	return &changedError{what}
}

// restoreEnd cuts off what a failed write left, so that no half of a record is in front
// of the next one.
func (s *store) restoreEnd() error {
	if !s.dirty {
		return nil
	}
	if err := s.f.Truncate(s.size); err != nil {
		return err
	}
	s.dirty = false
	return nil
}

// putBack writes the log anew from the file that is still open, after its name
// was removed or changed, so that no record is lost.
func (s *store) putBack() error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	lock, err := s.lockAgain()
	if err != nil {
		return err
	}
	f, err := openRegular(s.path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = s.copyTo(f)
	}
	if err != nil {
		if f != nil {
			_ = f.Close()         // the earlier error is returned
			_ = os.Remove(s.path) // half a copy; made by this function
		}
		if lock != s.lock {
			_ = lock.Close()
		}
		return err
	}
	if lock != s.lock {
		_ = s.lock.Close() // the file that it locked is gone
		s.lock = lock
	}
	_ = s.f.Close()
	s.f, s.id, s.dirty = f, nil, false
	return &changedError{"the log's file had been removed or renamed while in use; " +
		"it was written anew from the one that was still open"}
}

// lockAgain returns a lock on what is at the lock's path now. What removed the log may have
// removed its lock as well, and another process could then take a new one.
func (s *store) lockAgain() (*os.File, error) {
	at, err := os.Lstat(lockPath(s.path))
	if err == nil {
		if open, err := s.lock.Stat(); err == nil && os.SameFile(at, open) {
			return s.lock, nil
		}
	}
	return lockFile(lockPath(s.path))
}

// copyTo copies the good part durably. A copy that is lost in a power cut would look like
// a log that was cut.
func (s *store) copyTo(f *os.File) error {
	if _, err := io.Copy(f, io.NewSectionReader(s.f, 0, s.size)); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return files.SyncFolder(filepath.Dir(s.path))
}

// rotatedName is where the file that begins with a record goes.
func rotatedName(path string, first uint64) string {
	ext := filepath.Ext(path)
	return fmt.Sprintf("%s-%012d%s", path[:len(path)-len(ext)], first, ext)
}

// rotate moves the file away and begins a new one. When the new one cannot be
// made, the next write tries again; when the old one cannot be moved, it stays.
func (s *store) rotate() (name string, err error) {
	// Durable before it gets its last name, and the right file: it is not looked at again.
	if err := s.flush(); err != nil {
		return "", err
	}
	if err := s.ready(); err != nil {
		return "", err
	}
	// By the first record, which is known for good; the last one is not until then.
	name = rotatedName(s.path, s.first)
	// A rename would replace it without a word, and with it a part of the log.
	if _, err := os.Lstat(name); err == nil {
		return "", fmt.Errorf("%s exists already; move it away", name)
	}
	if err := os.Rename(s.path, name); err != nil {
		return "", err
	}
	s.moved = name
	return name, s.create()
}

// create makes the successor of a file that was moved away. One that is there already
// was made by another program, and is not written to.
func (s *store) create() error {
	f, err := openRegular(s.path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := files.SyncFolder(filepath.Dir(s.path)); err != nil {
		_ = f.Close()         // the earlier error is returned
		_ = os.Remove(s.path) // empty, and made here
		return err
	}
	_ = s.f.Close() // it was synced when it was moved
	s.f, s.id, s.moved, s.size, s.first, s.born, s.dirty = f, nil, "", 0, 0, time.Time{}, false
	return nil
}
