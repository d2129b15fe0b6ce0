package collectors

import (
	"bytes"
	"fmt"
)

var arpEntries = Metric{Name: "node_arp_entries", Type: Gauge, Help: "ARP entries by device"}

type arpRow struct {
	slot int32 // slot + 1; 0 is left out
	n    int64 // entries so far in this read
}

// arp counts the neighbours of each device in net/arp, whose last column is the
// device (arp_format_neigh_entry in net/ipv4/arp.c).
type arp struct {
	*file
	faults faults
	filter filter
	rows   *table[arpRow]
}

func newArp(env Env) (Source, error) {
	if err := hostNet(env); err != nil {
		return nil, err
	}
	f, err := openRows(procNet(env, "arp"), 4<<10, rowRecord)
	if err != nil {
		return nil, err
	}
	f.max = maxWalkBytes
	return &arp{file: f, faults: newFaults(env, "arp"), filter: env.filter("arp.device", ""),
		rows: newTable[arpRow](maxInterfaces)}, nil
}

func (s *arp) Read(out *Out) error {
	text, err := s.file.readInto(out)
	if err != nil {
		return err
	}
	return s.parse(out, text)
}

func (s *arp) parse(out *Out, text []byte) error {
	const columns = 6
	head, text, _ := cutLine(text)
	if !bytes.HasPrefix(head, []byte("IP address")) {
		return fmt.Errorf("read %s: %w", s.path, errNoTable)
	}
	s.rows.begin()
	for len(text) > 0 {
		var line, device []byte
		line, text, _ = cutLine(text)
		n := 0
		for start, end := field(line, 0); start < end; start, end = field(line, end) {
			device = line[start:end]
			n++
		}
		if n == columns {
			s.count(out, device)
		} else if n > 0 {
			s.faults.badRow(out, line)
		}
	}
	s.rows.end(func(r *arpRow) {
		if r.slot > 0 {
			out.Clear(int(r.slot - 1))
		}
	})
	for _, i := range s.rows.order {
		if r := &s.rows.rows[i].row; r.slot > 0 {
			out.Set(int(r.slot-1), r.n)
		}
	}
	return nil
}

// count adds one to the device's entries.
func (s *arp) count(out *Out, device []byte) {
	// Entries of one device need not follow each other, so here a row that is there
	// twice is the same row.
	if i, ok := s.rows.index[string(device)]; ok && s.rows.rows[i].gen == s.rows.gen {
		s.rows.rows[i].row.n++
		return
	}
	r, state := s.rows.find(device)
	if r == nil {
		s.faults.refused(out, state, device)
		return
	}
	if state == rowNew && !s.filter.ignores(label(device)) {
		r.slot = int32(out.Add(&arpEntries, Label{"device", label(device)})) + 1
	}
	r.n = 1
}
