//go:build unix

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// OpenRegular opens a file that is no symbolic link, device, pipe or folder; flag and perm are
// those of [os.OpenFile]. A pipe is refused without waiting for its other end.
func OpenRegular(path string, flag int, perm fs.FileMode) (*os.File, error) {
	// By the system and not by a look before: what is at the path may change in between.
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, perm)
	if errors.Is(err, unix.ELOOP) {
		return nil, link(path)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = irregular(path)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

// TryLock makes the file of a lock where there is none, and takes the lock for this process or
// fails at once with [ErrLocked]. Closing the file releases it, and so does the process's end.
func TryLock(path string) (*os.File, error) {
	f, err := OpenRegular(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close() // nothing was written
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, fmt.Errorf("%s cannot be locked: %w", path, err)
	}
	return f, nil
}

// Lock locks a file that [Replace] exchanges, until unlock is called. It waits for the process that has
// the lock. Where the system has no locks that wait, it fails with [fs.ErrExist] instead, and a
// file of the same name with .lock is the lock.
func Lock(path string) (unlock func(), err error) {
	for range 100 { // more than processes that rotate at once
		f, err := OpenRegular(path, os.O_RDONLY, 0)
		if err != nil {
			return nil, err
		}
		if err := flock(f); err != nil {
			_ = f.Close() // nothing was written
			return nil, fmt.Errorf("%s cannot be locked: %w", path, err)
		}
		// The process that we waited for has put another file in its place: a lock on the
		// old one keeps out no one who comes now.
		if mine, err := f.Stat(); err == nil {
			if now, err := os.Lstat(path); err == nil && os.SameFile(mine, now) {
				return func() { _ = f.Close() }, nil
			}
		}
		_ = f.Close() // and with it the lock
	}
	return nil, fmt.Errorf("%s keeps being replaced; find out by whom", path)
}

// flock waits for the lock. Go's runtime interrupts system calls with signals of its own.
func flock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// SyncFolder makes the names in a folder durable, where the system can.
func SyncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
