package e2e

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ticktier/ticktier/e2e/program"
)

// containerScript is what a container has: a network of its own, with an interface that
// the machine has not, and the machine's procfs and sysfs mounted elsewhere.
const containerScript = `set -e
dir=$1; shift
mount --rbind /proc "$dir/proc"
mount --rbind /sys "$dir/sys"
ip link add inner0 type veth peer name inner1
ip link set lo up
mount -t sysfs sysfs /sys
exec "$@"
`

// startInContainer starts an exporter in a network of its own; dir/proc and dir/sys are
// the machine's.
func startInContainer(t *testing.T, dir string, flags ...string) *app {
	t.Helper()
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("there is no unshare to make a network with")
	}
	for _, d := range []string{"proc", "sys"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := writeFile(t, dir, "container.sh", containerScript)
	if out, err := exec.Command(unshare, "-m", "-n", "sh", script, dir, "true").CombinedOutput(); err != nil {
		t.Skipf("make a container's network: %v: %s", err, out)
	}
	// The port is in the container's network; the host reaches it by none.
	args := append([]string{"-m", "-n", "sh", script, dir, exe(t, "exporter"), "run", "--listen=127.0.0.1:0", "--floor-hz=1"}, flags...)
	p, err := program.Start(program.Config{Name: "exporter", Path: unshare, Args: args})
	if err != nil {
		t.Fatal(err)
	}
	a := &app{Program: p}
	t.Cleanup(func() { a.stop(t) })
	if a.addr, err = p.Addr(t.Context()); err != nil {
		t.Fatal(err)
	}
	pause(t, 3*time.Second) // every source was read
	return a
}

// metricsInside asks for /metrics within the network of the process.
func metricsInside(t *testing.T, a *app) string {
	t.Helper()
	type answer struct {
		body []byte
		err  error
	}
	got := make(chan answer)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		body, err := func() ([]byte, error) {
			ns, err := os.Open("/proc/" + strconv.Itoa(a.PID()) + "/ns/net")
			if err != nil {
				return nil, err
			}
			defer ns.Close()
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				return nil, err
			}
			c, err := net.DialTimeout("tcp", a.addr, 10*time.Second)
			if err != nil {
				return nil, err
			}
			defer c.Close()
			if _, err := io.WriteString(c, "GET /metrics HTTP/1.0\r\n\r\n"); err != nil {
				return nil, err
			}
			return io.ReadAll(c)
		}()
		got <- answer{body, err}
	}()
	g := <-got
	if g.err != nil || !strings.HasPrefix(string(g.body), "HTTP/1.0 200") {
		t.Fatalf("%v: %.100s", g.err, g.body)
	}
	return string(g.body)
}

var deviceLabel = regexp.MustCompile(`(?m)^node_network_receive_bytes_total\{device="([^"]+)"\}`)

func devicesIn(metrics string) (out []string) {
	for _, m := range deviceLabel.FindAllStringSubmatch(metrics, -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return out
}

// TestContainerNetwork runs the exporter in a real network namespace: what it sees
// there is not the device's, and it says so once; the host's procfs shows the host's.
func TestContainerNetwork(t *testing.T) {
	host := hostDevices(t)
	const isHost = "ticktier_exporter_network_namespace_is_host "
	for _, c := range []struct {
		name, is, success string
		flags             func(dir string) []string
		devices           []string
		warnings          int
	}{
		{"its own network", "0", "0", func(string) []string { return nil }, nil, 1},
		{"its own is meant", "0", "1", func(string) []string { return []string{"--container-network"} }, []string{"inner0", "inner1", "lo"}, 1},
		{"the host's trees", "1", "1", func(dir string) []string {
			return []string{"--path.procfs=" + dir + "/proc", "--path.sysfs=" + dir + "/sys"}
		}, host, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			a := startInContainer(t, dir, c.flags(dir)...)
			text := metricsInside(t, a)
			if got := devicesIn(text); !slices.Equal(got, c.devices) {
				t.Errorf("devices %v, want %v", got, c.devices)
			}
			for _, source := range []string{"netdev", "netclass", "netstat", "sockstat"} {
				if want := `node_scrape_collector_success{collector="` + source + `"} ` + c.success; !strings.Contains(text, want) {
					t.Errorf("there is no %s", want)
				}
			}
			if !strings.Contains(text, "\n"+isHost+c.is+"\n") {
				t.Errorf("there is no %s%s", isHost, c.is)
			}
			if strings.Contains(text, `node_network_up{device="inner0"}`) != (c.success == "1" && c.is == "0") {
				t.Error("netclass shows another network than netdev")
			}
			if n := strings.Count(a.Log(), "level=WARN"); n != c.warnings {
				t.Errorf("%d warnings, want %d:\n%s", n, c.warnings, a.Log())
			}
		})
	}
}

// hostDevices are the interfaces of this machine.
func hostDevices(t *testing.T) (out []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/1/net/dev")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(line, ":"); ok {
			out = append(out, strings.TrimSpace(name))
		}
	}
	slices.Sort(out)
	return out
}
