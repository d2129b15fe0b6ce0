package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ticktier/ticktier/collectors"
)

// TestSources lists the sources of a made tree, under the flags of run.
func TestSources(t *testing.T) {
	proc := t.TempDir()
	if err := os.WriteFile(filepath.Join(proc, "loadavg"), []byte("0.50 0.25 0.10 1/100 42\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"sources", "--path.procfs=" + proc, "--path.sysfs=" + proc, "--no-collector.loadavg"}
	var table, text output
	if code := realMain(t.Context(), args, &table, &table); code != 0 {
		t.Fatalf("exit code is %d: %s", code, &table)
	}
	if code := realMain(t.Context(), append(args, "--format=json"), &text, &text); code != 0 {
		t.Fatalf("exit code is %d: %s", code, &text)
	}
	var got struct {
		Sources []map[string]any `json:"sources"`
	}
	if err := json.Unmarshal([]byte(text.String()), &got); err != nil {
		t.Fatalf("%v in:\n%s", err, &text)
	}
	all := collectors.All()
	if len(got.Sources) != len(all) {
		t.Fatalf("%d sources are listed, there are %d", len(got.Sources), len(all))
	}
	lines := strings.Split(table.String(), "\n")
	for i, s := range got.Sources {
		name := s["name"].(string)
		if name != all[i].Name || !strings.HasPrefix(lines[i+1], name+" ") {
			t.Errorf("source %d is %s, in the table %q; want %s", i, name, lines[i+1], all[i].Name)
		}
		switch name {
		case "loadavg":
			if s["enabled"] != false || s["success"] != true || s["series"] != 3.0 || s["bytes"] != 24.0 || s["cost_seconds"].(float64) <= 0 {
				t.Errorf("loadavg: %v", s)
			}
		case "stat":
			if s["enabled"] != true || s["success"] != false || !strings.Contains(s["error"].(string), proc) {
				t.Errorf("stat: %v", s)
			}
			if !strings.Contains(lines[i+1], "no: open "+proc) || !strings.Contains(lines[i+1], all[i].Reason) {
				t.Errorf("stat: %q", lines[i+1])
			}
		}
	}
	var out output
	if code := realMain(t.Context(), []string{"sources", "--format=xml"}, &out, &out); code != 2 || !strings.Contains(out.String(), "--format") {
		t.Errorf("--format=xml: exit code %d: %s", code, &out)
	}
	if code := realMain(t.Context(), []string{"--format=json"}, &out, &out); code != 2 {
		t.Errorf("run takes --format: exit code %d", code)
	}
}

// TestOptionFlags gives options to sources, some by names that node_exporter has or
// had.
func TestOptionFlags(t *testing.T) {
	t.Setenv("TICKTIER_EXPORTER_COLLECTOR_ARP_DEVICE_EXCLUDE", "^veth")
	r := newRunFlags()
	err := r.parse([]string{"--collector.netdev.device-include=^wan$", "--collector.diskstats.device-exclude=",
		"--collector.filesystem.ignored-fs-types=^tmpfs$", "--collector.powersupply.ignored-supplies=^BAT",
		"--collector.textfile.directory=/a", "--collector.textfile.directory=/b*", "--container-network",
		"--no-collector.powersupplyclass", "--no-collector.zfs", "--collector.systemd", "--collector.netclass.ignore-invalid-speed",
		"--web.listen-address=127.0.0.1:9100"})
	if err != nil {
		t.Fatal(err)
	}
	env := r.env(nil)
	for name, want := range map[string]string{
		"arp.device-exclude": "^veth", "netdev.device-include": "^wan$", "diskstats.device-exclude": "",
		"filesystem.fs-types-exclude": "^tmpfs$", "powersupply.ignored-supplies": "^BAT",
	} {
		if got, ok := env.Options[name]; !ok || got != want {
			t.Errorf("%s is %q, %v; want %q", name, got, ok, want)
		}
	}
	if len(env.Options) != 5 {
		t.Errorf("options that nobody gave: %v", env.Options)
	}
	if !slices.Equal(env.TextfileDirs, []string{"/a", "/b*"}) || !env.ContainerNetwork {
		t.Errorf("got %q, %v", env.TextfileDirs, env.ContainerNetwork)
	}
	if s := r.source("power_supply"); r.reads(s) {
		t.Error("power_supply is read")
	}
	if r.config.Listen != "127.0.0.1:9100" {
		t.Errorf("listens on %s", r.config.Listen)
	}
	if want := []string{"--collector.systemd", "--collector.netclass.ignore-invalid-speed"}; !slices.Equal(r.foreign.passedOver, want) {
		t.Errorf("passed over: %q, want %q", r.foreign.passedOver, want)
	}
}

// TestNoDefaults reads what is named, and what node_exporter would under that name.
func TestNoDefaults(t *testing.T) {
	r := newRunFlags()
	if err := r.parse([]string{"--collector.disable-defaults", "--collector.cpu", "--collector.powersupplyclass", "--collector.slabinfo"}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range r.enabled() {
		got = append(got, s.Name)
	}
	slices.Sort(got)
	if want := []string{"cpu", "exporter", "power_supply", "slabinfo", "stat"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestStartsOfTheExporter: what it counts itself began with it; its control group did
// not.
func TestStartsOfTheExporter(t *testing.T) {
	start := counterStarts(collectors.Env{Procfs: t.TempDir()}, []collectors.Spec{{Name: selfSource}}, 5000)
	for name, want := range map[string]bool{"ticktier_exporter_ticks_total": true, "ticktier_exporter_cgroup_cpu_seconds_total": false} {
		if at, ok := start(&collectors.Series{Metric: &collectors.Metric{Name: name}}); ok != want || at != 0 {
			t.Errorf("%s: %d, %v", name, at, ok)
		}
	}
}

// TestStartWall: start times stay while the clock is slewed, and move when it is
// stepped; one before the clock is set is not known.
func TestStartWall(t *testing.T) {
	offset := int64(0)
	c := startWall{now: func() int64 { return 60e9 }, wall: func(mono int64) int64 { return offset + mono/1e6 }}
	for _, step := range []struct {
		offset, want int64
		ok           bool
	}{
		{0, 0, false},
		{clockFloor + 500_000, clockFloor + 495_000, true},
		{clockFloor + 500_999, clockFloor + 495_000, true},
		{clockFloor + 499_001, clockFloor + 495_000, true},
		{clockFloor + 501_000, clockFloor + 496_000, true},
	} {
		offset = step.offset
		if got, ok := c.of(-5e9); ok != step.ok || ok && got != step.want {
			t.Errorf("offset %d: %d, %v; want %d", step.offset, got, ok, step.want)
		}
	}
}

// TestCounterStarts: a container's network did not begin with the machine.
func TestCounterStarts(t *testing.T) {
	specs := []collectors.Spec{{Name: "schedstat"}, {Name: "netstat"}, {Name: "netdev"}}
	for _, host := range []bool{true, false} {
		proc := t.TempDir()
		if err := os.WriteFile(filepath.Join(proc, "stat"), []byte("cpu 1\nbtime 1000\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if host {
			if err := os.MkdirAll(filepath.Join(proc, "1/net/dev"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		start := counterStarts(collectors.Env{Procfs: proc}, specs, 5_000_000)
		for i, want := range []bool{true, host, false} {
			at, ok := start(&collectors.Series{Source: uint8(i), Metric: &collectors.Metric{Name: "x_total"}})
			if ok != want || ok && at != -4000e9 {
				t.Errorf("host's network %v, %s: got %d, %v; want %v", host, specs[i].Name, at, ok, want)
			}
		}
	}
}
