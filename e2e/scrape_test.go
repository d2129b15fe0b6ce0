package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// scrapeConfig is a Prometheus configuration that scrapes each address under its
// own job once a second.
func scrapeConfig(jobs map[string]string, more string) string {
	var b strings.Builder
	b.WriteString("global:\n  scrape_interval: 1s\n  scrape_native_histograms: true\n  scrape_timeout: 1s\nscrape_configs:\n")
	for job, addr := range jobs {
		fmt.Fprintf(&b, "  - job_name: %s\n    static_configs:\n      - targets: ['%s']\n", job, addr)
	}
	return b.String() + more
}

// TestPrometheusScrapes: real Prometheus scrapes both programs without a complaint.
func TestPrometheusScrapes(t *testing.T) {
	t.Parallel()
	adapter := startAdapter(t, t.TempDir())
	exporter := startExporter(t, "--rate=10", "--remote-write.url="+adapter.URL("/api/v1/write"))
	prom := startPrometheus(t, scrapeConfig(map[string]string{"exporter": exporter.addr, "adapter": adapter.addr}, ""))

	// Its discovery takes some seconds to hand the targets over.
	eventually(t, 30*time.Second, "ten scrapes of each program", func(ctx context.Context) error {
		r, err := prom.Query(ctx, `count(count_over_time(up[20s]) >= 10)`, nowMs())
		if err != nil {
			return err
		}
		if n, err := r.Value(); err != nil || n != 2 {
			return fmt.Errorf("of %v programs: %v", n, err)
		}
		return nil
	})
	at := nowMs()
	for _, job := range []string{"exporter", "adapter"} {
		r, err := prom.Query(t.Context(), fmt.Sprintf(`min_over_time(up{job=%q}[20s])`, job), at)
		if err != nil {
			t.Fatal(err)
		}
		if up, err := r.Value(); err != nil || up != 1 {
			t.Errorf("%s: up = %v, %v", job, up, err)
		}
	}
	checkTargets(t, prom)
	for line := range strings.Lines(prom.Log()) {
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
			t.Errorf("prometheus complains: %s", line)
		}
	}

	// What it scraped is right, not only accepted.
	r, err := prom.Query(t.Context(), `count(node_cpu_seconds_total{job="exporter"})`, at)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := r.Value(); err != nil || int(n) != len(procStatCPUs(t)) {
		t.Errorf("node_cpu_seconds_total has %v series, want %d: %v", n, len(procStatCPUs(t)), err)
	}
}

// TestNativeHistograms: real Prometheus takes what ticks did between its scrapes as
// native histograms, and the highest tick as a gauge.
func TestNativeHistograms(t *testing.T) {
	t.Parallel()
	exporter := startExporter(t, "--rate=50")
	prom := startPrometheus(t, scrapeConfig(map[string]string{"exporter": exporter.addr}, ""))
	// The counts of buckets of single ticks, which only a native histogram has.
	for query, least := range map[string]float64{
		`histogram_count(ticktier_exporter_tick_delay_seconds)`:                                      100,
		`histogram_quantile(0.5, rate(ticktier_exporter_tick_duration_seconds[20s]))`:                1e-5,
		`histogram_count(increase(ticktier_cpu_busy_ratio{cpu="0"}[10s]))`:                           100,
		`max_over_time(ticktier_exporter_tick_duration_seconds_max[20s])`:                            1e-5,
		`histogram_sum(ticktier_exporter_tick_duration_seconds)`:                                     1e-3,
		`ticktier_exporter_tick_duration_seconds_max >= ticktier_exporter_tick_duration_seconds_min`: 1e-5,
	} {
		eventually(t, 40*time.Second, query, func(ctx context.Context) error {
			r, err := prom.Query(ctx, query, nowMs())
			if err != nil {
				return err
			}
			if v, err := r.Value(); err != nil || v < least {
				return fmt.Errorf("%v, want at least %v: %v", v, least, err)
			}
			return nil
		})
	}
}

// TestBurstBetweenScrapes: packets that come within an instant are seen by whoever
// scrapes long after, once.
func TestBurstBetweenScrapes(t *testing.T) {
	t.Parallel()
	exporter := startExporter(t, "--rate=10")
	const highest = `ticktier_network_receive_packets_per_second_max{device="lo"}`
	scrape := func() string {
		b, err := exporter.Get(t.Context(), "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	eventually(t, 20*time.Second, "a range of the loopback device", func(context.Context) error {
		if !strings.Contains(scrape(), highest) {
			return errors.New("not yet")
		}
		return nil
	})
	sink, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	conn, err := net.Dial("udp", sink.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const packets = 5000
	began := time.Now()
	for range packets {
		_, _ = conn.Write([]byte("x")) // what nobody reads is dropped behind the counter
	}
	// Ticks of 100 ms: the burst may begin in the midst of one.
	ticks := math.Ceil(time.Since(began).Seconds()*10) + 1
	time.Sleep(time.Second) // the tick behind the burst is over
	_, rest, _ := strings.Cut(scrape(), "\n"+highest+" ")
	text, _, _ := strings.Cut(rest, "\n")
	got, err := strconv.ParseFloat(text, 64)
	if want := 0.9 * packets / ticks * 10; err != nil || got < want {
		t.Errorf("the highest tick had %v packets a second, want %.0f: %v", text, want, err)
	}
}

func checkTargets(t *testing.T, prom *app) {
	t.Helper()
	body, err := prom.Get(t.Context(), "/api/v1/targets")
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Data struct {
			ActiveTargets []struct{ ScrapePool, Health, LastError string }
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Data.ActiveTargets) != 2 {
		t.Errorf("prometheus has %d targets, want 2", len(answer.Data.ActiveTargets))
	}
	for _, target := range answer.Data.ActiveTargets {
		if target.Health != "up" || target.LastError != "" {
			t.Errorf("target %s is %s: %s", target.ScrapePool, target.Health, target.LastError)
		}
	}
}

// TestPromtoolCheckMetrics: promtool complains of nothing but names that are
// node_exporter's own, or Prometheus' own in what its packages register.
func TestPromtoolCheckMetrics(t *testing.T) {
	t.Parallel()
	adapter := startAdapter(t, t.TempDir())
	exporter := startExporter(t, "--rate=10", "--remote-write.url="+adapter.URL("/api/v1/write"))
	node := startNodeExporter(t, "--collector.interrupts", "--collector.softirqs")
	prom := startPrometheus(t, "")
	eventually(t, 20*time.Second, "the adapter has been pushed to", func(ctx context.Context) error {
		r, err := adapter.Query(ctx, `count(node_load1)`, nowMs())
		if err != nil {
			return err
		}
		_, err = r.Value()
		return err
	})

	allowed := append(promtoolComplaints(t, node), promtoolComplaints(t, prom)...)
	for _, a := range []*app{exporter, adapter} {
		for _, complaint := range promtoolComplaints(t, a) {
			if !slices.Contains(allowed, complaint) {
				t.Errorf("%s: promtool: %s", a.Name(), complaint)
			}
		}
	}
}

// promtoolComplaints returns the lines that `promtool check metrics` writes about
// what a serves.
func promtoolComplaints(t *testing.T, a *app) []string {
	t.Helper()
	body, err := a.Get(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	if len(body) < 1000 {
		t.Errorf("%s serves only %d bytes of metrics", a.Name(), len(body))
	}
	cmd := exec.Command(peerExe(t, "promtool"), "check", "metrics")
	cmd.Stdin = bytes.NewReader(body)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	runErr := cmd.Run()
	var lines []string
	for line := range strings.Lines(out.String()) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	// Status 3 says that there are lint complaints; anything else is a text that
	// does not parse.
	if cmd.ProcessState.ExitCode() != 0 && cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("%s: promtool check metrics: %v\n%s", a.Name(), runErr, out.String())
	}
	return lines
}

// TestStartTimes: real Prometheus learns from protobuf, and from OpenMetrics where it
// asks, when counters and histograms began, and puts a zero there. A clock that begins
// at nothing makes the first increase whole.
func TestStartTimes(t *testing.T) {
	t.Parallel()
	exporter := startExporter(t, "--rate=20")
	config := scrapeConfig(map[string]string{"protobuf": exporter.addr}, fmt.Sprintf(
		"  - job_name: openmetrics\n    scrape_native_histograms: false\n    scrape_protocols: [OpenMetricsText1.0.0]\n"+
			"    params: {created: ['1']}\n    static_configs:\n      - targets: ['%s']\n", exporter.addr))
	prom := startPrometheus(t, config, "--enable-feature=created-timestamp-zero-ingestion")
	for _, query := range []string{
		`min_over_time(ticktier_exporter_ticks_total{job="protobuf"}[5m]) == 0`,
		`min_over_time(ticktier_exporter_ticks_total{job="openmetrics"}[5m]) == 0`,
		`histogram_count(first_over_time(ticktier_exporter_tick_duration_seconds{job="protobuf"}[5m])) == 0`,
		`min_over_time(ticktier_exporter_tick_duration_seconds_count{job="openmetrics"}[5m]) == 0`,
		// Not a series of its own.
		`absent({__name__=~"ticktier_.*_created"}) and on() ticktier_exporter_ticks_total{job="openmetrics"}`,
	} {
		eventually(t, 40*time.Second, query, func(ctx context.Context) error {
			r, err := prom.Query(ctx, query, nowMs())
			if err != nil {
				return err
			}
			if len(r.Series) != 1 {
				return fmt.Errorf("%+v", r.Series)
			}
			return nil
		})
	}
	checkTargets(t, prom)
}
