package setup

import "golang.org/x/sys/unix"

// How a terminal's settings are read and written.
const (
	getTerminal = unix.TCGETS
	setTerminal = unix.TCSETS
)
