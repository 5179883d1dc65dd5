//go:build unix

package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// openRegular opens a file that is no link, and is no device or pipe either.
func openRegular(path string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, perm)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link; the audit log follows none: remove it, or configure the path that it points to", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file; remove it, or configure another path", path)
	}
	if err != nil {
		_ = f.Close() // the error that counts is the other one
		return nil, err
	}
	return f, nil
}

// lockFile takes the lock of path for this process, or fails at once.
func lockFile(path string) (*os.File, error) {
	f, err := openRegular(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close() // the error that counts is the other one
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s is locked: another Aegis writes this audit log; stop it, or give this one another audit.path or data_dir", path)
		}
		return nil, fmt.Errorf("%s cannot be locked: %w", path, err)
	}
	return f, nil
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
