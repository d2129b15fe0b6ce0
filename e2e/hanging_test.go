package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ticktier/ticktier/e2e/program"
)

// hangScript puts file systems that never answer where an exporter looks, in mounts of
// its own: a directory, a directory for textfile, one kernel file as lxcfs does, and a
// sensor. Their server is the exporter itself, which holds the descriptors and never
// reads them: the kernel waits for the first answer.
const hangScript = `set -e
dir=$1; shift
dead() { # descriptor, mode, type, place
	mount -i -t "$3" -o fd=$1,rootmode=$2,user_id=0,group_id=0 dead "$4"
}
exec 9<>/dev/fuse; dead 9 40000 fuse "$dir/dead"
exec 8<>/dev/fuse; dead 8 40000 fuse "$dir/text"
exec 7<>/dev/fuse; dead 7 100444 fuse.lxcfs /proc/loadavg
mount --bind "$dir/thermal" /sys/class/thermal
exec 6<>/dev/fuse; dead 6 100444 fuse /sys/class/thermal/thermal_zone0/temp
mount --bind /proc/$$/mountinfo /proc/1/mountinfo
exec "$@"
`

// startHanging starts an exporter amid file systems that hang.
func startHanging(t *testing.T) (exporter *app, dead string) {
	t.Helper()
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("there is no unshare to make mounts with")
	}
	if _, err := os.Stat("/sys/class/thermal"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	for _, d := range []string{"dead", "text", "thermal/thermal_zone0"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(dir, "thermal/thermal_zone0"), "type", "cpu\n")
	writeFile(t, filepath.Join(dir, "thermal/thermal_zone0"), "temp", "")
	script := writeFile(t, dir, "hang.sh", hangScript)
	if out, err := exec.Command(unshare, "-m", "sh", script, dir, "true").CombinedOutput(); err != nil {
		t.Skipf("mount what hangs: %v: %s", err, out)
	}
	return start(t, program.Config{Name: "exporter", Path: unshare, Args: []string{"-m", "sh", script, dir,
		exe(t, "exporter"), "run", "--listen=127.0.0.1:0", "--floor-hz=1", "--collector.textfile.directory=" + filepath.Join(dir, "text")}}, "/-/ready"), filepath.Join(dir, "dead")
}

// held is how many threads and descriptors a process has.
func held(t *testing.T, pid int) (threads, descriptors int) {
	t.Helper()
	for what, n := range map[string]*int{"task": &threads, "fd": &descriptors} {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/%s", pid, what))
		if err != nil {
			t.Fatal(err)
		}
		*n = len(entries)
	}
	return threads, descriptors
}

// TestWhatHangs: dead FUSE mounts, as directory, as textfile directory, as a file of
// lxcfs and as a sensor, cost their own series and nothing else, and what they hold
// does not grow.
func TestWhatHangs(t *testing.T) {
	// Not in parallel: the mounts are seen by nobody else, but a busy machine would be
	// blamed on them.
	e, dead := startHanging(t)
	metric := func(series string) float64 {
		t.Helper()
		v, err := e.Metric(t.Context(), series)
		if err != nil {
			t.Errorf("%s: %v", series, err)
		}
		return v
	}
	pause(t, 8*time.Second) // every deadline has passed
	threads, descriptors := held(t, e.PID())
	ticks := metric("ticktier_exporter_ticks_total")
	for name, want := range map[string]float64{"loadavg": 0, "textfile": 0, "thermal_zone": 0, "filesystem": 1, "stat": 1, "netdev": 1, "meminfo": 1, "exporter": 1} {
		if got := metric(fmt.Sprintf("node_scrape_collector_success{collector=%q}", name)); got != want {
			t.Errorf("%s: success is %v, want %v", name, got, want)
		}
	}
	stuck := fmt.Sprintf(`{device="dead",device_error="mountpoint timeout",fstype="fuse",mountpoint=%q}`, dead)
	if metric("node_filesystem_device_error"+stuck) != 1 {
		t.Error("the dead mount is no error")
	}
	body, err := e.Get(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	if text := string(body); strings.Contains(text, "\nnode_load1") || strings.Contains(text, "\nnode_thermal_zone_temp") || !strings.Contains(text, `mountpoint="/"`) {
		t.Error("what hangs has values, or what does not has none")
	}
	pause(t, 8*time.Second)
	if n := metric("ticktier_exporter_ticks_total") - ticks; n < 40 {
		t.Errorf("%v ticks in 8 s", n)
	}
	later, more := held(t, e.PID())
	if later > threads+3 || more > descriptors+3 {
		t.Errorf("%d threads and %d descriptors, then %d and %d", threads, descriptors, later, more)
	}
	if n := strings.Count(e.Log(), "source fails"); n > 4 {
		t.Errorf("the log tells of it %d times", n)
	}
	t.Logf("%d threads and %d descriptors, then %d and %d", threads, descriptors, later, more)
}
