package tick

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ticktier/ticktier/collectors"
)

// missing is the spec of a source that cannot be opened.
func missing(name string, err error, blocking bool) collectors.Spec {
	return collectors.Spec{Name: name, Blocking: blocking, New: func(collectors.Env) (collectors.Source, error) { return nil, err }}
}

// Sources that are not there take one line of the log, whether a tick waits for them
// or not.
func TestNotThereIsOneLine(t *testing.T) {
	gone := &fs.PathError{Op: "open", Path: "/proc/x", Err: fs.ErrNotExist}
	s := newStepper(t, missing("b", gone, false), missing("a", gone, true), fakeSpec("fine", 0, nil),
		missing("net", fmt.Errorf("open: %w", collectors.ErrNetwork), true), missing("kmsg", fs.ErrPermission, false))
	defer s.close()
	for i := 0; s.log.Len() == 0 && i < 10_000; i++ {
		s.loop.tick(0) // no time passes
		time.Sleep(time.Millisecond)
	}
	for range 60 {
		s.tick()
	}
	for _, want := range []string{"not_on_this_machine=\"a b\"", "not_this_network=net", "other=\"kmsg: permission denied\""} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("the log lacks %s: %s", want, s.log.String())
		}
	}
	if n := strings.Count(s.log.String(), "\n"); n != 1 {
		t.Errorf("%d lines:\n%s", n, s.log.String())
	}
}

// What is not there is told even if the loop ends before all were tried, and a source
// that goes later is told of at once.
func TestNotThereLater(t *testing.T) {
	s := newStepper(t, missing("a", fs.ErrNotExist, false))
	s.close()
	if !strings.Contains(s.log.String(), "not_on_this_machine=a") {
		t.Errorf("the log is %s", s.log.String())
	}
	var log strings.Builder
	s.loop.absent.add(slog.New(slog.NewTextHandler(&log, nil)), "b", errFake)
	if !strings.Contains(log.String(), "collector=b") {
		t.Errorf("the log is %s", log.String())
	}
}

// A source that hangs as it is opened is a fault, and not one that is not there.
func TestOpenHangs(t *testing.T) {
	hang := make(chan struct{})
	s := newStepper(t, collectors.Spec{Name: "i2c", Blocking: true, New: func(collectors.Env) (collectors.Source, error) {
		<-hang
		return nil, errFake
	}})
	for range 100 {
		s.tick()
	}
	if log := s.log.String(); !strings.Contains(log, "level=WARN") || !strings.Contains(log, "collector=i2c") || strings.Contains(log, "not there") {
		t.Errorf("the log is %s", log)
	}
	close(hang)
	s.close()
}

// A source that keeps ticks for longer than its deadline is absent, and after the
// second time left alone for a while; once may be the machine's fault.
func TestDeadlineOfATick(t *testing.T) {
	var r *rig
	slow := fakeSpec("slow", 0, func(n int64) error {
		if n == 5 || n == 10 || n == 11 {
			r.time.pass(3 * time.Second / 2)
		}
		return nil
	})
	slow.Deadline = time.Second
	r = newRig(t, 10, fakeSpec("good", 0, nil), slow)
	ticks := r.run(20 * time.Second)
	var absent []uint64
	for _, tick := range ticks {
		if !tick.has[0] {
			t.Errorf("tick %d: the good source is absent", tick.seq)
		}
		if !tick.has[1] {
			absent = append(absent, tick.seq)
		}
	}
	// The fifth read is in slot 4 and takes until slot 19; the tenth is in slot 23, the
	// next in slot 38, and ten seconds begin 1.5 s after that.
	if len(absent) < 100 || absent[0] != 4 || absent[1] != 23 || absent[2] != 38 || absent[len(absent)-1] < 150 || absent[len(absent)-1] > 154 {
		t.Errorf("absent in %v", absent)
	}
	if n := r.self("ticktier_exporter_collector_failures_total", "slow"); n != 3 {
		t.Errorf("%v failures", n)
	}
	if n := strings.Count(r.log.String(), "longer than its deadline"); n != 2 {
		t.Errorf("the log tells %d times, want 2 (once for each time that it begins):\n%s", n, r.log.String())
	}
}

// Kernel files of 10 MB: their sources are absent and named once in the log, the others
// go on, and each is read no more often than every ten seconds.
func TestHugeFiles(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	const size = 10 << 20
	put("stat", "cpu 1 2 3 4\ncpu0 1 2 3 4\nbtime 1700000000\n")
	put("interrupts", "      CPU0\n"+strings.Repeat(" 24:  7  chip 1-edge eth0\n", size/25))
	put("softirqs", "      CPU0\n"+strings.Repeat("x", size))
	put("net/dev", "Inter-|\n face |\n"+strings.Repeat("  eth0: 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n", size/42))
	put("net/netstat", "TcpExt: A\nTcpExt: 1\n")
	put("net/snmp", strings.Repeat("Ip: A\nIp: 1\n", size/12))
	huge := []string{"interrupts", "softirqs", "netdev", "netstat"}
	var specs []collectors.Spec
	for _, spec := range collectors.All() {
		if slices.Contains(huge, spec.Name) || spec.Name == "stat" {
			open := spec.New
			spec.New = func(env collectors.Env) (collectors.Source, error) {
				env.Procfs, env.Sysfs, env.Rootfs, env.ContainerNetwork = dir, dir, dir, true
				return open(env)
			}
			specs = append(specs, spec)
		}
	}
	r := newRig(t, 10, specs...)
	ticks := r.run(25 * time.Second)
	if len(ticks) < 250 {
		t.Errorf("%d ticks", len(ticks))
	}
	for _, tick := range ticks[1:] {
		if !tick.has[0] {
			t.Fatalf("tick %d: stat is absent", tick.seq)
		}
	}
	for _, name := range huge {
		if r.self("node_scrape_collector_success", name) != 0 {
			t.Errorf("%s: success is not 0", name)
		}
		if n := r.self("ticktier_exporter_collector_reads_total", name); n < 2 || n > 4 {
			t.Errorf("%s was read %v times in 25 s", name, n)
		}
		if n := strings.Count(r.log.String(), "collector="+name+" "); n != 1 {
			t.Errorf("%s is named %d times", name, n)
		}
	}
	if !strings.Contains(r.log.String(), "larger than it may be") {
		t.Errorf("the log does not say why: %s", r.log.String())
	}
}
