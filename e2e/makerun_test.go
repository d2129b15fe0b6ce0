package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ticktier/ticktier/e2e/client"
)

// makeRun is a running `make run`.
type makeRun struct {
	cmd    *exec.Cmd
	out    *safeBuffer
	exited chan struct{}
	err    error
}

// startMakeRun starts `make run` as a terminal does, in a process group of its
// own, with programs built into a folder of its own.
func startMakeRun(t *testing.T, vars ...string) *makeRun {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{
		"--no-print-directory", "run",
		"BIN=" + makeRunBin(t),
		"RUN_DATA=" + dir + "/data",
		"RUN_ADAPTER_LISTEN=127.0.0.1:0",
		"RUN_EXPORTER_LISTEN=127.0.0.1:0",
	}, vars...)
	m := &makeRun{cmd: exec.Command("make", args...), out: &safeBuffer{}, exited: make(chan struct{})}
	m.cmd.Dir = root(t)
	// These tests may themselves run under make, whose flags are not for this one.
	m.cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=")
	m.cmd.Stdout, m.cmd.Stderr = m.out, m.out
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	m.cmd.WaitDelay = 5 * time.Second
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		m.err = m.cmd.Wait()
		close(m.exited)
	}()
	t.Cleanup(func() {
		// A test that failed half-way must not leave the programs behind.
		for _, p := range descendants(m.cmd.Process.Pid) {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		_ = m.cmd.Process.Kill()
		<-m.exited
		if t.Failed() {
			t.Logf("make run wrote:\n%s", tail(m.out.String(), 60))
		}
	})
	return m
}

// ctrlC sends what the terminal sends: SIGINT to the whole group.
func (m *makeRun) ctrlC() error { return syscall.Kill(-m.cmd.Process.Pid, syscall.SIGINT) }

func (m *makeRun) wait(t *testing.T, within time.Duration) {
	t.Helper()
	select {
	case <-m.exited:
	case <-time.After(within):
		t.Fatalf("make run is still there after %v", within)
	}
}

var (
	pageLine    = regexp.MustCompile(`page +(http://\S+)/`)
	metricsLine = regexp.MustCompile(`metrics +(http://\S+)/metrics`)
)

// urls waits until the page's address is printed and returns clients of adapter
// and exporter.
func (m *makeRun) urls(t *testing.T) (adapter, exporter *client.Client) {
	t.Helper()
	eventually(t, 3*time.Minute, "make run prints where the page is", func(context.Context) error {
		select {
		case <-m.exited:
			t.Fatalf("make run ended: %v", m.err)
		default:
		}
		page := pageLine.FindStringSubmatch(m.out.String())
		metrics := metricsLine.FindStringSubmatch(m.out.String())
		if page == nil || metrics == nil {
			return fmt.Errorf("not yet in:\n%s", m.out.String())
		}
		adapter, exporter = client.New(page[1]), client.New(metrics[1])
		return nil
	})
	return adapter, exporter
}

// TestMakeRun is the first thing that someone sees: `make run`, 20 seconds, the
// right number of samples with the right values, and Ctrl-C.
func TestMakeRun(t *testing.T) {
	t.Parallel()
	m := startMakeRun(t)
	adapter, _ := m.urls(t)
	pause(t, 20*time.Second)
	checkEveryTickStored(t, adapter)
	checkAgreesWithProcStat(t, adapter)

	page, err := adapter.Get(t.Context(), "/")
	if err != nil {
		t.Error(err)
	} else if host, _ := os.Hostname(); !bytes.Contains(page, []byte(host)) {
		t.Errorf("the page does not name this machine, %s", host)
	}

	started := descendants(m.cmd.Process.Pid)
	if len(started) < 3 {
		t.Errorf("make run has started %v, want a runner and two programs", started)
	}
	adapter.Close()
	if err := m.ctrlC(); err != nil {
		t.Fatal(err)
	}
	m.wait(t, 30*time.Second)
	if left := running(started); len(left) > 0 {
		t.Errorf("still running after Ctrl-C: %v", left)
	}
	for _, bad := range []string{"did not stop cleanly", "level=ERROR", "panic:"} {
		if strings.Contains(m.out.String(), bad) {
			t.Errorf("the log has %q:\n%s", bad, tail(m.out.String(), 30))
		}
	}
}

// checkEveryTickStored demands that ten seconds hold a hundred ticks.
func checkEveryTickStored(t *testing.T, adapter *client.Client) {
	t.Helper()
	const expr = `count_over_time(node_cpu_seconds_total{cpu="0",mode="idle"}[10s])`
	// A machine that is busy misses slots for a while, a fault does for ever.
	eventually(t, time.Minute, "every tick of ten seconds is stored", func(ctx context.Context) error {
		// The newest push may be 5 s old, and the 10 s must lie inside what arrived.
		r, err := adapter.Query(ctx, expr, nowMs()-6000)
		if err != nil {
			return err
		}
		got, err := r.Value()
		if err == nil && (got < 98 || got > 102) {
			err = fmt.Errorf("%s = %v, want 100 ± 2", expr, got)
		}
		return err
	})
}

// checkAgreesWithProcStat reads /proc/stat here and demands that what the adapter
// has for the moments around it encloses what was read.
func checkAgreesWithProcStat(t *testing.T, adapter *client.Client) {
	t.Helper()
	before := nowMs()
	own := procStatCPUs(t)
	after := nowMs()
	var r *client.Result
	eventually(t, 20*time.Second, "samples from after the reading arrive", func(ctx context.Context) error {
		var err error
		r, err = adapter.Query(ctx, `node_cpu_seconds_total[4s]`, after+2000)
		if err != nil {
			return err
		}
		if len(r.Series) == 0 || len(r.Series[0].Samples) == 0 || last(r.Series[0]).T < after+500 {
			return fmt.Errorf("nothing after the reading in %d series", len(r.Series))
		}
		return nil
	})
	if len(r.Series) != len(own) {
		t.Errorf("node_cpu_seconds_total has %d series, /proc/stat %d values", len(r.Series), len(own))
	}
	for _, s := range r.Series {
		want, ok := own[s.Labels["cpu"]+" "+s.Labels["mode"]]
		if !ok {
			t.Errorf("%s: not in /proc/stat", s.Name())
			continue
		}
		low, high := around(s, before, after)
		// A hundredth is the kernel's unit, and it steps idle and iowait back at times.
		if want < low-0.015 || want > high+0.015 {
			t.Errorf("%s: /proc/stat has %v, stored are %v before and %v after", s.Name(), want, low, high)
		}
	}
}

// around returns the last value before a time and the first one after another.
func around(s client.Series, before, after int64) (low, high float64) {
	low, high = s.Samples[0].V, last(s).V
	for _, p := range s.Samples {
		if p.T < before {
			low = p.V
		}
	}
	for i := len(s.Samples) - 1; i >= 0; i-- {
		if s.Samples[i].T > after {
			high = s.Samples[i].V
		}
	}
	return low, high
}

func last(s client.Series) client.Sample { return s.Samples[len(s.Samples)-1] }

// TestMakeRunPortTaken: a clear message, an exit status, and nothing left.
func TestMakeRunPortTaken(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, which := range []string{"ADAPTER", "EXPORTER"} {
		t.Run(which, func(t *testing.T) {
			m := startMakeRun(t, "RUN_"+which+"_LISTEN="+taken.Addr().String())
			m.wait(t, 3*time.Minute)
			if m.err == nil {
				t.Error("make run ended with status 0")
			}
			for _, want := range []string{"address already in use", taken.Addr().String(), "the " + strings.ToLower(which) + " stopped"} {
				if !strings.Contains(m.out.String(), want) {
					t.Errorf("make run does not say %q", want)
				}
			}
			if left := descendants(m.cmd.Process.Pid); len(left) > 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
}

// TestMakeRunProgramDies: when one program dies, the other is stopped too.
func TestMakeRunProgramDies(t *testing.T) {
	t.Parallel()
	for _, which := range []string{"adapter", "exporter"} {
		t.Run(which, func(t *testing.T) {
			m := startMakeRun(t)
			m.urls(t)
			started := descendants(m.cmd.Process.Pid)
			victim := 0
			for _, p := range started {
				// The kernel keeps 15 bytes of a name.
				if strings.HasPrefix("ticktier-"+which, p.name) && p.name != "ticktier-run" {
					victim = p.pid
				}
			}
			if victim == 0 {
				t.Fatalf("no %s among %v", which, started)
			}
			if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			m.wait(t, 60*time.Second)
			if m.err == nil {
				t.Error("make run ended with status 0")
			}
			if want := "the " + which + " stopped by itself"; !strings.Contains(m.out.String(), want) {
				t.Errorf("make run does not say %q", want)
			}
			if left := running(started); len(left) > 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
}

// TestMakeRunKilled: even when the runner itself is killed, nothing is left.
func TestMakeRunKilled(t *testing.T) {
	t.Parallel()
	m := startMakeRun(t)
	m.urls(t)
	started := descendants(m.cmd.Process.Pid)
	for _, p := range started {
		if p.name == "ticktier-run" {
			if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	m.wait(t, 10*time.Second)
	if m.err == nil {
		t.Error("make run ended with status 0")
	}
	eventually(t, 30*time.Second, "both programs end", func(context.Context) error {
		if left := running(started); len(left) > 0 {
			return fmt.Errorf("still running: %v", left)
		}
		return nil
	})
}

// safeBuffer is a bytes.Buffer that may be read while it is written.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
