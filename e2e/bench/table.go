package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// result is what all windows of a program in a cell say together.
type result struct {
	cell
	Program string `json:"program"`
	Files   int    `json:"files"`

	CPU     spread  `json:"cpu_us_per_tick"`
	User    float64 `json:"user_us_per_tick"`
	System  float64 `json:"system_us_per_tick"`
	Core    float64 `json:"cpu_percent_of_a_core"`
	Ticks   float64 `json:"ticks"`
	Missed  float64 `json:"missed"`
	Late    float64 `json:"late"`
	RSS     spread  `json:"rss_mib"`
	PerTick spread  `json:"ring_bytes_per_tick"`
	Bytes   spread  `json:"read_bytes_per_tick"`
	// PerByte is what a byte costs beyond its read: parsing and all else.
	PerByte float64 `json:"ns_per_byte_beyond_the_floor,omitempty"`
}

// spread is the median of the windows, and the lowest and highest.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(v []float64) spread {
	slices.Sort(v)
	return spread{v[len(v)/2], v[0], v[len(v)-1]}
}

func summarise(c cell, name string, samples []sample, window time.Duration) result {
	r := result{cell: c, Program: name}
	var cpu, rss, ring, bytes []float64
	var user, system, all time.Duration
	for _, s := range samples {
		if s.ticks > 0 {
			cpu = append(cpu, s.cost())
		}
		rss = append(rss, float64(s.rss)/(1<<20))
		ring = append(ring, s.ringBytes)
		bytes = append(bytes, s.bytes)
		user, system, all = user+s.user, system+s.system, all+s.cpu
		r.Ticks, r.Missed, r.Late = r.Ticks+s.ticks, r.Missed+s.missed, r.Late+s.late
	}
	if len(cpu) == 0 {
		cpu = []float64{0}
	}
	r.CPU, r.RSS, r.PerTick, r.Bytes = spreadOf(cpu), spreadOf(rss), spreadOf(ring), spreadOf(bytes)
	// The kernel counts user and system in hundredths of a second: only all windows
	// together say how much of either there was.
	if t := user + system; t > 0 {
		r.User = r.CPU.Median * float64(user) / float64(t)
		r.System = r.CPU.Median * float64(system) / float64(t)
	}
	r.Core = 100 * all.Seconds() / (time.Duration(len(samples)) * window).Seconds()
	return r
}

func printHead(w io.Writer, rep *report) {
	fmt.Fprintf(w, "%s\nload %.2f before; %d windows of %d ms each, programs in turn; CPU in µs a tick: median (lowest to highest)\n\n",
		rep.Machine, rep.LoadBefore, rep.Windows, rep.WindowMs)
	fmt.Fprintf(w, "| Hz | sources | program | files | CPU µs a tick | user | system | × floor | %% of a core | missed | late | RSS MiB | bytes read a tick | ring bytes a tick |\n")
	fmt.Fprintf(w, "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
}

func printResult(w io.Writer, r, floor *result) {
	ring, files, read := "", "", ""
	if r.Bytes.Median > 0 {
		read = fmt.Sprintf("%.0f", r.Bytes.Median)
	}
	if r.PerTick.Median > 0 {
		ring = fmt.Sprintf("%.0f", r.PerTick.Median)
	}
	if r.Program == "floor" {
		files = fmt.Sprint(r.Files)
	}
	fmt.Fprintf(w, "| %d | %s | %s | %s | %.0f (%.0f to %.0f) | %.0f | %.0f | %.2f | %.2f | %.0f | %.0f | %.1f | %s | %s |\n",
		r.Rate, r.Sources, r.Program, files, r.CPU.Median, r.CPU.Min, r.CPU.Max, r.User, r.System,
		r.CPU.Median/floor.CPU.Median, r.Core, r.Missed, r.Late, r.RSS.Median, read, ring)
}

const (
	// markCPU is what a tick may cost, of what the reads alone cost.
	markCPU = 1.25
	// quiet is the load average above which figures give no verdict.
	quiet = 1.0
)

// beyond says what the exporter's work on each byte costs.
func beyond(floor, r *result) {
	if r.Program == "ticktier" && r.Bytes.Median > 0 {
		r.PerByte = (r.CPU.Median - floor.CPU.Median) * 1000 / r.Bytes.Median
	}
}

// printBytes shows it for the captured router, whose files are plain ones: what the
// kernel does to make them is not in it.
func printBytes(w io.Writer, rep *report) {
	for _, r := range rep.Results {
		if r.PerByte != 0 && r.Sources == routerTree {
			fmt.Fprintf(w, "%v: %.0f bytes a tick, %.2f ns a byte beyond the reads\n", r.cell, r.Bytes.Median, r.PerByte)
		}
	}
}

func printVerdict(w io.Writer, rep *report) {
	fmt.Fprintf(w, "\nload %.2f after\n", rep.LoadAfter)
	printBytes(w, rep)
	if rep.LoadBefore > quiet || rep.LoadAfter > quiet {
		fmt.Fprintf(w, "no verdict: the load was above %.0f, other work takes part in these figures\n", quiet)
		return
	}
	var floor *result
	for i := range rep.Results {
		r := &rep.Results[i]
		switch r.Program {
		case "floor":
			floor = r
		case "ticktier":
			if r.Sources == routerTree {
				continue // a read of a plain file is no measure
			}
			verdict := "within"
			if r.CPU.Median > markCPU*floor.CPU.Median {
				verdict = "OVER"
			}
			fmt.Fprintf(w, "%4d Hz, %-10s CPU %.2f × the floor: %s the mark of %.2f; %.0f of %.0f ticks missed\n",
				r.Rate, r.Sources+":", r.CPU.Median/floor.CPU.Median, verdict, markCPU, r.Missed, r.Ticks+r.Missed)
		}
	}
}
