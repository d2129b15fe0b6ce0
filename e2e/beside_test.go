package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// exposed is one series of a /metrics output.
type exposed struct {
	kind  string
	value float64
}

// exposition parses a /metrics text into series under their full names. Only host
// metrics are kept: both programs' accounts of themselves differ by nature.
func exposition(t *testing.T, a *app) map[string]exposed {
	t.Helper()
	body, err := a.Get(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%s/metrics: %v", a.Name(), err)
	}
	out := make(map[string]exposed)
	for name, family := range families {
		if !strings.HasPrefix(name, "node_") || strings.HasPrefix(name, "node_exporter_") || strings.HasPrefix(name, "node_scrape_collector_") {
			continue
		}
		for _, m := range family.Metric {
			out[fullName(name, m)] = exposed{kind: strings.ToLower(family.GetType().String()), value: valueOf(m)}
		}
	}
	return out
}

func fullName(name string, m *dto.Metric) string {
	pairs := make([]string, 0, len(m.Label))
	for _, l := range m.Label {
		if l.GetValue() == "" { // the same as a label that is not there
			continue
		}
		pairs = append(pairs, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	if len(pairs) == 0 {
		return name
	}
	sort.Strings(pairs)
	return name + "{" + strings.Join(pairs, ",") + "}"
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	}
	return m.Untyped.GetValue()
}

// difference is one line of the committed list.
type difference struct {
	kind    string
	pattern *regexp.Regexp
}

func explained(t *testing.T) []difference {
	t.Helper()
	f, err := os.Open("testdata/node_exporter_differences.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []difference
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		out = append(out, parseDifference(t, line))
	}
	return out
}

// TestBesideNodeExporter runs the real node_exporter on the same machine and
// compares names, label sets, types, and counters' values.
func TestBesideNodeExporter(t *testing.T) {
	t.Parallel()
	ours := startExporter(t, "--rate=10", "--floor-hz=1", "--collector.slabinfo", "--collector.zoneinfo", "--collector.processes",
		"--collector.perf", "--collector.qdisc", "--collector.bridge", "--collector.wifi")
	pause(t, 3*time.Second) // every source has been read by then
	flags := []string{"--collector.disable-defaults"}
	for _, name := range sharedCollectors(t, ours) {
		flags = append(flags, "--collector."+name)
	}
	node := startNodeExporter(t, flags...)
	before := exposition(t, ours)
	theirs := exposition(t, node)
	pause(t, 2500*time.Millisecond) // the slowest source of counters has been read again
	after := exposition(t, ours)

	allowed := explained(t)
	is := func(kind, series string) bool {
		return slices.ContainsFunc(allowed, func(d difference) bool { return d.kind == kind && d.pattern.MatchString(series) })
	}
	if len(theirs) < 100 {
		t.Errorf("node_exporter shows only %d series", len(theirs))
	}
	for _, series := range slices.Sorted(maps.Keys(theirs)) {
		their := theirs[series]
		our, ok := after[series]
		switch {
		case !ok && is("theirs", series), !ok && their.value == 0 && is("theirs-zero", series):
		case !ok:
			t.Errorf("missing: %s, %s, %v", series, their.kind, their.value)
		case our.kind != their.kind && !is("type", series):
			t.Errorf("%s is a %s, node_exporter's a %s", series, our.kind, their.kind)
		case is("value", series):
		case their.kind == "counter" || constant.MatchString(series):
			// node_exporter read between our two readings.
			low, high := before[series].value, our.value
			if their.value < low-1e-6 && !alike(their.value, low, 1e-12) || their.value > high+1e-6 && !alike(their.value, high, 1e-12) {
				t.Errorf("%s: node_exporter has %v, ours were %v before and %v after", series, their.value, low, high)
			}
		}
	}
	for _, series := range slices.Sorted(maps.Keys(after)) {
		if _, ok := theirs[series]; !ok && !is("ours", series) {
			t.Errorf("node_exporter has no %s", series)
		}
	}
	checkSourcesSucceed(t, ours)
}

// constant are gauges that do not move.
var constant = regexp.MustCompile(`^(node_uname_info|node_boot_time_seconds|node_memory_MemTotal_bytes|node_memory_SwapTotal_bytes|node_disk_info)\b.*`)

// aliases are collectors of node_exporter that go by another name here.
var aliases = map[string][]string{
	"stat":         {"cpu", "stat"},
	"power_supply": {"powersupplyclass"},
}

var (
	collectorFlag  = regexp.MustCompile(`--\[no-\]collector\.([a-z_]+) `)
	collectorLabel = regexp.MustCompile(`(?m)^node_scrape_collector_success\{.*collector="([^"]+)"`)
)

// sharedCollectors returns the collectors of node_exporter whose kernel source our
// exporter reads too.
func sharedCollectors(t *testing.T, ours *app) []string {
	t.Helper()
	help, err := exec.Command(peerExe(t, "node_exporter"), "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("node_exporter --help: %v", err)
	}
	their := make(map[string]bool)
	for _, m := range collectorFlag.FindAllSubmatch(help, -1) {
		their[string(m[1])] = true
	}
	body, err := ours.Get(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range collectorLabel.FindAllSubmatch(body, -1) {
		names, ok := aliases[string(m[1])]
		if !ok {
			names = []string{string(m[1])}
		}
		for _, name := range names {
			if their[name] && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	if len(out) < 13 {
		t.Fatalf("only %v is read by both", out)
	}
	t.Logf("read by both: %v", out)
	return out
}

// checkSourcesSucceed demands that the exporter says of each source that it was
// read.
func checkSourcesSucceed(t *testing.T, ours *app) {
	t.Helper()
	for _, source := range []string{
		"stat", "softnet", "softirqs", "interrupts", "netdev", "meminfo", "loadavg", "vmstat",
		"diskstats", "pressure", "uname", "time",
	} {
		series := fmt.Sprintf("node_scrape_collector_success{collector=%q}", source)
		if v, err := ours.Metric(t.Context(), series); err != nil || v != 1 {
			t.Errorf("%s = %v, %v; want 1", series, v, err)
		}
	}
}
