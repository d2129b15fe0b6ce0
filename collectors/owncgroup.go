package collectors

import (
	"bytes"
	"math"
	"path/filepath"
)

var ownCgroupMetrics = [...]Metric{
	{Name: "ticktier_exporter_cgroup_memory_bytes", Type: Gauge, Unit: "bytes", Kind: Signed,
		Help: "Memory in use in the control group that the exporter runs in."},
	{Name: "ticktier_exporter_cgroup_memory_max_bytes", Type: Gauge, Unit: "bytes", Kind: Signed,
		Help: "Limit on that memory; absent where there is none."},
	{Name: "ticktier_exporter_cgroup_memory_oom_kills_total", Type: Counter, Kind: Signed,
		Help: "Processes of the group killed for want of memory."},
	{Name: "ticktier_exporter_cgroup_cpu_seconds_total", Type: Counter, Unit: "seconds", Kind: Signed, Div: 1e9,
		Help: "CPU time that the group used."},
	{Name: "ticktier_exporter_cgroup_cpu_throttled_seconds_total", Type: Counter, Unit: "seconds", Kind: Signed, Div: 1e9,
		Help: "Time for which a limit on CPU time held the group back."},
}

// ownCgroupFile is where one of ownCgroupMetrics stands, in version 2 or in a
// hierarchy of version 1. key is the word that its line begins with; without one the
// file is the number. It is multiplied by scale.
type ownCgroupFile struct {
	metric     int
	controller string // of version 1; empty is version 2
	file, key  string
	scale      int64
}

var ownCgroupFiles = [...]ownCgroupFile{
	{0, "", "memory.current", "", 1},
	{1, "", "memory.max", "", 1},
	{2, "", "memory.events", "oom_kill", 1},
	{3, "", "cpu.stat", "usage_usec", 1000},
	{4, "", "cpu.stat", "throttled_usec", 1000},
	{0, "memory", "memory.usage_in_bytes", "", 1},
	{1, "memory", "memory.limit_in_bytes", "", 1},
	{2, "memory", "memory.oom_control", "oom_kill", 1},
	{3, "cpuacct", "cpuacct.usage", "", 1},
	{4, "cpu", "cpu.stat", "throttled_time", 1},
}

// noMemoryLimit is less than what version 1 shows as no limit: the largest number of
// whole pages.
const noMemoryLimit = math.MaxInt64 / 2

// ownCgroup reports the control group of this process: what a container's limits do
// to the exporter. A group that does not exist costs nothing.
type ownCgroup struct {
	attrs [len(ownCgroupMetrics)]attr // without a path where there is none
	files [len(ownCgroupMetrics)]*ownCgroupFile
	slots [len(ownCgroupMetrics)]int32 // slot + 1
	keep  keeper
	buf   [attrBytes]byte
}

// openOwnCgroup looks where the process is, in proc/self/cgroup, and for the groups
// under root.
func openOwnCgroup(selfDir, root string) *ownCgroup {
	s := &ownCgroup{keep: keeper{left: len(ownCgroupMetrics)}}
	text, _ := ReadFile(filepath.Join(selfDir, "cgroup"))
	for i := range ownCgroupFiles {
		f := &ownCgroupFiles[i]
		if s.files[f.metric] != nil {
			continue // version 2 has it
		}
		for _, dir := range ownCgroupDirs(text, root, f.controller) {
			// The root of version 2 is the machine's too, and has not this file.
			if f.controller == "" && !exists(filepath.Join(dir, "cgroup.events")) {
				continue
			}
			if path := filepath.Join(dir, f.file); exists(path) {
				s.files[f.metric], s.attrs[f.metric] = f, newAttr(path)
				break
			}
		}
	}
	return s
}

// ownCgroupDirs are the places where the group may be: a line is NUMBER:CONTROLLERS:PATH,
// and in a container the group that it sees as the root is its own. The root of version
// 1 is the machine's, and has the same files.
func ownCgroupDirs(text []byte, root, controller string) []string {
	for line := range bytes.Lines(text) {
		_, rest, _ := bytes.Cut(trim(line), []byte{':'})
		names, path, ok := bytes.Cut(rest, []byte{':'})
		if !ok {
			continue
		}
		// A process outside of the group that it sees as the root is told "/..".
		p := filepath.Join("/", string(path))
		switch {
		case controller == "" && len(names) == 0:
			return []string{filepath.Join(root, p), filepath.Join(root, "unified", p), root}
		case controller != "" && p != "/" && hasWord(names, controller):
			return []string{filepath.Join(root, controller, p), filepath.Join(root, string(names), p), filepath.Join(root, controller)}
		}
	}
	return nil
}

func hasWord(list []byte, word string) bool {
	for part := range bytes.SplitSeq(list, []byte{','}) {
		if string(part) == word {
			return true
		}
	}
	return false
}

func (s *ownCgroup) read(out *Out) {
	for i, f := range s.files {
		if f == nil {
			continue
		}
		text, errno := s.keep.read(&s.attrs[i], s.buf[:])
		out.Stats.Bytes.Add(uint64(len(text)))
		v, ok := keyedValue(text, f.key)
		if errno != 0 || !ok || i == 1 && v >= noMemoryLimit {
			clearSlots(out, s.slots[i])
			continue
		}
		if s.slots[i] == 0 {
			s.slots[i] = int32(out.Add(&ownCgroupMetrics[i])) + 1
		}
		out.Set(int(s.slots[i]-1), v*f.scale)
	}
}

func (s *ownCgroup) close() {
	if s == nil {
		return
	}
	for i := range s.attrs {
		s.keep.drop(&s.attrs[i])
	}
}

// keyedValue is the number behind a word that begins a line, or without a word the
// text that is one number.
func keyedValue(text []byte, key string) (int64, bool) {
	if key == "" {
		return parseValue(text)
	}
	for len(text) > 0 {
		var line []byte
		line, text, _ = cutLine(text)
		if start, end := field(line, 0); string(line[start:end]) == key {
			return parseValue(line[end:])
		}
	}
	return 0, false
}
