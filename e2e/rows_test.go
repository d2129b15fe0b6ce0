package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestUnplugged pulls an interface out and puts it back, as with a USB stick: its series
// ends at once, five minutes before a query would forget it, and goes on as the same.
func TestUnplugged(t *testing.T) {
	// Not in parallel: its network card would show in what others sample.
	name := fmt.Sprintf("ttu%d", os.Getpid()%100000)
	link := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", append([]string{"link"}, args...)...).CombinedOutput(); err != nil {
			t.Skipf("ip link %v: %v: %s", args, err, out)
		}
	}
	plug := func() { link("add", name, "type", "veth", "peer", "name", name+"p") }
	plug()
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", name).Run() })
	adapter := startAdapter(t, t.TempDir())
	startExporter(t, "--remote-write.interval=500ms", "--remote-write.url="+adapter.URL("/api/v1/write"))
	series := func(ctx context.Context, want int) error {
		for _, metric := range []string{"node_network_receive_bytes_total", "node_network_up"} {
			r, err := adapter.Query(ctx, fmt.Sprintf("%s{device=%q}", metric, name), nowMs())
			if err != nil {
				return err
			}
			if len(r.Series) != want {
				return fmt.Errorf("%d series of %s, want %d", len(r.Series), metric, want)
			}
		}
		return nil
	}
	there := func(ctx context.Context) error { return series(ctx, 1) }
	gone := func(ctx context.Context) error { return series(ctx, 0) }
	eventually(t, 30*time.Second, "the interface", there)
	link("del", name)
	eventually(t, 30*time.Second, "the end of its series", gone)
	plug()
	eventually(t, 30*time.Second, "its return", there)
	r, err := adapter.Query(t.Context(), fmt.Sprintf("count(count_over_time(node_network_receive_bytes_total{device=%q}[10m]))", name), nowMs())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := r.Value(); err != nil || n != 1 {
		t.Errorf("%v series of one interface, %v", n, err)
	}
}

// TestTextfiles has a good, a doubled, a half-written and a huge file, and one that is a
// pipe: the good one is served, the others are named.
func TestTextfiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "a.prom", "# TYPE made_total counter\nmade_total{x=\"1\"} 5\n")
	writeFile(t, dir, "b.prom", "doubled 1\ndoubled 2\n")
	writeFile(t, dir, "c.prom", "whole 1\nhalf{x=\"")
	writeFile(t, dir, "d.prom", strings.Repeat("large 1\n", 2<<20))
	bad := []string{"b", "c", "d"}
	if exec.Command("mkfifo", dir+"/e.prom").Run() == nil {
		bad = append(bad, "e")
	}
	e := startExporter(t, "--collector.textfile.directory="+dir, "--floor-hz=1")
	pause(t, 2*time.Second)
	body, err := e.Get(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text := string(body)
	for _, want := range []string{"\n# TYPE made_total counter\nmade_total{x=\"1\"} 5\n", "\nnode_textfile_scrape_error 1\n", "\nnode_cpu_seconds_total{",
		`node_textfile_file_error{file="` + dir + `/a.prom"} 0` + "\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q", want)
		}
	}
	for _, name := range bad {
		if want := `node_textfile_file_error{file="` + dir + "/" + name + `.prom"} 1` + "\n"; !strings.Contains(text, want) {
			t.Errorf("there is no %q", want)
		}
		if n := strings.Count(e.Log(), "file="+dir+"/"+name+".prom "); n != 1 {
			t.Errorf("%s is named %d times in the log", name, n)
		}
	}
	for _, no := range []string{"\ndoubled", "\nwhole", "\nhalf", "\nlarge"} {
		if strings.Contains(text, no) {
			t.Errorf("%q is served", no)
		}
	}
}

// TestKernelLog writes into the kernel's log and reads it from the exporter.
func TestKernelLog(t *testing.T) {
	// Not in parallel: what others do to the network is logged too.
	e := startExporter(t)
	if v, err := e.Metric(t.Context(), `node_scrape_collector_success{collector="kmsg"}`); err != nil || v != 1 {
		t.Skipf("the kernel's log cannot be read: %v", err)
	}
	text := fmt.Sprintf("ticktier's test %d of lo, and of no.such.interface.", nowMs())
	log, err := os.OpenFile("/dev/kmsg", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer log.Close()
	if _, err := log.WriteString("<4>" + text + "\n"); err != nil {
		t.Skip(err)
	}
	eventually(t, 30*time.Second, "the event", func(ctx context.Context) error {
		body, err := e.Get(ctx, "/api/v1/events?since=1")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(body)) {
			if strings.Contains(line, text) {
				if !strings.Contains(line, `"level":"warning","facility":"user","devices":["lo"]`) {
					t.Errorf("got %s", line)
				}
				return nil
			}
		}
		return fmt.Errorf("it is not in %s", body)
	})
	eventually(t, 30*time.Second, "the counters", func(ctx context.Context) error {
		for _, series := range []string{`node_kmsg_records_total{level="warning"}`, `node_kmsg_network_records_total{device="lo"}`} {
			if v, err := e.Metric(ctx, series); err != nil || v < 1 {
				return fmt.Errorf("%s is %v, %v", series, v, err)
			}
		}
		return nil
	})
}
