package collectors

import (
	"os"
	"path/filepath"
	"testing"
)

// fuzzSeeds adds the file of every device.
func fuzzSeeds(f *testing.F, name string) {
	f.Helper()
	for _, device := range devices(f) {
		if text, err := os.ReadFile(filepath.Join("testdata", device, name)); err == nil {
			f.Add(text)
		}
	}
	f.Add([]byte(""))
	f.Add([]byte("\n\n"))
	f.Add([]byte("a: 18446744073709551616 -1\x00\n"))
}

// fuzzSource feeds text to a source whole, then cut in half, then whole again, as a
// kernel whose rows go and come would. No series may be there twice, and no row may
// get new slots when it returns.
func fuzzSource(f *testing.F, file string, open func() (Source, func(*Out, []byte) error)) {
	fuzzSeeds(f, file)
	f.Fuzz(func(t *testing.T, text []byte) {
		src, parse := open()
		p := newProbe(t, src)
		_ = parse(p.out, text)
		p.present()
		_ = parse(p.out, text[:len(text)/2])
		p.present()
		_ = parse(p.out, text)
		slots := p.schema.Len()
		p.present()
		_ = parse(p.out, text[:len(text)/2])
		_ = parse(p.out, text)
		if n := p.schema.Len(); n != slots {
			t.Errorf("got %d slots, then %d", slots, n)
		}
	})
}

func FuzzStat(f *testing.F) {
	fuzzSource(f, "proc/stat", func() (Source, func(*Out, []byte) error) {
		s := &stat{file: &file{fd: -1}, faults: newFaults(Env{}, "stat"), cpus: newTable[cpuRow](64)}
		return s, s.parse
	})
}

func FuzzSoftnet(f *testing.F) {
	fuzzSource(f, "proc/net/softnet_stat", func() (Source, func(*Out, []byte) error) {
		s := &softnet{file: &file{fd: -1}, faults: newFaults(Env{}, "softnet"), rows: newTable[softnetRow](64)}
		return s, s.parse
	})
}

func FuzzSoftirqs(f *testing.F) {
	fuzzSource(f, "proc/softirqs", func() (Source, func(*Out, []byte) error) {
		s := &softirqs{file: &file{fd: -1}, matrix: softirqsMatrix(Env{}, "")}
		return s, s.matrix.parse
	})
}

func FuzzInterrupts(f *testing.F) {
	fuzzSource(f, "proc/interrupts", func() (Source, func(*Out, []byte) error) {
		s := &interrupts{file: &file{fd: -1}}
		s.matrix = s.newMatrix(Env{})
		return s, s.matrix.parse
	})
}

func FuzzNetdev(f *testing.F) {
	fuzzSource(f, "proc/net/dev", func() (Source, func(*Out, []byte) error) {
		s := &netdev{file: &file{fd: -1}, faults: newFaults(Env{}, "netdev"), rows: newTable[netdevRow](64)}
		return s, s.parse
	})
}

func FuzzMeminfo(f *testing.F) {
	fuzzSource(f, "proc/meminfo", func() (Source, func(*Out, []byte) error) {
		s := &meminfo{file: &file{fd: -1}, faults: newFaults(Env{}, "meminfo"), rows: newTable[fieldRow](64)}
		return s, s.parse
	})
}

func FuzzVmstat(f *testing.F) {
	fuzzSource(f, "proc/vmstat", func() (Source, func(*Out, []byte) error) {
		s := &vmstat{file: &file{fd: -1}, faults: newFaults(Env{}, "vmstat"),
			fields: pattern(vmstatFields), rows: newTable[fieldRow](64)}
		return s, s.parse
	})
}

func FuzzDiskstats(f *testing.F) {
	fuzzSource(f, "proc/diskstats", func() (Source, func(*Out, []byte) error) {
		s := &diskstats{file: &file{fd: -1}, faults: newFaults(Env{}, "diskstats"),
			filter: filter{exclude: pattern(diskExclude)}, rows: newTable[diskRow](64)}
		return s, func(out *Out, text []byte) error { s.parse(out, text); return nil }
	})
}

func FuzzLoadavg(f *testing.F) {
	fuzzSource(f, "proc/loadavg", func() (Source, func(*Out, []byte) error) {
		s := &loadavg{file: &file{fd: -1}}
		return s, s.parse
	})
}

func FuzzPressure(f *testing.F) {
	fuzzSource(f, "proc/pressure/io", func() (Source, func(*Out, []byte) error) {
		s := &pressure{faults: newFaults(Env{}, "pressure")}
		file := pressureFiles[1].open(&file{fd: -1})
		return s, func(out *Out, text []byte) error { s.parse(out, file, text); return nil }
	})
}

func FuzzExporter(f *testing.F) {
	fuzzSource(f, "proc/self/stat", func() (Source, func(*Out, []byte) error) {
		s := &exporter{stat: &file{fd: -1}, fds: fdCount{newDir("")}, btime: 1, page: 4096}
		return s, func(out *Out, text []byte) error {
			if !s.known {
				s.add(out)
			}
			return s.parse(out, text)
		}
	})
}

func FuzzCPUList(f *testing.F) {
	f.Add([]byte("0-3,5\n"))
	f.Add([]byte("0-8191,1-8191"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if n := len(cpuList(text)); n > maxCPUs {
			t.Errorf("got %d CPUs", n)
		}
	})
}

func FuzzBtime(f *testing.F) {
	fuzzSeeds(f, "proc/stat")
	f.Fuzz(func(t *testing.T, text []byte) { findBtime(text) })
}

func FuzzDirectoryEntries(f *testing.F) {
	f.Add(make([]byte, 64))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		entries(b, func(_ uint64, name []byte, _ bool) { n += dirEntry + len(name) })
		if n > len(b) {
			t.Errorf("got %d bytes of entries in %d bytes", n, len(b))
		}
	})
}

func FuzzNetstat(f *testing.F) {
	fuzzSource(f, "proc/net/snmp", func() (Source, func(*Out, []byte) error) {
		s := &netstat{pairs: [2]*file{{fd: -1}, {fd: -1}}, six: &file{fd: -1}, faults: newFaults(Env{}, "netstat"),
			fields: pattern(netstatFields), sixRows: newTable[fieldRow](64)}
		rows := newTable[netstatRow](64)
		return s, func(out *Out, text []byte) error { s.parsePairs(out, rows, text); return nil }
	})
}

func FuzzSnmp6(f *testing.F) {
	fuzzSource(f, "proc/net/snmp6", func() (Source, func(*Out, []byte) error) {
		s := &netstat{pairs: [2]*file{{fd: -1}, {fd: -1}}, six: &file{fd: -1}, faults: newFaults(Env{}, "netstat"),
			fields: pattern(netstatFields), sixRows: newTable[fieldRow](64)}
		return s, func(out *Out, text []byte) error { s.parseSix(out, text); return nil }
	})
}

func FuzzSockstat(f *testing.F) {
	fuzzSource(f, "proc/net/sockstat", func() (Source, func(*Out, []byte) error) {
		s := &sockstat{files: [2]*file{{fd: -1}, {fd: -1}}, faults: newFaults(Env{}, "sockstat"),
			rows: newTable[sockstatRow](64), page: 4096}
		return s, func(out *Out, text []byte) error {
			s.rows.begin()
			s.parse(out, text)
			s.rows.end(func(r *sockstatRow) { r.clear(out) })
			return nil
		}
	})
}

func FuzzConntrack(f *testing.F) {
	f.Add([]byte("entries found\n0000000c 0000000a\n"))
	fuzzSource(f, "proc/net/stat/nf_conntrack", func() (Source, func(*Out, []byte) error) {
		s := &conntrack{count: newValueFile("", &conntrackEntries), limit: newValueFile("", &conntrackLimit),
			stat: &file{fd: -1}, faults: newFaults(Env{}, "conntrack")}
		return s, func(out *Out, text []byte) error { s.parse(out, text); return nil }
	})
}

func FuzzConntrackCPU(f *testing.F) {
	f.Add([]byte("entries found new\n0000000c 0000000a 1\nc b 0\n"))
	fuzzSource(f, "proc/net/stat/nf_conntrack", func() (Source, func(*Out, []byte) error) {
		s := &conntrackCPU{file: &file{fd: -1}, faults: newFaults(Env{}, "conntrack_cpu"), possible: &file{fd: -1},
			cpus: []int{0, 1}, rows: make([]conntrackCPURow, 2)}
		return s, s.parse
	})
}

func FuzzSchedstat(f *testing.F) {
	fuzzSource(f, "proc/schedstat", func() (Source, func(*Out, []byte) error) {
		s := &schedstat{file: &file{fd: -1}, faults: newFaults(Env{}, "schedstat"), rows: newTable[schedstatRow](64)}
		return s, s.parse
	})
}

func FuzzARP(f *testing.F) {
	fuzzSource(f, "proc/net/arp", func() (Source, func(*Out, []byte) error) {
		s := &arp{file: &file{fd: -1}, faults: newFaults(Env{}, "arp"), rows: newTable[arpRow](64)}
		return s, s.parse
	})
}

func FuzzUDP(f *testing.F) {
	fuzzSource(f, "proc/net/udp", func() (Source, func(*Out, []byte) error) {
		s := &udp{faults: newFaults(Env{}, "udp")}
		s.files[0].file, s.files[1].file = &file{fd: -1}, &file{fd: -1}
		return s, func(out *Out, text []byte) error { s.parse(out, &s.files[0], text); return nil }
	})
}

func FuzzFilefd(f *testing.F) {
	fuzzSource(f, "proc/sys/fs/file-nr", func() (Source, func(*Out, []byte) error) {
		s := &filefd{file: &file{fd: -1}}
		return s, s.parse
	})
}

func FuzzValue(f *testing.F) {
	f.Add([]byte("-9223372036854775808\n"))
	f.Add([]byte("9223372036854775807"))
	f.Fuzz(func(t *testing.T, text []byte) { parseValue(text) })
}
