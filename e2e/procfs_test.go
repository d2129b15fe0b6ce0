package e2e

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// cpuModes are the modes of node_cpu_seconds_total in the order of /proc/stat's
// columns. The two columns that follow are guest time, which is a metric apart.
var cpuModes = []string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"}

// procStatCPUs reads /proc/stat and returns the seconds under "cpu mode".
func procStatCPUs(t testing.TB) map[string]float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]float64)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		id, ok := strings.CutPrefix(fields[0], "cpu")
		if !ok || id == "" {
			continue
		}
		for i, mode := range cpuModes {
			ticks, err := strconv.ParseInt(fields[1+i], 10, 64)
			if err != nil {
				t.Fatalf("/proc/stat: %v", err)
			}
			out[id+" "+mode] = float64(ticks) / 100
		}
	}
	return out
}
