package e2e

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// TestClientsOfTheQueryAPI has those programs ask that people ask Prometheus with: the
// official Go client, promtool, and a Prometheus that reads remotely.
func TestClientsOfTheQueryAPI(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	end := lastHour() / (2 * hourMs) * (2 * hourMs) // seed makes whole blocks of raw samples
	cmd := exec.CommandContext(t.Context(), exe(t, "adapter"), "seed", "--data-dir="+dir, "--devices=2", "--days=6", "--raw-hours=6", "--5m-days=2",
		"--end="+time.UnixMilli(end).UTC().Format(time.RFC3339))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("seed: %v\n%s", err, out)
	}
	adapter := startAdapter(t, dir, "--retention.raw=0", "--retention.5m=0", "--retention.1h=0", "--no-self.store")
	t.Run("go", func(t *testing.T) { askWithGoClient(t, adapter, time.UnixMilli(end)) })
	t.Run("promtool", func(t *testing.T) { askWithPromtool(t, adapter, end) })
	t.Run("remote read", func(t *testing.T) { askRemotely(t, adapter, end) })
}

func askWithGoClient(t *testing.T, adapter *app, end time.Time) {
	c, err := api.NewClient(api.Config{Address: adapter.URL("")})
	if err != nil {
		t.Fatal(err)
	}
	a := promv1.NewAPI(c)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	start := end.Add(-5 * 24 * time.Hour)
	v, warns, _, err := a.Query(ctx, "node_load1", end, promv1.WithTimeout(30*time.Second), promv1.WithLookbackDelta(2*time.Minute), promv1.WithStats(promv1.AllStatsValue), promv1.WithLimit(1))
	if list, ok := v.(model.Vector); err != nil || !ok || len(list) != 1 || !strings.Contains(strings.Join(warns, " "), "truncated") {
		t.Errorf("query: %v, warnings %q, %v", v, warns, err)
	}
	v, _, _, err = a.QueryRange(ctx, "rate(node_cpu_seconds_total[4h])", promv1.Range{Start: start, End: end, Step: 2 * time.Hour})
	if m, ok := v.(model.Matrix); err != nil || !ok || len(m) != 2 || len(m[0].Values) != 61 {
		t.Errorf("query_range: %v, %v", v, err)
	}
	series, _, _, err := a.Series(ctx, []string{"node_load1", `node_cpu_seconds_total{instance="router-00000"}`}, start, end)
	if err != nil || len(series) != 3 {
		t.Errorf("series: %v, %v", series, err)
	}
	names, _, _, err := a.LabelNames(ctx, []string{"node_load1"}, start, end)
	if err != nil || len(names) != 3 {
		t.Errorf("labels: %v, %v", names, err)
	}
	values, _, _, err := a.LabelValues(ctx, "instance", nil, start, end)
	if err != nil || len(values) != 2 {
		t.Errorf("label values: %v, %v", values, err)
	}
	_, err = a.QueryExemplars(ctx, "node_load1", start, end)
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("exemplars", err)
	targets, err := a.Targets(ctx)
	if check("targets", err); err == nil && (len(targets.Active) != 0 || len(targets.Dropped) != 0) {
		t.Errorf("targets: %+v", targets)
	}
	_, err = a.Metadata(ctx, "", "10")
	check("metadata", err)
	_, err = a.TargetsMetadata(ctx, "", "node_load1", "10")
	check("targets metadata", err)
	_, err = a.Rules(ctx, nil)
	check("rules", err)
	_, err = a.Alerts(ctx)
	check("alerts", err)
	_, err = a.AlertManagers(ctx)
	check("alertmanagers", err)
	info, err := a.Buildinfo(ctx)
	if check("build info", err); err == nil && info.Version == "" {
		t.Error("build info has no version")
	}
	flags, err := a.Flags(ctx)
	if check("flags", err); err == nil && flags["retention.raw"] == "" {
		t.Errorf("flags: %v", flags)
	}
	_, err = a.Runtimeinfo(ctx)
	check("runtime info", err)
	_, err = a.Config(ctx)
	check("config", err)
	_, err = a.TSDB(ctx)
	check("TSDB", err)
	_, err = a.TSDBBlocks(ctx)
	check("TSDB blocks", err)
	_, err = a.WalReplay(ctx)
	check("WAL replay", err)
	pretty, err := a.FormatQuery(ctx, "sum( x )")
	if check("format_query", err); !strings.Contains(pretty, "sum(x)") { // the client leaves the quotes on
		t.Errorf("format_query: %q", pretty)
	}
}

// askWithPromtool runs promtool's queries.
func askWithPromtool(t *testing.T, adapter *app, end int64) {
	at := func(ms int64) string { return fmt.Sprint(ms / 1000) }
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"instant", "--time=" + at(end), adapter.URL(""), "count(node_load1)"}, "{} => 2"},
		{[]string{"range", "--start=" + at(end-5*dayMs), "--end=" + at(end), "--step=12h", adapter.URL(""), "count(avg_over_time(node_load1[12h]))"}, "2 @["},
		{[]string{"series", "--match=node_load1", "--start=" + at(end-5*dayMs), "--end=" + at(end), adapter.URL("")}, `instance="router-00000"`},
		{[]string{"labels", "--start=" + at(end-5*dayMs), "--end=" + at(end), adapter.URL(""), "instance"}, "router-00001"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		out, err := exec.CommandContext(ctx, peerExe(t, "promtool"), append([]string{"query"}, tc.args...)...).CombinedOutput()
		cancel()
		if err != nil || !strings.Contains(string(out), tc.want) {
			t.Errorf("promtool query %s: %v, want %q\n%s", strings.Join(tc.args, " "), err, tc.want, out)
		}
	}
}

// askRemotely has a real Prometheus read the adapter's samples: raw ones where they are,
// averages of buckets before.
func askRemotely(t *testing.T, adapter *app, end int64) {
	prom := startPrometheus(t, "remote_read: [{url: '"+adapter.URL("/api/v1/read")+"', read_recent: true}]\n")
	prom.peer = true
	value := func(expr string) float64 {
		t.Helper()
		r, err := prom.Query(t.Context(), expr, end)
		if err != nil || len(r.Series) != 1 || len(r.Series[0].Samples) != 1 {
			t.Fatalf("%s: %+v, %v", expr, r, err)
		}
		return r.Series[0].Samples[0].V
	}
	const one = `{instance="router-00000"}`
	own5h, err := adapter.Query(t.Context(), "count_over_time(node_load1"+one+"[5h])", end, "tier", "raw")
	if err != nil || len(own5h.Series) != 1 {
		t.Fatalf("%+v, %v", own5h, err)
	}
	if n, want := value("count_over_time(node_load1"+one+"[5h])"), own5h.Series[0].Samples[0].V; n != want || n < 100 {
		t.Errorf("%v raw samples of five hours, want %v", n, want)
	}
	// A range has one average of each bucket: of five minutes, then of an hour.
	if n := value("count_over_time(node_load1" + one + "[1h] offset 30h)"); n < 11 || n > 13 {
		t.Errorf("%v values an hour where five-minute buckets are", n)
	}
	if n := value("count_over_time(node_load1" + one + "[6h] offset 4d)"); n < 5 || n > 7 {
		t.Errorf("%v values in six hours where hourly buckets are", n)
	}
	// A selector without a range has a value at every look-back.
	r, err := prom.QueryRange(t.Context(), "node_load1"+one, end-4*dayMs, end-3*dayMs, 7*minuteMs)
	if want := int(dayMs/(7*minuteMs)) + 1; err != nil || len(r.Series) != 1 || len(r.Series[0].Samples) != want {
		t.Errorf("a bare selector has not %d points: %v", want, err)
	}
	own, err := adapter.Query(t.Context(), "avg_over_time(node_load1"+one+"[4h] offset 4d)", end)
	if err != nil || len(own.Series) != 1 {
		t.Fatalf("%+v, %v", own, err)
	}
	want, got := own.Series[0].Samples[0].V, value("avg_over_time(node_load1"+one+"[4h] offset 4d)")
	if math.Abs(got-want) > 0.05*math.Abs(want) {
		t.Errorf("average of buckets: %v read remotely, %v here", got, want)
	}
}
