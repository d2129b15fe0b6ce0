package collectors

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
)

// zoneFields are the fields of /proc/zoneinfo that are exported, by the word that
// they begin with (zoneinfo_show_print in mm/vmstat.c).
var zoneFields = map[string]Metric{
	"nr_free_pages":    zoneMetric("nr_free_pages", "Total number of free pages in the zone"),
	"min":              zoneMetric("min_pages", "Zone watermark pages_min"),
	"low":              zoneMetric("low_pages", "Zone watermark pages_low"),
	"high":             zoneMetric("high_pages", "Zone watermark pages_high"),
	"scanned":          zoneMetric("scanned_pages", "Pages scanned since last reclaim"),
	"spanned":          zoneMetric("spanned_pages", "Total pages spanned by the zone, including holes"),
	"present":          zoneMetric("present_pages", "Physical pages existing within the zone"),
	"managed":          zoneMetric("managed_pages", "Present pages managed by the buddy system"),
	"nr_active_anon":   zoneMetric("nr_active_anon_pages", "Number of anonymous pages recently more used"),
	"nr_inactive_anon": zoneMetric("nr_inactive_anon_pages", "Number of anonymous pages recently less used"),
	"nr_isolated_anon": zoneMetric("nr_isolated_anon_pages", "Temporary isolated pages from anon lru"),
	"nr_anon_pages":    zoneMetric("nr_anon_pages", "Number of anonymous pages currently used by the system"),
	"nr_anon_transparent_hugepages": zoneMetric("nr_anon_transparent_hugepages",
		"Number of anonymous transparent huge pages currently used by the system"),
	"nr_active_file":        zoneMetric("nr_active_file_pages", "Number of active pages with file-backing"),
	"nr_inactive_file":      zoneMetric("nr_inactive_file_pages", "Number of inactive pages with file-backing"),
	"nr_isolated_file":      zoneMetric("nr_isolated_file_pages", "Temporary isolated pages from file lru"),
	"nr_file_pages":         zoneMetric("nr_file_pages", "Number of file pages"),
	"nr_slab_reclaimable":   zoneMetric("nr_slab_reclaimable_pages", "Number of reclaimable slab pages"),
	"nr_slab_unreclaimable": zoneMetric("nr_slab_unreclaimable_pages", "Number of unreclaimable slab pages"),
	"nr_mlock_stack":        zoneMetric("nr_mlock_stack_pages", "mlock()ed pages found and moved off LRU"),
	"nr_kernel_stack":       zoneMetric("nr_kernel_stacks", "Number of kernel stacks"),
	"nr_mapped":             zoneMetric("nr_mapped_pages", "Number of mapped pages"),
	"nr_dirty":              zoneMetric("nr_dirty_pages", "Number of dirty pages"),
	"nr_writeback":          zoneMetric("nr_writeback_pages", "Number of writeback pages"),
	"nr_unevictable":        zoneMetric("nr_unevictable_pages", "Number of unevictable pages"),
	"nr_shmem":              zoneMetric("nr_shmem_pages", "Number of shmem pages (included tmpfs/GEM pages)"),
	"nr_dirtied":            zoneCounter("nr_dirtied_total", "Page dirtyings since bootup"),
	"nr_written":            zoneCounter("nr_written_total", "Page writings since bootup"),
	"numa_hit":              zoneCounter("numa_hit_total", "Allocated in intended node"),
	"numa_miss":             zoneCounter("numa_miss_total", "Allocated in non intended node"),
	"numa_foreign":          zoneCounter("numa_foreign_total", "Was intended here, hit elsewhere"),
	"numa_interleave":       zoneCounter("numa_interleave_total", "Interleaver preferred this zone"),
	"numa_local":            zoneCounter("numa_local_total", "Allocation from local node"),
	"numa_other":            zoneCounter("numa_other_total", "Allocation from other node"),
}

func zoneMetric(name, help string) Metric {
	return Metric{Name: "node_zoneinfo_" + name, Type: Gauge, Kind: Signed, Help: help}
}

func zoneCounter(name, help string) Metric {
	m := zoneMetric(name, help)
	m.Type = Counter
	return m
}

// maxProtections bounds the array that a zone has, one number for each zone of the
// node; kernels have up to six.
const maxProtections = 16

type zoneRow struct {
	node, zone string
	fields     *table[fieldRow]
	protection [maxProtections]int32 // slot + 1
}

// zoneinfo reads /proc/zoneinfo. The first zone of a node also has the figures of
// the node.
type zoneinfo struct {
	*file
	faults faults
	rows   *table[zoneRow]
	key    []byte
}

func newZoneinfo(env Env) (Source, error) {
	f, err := openFile(filepath.Join(env.Procfs, "zoneinfo"), 16<<10, false)
	if err != nil {
		return nil, err
	}
	return &zoneinfo{file: f, faults: newFaults(env, "zoneinfo"), rows: newTable[zoneRow](maxZones)}, nil
}

func (s *zoneinfo) Read(out *Out) error {
	text, err := s.file.readInto(out)
	if err != nil {
		return err
	}
	return s.parse(out, text)
}

func (s *zoneinfo) parse(out *Out, text []byte) error {
	s.rows.begin()
	var r *zoneRow
	zones, skip := 0, false
	for len(text) > 0 {
		var line []byte
		line, text, _ = cutLine(text)
		if bytes.HasPrefix(line, []byte("Node ")) {
			r.end(out)
			r, skip = s.zone(out, line), false
			if r != nil {
				zones++
			}
			continue
		}
		start, end := field(line, 0)
		word := line[start:end]
		switch {
		case r == nil || start == end:
		case string(word) == "pagesets":
			// What follows is for each CPU, under words that zones have too.
			skip = true
		case string(word) == "protection:":
			r.protect(out, line[end:])
		case !skip:
			s.figure(out, r, word, line, end)
		}
	}
	r.end(out)
	s.rows.end(func(r *zoneRow) {
		r.fields.begin()
		r.end(out)
		r.protect(out, nil)
	})
	if zones == 0 {
		return fmt.Errorf("read %s: no zone is known", s.path)
	}
	return nil
}

// zone begins a zone: Node 0, zone   Normal.
func (s *zoneinfo) zone(out *Out, line []byte) *zoneRow {
	node, zone, _, ok := cutZone(line)
	if !ok {
		s.faults.badRow(out, line)
		return nil
	}
	s.key = append(append(append(s.key[:0], node...), ' '), zone...)
	r, state := s.rows.find(s.key)
	if r == nil {
		s.faults.refused(out, state, line)
		return nil
	}
	if state == rowNew {
		r.node, r.zone, r.fields = string(node), label(zone), newTable[fieldRow](maxFields)
	}
	r.fields.begin()
	return r
}

// figure handles a line like nr_dirty 12. "pages free" is two words of which only the
// second counts, and is not exported.
func (s *zoneinfo) figure(out *Out, r *zoneRow, word, line []byte, end int) {
	f, state := r.fields.find(word)
	if f == nil {
		if state == rowOver {
			s.faults.overflow(out, line)
		}
		return
	}
	if state == rowNew {
		if m, ok := zoneFields[string(word)]; ok {
			f.slot = int32(out.Add(&m, Label{"node", r.node}, Label{"zone", r.zone})) + 1
		}
	}
	if f.slot == 0 {
		return
	}
	v, _, st := signedNumber(line, end)
	if st != good {
		s.faults.badRow(out, line)
		f.clear(out)
		return
	}
	out.Set(int(f.slot-1), v)
}

// protect reads (0, 2991, 18070) and clears what is not there.
func (r *zoneRow) protect(out *Out, list []byte) {
	n, at := 0, 0
	for n < maxProtections {
		for at < len(list) && (blank(list[at]) || list[at] == '(' || list[at] == ',') {
			at++
		}
		end := at
		for end < len(list) && list[end]-'0' <= 9 {
			end++
		}
		v, ok := parseValue(list[at:end])
		if !ok {
			break
		}
		if r.protection[n] == 0 {
			name := "protection_" + strconv.Itoa(n)
			m := zoneMetric(name, "Protection array "+strconv.Itoa(n)+". field")
			r.protection[n] = int32(out.Add(&m, Label{"node", r.node}, Label{"zone", r.zone})) + 1
		}
		out.Set(int(r.protection[n]-1), v)
		at = end
		n++
	}
	for ; n < maxProtections; n++ {
		if r.protection[n] > 0 {
			out.Clear(int(r.protection[n] - 1))
		}
	}
}

func (r *zoneRow) end(out *Out) {
	if r != nil {
		r.fields.end(func(f *fieldRow) { f.clear(out) })
	}
}
