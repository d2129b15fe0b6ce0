package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ticktier/ticktier/e2e/client"
)

// ranges are the ranges of a chart, with Grafana's steps for about a thousand points.
var ranges = []struct {
	name      string
	days      int
	step      time.Duration
	functions bool
}{
	{"24 h", 1, time.Minute, false}, {"7 d", 7, 10 * time.Minute, false}, {"30 d", 30, 30 * time.Minute, false}, {"90 d", 90, 2 * time.Hour, false},
	{"90 d, rate", 90, 2 * time.Hour, true}, {"2 y", 730, 16 * time.Hour, false},
}

// result is what one program needed for one range.
type result struct {
	rng, program  string
	points, bytes int
	cold          time.Duration // first request after a start
	cpu, took     time.Duration // of a warm request: mean, median
	p50, p99      time.Duration // with more clients at once
	perSecond     float64
	coldCPU       time.Duration
	uncached      []time.Duration // first requests with no file in the kernel's cache
}

// measure starts the server anew for each range, so that the first request is cold as
// far as the program goes; the files may be in the kernel's cache, but for the requests
// of cold.go.
func (s *server) measure(ctx context.Context, o *options) ([]result, error) {
	if s.fill != nil {
		p, c, err := s.start(ctx)
		if err != nil {
			return nil, err
		}
		err = s.fill(ctx, o, c)
		c.Close()
		if e := p.Stop(time.Minute); err == nil {
			err = e
		}
		if err != nil {
			return nil, err
		}
	}
	var out []result
	for i := range ranges {
		if ranges[i].days > s.days {
			continue
		}
		r, err := s.measureRange(ctx, o, i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ranges[i].name, err)
		}
		out = append(out, r)
	}
	return out, nil
}

func (s *server) measureRange(ctx context.Context, o *options, i int) (result, error) {
	p, c, err := s.start(ctx)
	if err != nil {
		return result{}, err
	}
	defer p.Kill()
	defer c.Close()
	r := result{rng: ranges[i].name, program: s.name}
	settle(ctx, p.PID())
	cpu0, err := cpuOf(p.PID())
	if err != nil {
		return r, err
	}
	begin := time.Now()
	first, err := o.ask(ctx, c, i, 0)
	if err != nil {
		return r, err
	}
	r.cold = time.Since(begin)
	cpu1, err := cpuOf(p.PID())
	if err != nil {
		return r, err
	}
	r.coldCPU, r.bytes = cpu1-cpu0, len(first)
	res, err := o.points(ctx, c, i)
	if err != nil {
		return r, err
	}
	r.points = res
	for n := range 5 {
		if _, err := o.ask(ctx, c, i, n%s.devices); err != nil {
			return r, err
		}
	}
	if err := s.warm(ctx, o, c, p.PID(), i, &r); err != nil {
		return r, err
	}
	if err := s.crowd(ctx, o, c, i, &r); err != nil {
		return r, err
	}
	p.Kill()
	return r, s.uncached(ctx, o, i, &r)
}

// settle waits until what the program does at its start is done.
func settle(ctx context.Context, pid int) {
	for range 40 {
		a, _ := cpuOf(pid)
		select {
		case <-ctx.Done():
			return
		case <-time.After(500 * time.Millisecond):
		}
		if b, _ := cpuOf(pid); b-a < 10*time.Millisecond {
			return
		}
	}
}

// warm asks one after the other.
func (s *server) warm(ctx context.Context, o *options, c *client.Client, pid, i int, r *result) error {
	before, err := cpuOf(pid)
	if err != nil {
		return err
	}
	took := make([]time.Duration, o.requests)
	for n := range took {
		begin := time.Now()
		if _, err := o.ask(ctx, c, i, n%s.devices); err != nil {
			return err
		}
		took[n] = time.Since(begin)
	}
	after, err := cpuOf(pid)
	if err != nil {
		return err
	}
	slices.Sort(took)
	r.cpu, r.took = (after-before)/time.Duration(o.requests), took[len(took)/2]
	return nil
}

// crowd asks with several clients at once for a while.
func (s *server) crowd(ctx context.Context, o *options, c *client.Client, i int, r *result) error {
	var (
		mu   sync.Mutex
		all  []time.Duration
		fail error
		wg   sync.WaitGroup
	)
	began := time.Now()
	until := began.Add(o.burst)
	for k := range o.together {
		wg.Go(func() {
			for n := k; time.Now().Before(until); n += o.together {
				begin := time.Now()
				_, err := o.ask(ctx, c, i, n%s.devices)
				mu.Lock()
				all = append(all, time.Since(begin))
				if err != nil {
					fail = err
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	lasted := time.Since(began) // a slow one ends after the others have begun their last
	if fail != nil {
		return fail
	}
	slices.Sort(all)
	r.p50, r.p99 = all[len(all)/2], all[len(all)*99/100]
	r.perSecond = float64(len(all)) / lasted.Seconds()
	return nil
}

// expr asks for everything of a device, or for the rates of its counters.
func expr(i, device int) string {
	if ranges[i].functions {
		return fmt.Sprintf(`rate({__name__=~"node_(cpu|network_receive|softnet).*_total",instance="router-%05d"}[%s])`, device, 2*ranges[i].step)
	}
	return fmt.Sprintf(`{instance="router-%05d",job="node"}`, device)
}

func (o *options) ask(ctx context.Context, c *client.Client, i, device int) ([]byte, error) {
	rg := ranges[i]
	form := url.Values{
		"query": {expr(i, device)}, "step": {fmt.Sprint(int(rg.step.Seconds()))},
		"start": {fmt.Sprint(o.end.Add(-time.Duration(rg.days) * 24 * time.Hour).Unix())}, "end": {fmt.Sprint(o.end.Unix())},
	}
	return c.Get(ctx, "/api/v1/query_range?"+form.Encode())
}

// points counts what an answer has.
func (o *options) points(ctx context.Context, c *client.Client, i int) (int, error) {
	rg := ranges[i]
	end := o.end.UnixMilli()
	res, err := c.QueryRange(ctx, expr(i, 0), end-int64(rg.days)*86_400_000, end, rg.step.Milliseconds())
	if err != nil {
		return 0, err
	}
	n := 0
	for _, s := range res.Series {
		n += len(s.Samples)
	}
	return n, nil
}

// cpuOf is the CPU time that a process has used, by its own clock: finer than the
// hundredths of a second in its stat file.
func cpuOf(pid int) (time.Duration, error) {
	// clockid of a process: kernel, include/linux/posix-timers_types.h,
	// make_process_cpuclock with CPUCLOCK_SCHED.
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &ts); err != nil {
		return 0, fmt.Errorf("read the CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

func printTable(w io.Writer, all []result) {
	fmt.Fprintln(w, "| range | program | points | KiB | CPU ms a request | × ticktier | median ms | first: CPU ms | first: ms | files not cached: ms | ten at once: p50 ms | p99 ms | requests/s |")
	fmt.Fprintln(w, "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	for _, rg := range ranges {
		var own time.Duration
		for _, r := range all {
			if r.rng != rg.name {
				continue
			}
			if own == 0 {
				own = r.cpu
			}
			fmt.Fprintf(w, "| %s | %s | %d | %d | %.2f | %.1f | %.2f | %.1f | %.1f | %s | %.1f | %.1f | %.0f |\n", r.rng, r.program, r.points, r.bytes>>10,
				ms(r.cpu), float64(r.cpu)/float64(own), ms(r.took), ms(r.coldCPU), ms(r.cold), spread(r.uncached), ms(r.p50), ms(r.p99), r.perSecond)
		}
	}
}
