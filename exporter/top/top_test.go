package top

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

// input is two seconds and a bit of ticks, of which one was busy and one missed. tasks
// adds what a kernel with schedstat has.
func input(tasks bool) string {
	var in strings.Builder
	more := ""
	if tasks {
		more = `,{"id":4,"name":"node_schedstat_running_seconds_total","labels":{"cpu":"0"}}`
	}
	in.WriteString(`{"series":[{"id":0,"name":"node_cpu_seconds_total","labels":{"cpu":"0","mode":"idle"}},` +
		`{"id":1,"name":"node_cpu_seconds_total","labels":{"cpu":"0","mode":"user"}},` +
		`{"id":2,"name":"node_network_receive_bytes_total","labels":{"device":"enp101s0f0np0"}},` +
		`{"id":3,"name":"node_network_transmit_packets_total","labels":{"device":"enp101s0f0np0"}}` + more + `]}` + "\n")
	idle, user, rx, tx, run := 0.0, 0.0, 0.0, 0.0, 0.0
	for i := range 22 {
		if i == 17 {
			in.WriteString(`{"gap":{"reason":"missed","ticks":1}}` + "\n")
			continue
		}
		if i == 15 {
			user, rx, tx, run = user+0.1, rx+1.25e6, tx+900, run+0.025
		} else {
			idle += 0.1
		}
		values := fmt.Sprintf(`"0":%.1f,"1":%.1f,"2":%.0f,"3":%.0f`, idle, user, rx, tx)
		if tasks {
			values += fmt.Sprintf(`,"4":%.3f`, run)
		}
		fmt.Fprintf(&in, `{"tick":{"seq":%d,"t":%d,"v":{%s}}}`+"\n", i, 1000+100*i, values)
	}
	return in.String()
}

// shown is the last screen of the input.
func shown(t *testing.T, in string, screen Screen) string {
	t.Helper()
	var out strings.Builder
	if err := Run(&out, strings.NewReader(in), screen); err != nil {
		t.Fatal(err)
	}
	begin := "1970-"
	if screen.Terminal {
		begin = home
	}
	return out.String()[strings.LastIndex(out.String(), begin):]
}

func TestPlain(t *testing.T) {
	want := `1970-01-01 00:00:02  9 ticks, 1 missing

                                lowest        mean     highest
CPU 0                              0 %        11 %       100 % ▁▁▁▁▁█▁▁▁
enp101s0f0np0 in               0 bit/s 11.1 Mbit/s  100 Mbit/s ▁▁▁▁▁█▁▁▁
enp101s0f0np0 out packets         0 /s       1 k/s       9 k/s ▁▁▁▁▁█▁▁▁

` + noteStat + "\n\n"
	if d := cmp.Diff(want, shown(t, input(false), Screen{})); d != "" {
		t.Error(d)
	}
	if got := shown(t, input(true), Screen{}); !strings.Contains(got, "CPU 0 tasks                        0 %         3 %        25 % ▁▁▁▁▁▃▁▁▁\n") ||
		!strings.Contains(got, noteTasks) {
		t.Error(got)
	}
	var out strings.Builder
	if err := Run(&out, strings.NewReader("{x}\n"), Screen{}); err == nil {
		t.Error("nonsense was shown")
	}
}

// TestTerminal: no line is longer than the terminal is wide, nor are there more than it
// has, whatever its size; what was on it is back at the end.
func TestTerminal(t *testing.T) {
	plain := strings.NewReplacer(eol, "", below, "", home, "", bold, "", red, "", normal, "", leave, "")
	for columns := 1; columns < 130; columns++ {
		for _, lines := range []int{3, 6, 8, 50} {
			size := func() (int, int) { return columns, lines }
			got := shown(t, input(true), Screen{Terminal: true, Colour: true, Size: size})
			text := strings.Split(plain.Replace(got), "\r\n")
			if len(text) > lines {
				t.Fatalf("%d lines of %d:\n%s", len(text), lines, got)
			}
			for _, line := range text {
				if n := utf8.RuneCountInString(line); n > columns {
					t.Fatalf("%d columns of %d: %q", n, columns, line)
				}
			}
			if strings.Contains(got, "\x1b[1m") == false || !strings.HasSuffix(got, leave) {
				t.Fatalf("%q", got)
			}
		}
	}
	got := shown(t, input(false), Screen{Terminal: true, Size: func() (int, int) { return 40, 24 }})
	want := `1970-01-01 00:00:02  9 ticks, 1 missing

                 min  mean   max
CPU 0             0%   11%  100% ▁▁▁▁█▁▁
enp101s0f0… in     0 11.1M  100M ▁▁▁▁█▁▁
enp10… out pkt     0    1k    9k ▁▁▁▁█▁▁

CPU by /proc/stat, counted in the kerne…`
	if d := cmp.Diff(want, strings.ReplaceAll(plain.Replace(got), "\r", "")); d != "" {
		t.Error(d)
	}
	if strings.Contains(got, bold) || strings.Contains(got, red) {
		t.Error("it is coloured")
	}
	if got := shown(t, input(false), Screen{Terminal: true, Size: func() (int, int) { return 80, 7 }}); !strings.Contains(got, "… 2 more") {
		t.Error(got)
	}
	if got := shown(t, input(false), Screen{Terminal: true, Colour: true, Size: func() (int, int) { return 0, 0 }}); !strings.Contains(got, red) {
		t.Error(got)
	}
}

func TestMarks(t *testing.T) {
	r := row{}
	for i := range 1000 {
		r.add(float64(i % 20))
	}
	if got := r.marks(50); got != strings.Repeat("█", 50) {
		t.Errorf("%q", got)
	}
	for v, want := range map[float64][2]string{0: {"0 /s", "0"}, 999: {"999 /s", "999"}, 999.6: {"1 k/s", "1k"}, 1.5e6: {"1.5 M/s", "1.5M"},
		45.93e6: {"45.9 M/s", "45.9M"}, 2e12: {"2e+03 G/s", "2e+03G"}} {
		if got := [2]string{packets.text(v), packets.brief(v)}; got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}
