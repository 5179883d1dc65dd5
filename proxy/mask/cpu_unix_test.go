//go:build unix

package mask

import (
	"syscall"
	"time"
)

// cpuTime returns the processor time of the process: on a shared machine it
// moves less than the wall's.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
