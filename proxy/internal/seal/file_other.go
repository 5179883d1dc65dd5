//go:build !unix

package seal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// openRegular opens a file that is no link.
func openRegular(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file; configure another path", path)
	}
	return os.Open(path)
}

// private trusts the folder: the modes of this system's files say nothing.
func private(*os.File) error { return nil }

// lock keeps other rotations of path away until unlock is called.
func lock(path string) (unlock func(), err error) {
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("another rotation is under way; remove %s if it is not", name)
	}
	if err != nil {
		return nil, err
	}
	_ = f.Close() // nothing was written
	return func() { _ = os.Remove(name) }, nil
}

func syncDir(string) error { return nil }
