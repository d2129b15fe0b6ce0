package e2e

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ticktier/ticktier/e2e/client"
	"github.com/ticktier/ticktier/e2e/program"
)

const (
	startWithin = 60 * time.Second
	stopWithin  = 30 * time.Second
)

// app is a running program with a client of its HTTP server.
type app struct {
	*program.Program
	*client.Client
	addr string
	peer bool // a real peer, which may end by the signal that stops it

	stopOnce sync.Once
	stopErr  error
}

// start starts a program and waits until it answers 200 at readyPath. At the end
// of the test it is stopped, which must succeed.
func start(t testing.TB, c program.Config, readyPath string) *app {
	t.Helper()
	p, err := program.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	a := &app{Program: p}
	t.Cleanup(func() {
		a.stop(t)
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", c.Name, tail(p.Log(), 20))
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	a.addr, err = p.Addr(ctx)
	if err != nil {
		t.Fatal(err)
	}
	a.Client = client.New("http://" + a.addr)
	if err := a.waitReady(ctx, readyPath); err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	return a
}

func (a *app) waitReady(ctx context.Context, path string) error {
	for {
		resp, err := a.Do(ctx, http.MethodGet, path, nil, nil)
		if err == nil && resp.Status == http.StatusOK {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("status %d: %.200s", resp.Status, resp.Body)
		}
		select {
		case <-a.Exited():
			return fmt.Errorf("ended before it was ready: %v", a.ExitErr())
		case <-ctx.Done():
			return fmt.Errorf("not ready in time, last: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop stops the program with SIGTERM, once, and demands a clean exit.
func (a *app) stop(t testing.TB) {
	t.Helper()
	a.stopOnce.Do(func() {
		if a.Client != nil {
			a.Close()
		}
		select {
		case <-a.Exited():
			a.stopErr = fmt.Errorf("ended by itself: %v", a.ExitErr())
		default:
			a.stopErr = a.Stop(stopWithin)
			if a.peer && a.EndedBy(syscall.SIGTERM) {
				a.stopErr = nil
			}
		}
		if a.stopErr != nil {
			t.Errorf("%s: %v", a.Name(), a.stopErr)
		}
	})
}

// kill ends the program with SIGKILL.
func (a *app) kill() {
	a.stopOnce.Do(func() {
		if a.Client != nil {
			a.Close()
		}
		a.Kill()
	})
}

// startAdapter starts an adapter with its data in dir.
func startAdapter(t testing.TB, dir string, args ...string) *app {
	t.Helper()
	return startAdapterAt(t, "127.0.0.1:0", dir, args...)
}

func startAdapterAt(t testing.TB, listen, dir string, args ...string) *app {
	t.Helper()
	return start(t, program.Config{
		Name: "adapter",
		Path: exe(t, "adapter"),
		Args: append([]string{"run", "--listen=" + listen, "--data-dir=" + dir}, args...),
	}, "/-/ready")
}

// startExporter starts an exporter of this machine.
func startExporter(t testing.TB, args ...string) *app {
	t.Helper()
	return start(t, program.Config{
		Name: "exporter",
		Path: exe(t, "exporter"),
		Args: append([]string{"run", "--listen=127.0.0.1:0"}, args...),
	}, "/-/ready")
}

var prometheusListening = regexp.MustCompile(`msg="Listening on".* address=([0-9.:]+)`)

// startPrometheus starts a real Prometheus with the given configuration file text.
func startPrometheus(t testing.TB, config string, args ...string) *app {
	t.Helper()
	dir := t.TempDir()
	file := writeFile(t, dir, "prometheus.yml", config)
	if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--web.listen-address=") }) {
		args = append(args, "--web.listen-address=127.0.0.1:0")
	}
	return start(t, program.Config{
		Name: "prometheus",
		Path: peerExe(t, "prometheus"),
		Args: append([]string{
			"--config.file=" + file,
			"--storage.tsdb.path=" + dir + "/data",
		}, args...),
		Listening: prometheusListening,
	}, "/-/ready")
}

var victoriaListening = regexp.MustCompile(`started server at http://([0-9.:]+)/`)

// startVictoriaMetrics starts a real single-node VictoriaMetrics.
func startVictoriaMetrics(t testing.TB, args ...string) *app {
	t.Helper()
	return start(t, program.Config{
		Name: "victoria-metrics",
		Path: peerExe(t, "victoria-metrics"),
		Args: append([]string{
			"-storageDataPath=" + t.TempDir(),
			"-httpListenAddr=127.0.0.1:0",
			"-search.latencyOffset=0s",
			"-memory.allowedBytes=256MiB",
		}, args...),
		Listening: victoriaListening,
	}, "/health")
}

var nodeListening = regexp.MustCompile(`msg="Listening on".* address=([0-9.:]+)`)

// startNodeExporter starts the real node_exporter.
func startNodeExporter(t testing.TB, args ...string) *app {
	t.Helper()
	a := start(t, program.Config{
		Name:      "node_exporter",
		Path:      peerExe(t, "node_exporter"),
		Args:      append([]string{"--web.listen-address=127.0.0.1:0"}, args...),
		Listening: nodeListening,
	}, "/")
	a.peer = true
	return a
}

// tail returns the last n lines of text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
