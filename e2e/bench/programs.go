package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ticktier/ticktier/e2e/client"
	"github.com/ticktier/ticktier/e2e/program"
)

// sample is one window of one program.
type sample struct {
	cpu, user, system   time.Duration
	ticks, missed, late float64
	rss                 int64
	ringBytes           float64 // per tick held
	bytes               float64 // read per tick
}

// cost is in µs of CPU a tick.
func (s *sample) cost() float64 {
	if s.ticks == 0 {
		return 0
	}
	return s.cpu.Seconds() * 1e6 / s.ticks
}

// startExporter starts it and waits until it takes ticks.
func startExporter(ctx context.Context, o *options, c cell, names map[string]time.Duration) (*program.Program, *client.Client, error) {
	p, err := program.Start(program.Config{Name: "exporter", Path: filepath.Join(o.bin, "ticktier-exporter"), Args: c.args(o, names)})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	addr, err := p.Addr(ctx)
	if err != nil {
		p.Kill()
		return nil, nil, fmt.Errorf("%w\n%s", err, p.Log())
	}
	return p, client.New("http://" + addr), nil
}

func runExporter(ctx context.Context, o *options, c cell, names map[string]time.Duration) (sample, error) {
	p, cl, err := startExporter(ctx, o, c, names)
	if err != nil {
		return sample{}, err
	}
	defer p.Kill()
	if err := sleep(ctx, o.settle); err != nil {
		return sample{}, err
	}
	before, err := ownCounts(ctx, cl)
	if err != nil {
		return sample{}, err
	}
	// The exporter reads its own counters once a second: the window is as long as
	// ticks are counted in it, and CPU time is per tick of the schedule.
	s, err := watch(ctx, o, p.PID())
	if err != nil {
		return s, err
	}
	s.ticks = float64(c.Rate) * o.window.Seconds()
	if err := sleep(ctx, 1100*time.Millisecond); err != nil {
		return s, err
	}
	after, err := ownCounts(ctx, cl)
	if err != nil {
		return s, err
	}
	read := after.ticks - before.ticks
	s.missed, s.late = after.missed-before.missed, after.late-before.late
	s.ticks *= share(read, s.missed)
	if read > 0 {
		s.bytes = (after.bytes - before.bytes) / read
	}
	if after.ringTicks == 0 {
		return s, errors.New("/metrics tells of no ticks in the ring")
	}
	s.ringBytes = after.ringBytes / after.ringTicks
	return s, p.Stop(10 * time.Second)
}

// own is what the exporter says of itself.
type own struct{ ticks, missed, late, bytes, ringBytes, ringTicks float64 }

func ownCounts(ctx context.Context, cl *client.Client) (own, error) {
	var n own
	body, err := cl.Get(ctx, "/metrics")
	if err != nil {
		return n, err
	}
	into := map[string]*float64{"ticks_total": &n.ticks, "ticks_missed_total": &n.missed, "ticks_late_total": &n.late,
		"collector_read_bytes_total": &n.bytes, "ring_bytes": &n.ringBytes, "ring_ticks": &n.ringTicks}
	for line := range strings.Lines(string(body)) {
		rest, ok := strings.CutPrefix(line, "ticktier_exporter_")
		name := rest[:max(strings.IndexAny(rest, " {"), 0)]
		if to := into[name]; ok && to != nil {
			fields := strings.Fields(rest[max(strings.LastIndexByte(rest, '}')+1, len(name)):])
			if len(fields) == 0 {
				return n, fmt.Errorf("/metrics has the line %q", line)
			}
			v, err := strconv.ParseFloat(fields[0], 64)
			if err != nil {
				return n, fmt.Errorf("read /metrics: %w", err)
			}
			*to += v
		}
	}
	return n, nil // of ticks it tells after a second
}

// share is the part of slots that was read.
func share(read, missed float64) float64 {
	if read+missed == 0 {
		return 0
	}
	return read / (read + missed)
}

func runFloor(ctx context.Context, o *options, c cell, files []entry) (sample, error) {
	self, err := os.Executable()
	if err != nil {
		return sample{}, err
	}
	list, err := json.Marshal(files)
	if err != nil {
		return sample{}, err
	}
	cmd := exec.CommandContext(ctx, self, "floor", strconv.Itoa(c.Rate))
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(list), &out, &errs
	if err := cmd.Start(); err != nil {
		return sample{}, err
	}
	s, err := sample{}, sleep(ctx, o.settle)
	if err == nil {
		s, err = watch(ctx, o, cmd.Process.Pid)
	}
	_ = cmd.Process.Signal(unix.SIGTERM)
	if werr := cmd.Wait(); werr != nil {
		return s, fmt.Errorf("%w: %s", werr, errs.String())
	}
	if err != nil {
		return s, err
	}
	var st floorStats
	if err := json.Unmarshal(out.Bytes(), &st); err != nil {
		return s, err
	}
	s.missed, s.late = float64(st.Missed), float64(st.Late)
	if st.Ticks > 0 {
		s.bytes = float64(st.Bytes) / float64(st.Ticks)
	}
	s.ticks = float64(c.Rate) * o.window.Seconds() * share(float64(st.Ticks), s.missed)
	return s, nil
}

// runNode scrapes node_exporter at the rate, or as fast as it answers.
func runNode(ctx context.Context, o *options, c cell, path string) (sample, error) {
	p, err := program.Start(program.Config{
		Name: "node_exporter", Path: path, Listening: regexp.MustCompile(`msg="Listening on" address=([0-9.:]+)`),
		Args: []string{"--web.listen-address=127.0.0.1:0", "--web.disable-exporter-metrics", "--web.max-requests=1"},
	})
	if err != nil {
		return sample{}, err
	}
	defer p.Kill()
	up, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	addr, err := p.Addr(up)
	if err != nil {
		return sample{}, fmt.Errorf("%w\n%s", err, p.Log())
	}
	scraping, stop := context.WithCancel(ctx)
	type counts struct{ done, missed float64 }
	result := make(chan counts)
	go func() {
		var n counts
		defer func() { result <- n }()
		period := time.Second / time.Duration(c.Rate)
		for next := time.Now(); ; next = next.Add(period) {
			if sleep(scraping, time.Until(next)) != nil {
				return
			}
			for ; time.Since(next) > period; next = next.Add(period) {
				n.missed++
			}
			if scrape(scraping, "http://"+addr+"/metrics") == nil {
				n.done++
			}
		}
	}()
	s, err := sample{}, sleep(ctx, o.settle)
	if err == nil {
		s, err = watch(ctx, o, p.PID())
	}
	stop()
	n := <-result
	s.missed = n.missed
	s.ticks = float64(c.Rate) * o.window.Seconds() * share(n.done, n.missed)
	return s, err
}

func scrape(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// watch measures what a process uses in a window.
func watch(ctx context.Context, o *options, pid int) (sample, error) {
	var s sample
	cpu0, user0, sys0, err := cpuOf(pid)
	if err != nil {
		return s, err
	}
	if err := sleep(ctx, o.window); err != nil {
		return s, err
	}
	cpu1, user1, sys1, err := cpuOf(pid)
	if err != nil {
		return s, err
	}
	s.cpu, s.user, s.system = cpu1-cpu0, user1-user0, sys1-sys0
	s.rss, err = rssOf(pid)
	return s, err
}

// cpuOf is the CPU time of a process: all of it to the nanosecond by the process's
// own clock, and user and system apart as its stat file has them, in hundredths.
func cpuOf(pid int) (all, user, system time.Duration, err error) {
	// clockid of a process: kernel, include/linux/posix-timers_types.h,
	// make_process_cpuclock with CPUCLOCK_SCHED.
	var ts unix.Timespec
	if err = unix.ClockGettime(int32(^pid<<3|2), &ts); err != nil {
		return 0, 0, 0, fmt.Errorf("read the CPU clock of process %d: %w", pid, err)
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, 0, err
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 13 {
		return 0, 0, 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(f))
	}
	u, err := strconv.ParseInt(f[11], 10, 64)
	if err != nil {
		return 0, 0, 0, err
	}
	s, err := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(ts.Nano()), time.Duration(u) * 10 * time.Millisecond, time.Duration(s) * 10 * time.Millisecond, err
}

func rssOf(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0, fmt.Errorf("/proc/%d/statm has %d fields", pid, len(f))
	}
	n, err := strconv.ParseInt(f[1], 10, 64)
	return n * int64(os.Getpagesize()), err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
