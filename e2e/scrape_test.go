package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
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
