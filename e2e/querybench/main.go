package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

type options struct {
	bin, peers, dir, only      string
	devices, peerDevices, days int
	longDays                   int
	cold                       int
	requests                   int
	together                   int
	burst                      time.Duration
	end                        time.Time
}

func main() {
	var o options
	quick := false
	flag.StringVar(&o.bin, "bin", "bin", "folder that holds the adapter")
	flag.StringVar(&o.peers, "peers", "", "folder that holds the peers; empty means the one that `make peers` fills")
	flag.StringVar(&o.dir, "dir", "", "folder for the data, kept and used again; empty means a temporary one")
	flag.StringVar(&o.only, "only", "", "measure only the programs whose names begin so (comma-separated)")
	flag.IntVar(&o.devices, "devices", 200, "devices of the adapter's fleet, of nine series each")
	flag.IntVar(&o.peerDevices, "peer-devices", 4, "devices that the peers hold")
	flag.IntVar(&o.days, "days", 90, "days of history")
	flag.IntVar(&o.longDays, "long-days", 730, "days of history that a second fleet holds, asked the same; 0 for none")
	flag.IntVar(&o.cold, "cold", 3, "first requests of a new process whose files are not in the kernel's cache; 0 for none")
	flag.IntVar(&o.requests, "requests", 100, "warm requests of each kind, one after the other")
	flag.IntVar(&o.together, "together", 10, "clients at once")
	flag.DurationVar(&o.burst, "burst", 5*time.Second, "how long they ask")
	flag.BoolVar(&quick, "quick", false, "a small fleet and few requests")
	flag.Parse()
	if quick {
		o.devices, o.peerDevices, o.requests, o.burst, o.cold = 10, 1, 20, time.Second, 1
	}
	o.end = time.Now().UTC().Truncate(2 * time.Hour)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "querybench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options, out io.Writer) error {
	if o.peers == "" {
		dir, err := exec.CommandContext(ctx, "sh", "e2e/peers/build.sh").Output()
		if err != nil {
			return fmt.Errorf("build the peers: %w", err)
		}
		o.peers = strings.TrimSpace(string(dir))
	}
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "ticktier-querybench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
		o.dir = dir
	}
	if err := o.seedAll(ctx); err != nil {
		return err
	}
	machine, err := exec.CommandContext(ctx, "sh", "e2e/machine.sh").Output()
	if err != nil {
		return fmt.Errorf("describe the machine: %w", err)
	}
	fmt.Fprintf(out, "%sOne device's nine series at once. ticktier holds %d devices × %d days, the peers %d devices of the same.\n\n",
		machine, o.devices, o.days, o.peerDevices)
	var all []result
	for _, s := range o.servers() {
		if !o.wanted(s.name) {
			continue
		}
		rs, err := s.measure(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		all = append(all, rs...)
	}
	printTable(out, all)
	return nil
}

// wanted reports whether a program is to be measured.
func (o *options) wanted(name string) bool {
	return o.only == "" || slices.ContainsFunc(strings.Split(o.only, ","), func(p string) bool { return strings.HasPrefix(name, p) })
}

// seedAll makes up the fleet, and for the peers raw samples of its first devices.
func (o *options) seedAll(ctx context.Context) error {
	for _, s := range []struct {
		dir           string
		devices, days int
		args          []string
	}{
		{"fleet", o.devices, o.days, nil},
		{"long", o.devices, o.longDays, nil},
		{"peer", o.peerDevices, o.days, []string{fmt.Sprint("--raw-hours=", o.days*24), "--5m-days=0"}},
	} {
		if s.days == 0 {
			continue
		}
		dir := filepath.Join(o.dir, s.dir)
		if text, err := os.ReadFile(dir + ".end"); err == nil {
			if o.end, err = time.Parse(time.RFC3339, string(text)); err != nil {
				return err
			}
			continue
		}
		args := append([]string{
			"seed", "--data-dir=" + dir, fmt.Sprint("--devices=", s.devices), fmt.Sprint("--days=", s.days),
			"--end=" + o.end.Format(time.RFC3339),
		}, s.args...)
		cmd := exec.CommandContext(ctx, filepath.Join(o.bin, "ticktier-adapter"), args...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("seed: %w\n%s", err, out)
		}
		if err := os.WriteFile(dir+".end", []byte(o.end.Format(time.RFC3339)), 0o644); err != nil {
			return err
		}
	}
	return nil
}
