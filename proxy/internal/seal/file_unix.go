//go:build unix

package seal

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openRegular opens a file that is no link, and is no device or pipe either.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link; configure the path that it points to", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file; configure another path", path)
	}
	if err != nil {
		_ = f.Close() // the error that counts is the other one
		return nil, err
	}
	return f, nil
}

// private fails unless the owner alone may use the file.
func private(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s may be used by others (mode %04o); run chmod 600 on it, and rotate its keys if somebody else can have read it", f.Name(), mode)
	}
	return nil
}

// lock keeps other rotations of path away until unlock is called. It waits for
// one that is under way.
func lock(path string) (unlock func(), err error) {
	for range 100 {
		f, err := openRegular(path)
		if err != nil {
			return nil, err
		}
		if err := flock(f); err != nil {
			_ = f.Close() // the error that counts is the other one
			return nil, fmt.Errorf("%s cannot be locked: %w", path, err)
		}
		// The rotation that we waited for has put another file in its place.
		if mine, err := f.Stat(); err == nil {
			if now, err := os.Lstat(path); err == nil && os.SameFile(mine, now) {
				return func() { _ = f.Close() }, nil
			}
		}
		_ = f.Close() // and with it the lock
	}
	return nil, fmt.Errorf("%s keeps being replaced; find out by whom", path)
}

func flock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
