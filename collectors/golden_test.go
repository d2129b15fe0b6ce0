package collectors

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the sources give to the golden files")

// devices are the captured and made trees under testdata.
func devices(t testing.TB) []string {
	t.Helper()
	dirs, err := filepath.Glob("testdata/*/proc")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no trees under testdata: %v", err)
	}
	for i, d := range dirs {
		dirs[i] = filepath.Base(filepath.Dir(d))
	}
	return dirs
}

func deviceEnv(device string) Env {
	return Env{
		Procfs: filepath.Join("testdata", device, "proc"),
		Sysfs:  filepath.Join("testdata", device, "sys"),
		Rootfs: filepath.Join("testdata", device),
	}
}

// notOfTheTree are sources that read this machine whatever the roots are.
var notOfTheTree = []string{"uname", "timex", "exporter", "perf", "ping", "qdisc", "bridge", "wifi"}

// TestGolden compares everything a device exports with testdata/DEVICE/golden.prom.
func TestGolden(t *testing.T) {
	for _, device := range devices(t) {
		t.Run(device, func(t *testing.T) {
			var b strings.Builder
			for _, spec := range All() {
				if slices.Contains(notOfTheTree, spec.Name) {
					continue
				}
				readOnce(t, &b, spec, deviceEnv(device))
			}
			golden := filepath.Join("testdata", device, "golden.prom")
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), b.String()); diff != "" {
				t.Errorf("%s differs (-want +got):\n%s", golden, diff)
			}
		})
	}
}

func readOnce(t *testing.T, b *strings.Builder, spec Spec, env Env) {
	t.Helper()
	fmt.Fprintf(b, "# source %s", spec.Name)
	src, err := spec.New(env)
	if err != nil {
		b.WriteString(": absent\n")
		return
	}
	defer src.Close()
	var schema Schema
	var row Row
	out := NewOut(&schema, &row, 0)
	if err := src.Read(out); err != nil {
		t.Logf("%s: %v", spec.Name, err)
		b.WriteString(": failed\n")
		return
	}
	fmt.Fprintf(b, ": %d bad rows, %d hidden\n", out.Stats.BadRows.Load(), out.Stats.Hidden.Load())
	for _, line := range textOf(&schema, &row) {
		b.WriteString(line)
	}
}

// textOf gives each present series as a line of Prometheus text, sorted, families
// headed by their type.
func textOf(schema *Schema, row *Row) []string {
	types := [...]string{Untyped: "untyped", Counter: "counter", Gauge: "gauge"}
	lines := map[string][]string{}
	for slot, s := range schema.Series() {
		if !row.Has(slot) {
			continue
		}
		value := strconv.FormatFloat(s.Value(row.Values[slot]), 'g', -1, 64)
		if s.Name == "node_time_seconds" {
			value = "NOW"
		}
		head := fmt.Sprintf("# TYPE %s %s\n", s.Name, types[s.Type])
		lines[head] = append(lines[head], seriesName(s)+" "+value+"\n")
	}
	var heads, all []string
	for head := range lines {
		heads = append(heads, head)
	}
	slices.Sort(heads)
	for _, head := range heads {
		slices.Sort(lines[head])
		all = append(append(all, head), lines[head]...)
	}
	return all
}

func seriesName(s Series) string {
	var b strings.Builder
	b.WriteString(s.Name)
	for i, l := range s.Labels {
		b.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		fmt.Fprintf(&b, "%s=%q", l.Name, l.Value)
	}
	if len(s.Labels) > 0 {
		b.WriteByte('}')
	}
	return b.String()
}
