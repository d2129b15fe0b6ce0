package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang/snappy"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/ticktier/ticktier/e2e/client"
)

// madeTarget answers with what other exporters may: all types, escapes, names that are
// quoted, labels that clash, times of their own.
const madeTarget = `# HELP made_requests Requests \"made\"\nso far.
# TYPE made_requests counter
made_requests_total{code="200",path="/a\"b\\c\nd"} 1027 # {trace_id="x"} 1 1750000000.5
made_requests_created{code="200",path="/a\"b\\c\nd"} 1750000000.25
made_requests_total{code="500",job="own",instance="own",exported_job="older"} 3
# TYPE made_seconds histogram
# UNIT made_seconds seconds
made_seconds_bucket{le="0.1"} 1
made_seconds_bucket{le="1"} 3
made_seconds_bucket{le="+Inf"} 4
made_seconds_sum 5.5
made_seconds_count 4
made_seconds_created 1750000001
# TYPE made_quantiles summary
made_quantiles{quantile="0.5"} 1
made_quantiles{quantile="1"} NaN
made_quantiles_sum 10
made_quantiles_count 7
# TYPE made_build info
made_build_info{version="1"} 1
# TYPE made_state stateset
made_state{made_state="on"} 1
made_state{made_state="off"} 0
# TYPE made_gauge gauge
made_gauge -1.5e-300
{"made.dotted","a label"="é"} 2
# TYPE made_old gauge
made_old 7 %d.5
# EOF
`

// startMadeTarget starts a server of madeTarget, whose one series with times of its
// own gets a new one at every full second.
func startMadeTarget(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
		fmt.Fprintf(w, madeTarget, time.Now().Unix()-1)
	}))
	t.Cleanup(s.Close)
	return s
}

// told is what a receiver of remote write 2.0 is told of a series beside its values.
type told struct {
	start      int64
	typ        writev2.Metadata_MetricType
	help, unit string
}

// startListener starts a receiver that notes what it is told of each series.
func startListener(t *testing.T) (url string, of func(name string) (told, bool)) {
	t.Helper()
	var mu sync.Mutex
	all := map[string]told{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			body, err = snappy.Decode(nil, body)
		}
		var req writev2.Request
		if err == nil {
			err = req.Unmarshal(body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		n := 0
		for _, ts := range req.Timeseries {
			n += len(ts.Samples)
			for i := 0; i < len(ts.LabelsRefs); i += 2 {
				if req.Symbols[ts.LabelsRefs[i]] == "__name__" {
					all[req.Symbols[ts.LabelsRefs[i+1]]] = told{ts.Samples[0].StartTimestamp, ts.Metadata.Type,
						req.Symbols[ts.Metadata.HelpRef], req.Symbols[ts.Metadata.UnitRef]}
					break
				}
			}
		}
		w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", fmt.Sprint(n))
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(s.Close)
	return s.URL, func(name string) (told, bool) {
		mu.Lock()
		defer mu.Unlock()
		x, ok := all[name]
		return x, ok
	}
}

// lately are the series that a server has at a time, by their names, with the labels
// that tell this Prometheus' scrapes from the exporter's.
func lately(ctx context.Context, server *app, job string, at int64) (map[string]float64, error) {
	r, err := server.Query(ctx, fmt.Sprintf(`last_over_time({job=%q}[4s])`, job), at)
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, s := range r.Series {
		out[s.Name()] = s.Samples[0].V
	}
	if len(out) == 0 {
		return nil, errors.New("no series")
	}
	return out, nil
}

// sameSeries says where two servers have other series, and where values differ of those
// that same selects.
func sameSeries(want, got map[string]float64, same func(name string) bool) error {
	var faults []string
	for name, v := range want {
		w, ok := got[name]
		switch {
		case !ok:
			faults = append(faults, "missing: "+name)
		case same(name) && !alike(v, w, 0):
			faults = append(faults, fmt.Sprintf("%s: %v, not %v", name, w, v))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			faults = append(faults, "too many: "+name)
		}
	}
	if len(faults) > 0 {
		slices.Sort(faults)
		return fmt.Errorf("%d differences: %.1500s", len(faults), strings.Join(faults, "\n"))
	}
	return nil
}

// TestScrapedAsPrometheusDoes: the exporter scrapes node_exporter, itself and a made
// target, and a real Prometheus scrapes the same. What the adapter and another
// Prometheus get of the exporter is what the real one stores.
func TestScrapedAsPrometheusDoes(t *testing.T) {
	t.Parallel()
	adapter := startAdapter(t, t.TempDir())
	stored := startPrometheus(t, "", "--web.enable-remote-write-receiver")
	listener, toldOf := startListener(t)
	node := startNodeExporter(t)
	made := startMadeTarget(t)
	itself := freeAddr(t)
	const labels = "#interval=1s&label=instance=x:1&label=site=lab&label=job="
	madeAddr := strings.TrimPrefix(made.URL, "http://")
	exporter := startExporter(t, "--listen="+itself, "--rate=10", "--remote-write.interval=500ms", "--remote-write.drop[]={job!~\"other|made|itself\"}",
		"--scrape.url=http://"+node.addr+"/metrics"+labels+"other", "--scrape.url="+made.URL+"/metrics"+labels+"made",
		"--scrape.url=http://"+itself+"/metrics"+labels+"itself",
		"--remote-write.url="+adapter.URL("/api/v1/write"), "--remote-write.url="+stored.URL("/api/v1/write"), "--remote-write.url="+listener)
	config := "global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\n  scrape_native_histograms: false\n" +
		"  scrape_protocols: [PrometheusProto, OpenMetricsText1.0.0, PrometheusText0.0.4]\nscrape_configs:\n"
	for job, addr := range map[string]string{"other": node.addr, "made": madeAddr, "itself": itself} {
		config += fmt.Sprintf("  - job_name: %s\n    static_configs:\n      - targets: ['%s']\n        labels: {instance: 'x:1', site: lab}\n", job, addr)
	}
	prom := startPrometheus(t, config, "--enable-feature=created-timestamp-zero-ingestion")

	// Values of these differ from scrape to scrape.
	constant := func(name string) bool {
		return strings.HasPrefix(name, "made_") || strings.HasPrefix(name, "{") || strings.HasPrefix(name, "up{") ||
			strings.HasPrefix(name, "node_uname_info") || strings.HasPrefix(name, "node_boot_time_seconds") || strings.HasPrefix(name, "node_memory_MemTotal")
	}
	for _, job := range []string{"made", "other", "itself"} {
		eventually(t, 60*time.Second, "the same series of "+job, func(ctx context.Context) error {
			at := nowMs() - 2000
			want, err := lately(ctx, prom, job, at)
			if err != nil {
				return fmt.Errorf("prometheus: %w", err)
			}
			for _, server := range []*app{stored, adapter} {
				got, err := lately(ctx, server, job, at)
				if err == nil {
					err = sameSeries(want, got, constant)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", server.Name(), err)
				}
			}
			t.Logf("%s: %d series", job, len(want))
			return nil
		})
	}
	for name, want := range map[string]told{
		"made_requests_total": {0, writev2.Metadata_METRIC_TYPE_COUNTER, "Requests \"made\"\nso far.", ""},
		"made_seconds_bucket": {1_750_000_001_000, writev2.Metadata_METRIC_TYPE_HISTOGRAM, "", "seconds"},
		"made_seconds_sum":    {1_750_000_001_000, writev2.Metadata_METRIC_TYPE_HISTOGRAM, "", "seconds"},
		"made_build_info":     {0, writev2.Metadata_METRIC_TYPE_INFO, "", ""},
		"made_state":          {0, writev2.Metadata_METRIC_TYPE_STATESET, "", ""},
		"made_quantiles":      {0, writev2.Metadata_METRIC_TYPE_SUMMARY, "", ""},
		"up":                  {0, writev2.Metadata_METRIC_TYPE_GAUGE, "Whether the target could be scraped.", ""},
	} {
		// Of several series of a name the last one counts.
		if got, ok := toldOf(name); !ok || got != want {
			t.Errorf("%s: told %+v, %v; want %+v", name, got, ok, want)
		}
	}
	// Samples with times of their own come once each.
	r, err := adapter.Query(t.Context(), `made_old[5s]`, nowMs()-1500)
	if err != nil || len(r.Series) != 1 || len(r.Series[0].Samples) < 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	for i, s := range r.Series[0].Samples {
		if s.T%1000 != 500 || i > 0 && s.T-r.Series[0].Samples[i-1].T < 1000 {
			t.Errorf("made_old has %+v", r.Series[0].Samples)
			break
		}
	}

	// The target goes: its series end at once everywhere, and it is down.
	node.kill()
	for _, server := range []*app{prom, stored, adapter} {
		eventually(t, 30*time.Second, "the end of the target in "+server.Name(), func(ctx context.Context) error {
			r, err := server.Query(ctx, `{job="other"}`, nowMs())
			if err != nil {
				return err
			}
			if len(r.Series) != 5 {
				return fmt.Errorf("%d series are left", len(r.Series))
			}
			for _, s := range r.Series {
				if name := s.Labels["__name__"]; name != "up" && !strings.HasPrefix(name, "scrape_") {
					return fmt.Errorf("%s is left", name)
				} else if name == "up" && s.Samples[0].V != 0 {
					return errors.New("it is up")
				}
			}
			return nil
		})
	}
	if n := strings.Count(exporter.Log(), "target cannot be scraped"); n != 1 {
		t.Errorf("the log says %d times that a target cannot be scraped", n)
	}
}

// startCounting starts a target whose one counter is the number of times that it was
// asked.
func startCounting(t *testing.T) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		n := asked.Add(1)
		fmt.Fprintf(w, "# TYPE asked_total counter\nasked_total %d\n", n)
		// What compresses badly fills the ring.
		fmt.Fprint(w, "# TYPE noise gauge\n")
		for i := range 250 {
			fmt.Fprintf(w, "noise{i=\"%d\"} %d\n", i, (n*7919+int64(i)*104729)*2654435761%1000003)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

// TestScrapedOutage: the receiver is away while a target is scraped, for longer than
// the ring lasts, and the exporter is stopped and started meanwhile. Everything arrives
// once.
func TestScrapedOutage(t *testing.T) {
	t.Parallel()
	dir, spool := t.TempDir(), t.TempDir()
	adapter := startAdapter(t, dir)
	target, asked := startCounting(t)
	args := []string{"--rate=5", "--remote-write.interval=500ms", "--shutdown.timeout=1s", "--spool.dir=" + spool, "--scrape.ring-max-bytes=64KiB",
		"--scrape.url=" + target + "/metrics#interval=100ms&label=job=count&label=instance=x", "--remote-write.url=" + adapter.URL("/api/v1/write"),
		"--external-label=instance=dut"}
	exporter := startExporter(t, args...)
	begin := nowMs()
	samples := func(ctx context.Context, series string) ([]client.Sample, error) {
		now := nowMs()
		r, err := adapter.Query(ctx, fmt.Sprintf(`%s[%dms]`, series, now-begin+5000), now)
		if err != nil {
			return nil, err
		}
		if len(r.Series) != 1 {
			return nil, fmt.Errorf("%d series", len(r.Series))
		}
		return r.Series[0].Samples, nil
	}
	eventually(t, 30*time.Second, "the first samples", func(ctx context.Context) error {
		s, err := samples(ctx, "asked_total")
		if err == nil && len(s) < 10 {
			err = fmt.Errorf("%d samples", len(s))
		}
		return err
	})
	adapter.stop(t)
	pause(t, 15*time.Second)
	if v, err := exporter.Metric(t.Context(), `ticktier_exporter_spool_ticks_spooled_total{stream="scrape"}`); err != nil || v == 0 {
		t.Errorf("%v rows are spooled, %v", v, err)
	}
	exporter.stop(t)
	exporter = startExporter(t, args...)
	pause(t, 5*time.Second)
	adapter = startAdapterAt(t, adapter.addr, dir)
	eventually(t, 60*time.Second, "all samples, each once", func(ctx context.Context) error {
		upTo := float64(asked.Load())
		s, err := samples(ctx, "asked_total")
		if err != nil {
			return err
		}
		up, err := samples(ctx, `up{job="count"}`)
		if err != nil {
			return err
		}
		// A stop may cut a scrape off that the target has counted, and one that took too
		// long is down, and said so.
		missing, down := 0.0, 0.0
		for _, u := range up {
			down += 1 - u.V
		}
		for i := range s {
			want := 1.0
			if i > 0 {
				want = s[i-1].V + 1
			}
			if s[i].V < want {
				return fmt.Errorf("sample %d is %v at %d", i, s[i].V, s[i].T)
			}
			missing += s[i].V - want
		}
		if last := s[len(s)-1].V; missing > 1+down || last < upTo-20-down {
			return fmt.Errorf("%d samples up to %v of %v, %v are missing, %v scrapes took too long", len(s), last, upTo, missing, down)
		}
		t.Logf("%d samples, %v missing, %v too late", len(s), missing, down)
		return nil
	})
	if v, err := exporter.Metric(t.Context(), `ticktier_exporter_ring_ticks_evicted_undelivered_total{stream="scrape"}`); err != nil || v != 0 {
		t.Errorf("%v rows are lost, %v", v, err)
	}
}

// TestScrapeHangs: targets that hang, flood and redirect cost no tick.
func TestScrapeHangs(t *testing.T) {
	t.Parallel()
	adapter := startAdapter(t, t.TempDir())
	done := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/hang", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-done:
		}
	})
	mux.HandleFunc("/flood", func(w http.ResponseWriter, _ *http.Request) {
		line := []byte(strings.Repeat("# x\n", 4096))
		for {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/drip", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte("#"))
			w.(http.Flusher).Flush()
			time.Sleep(50 * time.Millisecond)
		}
	})
	mux.Handle("/redirect", http.RedirectHandler("/flood", http.StatusFound))
	bad := httptest.NewServer(mux)
	t.Cleanup(bad.Close)
	t.Cleanup(func() { close(done) })
	args := []string{"--rate=10", "--remote-write.interval=1s", "--remote-write.url=" + adapter.URL("/api/v1/write"), "--scrape.max-bytes=1MiB"}
	for _, path := range []string{"hang", "flood", "drip", "redirect"} {
		args = append(args, "--scrape.url="+bad.URL+"/"+path+"#interval=1s&timeout=800ms&label=job="+path)
	}
	exporter := startExporter(t, args...)
	start := ticking(t, adapter)
	for _, path := range []string{"hang", "flood", "drip", "redirect"} {
		eventually(t, 30*time.Second, path+" is down", func(ctx context.Context) error {
			r, err := adapter.Query(ctx, fmt.Sprintf(`count_over_time(up{job=%q}[20s]) >= 5 and max_over_time(up{job=%q}[20s]) == 0`, path, path), nowMs())
			if err == nil && len(r.Series) != 1 {
				err = fmt.Errorf("%+v", r.Series)
			}
			return err
		})
	}
	if n := strings.Count(exporter.Log(), "target cannot be scraped"); n != 4 {
		t.Errorf("the log says %d times that a target cannot be scraped", n)
	}
	checkGrid(t, adapter, exporter, start, nowMs())
}
