package collectors

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
)

var buddyBlocks = Metric{Name: "node_buddyinfo_blocks", Type: Gauge, Help: "Count of free blocks according to size."}

const (
	// maxOrders bounds the sizes of a zone; kernels have 11, some architectures more.
	maxOrders = 64
	maxZones  = 1024
)

type buddyRow struct {
	node, zone string
	slots      [maxOrders]int32
	known, n   int // sizes that have a slot, and of the last read
}

// buddyinfo reads lines like Node 0, zone DMA 3 169 … (frag_show in mm/vmstat.c).
type buddyinfo struct {
	*file
	faults faults
	rows   *table[buddyRow]
	key    []byte
}

func newBuddyinfo(env Env) (Source, error) {
	f, err := openRows(filepath.Join(env.Procfs, "buddyinfo"), 2<<10, rowRecord)
	if err != nil {
		return nil, err
	}
	return &buddyinfo{file: f, faults: newFaults(env, "buddyinfo"), rows: newTable[buddyRow](maxZones)}, nil
}

func (s *buddyinfo) Read(out *Out) error {
	text, err := s.file.readInto(out)
	if err != nil {
		return err
	}
	return s.parse(out, text)
}

func (s *buddyinfo) parse(out *Out, text []byte) error {
	s.rows.begin()
	rows := 0
	for len(text) > 0 {
		var line []byte
		var whole bool
		line, text, whole = cutLine(text)
		if len(trim(line)) == 0 {
			continue
		}
		if s.row(out, line, whole) {
			rows++
		}
	}
	s.rows.end(func(r *buddyRow) { r.clear(out, 0) })
	if rows == 0 {
		return fmt.Errorf("read %s: no row is known", s.path)
	}
	return nil
}

func (s *buddyinfo) row(out *Out, line []byte, whole bool) bool {
	node, zone, rest, ok := cutZone(line)
	var v [maxOrders]uint64
	n, _, f := numbers(rest, 0, v[:])
	if !ok || f == bad || n == 0 {
		s.faults.badRow(out, line)
		return false
	}
	s.key = append(append(append(s.key[:0], node...), ' '), zone...)
	r, state := s.rows.find(s.key)
	if r == nil {
		s.faults.refused(out, state, line)
		return false
	}
	if state == rowNew {
		r.node, r.zone = string(node), label(zone)
	}
	if !whole && n < r.n {
		s.faults.badRow(out, line)
		r.clear(out, 0)
		return false
	}
	for i := range n {
		if i == r.known {
			r.slots[i] = int32(out.Add(&buddyBlocks, Label{"node", r.node}, Label{"size", strconv.Itoa(i)}, Label{"zone", r.zone}))
			r.known++
		}
		out.Set(int(r.slots[i]), int64(v[i]))
	}
	if n < r.n {
		r.clear(out, n)
	}
	r.n = n
	return true
}

// cutZone takes a line apart that begins like Node 0, zone   Normal.
func cutZone(line []byte) (node, zone, rest []byte, ok bool) {
	line, isNode := bytes.CutPrefix(line, []byte("Node "))
	node, rest, both := bytes.Cut(line, []byte(", zone "))
	node = trim(node)
	start, end := field(rest, 0)
	return node, rest[start:end], rest[end:], isNode && both && allDigits(node) && start < end
}

// clear makes the sizes from n on absent.
func (r *buddyRow) clear(out *Out, n int) {
	for _, slot := range r.slots[min(n, r.known):r.known] {
		out.Clear(int(slot))
	}
	r.n = n
}
