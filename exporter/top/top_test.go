package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRun: a second of ticks in which one was busy and one missed.
func TestRun(t *testing.T) {
	time.Local = time.UTC
	var in strings.Builder
	in.WriteString(`{"series":[{"id":0,"name":"node_cpu_seconds_total","labels":{"cpu":"0","mode":"idle"}},` +
		`{"id":1,"name":"node_cpu_seconds_total","labels":{"cpu":"0","mode":"user"}},` +
		`{"id":2,"name":"node_network_receive_bytes_total","labels":{"device":"eth0"}},` +
		`{"id":3,"name":"node_network_transmit_packets_total","labels":{"device":"eth0"}}]}` + "\n")
	idle, user, rx := 0.0, 0.0, 0.0
	for i := range 22 {
		if i == 17 {
			in.WriteString(`{"gap":{"reason":"missed","ticks":1}}` + "\n")
			continue
		}
		if i == 15 {
			user, rx = user+0.1, rx+1.25e6
		} else {
			idle += 0.1
		}
		fmt.Fprintf(&in, `{"tick":{"seq":%d,"t":%d,"v":{"0":%.1f,"1":%.1f,"2":%.0f,"3":0}}}`+"\n", i, 1000+100*i, idle, user, rx)
	}
	var out strings.Builder
	if err := Run(&out, strings.NewReader(in.String()), false); err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(out.String(), "1970-01-01 00:00:02")
	want := `  9 ticks, 1 missing

                           lowest       mean    highest
CPU 0                         0 %       11 %      100 %  ▁▁▁▁▁█▁▁▁
eth0 in                   0 bit/s 11.1 Mbit/s 100 Mbit/s  ▁▁▁▁▁█▁▁▁
`
	if d := cmp.Diff(want, last); d != "" {
		t.Error(d)
	}
	out.Reset()
	if err := Run(&out, strings.NewReader(in.String()), true); err != nil || strings.Count(out.String(), clear) != 2 {
		t.Errorf("%v, %q", err, out.String())
	}
	if err := Run(&out, strings.NewReader("{x}\n"), true); err == nil {
		t.Error("nonsense was shown")
	}
}

func TestMarks(t *testing.T) {
	r := row{}
	for i := range 1000 {
		r.add(float64(i % 20))
	}
	if got := r.marks(); got != strings.Repeat("█", maxMarks) {
		t.Errorf("%q", got)
	}
	for v, want := range map[float64]string{0: "0 /s", 999: "999 /s", 999.6: "1 k/s", 1.5e6: "1.5 M/s", 2e12: "2e+03 G/s"} {
		if got := count(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}
