//go:build linux || darwin

package setup

import (
	"os"

	"golang.org/x/sys/unix"
)

// hideInput keeps a terminal from showing what is typed, and returns what shows it
// again. Only the echo is switched off: the line is still edited and ended by the
// terminal itself, and Ctrl-C works.
func hideInput(f *os.File) (show func(), err error) {
	fd := int(f.Fd())
	before, err := unix.IoctlGetTermios(fd, getTerminal)
	if err != nil {
		return nil, err
	}
	hidden := *before
	hidden.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(fd, setTerminal, &hidden); err != nil {
		return nil, err
	}
	// nothing better can be done for the terminal
	return func() { _ = unix.IoctlSetTermios(fd, setTerminal, before) }, nil
}
