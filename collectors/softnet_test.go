package collectors

import (
	"fmt"
	"strings"
	"testing"
)

// softnetLine has n columns of which the known ones hold 1 to 9 and the CPU's id.
func softnetLine(n, cpu int) string {
	v := [softnetMaxColumns]int{0: 1, 1: 2, 2: 3, 8: 4, 9: 5, 10: 6, 11: 7, softnetCPUColumn: cpu, 13: 8, 14: 9}
	cols := make([]string, n)
	for i := range cols {
		cols[i] = fmt.Sprintf("%08x", v[i])
	}
	return strings.Join(cols, " ") + "\n"
}

// Every width that kernels had: columns that are not there are absent, and the CPU's
// id is the kernel's where it says it.
func TestSoftnetWidths(t *testing.T) {
	names := []string{"processed_total", "dropped_total", "times_squeezed_total", "cpu_collision_total",
		"received_rps_total", "flow_limit_count_total", "backlog_len", "input_queue_len", "process_queue_len"}
	for _, test := range []struct{ width, metrics int }{{9, 4}, {10, 5}, {11, 6}, {13, 7}, {15, 9}} {
		t.Run(fmt.Sprint(test.width), func(t *testing.T) {
			tr := newTree(t)
			cpus := []int{0, 1, 2}
			if test.width > softnetCPUColumn {
				cpus = []int{0, 1, 3}
			}
			text := ""
			wanted := map[string]float64{}
			for _, cpu := range cpus {
				text += softnetLine(test.width, cpu)
				for i, name := range names[:test.metrics] {
					wanted[fmt.Sprintf("node_softnet_%s{cpu=%q}", name, fmt.Sprint(cpu))] = float64(i + 1)
				}
			}
			tr.write("proc/net/softnet_stat", text)
			p := tr.open("softnet")
			want(t, p.read(), "", wanted)
			p.wantStats(0, 0, 0)
		})
	}
}

// Without an id in the row, the n-th row is the n-th CPU that is online.
func TestSoftnetOnline(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/net/softnet_stat", strings.Repeat(softnetLine(11, 0), 3))
	tr.write("sys/devices/system/cpu/online", "0,2-3\n")
	p := tr.open("softnet")
	want(t, p.read(), "processed", map[string]float64{`node_softnet_processed_total{cpu="0"}`: 1,
		`node_softnet_processed_total{cpu="2"}`: 1, `node_softnet_processed_total{cpu="3"}`: 1})
	tr.write("sys/devices/system/cpu/online", "0,3\n")
	tr.write("proc/net/softnet_stat", strings.Repeat(softnetLine(11, 0), 2))
	want(t, p.read(), "processed", map[string]float64{`node_softnet_processed_total{cpu="0"}`: 1,
		`node_softnet_processed_total{cpu="3"}`: 1})
}

func TestSoftnetOddRows(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/net/softnet_stat", softnetLine(13, 0)+"zzzz 1 2\n"+softnetLine(2, 0)+
		softnetLine(13, 0)+"ffffffffffffffff 0 11111111111111111\n"+
		strings.Replace(softnetLine(13, 5), "00000001", "ffffffff", 1))
	p := tr.open("softnet")
	want(t, p.read(), "processed", map[string]float64{`node_softnet_processed_total{cpu="0"}`: 1,
		`node_softnet_processed_total{cpu="5"}`: 4294967295})
	p.wantStats(4, 0, 0)
}

func TestCPUList(t *testing.T) {
	for _, test := range []struct{ list, want string }{
		{"0-3\n", "[0 1 2 3]"}, {"0", "[0]"}, {"0,2-3,7\n", "[0 2 3 7]"},
		{"", "[]"}, {"3-1", "[]"}, {"a", "[]"}, {"1-", "[]"}, {"0-99999999999", "[]"}, {"-1", "[]"},
	} {
		if got := fmt.Sprint(cpuList([]byte(test.list))); got != test.want {
			t.Errorf("%q: got %s, want %s", test.list, got, test.want)
		}
	}
}
