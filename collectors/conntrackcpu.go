package collectors

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
)

// conntrackCPUColumns are the columns of net/stat/nf_conntrack that count on each CPU;
// the first, entries, is the whole table's. Those that are silent are printed by kernels
// that no longer count them, as zero: they are exported once they moved.
var conntrackCPUColumns = [...]struct {
	column string
	metric Metric
	silent bool
}{
	{"clashres", conntrackCPUMetric("clash_resolve", "Insertions that lost against the same connection and were resolved."), false},
	{"searched", conntrackCPUMetric("searched", "Lookups of the table."), true},
	{"found", conntrackCPUMetric("found", "Searched entries that were there."), false},
	{"new", conntrackCPUMetric("new", "Entries added that were not expected before."), true},
	{"invalid", conntrackCPUMetric("invalid", "Packets that cannot be tracked."), false},
	{"ignore", conntrackCPUMetric("ignore", "Packets that were already connected to an entry."), true},
	{"delete", conntrackCPUMetric("delete", "Entries that were removed."), true},
	{"delete_list", conntrackCPUMetric("delete_list", "Entries that were put on the list of dying ones."), true},
	{"chainlength", conntrackCPUMetric("chain_too_long", "Insertions that failed because the bucket had too many entries."), false},
	{"insert", conntrackCPUMetric("insert", "Entries inserted into the list."), false},
	{"insert_failed", conntrackCPUMetric("insert_failed", "Entries whose insertion failed."), false},
	{"drop", conntrackCPUMetric("drop", "Packets dropped because tracking failed."), false},
	{"early_drop", conntrackCPUMetric("early_drop", "Entries dropped to make room for new ones in a full table."), false},
	{"icmp_error", conntrackCPUMetric("icmp_error", "Packets that an ICMP error kept from being tracked."), false},
	{"expect_new", conntrackCPUMetric("expect_new", "Entries added after an expectation of them was there."), false},
	{"expect_create", conntrackCPUMetric("expect_create", "Expectations added."), false},
	{"expect_delete", conntrackCPUMetric("expect_delete", "Expectations removed."), false},
	{"search_restart", conntrackCPUMetric("search_restart", "Lookups that were begun again because the table was resized."), false},
}

func conntrackCPUMetric(name, help string) Metric {
	return Metric{Name: "node_nf_conntrack_cpu_" + name + "_total", Type: Counter, Help: help}
}

// errConntrackCPUs is why rows cannot be given to CPUs.
var errConntrackCPUs = errors.New("there are not as many rows as CPUs that the machine could have")

// conntrackCPU is net/stat/nf_conntrack by CPU, where conntrack has the sums.
type conntrackCPU struct {
	*file
	faults   faults
	possible *file

	header  []byte
	columns [maxConntrackColumns]int8 // index in conntrackCPUColumns + 1; 0 is not exported
	width   int
	cpus    []int // by row
	rows    []conntrackCPURow
}

type conntrackCPURow struct {
	slots [len(conntrackCPUColumns)]int32 // slot + 1
}

func newConntrackCPU(env Env) (Source, error) {
	if !env.ContainerNetwork && sysctlNet(env) == netnsContainer {
		return nil, errContainerNet
	}
	f, err := openFile(procNet(env, "stat/nf_conntrack"), 4<<10, false)
	if err != nil {
		return nil, err
	}
	return &conntrackCPU{file: f, faults: newFaults(env, "conntrack_cpu"),
		possible: laterFile(filepath.Join(env.Sysfs, "devices/system/cpu/possible"), 256, true)}, nil
}

func (s *conntrackCPU) Read(out *Out) error {
	text, err := s.file.readInto(out)
	if err != nil {
		return err
	}
	return s.parse(out, text)
}

// parse reads a row for each CPU that the machine could have, in their order, whether
// they are there or not (ct_cpu_seq_start in net/netfilter/nf_conntrack_standalone.c).
func (s *conntrackCPU) parse(out *Out, text []byte) error {
	line, text, _ := cutLine(text)
	if !bytes.Equal(line, s.header) {
		s.learn(out, line)
	}
	n := bytes.Count(text, []byte{'\n'})
	if n != len(s.cpus) {
		if err := s.count(); err != nil {
			return err
		}
		if n != len(s.cpus) {
			return fmt.Errorf("read %s: %w: %d", s.path, errConntrackCPUs, n)
		}
	}
	for row := range n {
		line, text, _ = cutLine(text)
		s.row(out, row, line)
	}
	return nil
}

// count learns which CPUs the machine could have; that never changes while it runs.
func (s *conntrackCPU) count() error {
	list, err := s.possible.read()
	if err != nil {
		return err
	}
	s.cpus = cpuList(list)
	s.rows = append(s.rows, make([]conntrackCPURow, max(0, len(s.cpus)-len(s.rows)))...)
	return nil
}

func (s *conntrackCPU) learn(out *Out, line []byte) {
	s.header = append(s.header[:0], line...)
	s.columns, s.width = [maxConntrackColumns]int8{}, 0
	for start, end := field(line, 0); start < end && s.width < maxConntrackColumns; start, end = field(line, end) {
		for i := range conntrackCPUColumns {
			if string(line[start:end]) == conntrackCPUColumns[i].column {
				s.columns[s.width] = int8(i + 1)
			}
		}
		s.width++
	}
	for i := range s.rows {
		s.rows[i].clear(out)
	}
}

func (s *conntrackCPU) row(out *Out, row int, line []byte) {
	var v [maxConntrackColumns]uint64
	n, f := hexes(line, v[:s.width])
	if f == bad {
		s.faults.badRow(out, line)
		s.rows[row].clear(out)
		return
	}
	r := &s.rows[row]
	for i, c := range s.columns[:s.width] {
		if c--; c < 0 {
			continue
		}
		column := &conntrackCPUColumns[c]
		switch {
		case i >= n: // kernels before 2.6.35 have fewer numbers than names
			if r.slots[c] > 0 {
				out.Clear(int(r.slots[c] - 1))
			}
			continue
		case r.slots[c] == 0:
			if column.silent && v[i] == 0 {
				continue
			}
			r.slots[c] = int32(out.Add(&column.metric, Label{"cpu", strconv.Itoa(s.cpus[row])})) + 1
		}
		out.Set(int(r.slots[c]-1), int64(v[i]))
	}
}

func (r *conntrackCPURow) clear(out *Out) {
	for _, slot := range r.slots {
		if slot > 0 {
			out.Clear(int(slot - 1))
		}
	}
}

func (s *conntrackCPU) Close() error {
	s.file.close()
	s.possible.close()
	return nil
}
