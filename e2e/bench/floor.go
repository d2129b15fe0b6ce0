package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// entry is a file of the floor and how many slots lie between two reads of it.
type entry struct {
	Path  string
	Every int64

	fd    int
	reads int // preads that it takes to have it whole
	buf   []byte
	next  int64
}

// floorStats is what the floor counts.
type floorStats struct{ Ticks, Missed, Late, Bytes uint64 }

// floor reads files on a schedule until a signal comes, and then says how it went.
// args are the rate; the files come as JSON.
func floor(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("a rate is needed")
	}
	rate, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil || rate < 1 || rate > 1000 {
		return fmt.Errorf("%q is no rate", args[0])
	}
	var files []entry
	if err := json.NewDecoder(in).Decode(&files); err != nil {
		return fmt.Errorf("read the list of files: %w", err)
	}
	debug.SetGCPercent(-1)
	relax()
	for i := range files {
		if err := files[i].open(); err != nil {
			return err
		}
		// As many as begin at different slots as can.
		files[i].next = int64(i) % files[i].Every
	}
	var done atomic.Bool
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() { <-signals; done.Store(true) }()
	return json.NewEncoder(out).Encode(pace(files, rate, &done))
}

// relax keeps Go's own thread from looking after the one that reads, as the exporter
// does: what the floor has of the runtime is not to flatter what it is compared with.
func relax() {
	runtime.GOMAXPROCS(2)
	syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_SET_TIMERSLACK, uintptr(5*time.Millisecond), 0)
}

// open learns how many reads a file takes: whoever wants it whole cannot do with
// fewer.
func (e *entry) open() error {
	fd, err := unix.Open(e.Path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", e.Path, err)
	}
	e.fd, e.buf = fd, make([]byte, 4096)
	for {
		n, off := 1, 0
		for off < len(e.buf) && n > 0 {
			if n, err = unix.Pread(fd, e.buf[off:], int64(off)); err != nil {
				return fmt.Errorf("read %s: %w", e.Path, err)
			}
			off += n
			if n > 0 {
				e.reads++
			}
		}
		if off < len(e.buf) {
			e.reads = max(e.reads, 1)
			return nil
		}
		e.buf, e.reads = make([]byte, 2*len(e.buf)), 0
	}
}

// pace is the loop.
func pace(files []entry, rate int64, done *atomic.Bool) floorStats {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	var st floorStats
	period := int64(time.Second) / rate
	tolerance := min(int64(2*time.Millisecond), period/100)
	base := mono()
	for slot := int64(0); !done.Load(); slot++ {
		ts := unix.NsecToTimespec(base + slot*period)
		for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil) == unix.EINTR {
		}
		late := mono() - base - slot*period
		if skip := late / period; skip > 0 {
			st.Missed += uint64(skip)
			slot += skip
			late -= skip * period
		}
		if late > tolerance {
			st.Late++
		}
		for i := range files {
			if e := &files[i]; slot >= e.next {
				e.next = slot + e.Every
				off := 0
				for range e.reads {
					n, err := unix.Pread(e.fd, e.buf[off:], int64(off))
					if err != nil || n == 0 {
						break
					}
					off += n
				}
				st.Bytes += uint64(off)
			}
		}
		st.Ticks++
	}
	return st
}

func mono() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("BUG: read a clock: " + err.Error())
	}
	return ts.Nano()
}
