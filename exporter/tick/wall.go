//go:build !ticktier_testclock

package tick

import "time"

// kernelClock says that what the kernel says of its clock is true of wallNow.
const kernelClock = true

// wallNow is the wall clock, in ns.
func wallNow() int64 { return time.Now().UnixNano() }
