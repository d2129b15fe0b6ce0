package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ticktier/ticktier/e2e/client"
	"github.com/ticktier/ticktier/e2e/program"
)

// A ring of 64 KiB holds about two seconds at 50 Hz: a minute is then what hours are to
// a ring of the default size at 10 Hz.
var tinyRing = []string{"--rate=50", "--ring.max-bytes=64KiB", "--remote-write.interval=500ms", "--shutdown.timeout=2s"}

// counted is what an exporter says of itself.
type counted struct{ missed, lost, dropped float64 }

// account reads an exporter's own account of what is not there.
func account(t testing.TB, exporter *app) counted {
	t.Helper()
	var c counted
	body, err := exporter.Get(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		for name, to := range map[string]*float64{
			"ticktier_exporter_ticks_missed_total":             &c.missed,
			"ticktier_exporter_remote_write_ticks_lost_total{": &c.lost,
			"ticktier_exporter_spool_ticks_dropped_total{":     &c.dropped,
		} {
			if fields := strings.Fields(line); strings.HasPrefix(line, name) && len(fields) > 1 {
				v := 0.0
				if _, err := fmt.Sscan(fields[len(fields)-1], &v); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				*to += v
			}
		}
	}
	return c
}

// everyTick is a series that is read on every tick.
const everyTick = `node_context_switches_total`

// samplesOf are the raw samples in (start, end] of the series that is read on every
// tick.
func samplesOf(t testing.TB, server *app, start, end int64) []client.Sample {
	t.Helper()
	r, err := server.Query(t.Context(), fmt.Sprintf("%s[%dms]", everyTick, end-start), end)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Series) != 1 {
		t.Fatalf("%d series", len(r.Series))
	}
	return r.Series[0].Samples
}

// delivered waits until an exporter has nothing left of what is older than a second
// or two. Its own figures are as old as a second, so they have to stay good.
func delivered(t testing.TB, exporter, server *app, within time.Duration) int64 {
	t.Helper()
	now := nowMs()
	var since time.Time
	eventually(t, within, "the backlog is delivered", func(ctx context.Context) error {
		if err := upToDate(ctx, exporter, server, now); err != nil {
			since = time.Time{}
			return err
		}
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) < 2500*time.Millisecond {
			return fmt.Errorf("for %v", time.Since(since))
		}
		return nil
	})
	return now
}

func upToDate(ctx context.Context, exporter, server *app, from int64) error {
	if v, err := exporter.Metric(ctx, "ticktier_exporter_spool_segments"); err == nil && v > 0 {
		return fmt.Errorf("%v segments are left", v)
	}
	if v, err := exporter.Metric(ctx, "ticktier_exporter_remote_write_backlog_slots"); err != nil || v > 0 {
		return fmt.Errorf("%v slots are left, %v", v, err)
	}
	r, err := server.Query(ctx, everyTick+"[20s]", nowMs())
	if err != nil {
		return err
	}
	if len(r.Series) != 1 || last(r.Series[0]).T < from {
		return fmt.Errorf("the newest sample is too old")
	}
	return nil
}

// checkCount demands that between two samples of the exporter's own count of ticks
// there are as many samples as it counted, less those that it counted as lost.
func checkCount(t testing.TB, what string, server *app, from, to, period int64, lost float64) {
	t.Helper()
	r, err := server.Query(t.Context(), fmt.Sprintf("ticktier_exporter_ticks_total[%dms]", to-from), to)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Series) != 1 || len(r.Series[0].Samples) < 2 {
		t.Fatalf("%s: %d series of the count of ticks", what, len(r.Series))
	}
	ticks := r.Series[0].Samples
	begin, end := ticks[0], ticks[len(ticks)-1]
	n, doubled := 0, 0
	prev := int64(0)
	for _, s := range samplesOf(t, server, begin.T, end.T) {
		if n > 0 && s.T-prev < period/4 {
			doubled++
		}
		n, prev = n+1, s.T
	}
	want := end.V - begin.V - lost
	slots := (end.T - begin.T) / period
	t.Logf("%s: %d samples of %v ticks in %d slots, %v lost", what, n, end.V-begin.V, slots, lost)
	if d := float64(n) - want; d < -1 || d > 1 {
		t.Errorf("%s: %d samples, want %v: %v ticks less %v lost", what, n, want, end.V-begin.V, lost)
	}
	// A late tick has its true time, and the next one may be soon; their number is checked above.
	if missed := int(slots) - int(end.V-begin.V); doubled > n/50+max(0, missed) {
		t.Errorf("%s: %d samples follow at once on another", what, doubled)
	}
	if float64(slots) > 2*(end.V-begin.V) {
		t.Errorf("%s: only %v of %d slots were sampled", what, end.V-begin.V, slots)
	}
}

// TestLongOutageWithKill: the receiver is away, the exporter is killed in the middle,
// and another one takes over its spool. Every spooled tick arrives once; the kill
// costs two seconds at most.
func TestLongOutageWithKill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		order, receiver string
		half            time.Duration // of the outage
		said            string        // by the second start
		powerCut        bool
	}{
		{"strict", "adapter", 25 * time.Second, "", false},
		{"live", "adapter", 12 * time.Second, "spool segment has a torn tail", true},
		{"live", "Prometheus", 12 * time.Second, "receiver takes no samples out of order", false},
		{"live", "VictoriaMetrics", 12 * time.Second, "the newest ticks go first", false},
	} {
		t.Run(c.order+" to "+c.receiver, func(t *testing.T) {
			testOutageWithKill(t, c.order, startReal(t, c.receiver), c.half, c.said, c.powerCut)
		})
	}
}

// loseTail does to the newest segment what a power cut does: what was not synced yet,
// which is less than a second of ticks, is gone, in part as zeros.
func loseTail(t testing.TB, dir string) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil || len(list) == 0 {
		t.Fatalf("no segments: %v", err)
	}
	newest := list[len(list)-1]
	info, err := os.Stat(newest)
	if err != nil {
		t.Fatal(err)
	}
	const zeros = 1000
	end := info.Size() - 2500
	if err := os.Truncate(newest, end); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(newest, end+zeros); err != nil {
		t.Fatal(err)
	}
}

// startReal starts a receiver by its name.
func startReal(t testing.TB, name string) *app {
	t.Helper()
	switch name {
	case "Prometheus":
		return startPrometheus(t, "", "--web.enable-remote-write-receiver")
	case "VictoriaMetrics":
		return startVictoriaMetrics(t)
	}
	return startAdapter(t, t.TempDir())
}

func testOutageWithKill(t *testing.T, order string, adapter *app, half time.Duration, said string, powerCut bool) {
	t.Parallel()
	line := startProxy(t, adapter.addr)
	spool := filepath.Join(t.TempDir(), "spool")
	// Bounded by time too: how many bytes a tick takes depends on how busy the machine is.
	args := append([]string{"--ring.duration=6s", "--remote-write.order=" + order, "--spool.dir=" + spool,
		"--remote-write.url=http://" + line.addr + "/api/v1/write"}, tinyRing...)
	exporter := startExporter(t, args...)
	start := ticking(t, adapter)
	pause(t, 2*time.Second)
	line.cut()
	pause(t, half)
	before := account(t, exporter)
	if v, err := exporter.Metric(t.Context(), "ticktier_exporter_spool_ticks_spooled_total"); err != nil || v < 20*half.Seconds() {
		t.Errorf("%v ticks were spooled, %v", v, err)
	}
	killed := nowMs()
	exporter.kill()
	worst := int64(2000)
	if powerCut {
		loseTail(t, spool)
		worst += 1500
	} else {
		spoolIs(t, spool, true)
	}

	second := startExporter(t, args...)
	pause(t, half)
	if err := line.mend(line.addr); err != nil {
		t.Fatal(err)
	}
	end := delivered(t, second, adapter, 60*time.Second)
	after := account(t, second)
	samples := samplesOf(t, adapter, start, end)
	first, then := split(samples, killed)
	if len(first) == 0 || len(then) == 0 {
		t.Fatalf("%d samples of the first session, %d of the second", len(first), len(then))
	}
	edge := first[len(first)-1].T
	t.Logf("the kill cost %d ms, which were in memory", killed-edge)
	if killed-edge > worst {
		t.Errorf("the kill cost %d ms", killed-edge)
	}
	if before.lost+after.lost+before.dropped+after.dropped > 0 {
		t.Errorf("counted as lost: %+v, %+v", before, after)
	}
	checkCount(t, "before the kill", adapter, start, edge, 20, 0)
	checkCount(t, "after the kill", adapter, then[0].T-1, end, 20, 0)
	if order == "live" && !strings.Contains(second.Log(), said) {
		t.Errorf("the log does not say: %s", said)
	}
	if strings.Contains(exporter.Log(), "out of order") {
		t.Error("the first start, without a backlog, asks what order the receiver takes")
	}
	second.stop(t)
	spoolIs(t, spool, true)
}

// split puts samples apart at a time.
func split(samples []client.Sample, at int64) (before, after []client.Sample) {
	for i, s := range samples {
		if s.T > at {
			return samples[:i], samples[i:]
		}
	}
	return samples, nil
}

// spoolIs demands that `spool verify` finds a directory good or not.
func spoolIs(t testing.TB, dir string, good bool) {
	t.Helper()
	out, err := exec.Command(exe(t, "exporter"), "spool", "verify", dir).CombinedOutput()
	if (err == nil) != good {
		t.Errorf("spool verify: %v\n%s", err, out)
	}
	if out, err := exec.Command(exe(t, "exporter"), "spool", "inspect", dir).CombinedOutput(); err != nil {
		t.Errorf("spool inspect: %v\n%s", err, out)
	}
}

// TestStopInOutage: a clean stop while the receiver is away leaves everything in the
// spool, and the next start delivers it.
func TestStopInOutage(t *testing.T) {
	t.Parallel()
	prom := startPrometheus(t, "", "--web.enable-remote-write-receiver")
	line := startProxy(t, prom.addr)
	args := []string{"--rate=10", "--remote-write.interval=500ms", "--shutdown.timeout=1s", "--spool.dir=" + t.TempDir(),
		"--remote-write.url=http://" + line.addr + "/api/v1/write"}
	exporter := startExporter(t, args...)
	start := ticking(t, prom)
	line.cut()
	pause(t, 5*time.Second)
	exporter.stop(t)
	stopped := nowMs()
	if err := line.mend(line.addr); err != nil {
		t.Fatal(err)
	}
	second := startExporter(t, args...)
	pause(t, 3*time.Second)
	end := delivered(t, second, prom, 30*time.Second)
	first, then := split(samplesOf(t, prom, start, end), stopped)
	if len(first) == 0 || len(then) == 0 {
		t.Fatalf("%d samples of the first session, %d of the second", len(first), len(then))
	}
	edge := first[len(first)-1].T
	// Sampling ends at once; pushing goes on for the second of the shutdown timeout.
	if stopped-edge > 2500 {
		t.Errorf("%d ms before the stop are missing", stopped-edge)
	}
	checkCount(t, "before the stop", prom, start, edge, 100, 0)
	checkCount(t, "after the stop", prom, then[0].T-1, end, 100, 0)
}

// TestSpoolDiskFull: the spool's disk has no room left in the middle of an outage.
// What did not fit is counted, all else arrives.
func TestSpoolDiskFull(t *testing.T) {
	// Not in parallel: its mount would show in what others sample.
	adapter := startAdapter(t, t.TempDir())
	line := startProxy(t, adapter.addr)
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatalf("mount a small tmpfs (this test has to be root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 920<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	exporter := startExporter(t, append([]string{"--spool.dir=" + filepath.Join(disk, "spool"),
		"--remote-write.url=http://" + line.addr + "/api/v1/write"}, tinyRing...)...)
	start := ticking(t, adapter)
	line.cut()
	eventually(t, 60*time.Second, "the disk is full", func(ctx context.Context) error {
		v, err := exporter.Metric(ctx, `ticktier_exporter_spool_writable`)
		if err == nil && v != 0 {
			err = fmt.Errorf("it is not")
		}
		return err
	})
	eventually(t, 60*time.Second, "ticks are dropped", func(context.Context) error {
		if account(t, exporter).dropped < 150 {
			return fmt.Errorf("too few")
		}
		return nil
	})
	if err := line.mend(line.addr); err != nil {
		t.Fatal(err)
	}
	end := delivered(t, exporter, adapter, 60*time.Second)
	c := account(t, exporter)
	// A frame that is dropped in part delivered is reckoned without missed slots.
	if d := c.lost - c.dropped; c.lost == 0 || d > 100 || d < -100 {
		t.Errorf("%v ticks are counted as lost, %v as dropped", c.lost, c.dropped)
	}
	eventually(t, 20*time.Second, "the disk is written again", func(ctx context.Context) error {
		v, err := exporter.Metric(ctx, "ticktier_exporter_spool_writable")
		if err == nil && v != 1 {
			err = fmt.Errorf("writable is %v", v)
		}
		return err
	})
	checkCount(t, "full disk", adapter, start, end, 20, c.lost)
}

// TestNetworkCutAndLoss: exporter and adapter on two ends of a cable that is pulled
// out, and of one that loses packets.
func TestNetworkCutAndLoss(t *testing.T) {
	// Not in parallel: its network card would show in what others sample.
	n := startCable(t)
	adapter := startAdapterAt(t, "10.253.9.1:0", t.TempDir())
	exporter := start(t, program.Config{Name: "exporter", Path: n.ip,
		Args: append([]string{"netns", "exec", n.ns, exe(t, "exporter"), "run", "--listen=10.253.9.2:0", "--spool.dir=" + t.TempDir(),
			"--remote-write.timeout=2s", "--remote-write.url=" + adapter.URL("/api/v1/write")}, tinyRing...)}, "/-/ready")
	begun := ticking(t, adapter)
	for range 2 {
		n.run(t, "link", "set", n.name, "down")
		pause(t, 8*time.Second)
		n.run(t, "link", "set", n.name, "up")
		pause(t, 4*time.Second)
	}
	n.lose(t)
	pause(t, 15*time.Second)
	n.mend(t)
	end := delivered(t, exporter, adapter, 60*time.Second)
	c := account(t, exporter)
	if c.lost > 0 {
		t.Errorf("%v ticks are lost", c.lost)
	}
	checkCount(t, "cut and loss", adapter, begun, end, 20, 0)
}

// cable is a pair of virtual network cards, one of them in a namespace.
type cable struct{ ip, tc, ns, name string }

func startCable(t testing.TB) *cable {
	t.Helper()
	n := &cable{ns: fmt.Sprintf("ticktier%d", os.Getpid()), name: fmt.Sprintf("tt%d", os.Getpid()%100000)}
	var err error
	if n.ip, err = exec.LookPath("ip"); err == nil {
		n.tc, err = exec.LookPath("tc")
	}
	if err != nil {
		t.Fatalf("iproute2 is needed: %v", err)
	}
	n.run(t, "netns", "add", n.ns)
	t.Cleanup(func() { n.run(t, "netns", "del", n.ns) })
	n.run(t, "link", "add", n.name, "type", "veth", "peer", "name", "eth0", "netns", n.ns)
	n.run(t, "addr", "add", "10.253.9.1/24", "dev", n.name)
	n.run(t, "link", "set", n.name, "up")
	n.run(t, "-n", n.ns, "addr", "add", "10.253.9.2/24", "dev", "eth0")
	n.run(t, "-n", n.ns, "link", "set", "eth0", "up")
	n.run(t, "-n", n.ns, "link", "set", "lo", "up")
	return n
}

func (n *cable) run(t testing.TB, args ...string) {
	t.Helper()
	if out, err := exec.Command(n.ip, args...).CombinedOutput(); err != nil {
		t.Errorf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// lose makes the exporter's end lose packets: one in ten or, where the kernel has no
// netem, those that a slow line with a very short queue has no room for.
func (n *cable) lose(t testing.TB) {
	t.Helper()
	if exec.Command(n.tc, "-n", n.ns, "qdisc", "add", "dev", "eth0", "root", "netem", "loss", "10%", "delay", "20ms").Run() == nil {
		return
	}
	if out, err := exec.Command(n.tc, "-n", n.ns, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "8mbit", "burst", "3000", "limit", "9000").CombinedOutput(); err != nil {
		t.Fatalf("tc: %v\n%s", err, out)
	}
}

// mend ends the loss, and demands that there was one.
func (n *cable) mend(t testing.TB) {
	t.Helper()
	out, err := exec.Command(n.tc, "-s", "-n", n.ns, "qdisc", "show", "dev", "eth0").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "dropped ") || strings.Contains(string(out), "(dropped 0,") {
		t.Errorf("no packet was lost: %v\n%s", err, out)
	}
	t.Logf("%s", strings.TrimSpace(string(out)))
	if out, err := exec.Command(n.tc, "-n", n.ns, "qdisc", "del", "dev", "eth0", "root").CombinedOutput(); err != nil {
		t.Errorf("tc: %v\n%s", err, out)
	}
}

// TestHoursOfOutage is prometheus#13539 with its number of ticks: the receiver is away for
// as many as there are in minutes at 10 Hz, which at 1000 Hz take seconds; the exporter is
// killed at half of it. TICKTIER_E2E_LONG=on makes it 190 minutes' worth.
func TestHoursOfOutage(t *testing.T) {
	// Not in parallel: at 1000 Hz a tick has little patience with neighbours.
	half := 8 * time.Second
	if os.Getenv("TICKTIER_E2E_LONG") == "on" {
		half = 57 * time.Second
	}
	adapter := startAdapter(t, t.TempDir())
	line := startProxy(t, adapter.addr)
	spool := filepath.Join(t.TempDir(), "spool")
	args := []string{"--rate=1000", "--floor-hz=1000", "--ring.max-bytes=256KiB", "--ring.duration=4s", "--collector.disable-defaults", "--collector.stat", "--spool.dir=" + spool,
		"--remote-write.interval=500ms", "--shutdown.timeout=2s", "--remote-write.url=http://" + line.addr + "/api/v1/write"}
	exporter := startExporter(t, args...)
	start := ticking(t, adapter)
	line.cut()
	pause(t, half)
	before := account(t, exporter)
	killed := nowMs()
	exporter.kill()
	spoolIs(t, spool, true)
	second := startExporter(t, args...)
	pause(t, half)
	if err := line.mend(line.addr); err != nil {
		t.Fatal(err)
	}
	end := delivered(t, second, adapter, 120*time.Second)
	after := account(t, second)
	first, then := split(samplesOf(t, adapter, start, end), killed)
	if len(first) == 0 || len(then) == 0 {
		t.Fatalf("%d samples of the first session, %d of the second", len(first), len(then))
	}
	edge := first[len(first)-1].T
	t.Logf("%d ticks, %.0f minutes at 10 Hz; the kill cost %d ms", len(first)+len(then), float64(len(first)+len(then))/600, killed-edge)
	if killed-edge > 2000 {
		t.Errorf("the kill cost %d ms", killed-edge)
	}
	if before.lost+after.lost+before.dropped+after.dropped > 0 {
		t.Errorf("counted as lost: %+v, %+v", before, after)
	}
	checkTicks(t, "before the kill", adapter, start, edge)
	checkTicks(t, "after the kill", adapter, then[0].T-1, end)
}

// checkTicks demands as many samples as the exporter counted ticks between two times, each
// at a time of its own.
func checkTicks(t testing.TB, what string, server *app, from, to int64) {
	t.Helper()
	r, err := server.Query(t.Context(), fmt.Sprintf("ticktier_exporter_ticks_total[%dms]", to-from), to)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Series) != 1 || len(r.Series[0].Samples) < 2 {
		t.Fatalf("%s: %d series of the count of ticks", what, len(r.Series))
	}
	ticks := r.Series[0].Samples
	begin, end := ticks[0], ticks[len(ticks)-1]
	samples := samplesOf(t, server, begin.T, end.T)
	for i := 1; i < len(samples); i++ {
		if samples[i].T <= samples[i-1].T {
			t.Fatalf("%s: %d follows %d", what, samples[i].T, samples[i-1].T)
		}
	}
	want := end.V - begin.V
	t.Logf("%s: %d samples of %v ticks", what, len(samples), want)
	if d := float64(len(samples)) - want; d < -1 || d > 1 {
		t.Errorf("%s: %d samples, want %v", what, len(samples), want)
	}
}
