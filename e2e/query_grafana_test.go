package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// dashboardRanges are the ranges that a person turns a dashboard to.
var dashboardRanges = map[string]int64{
	"15m": 15 * minuteMs, "24h": dayMs, "7d": 7 * dayMs, "30d": 30 * dayMs, "90d": 90 * dayMs, "365d": 365 * dayMs,
}

// TestNodeExporterFull opens the imported dashboard over more than a year of made-up
// history of this machine, at every range: no panel has an error, and one that has
// data in the last 15 minutes has it everywhere. Then it demands of the exporter on
// this machine that only panels are empty whose source this kernel lacks.
func TestNodeExporterFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sample := startExporter(t, "--collector.processes")
	pause(t, 3*time.Second) // sources at one hertz and slower are read
	scrape, err := sample.Get(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	sample.stop(t)
	end := nowMs() / (2 * hourMs) * (2 * hourMs)
	d := loadDashboard(t)
	d.seed(t, dir, string(scrape), end)
	adapter := startAdapter(t, dir, "--retention.1h=0")
	exporter := startExporter(t, "--remote-write.url="+adapter.URL("/api/v1/write"), "--external-label=instance=machine", "--remote-write.interval=1s", "--collector.processes")

	t.Run("history", func(t *testing.T) { d.overHistory(t, adapter, end-1) })
	t.Run("machine", func(t *testing.T) { d.ofThisMachine(t, adapter) })
	exporter.stop(t)
}

// seed makes up more than a year of every series of a scrape that the dashboard asks
// about.
func (d *dashboard) seed(t *testing.T, dir, scrape string, end int64) {
	t.Helper()
	wanted := map[string]bool{"node_uname_info": true}
	for _, q := range d.targets {
		for _, name := range metricNames.FindAllString(q.expr, -1) {
			wanted[name] = true
		}
	}
	var lines strings.Builder
	for line := range strings.Lines(scrape) {
		name := metricNames.FindString(strings.TrimPrefix(strings.TrimPrefix(line, "# TYPE "), "# HELP "))
		if wanted[name] {
			lines.WriteString(line)
		}
	}
	cmd := exec.CommandContext(t.Context(), exe(t, "adapter"), "seed", "--data-dir="+dir, "--devices=1", "--days=370", "--raw-hours=2",
		"--like="+writeFile(t, t.TempDir(), "scrape.txt", lines.String()), "--end="+time.UnixMilli(end).UTC().Format(time.RFC3339))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("seed: %v\n%s", err, out)
	}
}

// metricNames finds the exporter's names in an expression or at the start of a line.
var metricNames = regexp.MustCompile(`\b(node|process)_[a-zA-Z0-9_]+`)

// target is one query of a panel.
type target struct {
	panel, expr string
	instant     bool
}

// dashboard is what is asked of it.
type dashboard struct {
	targets   []target
	variables []struct{ name, query string }
}

func loadDashboard(t *testing.T) *dashboard {
	t.Helper()
	type panel struct {
		Title   string
		Panels  []json.RawMessage
		Targets []struct {
			Expr           string
			Instant, Range bool
		}
	}
	var file struct {
		Panels     []json.RawMessage
		Templating struct {
			List []struct {
				Name, Type string
				Query      json.RawMessage
			}
		}
	}
	text, err := os.ReadFile("testdata/grafana/node-exporter-full.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	d := &dashboard{}
	var walk func(list []json.RawMessage)
	walk = func(list []json.RawMessage) {
		for _, raw := range list {
			var p panel
			if err := json.Unmarshal(raw, &p); err != nil {
				t.Fatal(err)
			}
			walk(p.Panels)
			for _, q := range p.Targets {
				d.targets = append(d.targets, target{p.Title, q.Expr, q.Instant && !q.Range})
			}
		}
	}
	walk(file.Panels)
	for _, v := range file.Templating.List {
		var q struct{ Query string }
		if v.Type != "query" {
			continue
		}
		if err := json.Unmarshal(v.Query, &q); err != nil {
			t.Fatal(err)
		}
		d.variables = append(d.variables, struct{ name, query string }{v.Name, q.Query})
	}
	if len(d.targets) < 250 || len(d.variables) != 3 {
		t.Fatalf("the dashboard has %d queries and %d variables", len(d.targets), len(d.variables))
	}
	return d
}

var labelValues = regexp.MustCompile(`^label_values\((.*), *(\w+)\)$`)

// resolve asks for the values of the dashboard's variables, as Grafana does when it
// opens: each may use those before it. machine picks the value where there are more.
func (d *dashboard) resolve(t *testing.T, a *app, start, end int64, machine string) map[string]string {
	t.Helper()
	vars := map[string]string{}
	for _, v := range d.variables {
		m := labelValues.FindStringSubmatch(v.query)
		if m == nil {
			t.Fatalf("variable %s: %s is not understood", v.name, v.query)
		}
		form := url.Values{"match[]": {fillIn(m[1], vars)}, "start": {secs(start)}, "end": {secs(end)}}
		body, err := a.Get(t.Context(), "/api/v1/label/"+m[2]+"/values?"+form.Encode())
		if err != nil {
			t.Fatal(err)
		}
		var r struct{ Data []string }
		if err := json.Unmarshal(body, &r); err != nil {
			t.Fatal(err)
		}
		if len(r.Data) == 0 {
			t.Fatalf("variable %s: %s has no value", v.name, form.Get("match[]"))
		}
		vars[v.name] = r.Data[0]
		for _, value := range r.Data {
			if value == machine {
				vars[v.name] = value
			}
		}
	}
	return vars
}

// fillIn replaces variables, the longest names first.
func fillIn(text string, vars map[string]string) string {
	return regexp.MustCompile(`\$\{?(\w+)\}?`).ReplaceAllStringFunc(text, func(m string) string {
		if v, ok := vars[strings.Trim(m, "${}")]; ok {
			return v
		}
		return m
	})
}

// scrapeMs is the scrape interval that Grafana's data source has unless told.
const scrapeMs = 15_000

// ask evaluates a target over a range as a panel of 1000 points does.
func (q target) ask(t *testing.T, a *app, vars map[string]string, end, rng int64, params ...string) (*reply, int64) {
	t.Helper()
	step := max(scrapeMs, roundInterval(rng/1000))
	all := map[string]string{
		"__interval": fmt.Sprint(step/1000, "s"), "__rate_interval": fmt.Sprint(max(step+scrapeMs, 4*scrapeMs)/1000, "s"),
		"__range": fmt.Sprint(rng/1000, "s"), "__range_s": fmt.Sprint(rng / 1000), "__interval_ms": fmt.Sprint(step),
	}
	for k, v := range vars {
		all[k] = v
	}
	at := asked{expr: fillIn(q.expr, all), start: end}
	if !q.instant {
		at.start, at.end, at.step = (end-rng)/step*step, end/step*step, step
	}
	r := ask(t, a.Client, at, params...)
	if r.Error != "" || strings.Contains(at.expr, "$") {
		t.Errorf("%s: %s: status %d %s", q.panel, at, r.Status, r.Error)
	}
	return r, (at.end-at.start)/max(step, 1) + 1
}

// roundInterval is Grafana's rounding of an interval in ms.
func roundInterval(ms int64) int64 {
	for _, r := range [][2]int64{
		{1500, 1000}, {3500, 2000}, {7500, 5000}, {12_500, 10_000}, {17_500, 15_000}, {25_000, 20_000}, {45_000, 30_000},
		{90_000, minuteMs}, {210_000, 2 * minuteMs}, {450_000, 5 * minuteMs}, {750_000, 10 * minuteMs}, {1_050_000, 15 * minuteMs},
		{1_500_000, 20 * minuteMs}, {2_700_000, 30 * minuteMs}, {5_400_000, hourMs}, {9_000_000, 2 * hourMs}, {16_200_000, 3 * hourMs},
		{32_400_000, 6 * hourMs}, {86_400_000, 12 * hourMs},
	} {
		if ms < r[0] {
			return r[1]
		}
	}
	return dayMs
}

// overHistory asks every query at every range that ends at end.
func (d *dashboard) overHistory(t *testing.T, a *app, end int64) {
	answered := 0
	for _, q := range d.targets {
		vars := d.resolve(t, a, end-15*minuteMs, end, "machine")
		recent, _ := q.ask(t, a, vars, end, 15*minuteMs)
		raw, _ := q.ask(t, a, vars, end, 15*minuteMs, "tier", "raw")
		if diff := diffReplies(raw, recent, true); diff != "" {
			t.Errorf("%s: %s: the last 15 minutes are not those of raw samples: %s", q.panel, q.expr, diff)
		}
		if recent.points() > 0 {
			answered++
		}
		for name, rng := range dashboardRanges {
			r, steps := q.ask(t, a, vars, end, rng)
			most := 0
			for _, s := range r.Series {
				most = max(most, len(s))
			}
			if least := int(steps * 9 / 10); recent.points() > 0 && (most == 0 || !q.instant && most < least) {
				t.Errorf("%s: %s over %s from tiers %s: %d of %d points; %q %q", q.panel, q.expr, name, r.Tiers, most, steps, r.Warnings, r.Infos)
			}
		}
	}
	t.Logf("%d of %d queries have data on this machine", answered, len(d.targets))
	for name, rng := range dashboardRanges {
		if vars := d.resolve(t, a, end-rng, end, "machine"); vars["node"] != "machine" || vars["job"] != "node" {
			t.Errorf("over %s the variables are %v", name, vars)
		}
	}
	if answered < len(d.targets)/3 {
		t.Errorf("only %d of %d queries have data", answered, len(d.targets))
	}
}

// lacking is one line of absent.tsv: a metric, where its source would be, and why
// it may have none.
type lacking struct{ metric, path, reason string }

func loadLacking(t *testing.T) (list []lacking) {
	t.Helper()
	text, err := os.ReadFile("testdata/grafana/absent.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 3 {
			t.Fatalf("absent.tsv: %q has %d fields, want 3", line, len(f))
		}
		list = append(list, lacking{f[0], f[1], f[2]})
	}
	return list
}

// holds reports whether the kernel does lack it: nothing is at the path or, where
// the path is FILE:WORD, the file does not have the word.
func (l lacking) holds() bool {
	path, word, ok := strings.Cut(l.path, ":")
	if path == "-" {
		return true
	}
	files, _ := filepath.Glob(path)
	if !ok {
		return len(files) == 0
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.Contains(string(text), word) {
			return false
		}
	}
	return true
}

// ofThisMachine demands an answer from every query whose source is on this machine.
func (d *dashboard) ofThisMachine(t *testing.T, a *app) {
	list := loadLacking(t)
	empty := func(ctx context.Context) (unexplained []string, explained int) {
		now := nowMs()
		vars := d.resolve(t, a, now-15*minuteMs, now, "machine")
	targets:
		for _, q := range d.targets {
			if r, _ := q.ask(t, a, vars, now, 15*minuteMs); r.points() > 0 {
				continue
			}
			for _, l := range list {
				for _, name := range metricNames.FindAllString(q.expr, -1) {
					if ok, _ := filepath.Match(l.metric, name); ok && l.holds() {
						explained++
						continue targets
					}
				}
			}
			unexplained = append(unexplained, fmt.Sprintf("%s: %s", q.panel, q.expr))
		}
		return unexplained, explained
	}
	// Rates over a minute need some of it.
	eventually(t, time.Minute, "every panel whose source is on this machine has data", func(ctx context.Context) error {
		unexplained, explained := empty(ctx)
		if len(unexplained) > 0 {
			return errors.New("no data, and absent.tsv does not say why:\n" + strings.Join(unexplained, "\n"))
		}
		t.Logf("%d of %d queries have no data, each for a reason in absent.tsv", explained, len(d.targets))
		return nil
	})
}
