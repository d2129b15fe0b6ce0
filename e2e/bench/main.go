package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type options struct {
	bin, node, json string
	tree            string // of a captured router
	cells           string
	quick           bool
	windows         int
	window, settle  time.Duration
}

// cell is one rate with one choice of sources.
type cell struct {
	Rate    int    `json:"rate_hz"`
	Sources string `json:"sources"` // default, every tick, fast, or router tree
	node    bool
}

func (c cell) String() string { return fmt.Sprintf("%d Hz, %s", c.Rate, c.Sources) }

// fast are the sources for the highest rates: cheap, and worth it within
// milliseconds.
var fast = []string{"stat", "softnet", "softirqs", "netdev", "diskstats", "pressure", "schedstat", "conntrack", "exporter"}

// inTree are the sources that the captured router has files of.
var inTree = []string{"stat", "softnet", "softirqs", "interrupts", "netdev", "vmstat", "diskstats", "meminfo", "loadavg",
	"buddyinfo", "slabinfo"}

const routerTree = "router tree"

// chosen are the cells that -cells asks for.
func (o *options) chosen() ([]cell, error) {
	var out []cell
	for _, c := range o.all() {
		if strings.Contains(c.String(), o.cells) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no cell is called %q; there are %v", o.cells, o.all())
	}
	return out, nil
}

func (o *options) all() []cell {
	if o.quick {
		return []cell{{10, "default", true}, {100, "every tick", false}, {1000, "fast", false}, {100, routerTree, false}}
	}
	return []cell{
		{10, "default", true}, {50, "default", true}, {100, "default", true},
		{10, "every tick", false}, {50, "every tick", false}, {100, "every tick", false},
		{200, "fast", false}, {500, "fast", false}, {1000, "fast", false},
		{100, routerTree, false},
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "floor" {
		if err := floor(os.Args[2:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bench floor:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.StringVar(&o.bin, "bin", "bin", "folder that holds the exporter")
	flag.StringVar(&o.node, "node", "", "real node_exporter; empty means the one that `make peers` built")
	flag.StringVar(&o.json, "json", "", "file to write the figures to")
	flag.StringVar(&o.tree, "tree", "collectors/testdata/rb5009", "captured files of a router")
	flag.StringVar(&o.cells, "cells", "", "measure only cells whose name has this in it, like \"10 Hz\" or \"fast\"")
	flag.BoolVar(&o.quick, "quick", false, "four cells and short windows, in less than a minute")
	flag.IntVar(&o.windows, "windows", 0, "windows of each program in each cell; 0 is 5, or 3 with -quick")
	flag.DurationVar(&o.window, "window", 0, "length of a window; 0 is 5 s, or 800 ms with -quick")
	flag.Parse()
	o.settle = time.Second // a start costs more than a tick
	windows, window := 5, 5*time.Second
	if o.quick {
		windows, window = 3, 800*time.Millisecond
	}
	if o.windows <= 0 {
		o.windows = windows
	}
	if o.window <= 0 {
		o.window = window
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// report is what -json writes.
type report struct {
	Machine    string   `json:"machine"`
	Start      string   `json:"start"`
	LoadBefore float64  `json:"load_before"`
	LoadAfter  float64  `json:"load_after"`
	Windows    int      `json:"windows"`
	WindowMs   int64    `json:"window_ms"`
	Results    []result `json:"results"`
}

func run(ctx context.Context, o *options, out io.Writer) error {
	cells, err := o.chosen()
	if err != nil {
		return err
	}
	node := nodeExporter(ctx, o)
	machine, err := exec.CommandContext(ctx, "sh", "e2e/machine.sh").Output()
	if err != nil {
		return fmt.Errorf("describe the machine: %w", err)
	}
	rep := report{Machine: string(bytes.TrimSpace(machine)), Start: time.Now().UTC().Format(time.RFC3339),
		LoadBefore: load(), Windows: o.windows, WindowMs: o.window.Milliseconds()}
	printHead(out, &rep)
	for _, c := range cells {
		rs, err := measure(ctx, o, c, node)
		if err != nil {
			return fmt.Errorf("%v: %w", c, err)
		}
		for i := range rs {
			beyond(&rs[0], &rs[i])
			printResult(out, &rs[i], &rs[0])
		}
		rep.Results = append(rep.Results, rs...)
	}
	rep.LoadAfter = load()
	printVerdict(out, &rep)
	if o.json == "" {
		return nil
	}
	b, err := json.MarshalIndent(&rep, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(o.json, append(b, '\n'), 0o644)
}

// nodeExporter is where the real one is; "" where it is not built.
func nodeExporter(ctx context.Context, o *options) string {
	if o.node != "" {
		return o.node
	}
	dir, err := exec.CommandContext(ctx, "sh", "e2e/peers/build.sh").Output()
	if err != nil {
		return ""
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "node_exporter")
}

// measure runs the programs of a cell in turn, each for as many windows as asked
// for, so that what disturbs the machine disturbs all of them.
func measure(ctx context.Context, o *options, c cell, node string) ([]result, error) {
	names, err := collectorNames(ctx, o.bin)
	if err != nil {
		return nil, err
	}
	files, err := discover(ctx, o, c, names)
	if err != nil {
		return nil, err
	}
	programs := []struct {
		name string
		run  func() (sample, error)
	}{
		{"floor", func() (sample, error) { return runFloor(ctx, o, c, files) }},
		{"ticktier", func() (sample, error) { return runExporter(ctx, o, c, names) }},
		{"node_exporter", func() (sample, error) { return runNode(ctx, o, c, node) }},
	}
	if !c.node || node == "" {
		programs = programs[:2]
	}
	samples := make([][]sample, len(programs))
	for w := range o.windows {
		for i, p := range programs {
			s, err := p.run()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			o.tell("%v: %s, window %d of %d: %.0f µs a tick", c, p.name, w+1, o.windows, s.cost())
			samples[i] = append(samples[i], s)
		}
	}
	var out []result
	for i, p := range programs {
		r := summarise(c, p.name, samples[i], o.window)
		r.Files = len(files)
		out = append(out, r)
	}
	return out, nil
}

// tell shows how far the run is.
func (o *options) tell(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}

// load is the load average of the last minute.
func load() float64 {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), " ")
	f, _ := strconv.ParseFloat(first, 64)
	return f
}

// args are the exporter's for a cell.
func (c *cell) args(o *options, names map[string]time.Duration) []string {
	a := []string{"--listen=127.0.0.1:0", fmt.Sprint("--rate=", c.Rate)}
	switch c.Sources {
	case "every tick":
		a = append(a, fmt.Sprint("--floor-hz=", c.Rate))
	case "fast":
		a = append(a, without(fast, names)...)
	case routerTree:
		a = append(a, fmt.Sprint("--floor-hz=", c.Rate), "--collector.slabinfo", "--path.procfs="+filepath.Join(o.tree, "proc"),
			"--path.sysfs="+filepath.Join(o.tree, "sys"), "--path.rootfs="+o.tree)
		// The exporter's own figures are how the bench knows what it did.
		a = append(a, without(append([]string{"exporter"}, inTree...), names)...)
	}
	return a
}

// without leaves out all sources but some.
func without(but []string, names map[string]time.Duration) (args []string) {
	for name := range names {
		if !slices.Contains(but, name) {
			args = append(args, "--no-collector."+name)
		}
	}
	return args
}
