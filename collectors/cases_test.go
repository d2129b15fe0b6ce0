package collectors

import (
	"fmt"
	"strings"
	"testing"
)

// Which test covers which kind of trouble that kernels and machines make:
//
//	a counter steps back by a tick (T01)    TestStatHoldsSmallStepBack, TestNetdevZero
//	a CPU's counters begin anew             TestStatReset
//	columns of every kernel (T02)           TestSoftnetWidths, TestSoftnetOnline, TestDiskstats, TestConntrack,
//	                                        TestConntrackCPU, TestSchedstat, TestGolden (2.6.32 to 6.18)
//	a mount that never answers (T03)        TestFilesystemHangs; e2e TestWhatHangs (real FUSE mounts, also as
//	                                        textfile directory, as a file of lxcfs, as a sensor)
//	one bad textfile among good ones (T04)  TestTextfile, TestTextfileTaken, TestTextfileLarge; e2e TestTextfiles
//	whose network it is (T05)               TestNetdevHostTree, TestWhoseNet, TestHiddenNet, TestContainerSysfs;
//	                                        e2e TestContainerNetwork (a real namespace)
//	32 bits wrap                            TestWraps
//	an interface is reset, or gone and back TestNetdevZero, TestNetdevReturns; e2e TestUnplugged
//	a CPU is unplugged and back             TestStatHotplug, TestInterruptsChange, TestPerf, TestEveryRowReturns
//	lines of 64 KiB                         TestInterruptsLarge, TestStatOddRows, TestLongLines
//	Err:, ERR: and MIS: with one value      TestInterruptsOddRows, TestGolden (linux-5.15-arm)
//	names glued to numbers, odd bytes       TestNetdevOddRows, TestInterruptsOddRows
//	values at the ends of their types       TestStatOddRows, TestNetdevOddRows, TestInterruptsOddRows, TestParseAny
//	files that are cut, empty or huge       TestStatCut, TestFileOddities; exporter/tick TestHugeFiles
//	hidden until they move                  TestInterruptsHidden
//	caps are counted                        TestNetdevCap
//	a source blocks, fails, panics          exporter/tick TestBlocking*, TestOpenHangs, TestPanic, TestDeadlineOfATick
//	the same series after a failure         TestReadAfterFailure

// A counter of 32 bits that wraps is reported as it is, which Prometheus takes for a
// reset: what it adds then is right but for the few counts up to the wrap.
func TestWraps(t *testing.T) {
	tr := newTree(t)
	softnet := func(v uint32) { tr.write("proc/net/softnet_stat", fmt.Sprintf("%08x", v)+softnetLine(13, 0)[8:]) }
	softnet(0xfffffff0)
	p := tr.open("softnet")
	processed := `node_softnet_processed_total{cpu="0"}`
	for _, v := range []uint32{0xfffffff0, 0xffffffff, 5, 6} {
		softnet(v)
		if got := p.read()[processed]; got != float64(v) {
			t.Errorf("softnet: got %v, want %v", got, v)
		}
	}
	p.wantStats(0, 0, 0)

	// Drivers also show a low value for one read, so that an interface's is held once.
	tr.write("proc/net/dev", netdevHead+netdevLine("eth0", 1<<32-1))
	p = tr.open("netdev")
	for _, c := range []struct {
		v    uint64
		want float64
	}{{1<<32 - 1, 1<<32 - 1}, {100, 1<<32 - 1}, {200, 200}, {300, 300}} {
		tr.write("proc/net/dev", netdevHead+netdevLine("eth0", c.v))
		if got := p.read()[rx("eth0")]; got != c.want {
			t.Errorf("netdev: got %v, want %v", got, c.want)
		}
	}
	p.wantStats(0, 1, 0)
}

// rowFiles are files of rows, and the rows that are taken out and put back.
var rowFiles = []struct {
	source, file, head string
	rows               [2]string
}{
	{"stat", "proc/stat", "", [2]string{cpuLine("0", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10), cpuLine("1", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)}},
	{"softnet", "proc/net/softnet_stat", "", [2]string{softnetLine(15, 0), softnetLine(15, 1)}},
	{"schedstat", "proc/schedstat", "version 15\ntimestamp 1\n", [2]string{"cpu0 0 0 0 0 0 0 1 2 3\n", "cpu1 0 0 0 0 0 0 1 2 3\n"}},
	{"diskstats", "proc/diskstats", "", [2]string{"8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n", "8 16 sdb 1 2 3 4 5 6 7 8 9 10 11\n"}},
	{"netdev", "proc/net/dev", netdevHead, [2]string{netdevLine("eth0", 1), netdevLine("usb0", 1)}},
	{"interrupts", "proc/interrupts", " CPU0\n", [2]string{" 24: 5 GIC 1 Level eth0\n", " 25: 5 GIC 2 Level usb0\n"}},
	{"arp", "proc/net/arp", "IP address HW type\n", [2]string{"192.0.2.1 0x1 0x2 02:00:00:00:00:01 * eth0\n", "192.0.2.2 0x1 0x2 02:00:00:00:00:02 * usb0\n"}},
	{"buddyinfo", "proc/buddyinfo", "", [2]string{"Node 0, zone DMA 1 2 3\n", "Node 1, zone DMA 1 2 3\n"}},
	{"meminfo", "proc/meminfo", "", [2]string{"MemTotal: 1 kB\n", "MemFree: 1 kB\n"}},
	{"vmstat", "proc/vmstat", "", [2]string{"pgfault 1\n", "pgmajfault 1\n"}},
}

// A row that goes ends its series, and one that returns is the same series: on every
// kind of file with rows.
func TestEveryRowReturns(t *testing.T) {
	for _, f := range rowFiles {
		t.Run(f.source, func(t *testing.T) {
			tr := newTree(t)
			put := func(text string) { tr.write(f.file, f.head+text) }
			put(f.rows[0] + f.rows[1])
			p := tr.open(f.source)
			both := p.read()
			slots := p.schema.Len()
			put(f.rows[0])
			one := p.read()
			if len(one) == 0 || len(one) >= len(both) {
				t.Errorf("%d series of two rows, then %d of one", len(both), len(one))
			}
			put(f.rows[1] + f.rows[0]) // and in another place
			if got := p.read(); len(got) != len(both) || p.schema.Len() != slots {
				t.Errorf("%d series and %d slots, there were %d and %d", len(got), p.schema.Len(), len(both), slots)
			}
			p.wantStats(0, 0, 0)
		})
	}
}

// A line of 64 KiB costs itself, if anything.
func TestLongLines(t *testing.T) {
	for _, f := range rowFiles {
		t.Run(f.source, func(t *testing.T) {
			tr := newTree(t)
			for _, long := range []string{strings.Repeat("x", 64<<10), strings.Repeat("7 ", 32<<10), "x: " + strings.Repeat("9", 64<<10), "cpu9 " + strings.Repeat("9 ", 32<<10)} {
				tr.write(f.file, f.head+f.rows[0]+long+"\n"+f.rows[1])
				p := tr.open(f.source)
				got := p.read()
				tr.write(f.file, f.head+f.rows[0]+f.rows[1])
				for series, v := range tr.open(f.source).read() {
					if got[series] != v {
						t.Errorf("%.20s…: %s is %v, want %v", long, series, got[series], v)
					}
				}
			}
		})
	}
}
