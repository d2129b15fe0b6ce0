package collectors

import (
	"bytes"
	"fmt"
	"path/filepath"
)

// schedstatMetrics are the last three columns of a CPU's row, in every version since
// 14 (show_schedstat in kernel/sched/stats.c).
var schedstatMetrics = [...]Metric{
	{Name: "node_schedstat_running_seconds_total", Type: Counter, Unit: "seconds", Div: 1e9,
		Help: "Number of seconds CPU spent running a process."},
	{Name: "node_schedstat_waiting_seconds_total", Type: Counter, Unit: "seconds", Div: 1e9,
		Help: "Number of seconds spent by processing waiting for this CPU."},
	{Name: "node_schedstat_timeslices_total", Type: Counter,
		Help: "Number of timeslices executed by CPU."},
}

// schedstatFirst is the column of the first of them, behind the CPU's name.
const schedstatFirst = 6

type schedstatRow struct {
	slots [len(schedstatMetrics)]int32
}

type schedstat struct {
	*file
	faults faults
	rows   *table[schedstatRow]
}

func newSchedstat(env Env) (Source, error) {
	f, err := openFile(filepath.Join(env.Procfs, "schedstat"), 8<<10, false)
	if err != nil {
		return nil, err
	}
	return &schedstat{file: f, faults: newFaults(env, "schedstat"), rows: newTable[schedstatRow](maxCPUs)}, nil
}

func (s *schedstat) Read(out *Out) error {
	text, err := s.file.readInto(out)
	if err != nil {
		return err
	}
	return s.parse(out, text)
}

func (s *schedstat) parse(out *Out, text []byte) error {
	s.rows.begin()
	rows := 0
	for len(text) > 0 {
		var line []byte
		line, text, _ = cutLine(text)
		if !bytes.HasPrefix(line, []byte("cpu")) {
			continue // version, timestamp, a domain, which is no CPU's time
		}
		if s.row(out, line) {
			rows++
		}
	}
	s.rows.end(func(r *schedstatRow) { r.clear(out) })
	if rows == 0 {
		return fmt.Errorf("read %s: no row is known", s.path)
	}
	return nil
}

func (s *schedstat) row(out *Out, line []byte) bool {
	_, end := field(line, 0)
	var v [schedstatFirst + len(schedstatMetrics)]uint64
	n, _, _ := numbers(line, end, v[:])
	if id := line[len("cpu"):end]; n < len(v) || !allDigits(id) {
		s.faults.badRow(out, line)
		return false
	}
	r, state := s.rows.find(line[:end])
	if r == nil {
		s.faults.refused(out, state, line)
		return false
	}
	if state == rowNew {
		cpu := string(line[len("cpu"):end])
		for i := range schedstatMetrics {
			r.slots[i] = int32(out.Add(&schedstatMetrics[i], Label{"cpu", cpu}))
		}
	}
	for i := range schedstatMetrics {
		out.Set(int(r.slots[i]), int64(v[schedstatFirst+i]))
	}
	return true
}

func (r *schedstatRow) clear(out *Out) {
	for _, slot := range r.slots {
		out.Clear(int(slot))
	}
}
