//go:build !unix

package mask

import "time"

var began = time.Now()

// cpuTime returns the wall's time where the processor's is not to be had.
func cpuTime() time.Duration { return time.Since(began) }
