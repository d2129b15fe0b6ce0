package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Every thread's timers are relaxed, Go's own included.
func TestLimitThreads(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	t.Setenv("GOMAXPROCS", "")
	err := limitThreads()
	if errors.Is(err, syscall.ENOTSUP) {
		t.Skip("built with cgo")
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := runtime.GOMAXPROCS(0); n != processors {
		t.Errorf("%d goroutines run at once, not %d", n, processors)
	}
	tasks, err := filepath.Glob("/proc/self/task/*")
	if err != nil || len(tasks) < 2 {
		t.Fatalf("threads %v: %v", tasks, err)
	}
	seen := 0
	for _, task := range tasks {
		// Not under task, but there.
		b, err := os.ReadFile(fmt.Sprintf("/proc/%s/timerslack_ns", filepath.Base(task)))
		if err != nil {
			continue // not this thread's own, and no privilege
		}
		if ns, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err != nil || time.Duration(ns) != timerSlack {
			t.Errorf("thread %s: slack of %q, %v", task, b, err)
		}
		seen++
	}
	if seen == 0 {
		t.Skip("the kernel does not show the slack of threads")
	}
}

// GOMAXPROCS of the environment goes before.
func TestLimitThreadsGiven(t *testing.T) {
	before := runtime.GOMAXPROCS(3)
	defer runtime.GOMAXPROCS(before)
	t.Setenv("GOMAXPROCS", "3")
	if err := limitThreads(); err != nil && !errors.Is(err, syscall.ENOTSUP) {
		t.Fatal(err)
	}
	if n := runtime.GOMAXPROCS(0); n != 3 {
		t.Errorf("%d goroutines run at once", n)
	}
}
