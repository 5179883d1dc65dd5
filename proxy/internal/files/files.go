// Package files opens, locks and replaces files that hold keys and records: no symbolic link is
// followed, and a crash leaves the old content or the new.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// What [OpenRegular] refuses, for errors.Is. The errors themselves name the path and what to do.
var (
	ErrLink      = errors.New("symbolic link")
	ErrIrregular = errors.New("not a regular file")
)

// ErrLocked is the failure of [TryLock] when another process has the lock.
var ErrLocked = errors.New("locked")

// unfit is a path at which there is something else than a regular file. Its text is whole, as
// callers show it to people; they have the kind by errors.Is.
type unfit struct {
	text string
	what error
}

func (e *unfit) Error() string        { return e.text }
func (e *unfit) Is(target error) bool { return target == e.what }

func link(path string) error {
	return &unfit{path + " is a symbolic link; configure the path that it points to", ErrLink}
}

func irregular(path string) error {
	return &unfit{path + " is not a regular file; configure another path", ErrIrregular}
}

// ReadSmall returns the content of a regular file of at most limit bytes. The function check, if
// not nil, sees the open file before it is read: what it finds, such as a mode, is then that of
// the file which is read, whatever its name leads to by now.
func ReadSmall(path string, limit int64, check func(*os.File) error) ([]byte, error) {
	f, err := OpenRegular(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if check != nil {
		if err := check(f); err != nil {
			return nil, err
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// Create makes a file with its content whole, for its owner alone, or fails with [fs.ErrExist].
// Of several processes that do so at once, one makes it.
func Create(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // the file has its other name by then, or is of no use
	if err := fill(f, data); err != nil {
		return err
	}
	// A link, unlike a rename, replaces nothing.
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// Replace exchanges the content of a file, or makes it. A reader, or a crash, sees the old
// content or the new. One process at a time may do so: the new content is first in a file of
// the same name with .tmp, where one that a crash left is removed.
func Replace(path string, data []byte, perm fs.FileMode) error {
	tmp := path + ".tmp"
	// What is there may be open to others, so it is not written to.
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := OpenRegular(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	if err = fill(f, data); err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp) // the first error says more
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// fill writes a new file, durably, and closes it: a name that leads to content which a power
// cut has lost would be worse than the old content.
func fill(f *os.File, data []byte) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
