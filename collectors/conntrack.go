package collectors

import (
	"bytes"
	"errors"
	"path/filepath"
)

var (
	conntrackEntries = Metric{Name: "node_nf_conntrack_entries", Type: Gauge, Kind: Signed,
		Help: "Number of currently allocated flow entries for connection tracking."}
	conntrackLimit = Metric{Name: "node_nf_conntrack_entries_limit", Type: Gauge, Kind: Signed,
		Help: "Maximum size of connection tracking table."}
)

// conntrackStats are the columns of net/stat/nf_conntrack that are exported, summed
// over the CPUs. They count, but node_exporter calls them gauges, and so do we.
var conntrackStats = [...]struct {
	column string
	metric Metric
}{
	{"found", conntrackMetric("found", "Number of searched entries which were successful.")},
	{"invalid", conntrackMetric("invalid", "Number of packets seen which can not be tracked.")},
	{"ignore", conntrackMetric("ignore", "Number of packets seen which are already connected to a conntrack entry.")},
	{"insert", conntrackMetric("insert", "Number of entries inserted into the list.")},
	{"insert_failed", conntrackMetric("insert_failed",
		"Number of entries for which list insertion was attempted but failed.")},
	{"drop", conntrackMetric("drop", "Number of packets dropped due to conntrack failure.")},
	{"early_drop", conntrackMetric("early_drop",
		"Number of dropped conntrack entries to make room for new ones, if maximum table size was reached.")},
	{"search_restart", conntrackMetric("search_restart",
		"Number of conntrack table lookups which had to be restarted due to hashtable resizes.")},
}

func conntrackMetric(name, help string) Metric {
	return Metric{Name: "node_nf_conntrack_stat_" + name, Type: Gauge, Help: help}
}

// maxConntrackColumns is more than any kernel prints; 17 up to Linux 6.
const maxConntrackColumns = 64

type conntrack struct {
	count, limit *valueFile
	stat         *file
	faults       faults

	header  []byte
	columns [maxConntrackColumns]int8 // index in conntrackStats + 1; 0 is not exported
	width   int
	slots   [len(conntrackStats)]int32 // slot + 1
}

func newConntrack(env Env) (Source, error) {
	if !env.ContainerNetwork && sysctlNet(env) == netnsContainer {
		return nil, errContainerNet
	}
	dir := filepath.Join(env.Procfs, "sys/net/netfilter")
	s := &conntrack{
		count:  newValueFile(filepath.Join(dir, "nf_conntrack_count"), &conntrackEntries),
		limit:  newValueFile(filepath.Join(dir, "nf_conntrack_max"), &conntrackLimit),
		stat:   laterRows(procNet(env, "stat/nf_conntrack"), 4<<10, rowRecord),
		faults: newFaults(env, "conntrack"),
	}
	return s, s.count.open() // the module may not be loaded
}

func (s *conntrack) Read(out *Out) error {
	if err := s.count.read(out); err != nil {
		return err
	}
	if err := s.limit.read(out); err != nil {
		return err
	}
	text, err := s.stat.readInto(out)
	if errors.Is(err, ErrTooLarge) {
		return err
	}
	if err != nil {
		text = nil // not compiled in
	}
	s.parse(out, text)
	return nil
}

// parse adds up the hexadecimal columns of all CPUs (ct_cpu_seq_show in
// net/netfilter/nf_conntrack_standalone.c). Columns are told by their names.
func (s *conntrack) parse(out *Out, text []byte) {
	var sums [len(conntrackStats)]uint64
	var seen [len(conntrackStats)]bool
	line, text, _ := cutLine(text)
	if !bytes.Equal(line, s.header) {
		s.learn(line)
	}
	for len(text) > 0 {
		line, text, _ = cutLine(text)
		s.row(out, line, &sums, &seen)
	}
	for i := range sums {
		switch {
		case seen[i]:
			if s.slots[i] == 0 {
				s.slots[i] = int32(out.Add(&conntrackStats[i].metric)) + 1
			}
			out.Set(int(s.slots[i]-1), int64(sums[i]))
		case s.slots[i] > 0:
			out.Clear(int(s.slots[i] - 1))
		}
	}
}

func (s *conntrack) learn(line []byte) {
	s.header = append(s.header[:0], line...)
	s.columns = [maxConntrackColumns]int8{}
	s.width = 0
	for start, end := field(line, 0); start < end && s.width < maxConntrackColumns; start, end = field(line, end) {
		for i := range conntrackStats {
			if string(line[start:end]) == conntrackStats[i].column {
				s.columns[s.width] = int8(i + 1)
			}
		}
		s.width++
	}
}

func (s *conntrack) row(out *Out, line []byte, sums *[len(conntrackStats)]uint64, seen *[len(conntrackStats)]bool) {
	var v [maxConntrackColumns]uint64
	n, f := hexes(line, v[:s.width])
	if f == bad {
		s.faults.badRow(out, line)
		return
	}
	for i := range n {
		if c := s.columns[i]; c > 0 {
			sums[c-1] += v[i]
			seen[c-1] = true
		}
	}
}

func (s *conntrack) Close() error {
	s.count.close()
	s.limit.close()
	s.stat.close()
	return nil
}
