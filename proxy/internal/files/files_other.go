//go:build !unix

package files

import (
	"errors"
	"io/fs"
	"os"
)

// OpenRegular opens a file that is no symbolic link, device, pipe or folder; flag and perm are
// those of [os.OpenFile].
func OpenRegular(path string, flag int, perm fs.FileMode) (*os.File, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0:
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, irregular(path)
	}
	return os.OpenFile(path, flag, perm)
}

// TryLock fails with [errors.ErrUnsupported]: this system has no locks that end with a process.
func TryLock(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// Lock locks a file that [Replace] exchanges, until unlock is called: a file of the same name
// with .lock is the lock. It fails with [fs.ErrExist] while another process has it.
func Lock(path string) (unlock func(), err error) {
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	_ = f.Close() // nothing was written
	return func() { _ = os.Remove(name) }, nil
}

// SyncFolder does nothing here: folders cannot be opened for it, and the file system keeps names
// in its own journal.
func SyncFolder(string) error { return nil }
