//go:build ticktier_testclock

package tick

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// This file is in no program that is released: end-to-end tests build one with the
// tag, to see what a clock that is not set, or is stepped, does to a whole process.

// kernelClock says that what the kernel says of its clock is not true of wallNow.
const kernelClock = false

// wallNow is the wall clock in ns, moved by as many as the file says that
// TICKTIER_TEST_CLOCK names.
func wallNow() int64 {
	now := time.Now().UnixNano()
	b, err := os.ReadFile(os.Getenv("TICKTIER_TEST_CLOCK"))
	if err != nil {
		return now
	}
	by, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return now + by
}
