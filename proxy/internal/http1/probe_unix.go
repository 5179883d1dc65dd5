//go:build unix

package http1

import (
	"errors"
	"syscall"
)

const canProbe = true

// quiet reports whether the server has neither closed an idle connection nor said
// anything that was not asked for, which would be taken for the next answer.
func (c *conn) quiet() bool {
	if c.raw == nil {
		return false
	}
	quiet := false
	err := c.raw.Read(func(fd uintptr) bool {
		var one [1]byte
		n, err := syscall.Read(int(fd), one[:])
		quiet = n < 0 && (errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EWOULDBLOCK))
		return true
	})
	return quiet && err == nil
}
