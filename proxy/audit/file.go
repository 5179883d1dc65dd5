package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"aegis/proxy/internal/files"
)

// openRegular is files.OpenRegular with what to do about a path of the audit log.
func openRegular(path string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := files.OpenRegular(path, flag, perm)
	return f, advise(path, err)
}

// advise says what to do about a path of the audit log at which something else lies.
func advise(path string, err error) error {
	switch {
	case errors.Is(err, files.ErrLink):
		return fmt.Errorf("%s is a symbolic link; the audit log follows none: "+
			"remove it, or configure the path that it points to", path)
	case errors.Is(err, files.ErrIrregular):
		return fmt.Errorf("%s is not a regular file; remove it, or configure another path", path)
	}
	return err
}

// lockFile takes the lock of path for this process, or fails at once.
func lockFile(path string) (*os.File, error) {
	f, err := files.TryLock(path)
	switch {
	case errors.Is(err, files.ErrLocked):
		return nil, fmt.Errorf("%s is locked: another Aegis writes this audit log; "+
			"stop it, or give this one another audit.path or data_dir", path)
	case errors.Is(err, errors.ErrUnsupported):
		return nil, errors.New(`the audit log needs file locks that this system does not offer; set audit.path: ` +
			`"off" to run without it`)
	}
	return f, advise(path, err)
}

// readSmall returns the text of a file that must not be larger than limit bytes: keys and
// checkpoints are read before anything of them is known to be right.
func readSmall(path string, limit int64) (string, error) {
	data, err := files.ReadSmall(path, limit, nil)
	return string(data), advise(path, err)
}
