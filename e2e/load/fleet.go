package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ticktier/ticktier/e2e/client"
	"github.com/ticktier/ticktier/e2e/program"
)

// fleetSeries are the nine series that `ticktier-adapter seed` makes up for each
// device.
var fleetSeries = []struct {
	name, label, value string
	counter            bool
}{
	{"node_cpu_seconds_total", "mode", "idle", true},
	{"node_load1", "", "", false},
	{"node_memory_MemAvailable_bytes", "", "", false},
	{"node_hwmon_temp_celsius", "sensor", "temp1", false},
	{"node_network_receive_bytes_total", "device", "eth0", true},
	{"node_network_transmit_bytes_total", "device", "eth0", true},
	{"node_nf_conntrack_entries", "", "", false},
	{"node_softnet_dropped_total", "cpu", "0", true},
	{"ticktier_ping_rtt_seconds", "target", "192.0.2.1", false},
}

// fleet measures a server with a history: what it takes on disk and in memory, how
// long it takes to start, and what it costs to receive a fleet that pushes nine
// series every 30 seconds.
func fleet(ctx context.Context, o options, days int, out io.Writer) error {
	dir, err := os.MkdirTemp("", "ticktier-load-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	began := time.Now()
	path := filepath.Join(o.bin, "ticktier-adapter")
	args := append([]string{"seed", "--data-dir=" + dir, fmt.Sprint("--devices=", o.devices), fmt.Sprint("--days=", days)}, strings.Fields(o.seedArgs)...)
	if o.dir != "" {
		dir = o.dir
	} else if text, err := exec.CommandContext(ctx, path, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("seed: %w: %s", err, text)
	}
	fmt.Fprintf(out, "fleet       made up in %s\n", time.Since(began).Round(time.Second))
	fmt.Fprintf(out, "fleet       %4d devices × %d series, %3d days   on disk", o.devices, len(fleetSeries), days)
	total := int64(0)
	for _, tier := range []string{"raw", "5m", "1h"} {
		n, err := size(filepath.Join(dir, tier))
		if err != nil {
			return err
		}
		total += n
		fmt.Fprintf(out, "  %s %.1f MB", tier, float64(n)/1e6)
	}
	fmt.Fprintf(out, "  in all %.1f MB\n", float64(total)/1e6)

	if err := perBucket(ctx, path, dir, out); err != nil {
		return err
	}
	began = time.Now()
	p, c, err := start(ctx, program.Config{
		Name: "adapter", Path: path, Args: []string{"run", "--listen=127.0.0.1:0", "--data-dir=" + dir},
	})
	if err != nil {
		return err
	}
	defer p.Kill()
	ready := time.Since(began)
	before, err := usageOf(p.PID())
	if err != nil {
		return err
	}
	idle, err := settled(ctx, p.PID())
	if err != nil {
		return err
	}
	began = time.Now()
	if _, err := c.Query(ctx, "count({__name__=~\".+\"})", time.Now().UnixMilli()); err != nil {
		return err
	}
	answered := time.Since(began)
	if before, err = usageOf(p.PID()); err != nil {
		return err
	}
	most := int64(0)
	sent, took, err := pushFleet(ctx, c, o, func() {
		if u, err := usageOf(p.PID()); err == nil {
			most = max(most, u.rss)
		}
	})
	if err != nil {
		return err
	}
	after, err := usageOf(p.PID())
	if err != nil {
		return err
	}
	// As many samples as a fleet that pushes every 30 seconds sends in this time.
	real := float64(sent) / float64(o.devices*len(fleetSeries)) * 30
	cpu := after.cpu - before.cpu
	fmt.Fprintf(out, "fleet       ready after %s, a query over all series then takes %s  %d samples in %s  %.1f µs CPU a push of nine  that is %.2f %% of a core at one push in 30 s  RSS idle %.1f MiB, while receiving %.1f, at the end %.1f (highest since the start %.1f)\n",
		ready.Round(time.Millisecond), answered.Round(time.Millisecond), sent, took.Round(time.Second), cpu.Seconds()*1e6*float64(len(fleetSeries))/float64(sent),
		100*cpu.Seconds()/real, mib(idle.rss), mib(most), mib(after.rss), mib(after.peak))
	return p.Stop(60 * time.Second)
}

// pushFleet pushes one sample of each series of every device, again and again, 30
// seconds of the fleet's time apart and faster than the clock goes. It begins far
// enough in the past not to write the future.
func pushFleet(ctx context.Context, c *client.Client, o options, round func()) (sent int, took time.Duration, err error) {
	began := time.Now()
	at := began.Add(-2 * time.Hour).UnixMilli()
	if o.paced {
		at = began.UnixMilli()
	}
	total := 0.0
	for time.Since(began) < o.duration && (o.paced || at < time.Now().UnixMilli()) {
		round()
		for d := range o.devices {
			if o.paced {
				due := time.UnixMilli(at).Add(30 * time.Second * time.Duration(d) / time.Duration(o.devices))
				if err := sleep(ctx, time.Until(due)); err != nil {
					return sent, 0, err
				}
			}
			var series []client.Series
			for i, s := range fleetSeries {
				labels := map[string]string{"__name__": s.name, "instance": fmt.Sprintf("router-%05d", d), "job": "node"}
				if s.label != "" {
					labels[s.label] = s.value
				}
				total++
				v := float64(int(total*7919) % 1000)
				if s.counter {
					v = total
				}
				series = append(series, client.Series{Labels: labels, Samples: []client.Sample{{T: at + int64(i), V: v}}})
			}
			resp, err := c.Push(ctx, client.V2, series)
			if err != nil {
				return sent, 0, err
			}
			if resp.Status/100 != 2 {
				return sent, 0, fmt.Errorf("push: status %d: %.200s", resp.Status, resp.Body)
			}
			sent += len(series)
		}
		at += 30_000
	}
	return sent, time.Since(began), nil
}

// settled waits until the start is over: the adapter gives back what it took after ten
// seconds.
func settled(ctx context.Context, pid int) (usage, error) {
	if err := sleep(ctx, 15*time.Second); err != nil {
		return usage{}, err
	}
	return usageOf(pid)
}

// perBucket prints what a bucket takes on disk, index included.
func perBucket(ctx context.Context, path, dir string, out io.Writer) error {
	text, err := exec.CommandContext(ctx, path, "inspect", "--format=json", "--data-dir="+dir).Output()
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	var tiers []struct {
		Tier   string
		Blocks []struct{ Buckets, Bytes int64 }
	}
	if err := json.Unmarshal(text, &tiers); err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	for _, t := range tiers {
		var n, bytes int64
		for _, b := range t.Blocks {
			n, bytes = n+b.Buckets, bytes+b.Bytes
		}
		if n > 0 {
			fmt.Fprintf(out, "fleet       tier %s: %d in %d blocks, %.2f bytes each\n", t.Tier, n, len(t.Blocks), float64(bytes)/float64(n))
		}
	}
	return nil
}

// size adds up the files below a directory.
func size(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}
