package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/tick"
)

// probeReads is how often the verb sources reads each: enough for a median, and soon
// done where a sensor is slow.
const probeReads = 9

// sourceInfo is what people are told of a source: by the verb sources of this moment,
// by /api/v1/sources of the run.
type sourceInfo struct {
	Name    string   `json:"name"`
	Enabled bool     `json:"enabled"`
	Success bool     `json:"success"`         // of the last read
	Error   string   `json:"error,omitempty"` // why not
	Series  int      `json:"series"`
	Cadence float64  `json:"cadence_seconds"`  // 0 is every tick
	Slowed  bool     `json:"slowed,omitempty"` // by --rate.protect: its own cadence is Own
	Own     *float64 `json:"own_cadence_seconds,omitempty"`
	Reason  string   `json:"reason"` // for the cadence
	// Deadline is when a read counts as failed, and Beside tells that ticks do not wait
	// for it.
	Deadline float64  `json:"deadline_seconds"`
	Beside   bool     `json:"beside_ticks"`
	Files    []string `json:"files"`
	Bytes    uint64   `json:"bytes"`        // of one read
	Cost     float64  `json:"cost_seconds"` // of one read, the median
	Reads    uint64   `json:"reads"`
	Failed   uint64   `json:"failures"`

	cadence, own, cost, deadline time.Duration
}

// sourceInfos are all sources there are, with the state of those that are known.
func (r *runFlags) sourceInfos(known []tick.Status) []sourceInfo {
	states := map[string]*tick.Status{}
	for i := range known {
		states[known[i].Name] = &known[i]
	}
	out := make([]sourceInfo, 0, len(r.sources))
	for i := range r.sources {
		s := &r.sources[i]
		info := sourceInfo{Name: s.spec.Name, Enabled: r.reads(s), Cadence: s.spec.Cadence.Seconds(), cadence: s.spec.Cadence,
			Deadline: s.spec.Deadline.Seconds(), deadline: s.spec.Deadline, Beside: s.spec.Blocking,
			Reason: s.spec.Reason, Files: append([]string{}, s.spec.Files...)}
		if st := states[s.spec.Name]; st != nil {
			info.Success, info.Error, info.Series, info.Bytes = st.Success, st.Error, st.Series, st.Bytes
			info.Cost, info.Reads, info.Failed, info.cost = st.Cost.Seconds(), st.Reads, st.Failures, st.Cost
			info.Cadence, info.cadence, info.Slowed = st.Cadence.Seconds(), st.Cadence, st.Slowed
			if st.Slowed {
				own := s.spec.Cadence.Seconds()
				info.Own, info.own = &own, s.spec.Cadence
			}
		}
		out = append(out, info)
	}
	return out
}

// writeSources writes them as a table or as JSON.
func writeSources(w io.Writer, format string, sources []sourceInfo) error {
	if format == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(struct {
			Sources []sourceInfo `json:"sources"`
		}{sources})
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SOURCE\tENABLED\tSERIES\tBYTES\tCOST\tREAD\tDEADLINE\tBECAUSE\tREADABLE")
	for _, s := range sources {
		readable := "yes"
		if !s.Success {
			first, _, _ := strings.Cut(s.Error, "\n") // a panic has its stack below
			readable = "no: " + first
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", s.Name, yesNo(s.Enabled), s.Series, s.Bytes,
			s.cost.Round(100*time.Nanosecond), s.often(), waits(s.deadline, s.Beside), s.Reason, readable)
	}
	return t.Flush()
}

// often is how often a source is read, in words.
func (s *sourceInfo) often() string {
	if s.Slowed {
		return cadence(s.cadence) + ", slowed from " + cadence(s.own)
	}
	return cadence(s.cadence)
}

// waits is how long a read may take, and whether ticks wait for it.
func waits(deadline time.Duration, beside bool) string {
	if beside {
		return deadline.String() + ", beside"
	}
	return deadline.String()
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// listSources is the verb sources: what there is on this machine, under the same flags
// as run has.
func listSources(w io.Writer, r *runFlags) error {
	r.besideTicks(r.env(nil))
	specs := make([]collectors.Spec, 0, len(r.sources))
	for i := range r.sources {
		specs = append(specs, r.sources[i].spec)
	}
	found := tick.Probe(specs, r.env(nil), probeReads)
	for i := range found {
		st := &found[i]
		st.Cadence, st.Slowed = tick.Planned(&specs[i], st.Cost, r.config.Rate, r.config.FloorHz, r.config.RateProtect)
	}
	return writeSources(w, r.format.Format, r.sourceInfos(found))
}
