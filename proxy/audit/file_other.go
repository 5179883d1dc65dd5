//go:build !unix

package audit

import (
	"errors"
	"io/fs"
	"os"
)

var errSystem = errors.New(`the audit log needs file locks that this system does not offer; set audit.path: "off" to run without it`)

func openRegular(path string, flag int, perm fs.FileMode) (*os.File, error) {
	if flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		return nil, errSystem
	}
	return os.OpenFile(path, flag, perm)
}

func lockFile(string) (*os.File, error) { return nil, errSystem }

func syncDir(string) error { return nil }
