package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ticktier/ticktier/e2e/client"
)

// TestPrometheusWritesToAdapter: real Prometheus remote-writes what it scrapes, and
// the same queries give the same answers on both sides.
func TestPrometheusWritesToAdapter(t *testing.T) {
	t.Parallel()
	for _, message := range []string{"prometheus.WriteRequest", "io.prometheus.write.v2.Request"} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			testPrometheusWritesToAdapter(t, message)
		})
	}
}

func testPrometheusWritesToAdapter(t *testing.T, message string) {
	adapter := startAdapter(t, t.TempDir(), "--fold.interval=1s", "--no-self.store")
	exporter := startExporter(t, "--rate=10")
	self := freeAddr(t) // Prometheus shows native histograms of its own
	prom := startPrometheus(t, scrapeConfig(
		map[string]string{"exporter": exporter.addr, "adapter": adapter.addr, "prometheus": self},
		fmt.Sprintf(`
remote_write:
  - url: %s
    protobuf_message: %s
    send_exemplars: true
    send_native_histograms: true
    metadata_config:
      send: %v
    queue_config:
      batch_send_deadline: 500ms
`, adapter.URL("/api/v1/write"), message, message == "prometheus.WriteRequest")),
		"--web.listen-address="+self, "--enable-feature=metadata-wal-records")

	pause(t, 15*time.Second)
	end := nowMs() - 2000
	start := end - 10_000
	same(t, start, end, 500, []string{
		`up`,
		`node_cpu_seconds_total`,
		`rate(node_cpu_seconds_total[5s])`,
		`sum by (mode) (rate(node_cpu_seconds_total[5s]))`,
		`node_memory_MemAvailable_bytes`,
		`count_over_time(node_load1[7s])`,
		`histogram_quantile(0.9, rate(ticktier_adapter_fold_duration_seconds_bucket[5s]))`,
		`go_gc_duration_seconds`,
		`histogram_count(prometheus_http_request_duration_seconds)`,
		`histogram_quantile(0.9, sum(rate(prometheus_http_request_duration_seconds[5s])))`,
		`{__name__=~"ticktier_adapter_.+"}`,
	}, prom.Client, adapter.Client)
	for line := range strings.Lines(prom.Log()) {
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
			t.Errorf("prometheus complains: %s", line)
		}
	}
	checkNothingFailed(t, prom)
}

// freeAddr returns an address that nothing listens at. Something else may take it
// before it is used, which then fails the test loudly.
func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// checkNothingFailed looks at Prometheus' own account of what it sent.
func checkNothingFailed(t *testing.T, prom *app) {
	t.Helper()
	if v, err := prom.Metric(t.Context(), "prometheus_remote_storage_samples_failed_total"); err != nil || v != 0 {
		t.Errorf("prometheus_remote_storage_samples_failed_total = %v, %v; want 0", v, err)
	}
	// This one has a series for each reason, once there is one.
	if v, err := prom.Metric(t.Context(), "prometheus_remote_storage_samples_dropped_total"); err == nil && v != 0 {
		t.Errorf("prometheus_remote_storage_samples_dropped_total = %v; want 0", v)
	}
	if v, err := prom.Metric(t.Context(), "prometheus_remote_storage_samples_total"); err != nil || v < 1000 {
		t.Errorf("prometheus_remote_storage_samples_total = %v, %v", v, err)
	}
}

// TestExporterWritesToPeers: one exporter pushes to real Prometheus, to
// VictoriaMetrics and to the adapter at once; all three answer alike.
func TestExporterWritesToPeers(t *testing.T) {
	t.Parallel()
	adapter := startAdapter(t, t.TempDir())
	prom := startPrometheus(t, "", "--web.enable-remote-write-receiver")
	vm := startVictoriaMetrics(t)
	exporter := startExporter(t, "--rate=10", "--remote-write.interval=1s",
		"--external-label=site=lab",
		"--remote-write.url="+adapter.URL("/api/v1/write"),
		"--remote-write.url="+prom.URL("/api/v1/write"),
		"--remote-write.url="+vm.URL("/api/v1/write"))

	pause(t, 15*time.Second)
	end := (nowMs() - 3000) / 1000 * 1000
	start := end - 8000
	exprs := []string{
		`node_cpu_seconds_total{site="lab"}`,
		`node_softnet_processed_total`,
		`node_network_receive_bytes_total`,
		`node_load1`,
		`node_memory_MemFree_bytes`,
		`node_uname_info`,
		`node_boot_time_seconds`,
		`count_over_time(node_context_switches_total[2s])`,
		// VictoriaMetrics keeps the name of what it takes the maximum of.
		`sum by (instance) (max_over_time(node_procs_running[2s]))`,
	}
	t.Run("prometheus", func(t *testing.T) {
		same(t, start, end, 100, append(exprs,
			`rate(node_cpu_seconds_total[1s])`,
			`sum by (instance, job) (increase(node_softnet_processed_total[2s]))`,
			`{__name__=~"node_.+"}`,
			`{__name__=~"ticktier_exporter_.+"}`,
		), prom.Client, adapter.Client)
	})
	t.Run("victoria-metrics", func(t *testing.T) {
		same(t, start, end, 1000, exprs, vm.Client, adapter.Client)
	})
	checkDelivered(t, exporter, 3)
}

// checkDelivered looks at the exporter's own account: nothing was refused and
// nothing lost.
func checkDelivered(t *testing.T, exporter *app, urls int) {
	t.Helper()
	body, err := exporter.Get(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := 0
	for line := range strings.Lines(string(body)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || strings.HasPrefix(line, "#") {
			continue
		}
		name, value := fields[0], fields[len(fields)-1]
		switch {
		case strings.HasPrefix(name, "ticktier_exporter_") && strings.Contains(name, "undelivered") && strings.Contains(name, "_total") && value != "0":
			t.Errorf("%s = %s, want 0", name, value)
		case strings.HasPrefix(name, "ticktier_exporter_remote_write_samples_total{") && value != "0":
			acknowledged++
		}
	}
	if acknowledged < urls {
		t.Errorf("samples were acknowledged by %d receivers, want %d", acknowledged, urls)
	}
}

// same demands that range queries have the same answers on two servers. Samples
// that are still under way are waited for.
func same(t *testing.T, start, end, step int64, exprs []string, a, b *client.Client) {
	t.Helper()
	for _, expr := range exprs {
		eventually(t, 20*time.Second, expr, func(ctx context.Context) error {
			left, err := a.QueryRange(ctx, expr, start, end, step, "nocache", "1")
			if err != nil {
				return err
			}
			right, err := b.QueryRange(ctx, expr, start, end, step)
			if err != nil {
				return err
			}
			if len(left.Series) == 0 {
				return errors.New("no series")
			}
			return diffResults(left, right, 1e-9)
		})
	}
}

// diffResults says where two results differ, nil if nowhere. Values may differ by
// a share of themselves.
func diffResults(left, right *client.Result, share float64) error {
	rights := make(map[string]client.Series)
	for _, s := range right.Series {
		rights[s.Name()] = s
	}
	var only []string
	for _, l := range left.Series {
		r, ok := rights[l.Name()]
		if !ok {
			only = append(only, l.Name())
			continue
		}
		delete(rights, l.Name())
		if err := diffSamples(l.Samples, r.Samples, share); err != nil {
			return fmt.Errorf("%s: %w", l.Name(), err)
		}
	}
	if len(only) > 0 || len(rights) > 0 {
		var more []string
		for name := range rights {
			more = append(more, name)
		}
		return fmt.Errorf("%d and %d series; %d only left: %.300s; %d only right: %.300s",
			len(left.Series), len(right.Series), len(only), strings.Join(only, " "), len(more), strings.Join(more, " "))
	}
	return nil
}

func diffSamples(left, right []client.Sample, share float64) error {
	for i := range min(len(left), len(right)) {
		l, r := left[i], right[i]
		if l.T != r.T {
			return fmt.Errorf("sample %d of %d and %d is at %d and %d", i, len(left), len(right), l.T, r.T)
		}
		if !alike(l.V, r.V, share) {
			return fmt.Errorf("at %d: %v and %v", l.T, l.V, r.V)
		}
	}
	if len(left) != len(right) {
		return fmt.Errorf("%d and %d samples", len(left), len(right))
	}
	return nil
}

func alike(a, b, share float64) bool {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.IsNaN(a) && math.IsNaN(b)
	}
	return a == b || math.Abs(a-b) <= share*max(math.Abs(a), math.Abs(b))
}
