package main

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// timerSlack is how late the kernel may wake the process's threads, but for that
	// of the ticks. Go's scheduler watches over every thread that runs from a thread
	// of its own, which sleeps 20 µs at a time while a tick is read: with the kernel's
	// 50 µs of slack it woke ten times a tick, and took more CPU than parsing. With
	// this it wakes once. What else there is to wait for is counted in seconds.
	timerSlack = 5 * time.Millisecond
	// processors is how many goroutines run at once: the ticks and one more. With one,
	// as Go has it on a machine of one CPU, a tick would wait for Go's scheduler until
	// whatever else runs is done, where the kernel's lets it go first.
	processors = 2
)

// limitThreads fits Go's scheduler to the exporter. GOMAXPROCS goes before. It tells
// why timers are as they were, if they are: then a tick costs more.
func limitThreads() error {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(processors)
	}
	// Threads that are made later have what the one has that makes them.
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
