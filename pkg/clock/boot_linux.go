package clock

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// boot panics if the system refuses the clock, as a seccomp filter could: without it no lease can be kept, and a wrong
// time would let a node run for ever.
func boot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(fmt.Sprintf("read CLOCK_BOOTTIME: %v; the system must allow clock_gettime", err))
	}
	return time.Duration(ts.Nano())
}
