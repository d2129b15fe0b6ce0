package collectors

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
)

// meminfoFields are the fields that are exported, as the kernel spells them
// (meminfo_proc_show in fs/proc/meminfo.c, arch_report_meminfo), and the middle of
// their metric's name. The last four are counts of pages, the others kilobytes.
var meminfoFields = [...]struct{ field, name string }{
	{"MemTotal", "MemTotal_bytes"}, {"MemFree", "MemFree_bytes"},
	{"MemAvailable", "MemAvailable_bytes"}, {"Buffers", "Buffers_bytes"},
	{"Cached", "Cached_bytes"}, {"SwapCached", "SwapCached_bytes"},
	{"Active", "Active_bytes"}, {"Inactive", "Inactive_bytes"},
	{"Active(anon)", "Active_anon_bytes"}, {"Inactive(anon)", "Inactive_anon_bytes"},
	{"Active(file)", "Active_file_bytes"}, {"Inactive(file)", "Inactive_file_bytes"},
	{"Unevictable", "Unevictable_bytes"}, {"Mlocked", "Mlocked_bytes"},
	{"SwapTotal", "SwapTotal_bytes"}, {"SwapFree", "SwapFree_bytes"},
	{"Zswap", "Zswap_bytes"}, {"Zswapped", "Zswapped_bytes"},
	{"Dirty", "Dirty_bytes"}, {"Writeback", "Writeback_bytes"},
	{"AnonPages", "AnonPages_bytes"}, {"Mapped", "Mapped_bytes"}, {"Shmem", "Shmem_bytes"},
	{"Slab", "Slab_bytes"}, {"SReclaimable", "SReclaimable_bytes"},
	{"SUnreclaim", "SUnreclaim_bytes"}, {"KernelStack", "KernelStack_bytes"},
	{"PageTables", "PageTables_bytes"}, {"NFS_Unstable", "NFS_Unstable_bytes"},
	{"Bounce", "Bounce_bytes"}, {"WritebackTmp", "WritebackTmp_bytes"},
	{"CommitLimit", "CommitLimit_bytes"}, {"Committed_AS", "Committed_AS_bytes"},
	{"VmallocTotal", "VmallocTotal_bytes"}, {"VmallocUsed", "VmallocUsed_bytes"},
	{"VmallocChunk", "VmallocChunk_bytes"}, {"Percpu", "Percpu_bytes"},
	{"HardwareCorrupted", "HardwareCorrupted_bytes"}, {"AnonHugePages", "AnonHugePages_bytes"},
	{"ShmemHugePages", "ShmemHugePages_bytes"}, {"ShmemPmdMapped", "ShmemPmdMapped_bytes"},
	{"CmaTotal", "CmaTotal_bytes"}, {"CmaFree", "CmaFree_bytes"},
	{"Hugepagesize", "Hugepagesize_bytes"}, {"DirectMap4k", "DirectMap4k_bytes"},
	{"DirectMap2M", "DirectMap2M_bytes"}, {"DirectMap1G", "DirectMap1G_bytes"},
	{"HugePages_Total", "HugePages_Total"}, {"HugePages_Free", "HugePages_Free"},
	{"HugePages_Rsvd", "HugePages_Rsvd"}, {"HugePages_Surp", "HugePages_Surp"},
}

// maxFields bounds the rows of a file of names and values.
const maxFields = 1024

// fieldRow is a row of a name and a value; slot is 0 when it is not exported, else
// the slot + 1.
type fieldRow struct{ slot int32 }

func (r *fieldRow) clear(out *Out) {
	if r.slot > 0 {
		out.Clear(int(r.slot - 1))
	}
}

type meminfo struct {
	*file
	faults faults
	rows   *table[fieldRow]
}

func newMeminfo(env Env) (Source, error) {
	f, err := openFile(filepath.Join(env.Procfs, "meminfo"), 4<<10, true)
	if err != nil {
		return nil, err
	}
	return &meminfo{file: f, faults: newFaults(env, "meminfo"), rows: newTable[fieldRow](maxFields)}, nil
}

func (s *meminfo) Read(out *Out) error {
	text, err := s.file.readInto(out)
	if err != nil {
		return err
	}
	return s.parse(out, text)
}

func (s *meminfo) parse(out *Out, text []byte) error {
	s.rows.begin()
	for len(text) > 0 {
		var line []byte
		line, text, _ = cutLine(text)
		if len(trim(line)) > 0 {
			s.row(out, line)
		}
	}
	known := s.rows.pos
	s.rows.end(func(r *fieldRow) { r.clear(out) })
	if known == 0 {
		return fmt.Errorf("read %s: no row is known", s.path)
	}
	return nil
}

func (s *meminfo) row(out *Out, line []byte) {
	colon := bytes.IndexByte(line, ':')
	if colon < 0 {
		s.faults.badRow(out, line)
		return
	}
	v, next, f := number(line, colon+1)
	unit := trim(line[next:])
	if f == good && len(unit) > 0 {
		if string(unit) != "kB" || v > math.MaxUint64>>10 {
			f = bad
		}
		v <<= 10
	}
	if f != good {
		s.faults.badRow(out, line)
		return
	}
	r, state := s.rows.find(line[:colon])
	if r == nil {
		s.faults.refused(out, state, line)
		return
	}
	if state == rowNew {
		if m := meminfoMetric(string(line[:colon])); m != nil {
			r.slot = int32(out.Add(m)) + 1
		}
	}
	if r.slot > 0 {
		out.Set(int(r.slot-1), int64(v))
	}
}

// meminfoMetric is the metric of a field, or nil where it is not exported.
func meminfoMetric(field string) *Metric {
	for _, f := range meminfoFields {
		if f.field == field {
			return &Metric{Name: "node_memory_" + f.name, Type: Gauge,
				Help: "Memory information field " + f.name + "."}
		}
	}
	return nil
}
