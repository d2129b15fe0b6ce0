package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testStart is the wall clock at the beginning of a test.
var testStart = time.UnixMilli(1_700_000_000_000).UTC()

// clock is a wall clock that tests move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func testFleet(t *testing.T, change ...func(*Config)) (*Fleet, *clock) {
	t.Helper()
	c := &clock{t: testStart}
	cfg := Config{Now: c.now, Path: filepath.Join(t.TempDir(), "devices.json")}
	for _, f := range change {
		f(&cfg)
	}
	f, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f, c
}

// from is a push of a device, lag before its newest sample's time.
func from(device string, c *clock, lag time.Duration) Push {
	return Push{
		Device: device, RemoteAddr: "192.0.2.7:40000", UserAgent: "ticktier-exporter/1.2.3 (linux)", Protocol: "2.0",
		Status: 204, Series: 10, Samples: 500, Bytes: 4000, Received: c.now(), Newest: c.now().Add(-lag).UnixMilli(),
	}
}

var sameDevice = cmp.Options{cmpopts.IgnoreFields(Device{}, "remoteAddr", "userAgent"), cmp.AllowUnexported(Device{})}

func TestPushed(t *testing.T) {
	f, c := testFleet(t)
	f.Pushed(from("r1", c, 50*time.Millisecond))
	c.add(5 * time.Second)
	p := from("r1", c, -2*time.Second)
	p.RemoteAddr, p.UserAgent, p.Protocol, p.Status, p.Rejected = "[2001:db8::1]:5", "vmagent", "1.0", 400, 3
	f.Pushed(p)
	c.add(5 * time.Second)
	p = from("r1", c, 0)
	p.Newest, p.Samples, p.Status = 0, 0, 503 // nothing was stored
	f.Pushed(p)
	f.Pushed(from("r0", c, 0))
	want := []Device{
		{
			Instance: "r0", Address: "192.0.2.7", UserAgent: "ticktier-exporter/1.2.3 (linux)", Version: "1.2.3", Protocol: "2.0",
			FirstPush: c.now(), LastPush: c.now(), LastStatus: 204, NewestSample: c.now(), Series: 10, Pushes: 1, Samples: 500, Bytes: 4000,
			history: history{Since: c.now()},
		},
		{
			Instance: "r1", Address: "192.0.2.7", UserAgent: "ticktier-exporter/1.2.3 (linux)", Version: "1.2.3", Protocol: "2.0",
			FirstPush: testStart, LastPush: c.now(), LastStatus: 503, NewestSample: testStart.Add(7 * time.Second),
			LagSeconds: -2, Series: 10, Pushes: 3, Samples: 1000, Rejected: 3, Bytes: 12000,
			history: history{Since: testStart},
		},
	}
	if diff := cmp.Diff(want, f.Devices(), sameDevice); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"r0", "r1"}, f.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestBounds(t *testing.T) {
	var log bytes.Buffer
	f, c := testFleet(t, func(cfg *Config) {
		cfg.MaxDevices, cfg.Logger = 2, slog.New(slog.NewTextHandler(&log, nil))
	})
	for _, name := range []string{"", "\xff", strings.Repeat("x", maxInstance+1), "a", "b", "c", "d", "a"} {
		f.Pushed(from(name, c, 0))
	}
	if got := testutil.ToFloat64(f.metrics.unknown); got != 5 {
		t.Errorf("%v pushes are counted as unknown, want 5", got)
	}
	if diff := cmp.Diff([]string{"a", "b"}, f.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if n := strings.Count(log.String(), "too many devices"); n != 1 {
		t.Errorf("it is logged %d times: %s", n, &log)
	}
}

func TestClientsWords(t *testing.T) {
	f, c := testFleet(t)
	p := from("<script>alert(1)</script>", c, 0)
	p.UserAgent = "evil/\x1b[31m\n\u0085\xff" + strings.Repeat("é", maxUserAgent)
	p.RemoteAddr = strings.Repeat("9", 1000)
	f.Pushed(p)
	d := f.Devices()[0]
	if len(d.UserAgent) > maxUserAgent+4*len("\uFFFD") || strings.ContainsAny(d.UserAgent, "\x1b\n\u0085") || len(d.Address) > maxAddress {
		t.Errorf("kept %q, %q", d.UserAgent, d.Address)
	}
	w := httptest.NewRecorder()
	f.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/devices", nil))
	if strings.Contains(w.Body.String(), "<script>") {
		t.Errorf("the answer has markup: %s", w.Body)
	}
}

func TestServeHTTP(t *testing.T) {
	f, c := testFleet(t)
	get := func() list {
		t.Helper()
		var l list
		a := answer{Data: &l}
		w := httptest.NewRecorder()
		f.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/devices", nil))
		if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" {
			t.Fatalf("status %d, %v", w.Code, w.Header())
		}
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		if a.Status != "success" || l.Devices == nil {
			t.Fatalf("answer %s", w.Body)
		}
		return l
	}
	if n := len(get().Devices); n != 0 {
		t.Errorf("%d devices at the start", n)
	}
	f.Pushed(from("r1", c, 0))
	c.add(time.Minute)
	f.Pushed(from("r2", c, 0))
	c.add(time.Millisecond)
	devices := get().Devices
	if devices[0].Up || devices[0].AgeSeconds != 60.001 {
		t.Errorf("the silent device: up %v, age %v", devices[0].Up, devices[0].AgeSeconds)
	}
	if !devices[1].Up || devices[1].AgeSeconds != 0.001 {
		t.Errorf("the other device: up %v, age %v", devices[1].Up, devices[1].AgeSeconds)
	}
	w := httptest.NewRecorder()
	f.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/devices?sort=age", nil))
	if w.Code != 400 || !strings.Contains(w.Body.String(), "limit, after") {
		t.Errorf("an unknown parameter: status %d, %s", w.Code, w.Body)
	}
	w = httptest.NewRecorder()
	f.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/api/v1/devices", nil))
	if w.Code != 405 || w.Header().Get("Allow") == "" {
		t.Errorf("POST: status %d", w.Code)
	}
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	f, c := testFleet(t, func(cfg *Config) { cfg.Registerer = reg })
	f.Pushed(from("r1", c, 2*time.Second))
	c.add(2 * time.Minute)
	f.Pushed(from("r2", c, 0))
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
	want := `
# HELP ticktier_adapter_fleet_devices Devices known.
# TYPE ticktier_adapter_fleet_devices gauge
ticktier_adapter_fleet_devices 2
# HELP ticktier_device_lag_seconds How much older than the last push its newest sample was; negative where the device's clock is ahead.
# TYPE ticktier_device_lag_seconds gauge
ticktier_device_lag_seconds{instance="r1"} 2
ticktier_device_lag_seconds{instance="r2"} 0
# HELP ticktier_device_last_push_timestamp_seconds When the device pushed last, by the adapter's clock.
# TYPE ticktier_device_last_push_timestamp_seconds gauge
ticktier_device_last_push_timestamp_seconds{instance="r1"} 1.7e+09
ticktier_device_last_push_timestamp_seconds{instance="r2"} 1.70000012e+09
# HELP ticktier_device_samples_total Samples stored of the device.
# TYPE ticktier_device_samples_total counter
ticktier_device_samples_total{instance="r1"} 500
ticktier_device_samples_total{instance="r2"} 500
# HELP ticktier_device_up Whether the device has pushed lately.
# TYPE ticktier_device_up gauge
ticktier_device_up{instance="r1"} 0
ticktier_device_up{instance="r2"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "ticktier_adapter_fleet_devices", "ticktier_device_lag_seconds",
		"ticktier_device_last_push_timestamp_seconds", "ticktier_device_samples_total", "ticktier_device_up"); err != nil {
		t.Error(err)
	}
}

func TestRestart(t *testing.T) {
	f, c := testFleet(t)
	for i := range 5 {
		f.Pushed(from(fmt.Sprint("r", i), c, time.Duration(i)*time.Second))
	}
	if err := f.save(); err != nil {
		t.Fatal(err)
	}
	g, err := New(Config{Path: f.cfg.Path, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f.Devices(), g.Devices(), sameDevice, cmpopts.EquateApproxTime(0)); diff != "" {
		t.Errorf("devices after the restart (-before +after):\n%s", diff)
	}
	g.Pushed(from("r0", c, 0))
	if d := g.Devices()[0]; d.Pushes != 2 || !d.FirstPush.Equal(testStart) {
		t.Errorf("the device is counted anew: %+v", d)
	}
	if left, _ := filepath.Glob(f.cfg.Path + ".*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestDamagedFile(t *testing.T) {
	for name, content := range map[string]string{
		"cut":             `{"version":1,"devices":[{"instance":"r1"`,
		"empty":           "",
		"zeros":           strings.Repeat("\x00", 100),
		"another version": `{"version":99,"devices":[]}`,
		"another type":    `{"version":1,"devices":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "devices.json")
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
			f, c := testFleet(t, func(cfg *Config) { cfg.Path = path })
			aside, _ := filepath.Glob(path + ".damaged-*")
			if len(aside) != 1 {
				t.Fatalf("moved aside: %q", aside)
			}
			if got, _ := os.ReadFile(aside[0]); string(got) != content {
				t.Errorf("the file moved aside has %q", got)
			}
			f.Pushed(from("r1", c, 0))
			if err := f.save(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHostileFile: entries a file should not have are left out, the others are kept.
func TestHostileFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "devices.json")
	content := fmt.Sprintf(`{"version":1,"devices":[{"instance":""},{"instance":%q},{"instance":"a","userAgent":%q},{"instance":"a"},
		{"instance":"late","firstPush":"2030-01-01T00:00:00Z","lastPush":"2020-01-01T00:00:00Z"},{"instance":"b"},{"instance":"c"}]}`,
		strings.Repeat("x", 1000), strings.Repeat("y", 1000))
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	f, _ := testFleet(t, func(cfg *Config) { cfg.Path, cfg.MaxDevices = path, 2 })
	if diff := cmp.Diff([]string{"a", "b"}, f.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// TestUnreadableFile: what is there and cannot be read must not be overwritten.
func TestUnreadableFile(t *testing.T) {
	if _, err := New(Config{Path: t.TempDir()}); err == nil {
		t.Error("a directory in place of the file is no error")
	}
}

func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "devices.json")
	synctest.Test(t, func(t *testing.T) {
		f, err := New(Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		known := func() int {
			g, err := New(Config{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			return len(g.Names())
		}
		f.Pushed(Push{Device: "a", Received: time.Now()})
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if n := known(); n != 0 {
			t.Errorf("%d devices are in the file before a minute is over", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := known(); n != 1 {
			t.Errorf("%d devices are in the file after a minute", n)
		}
		f.Pushed(Push{Device: "b", Received: time.Now()})
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := known(); n != 2 {
			t.Errorf("%d devices are in the file after the stop", n)
		}
	})
}

// TestSaveFails: it is logged once, counted each time, and made good.
func TestSaveFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		f, err := New(Config{Path: filepath.Join(dir, "devices.json"), Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		f.Pushed(Push{Device: "a", Received: time.Now()})
		time.Sleep(190 * time.Second)
		synctest.Wait()
		if n := testutil.ToFloat64(f.metrics.saveFailures); n != 3 {
			t.Errorf("%v failures are counted, want 3", n)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if strings.Count(log.String(), "level=ERROR") != 1 || strings.Count(log.String(), "level=INFO") != 1 {
		t.Errorf("log:\n%s", &log)
	}
	if _, err := os.Stat(filepath.Join(dir, "devices.json")); err != nil {
		t.Error(err)
	}
}

// TestWriteFileKeepsTheOld: where the new document cannot be written, the old one is
// untouched and nothing is left beside it.
func TestWriteFileKeepsTheOld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "devices.json")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	nan := file{Devices: []Device{{LagSeconds: nan()}}}
	if err := writeFile(path, nan); err == nil {
		t.Fatal("a document that cannot be encoded is no error")
	}
	left, _ := filepath.Glob(path + "*")
	got, _ := os.ReadFile(path)
	if string(got) != "old" || len(left) != 1 {
		t.Errorf("content %q, files %q", got, left)
	}
}

func nan() float64 { var zero float64; return zero / zero }

func TestPushedAllocatesNothing(t *testing.T) {
	f, c := testFleet(t)
	p := from("r1", c, 0)
	p.Sender = `abc; time=1700000000000; interval=5000; lost=3; instance="r1"`
	claim := Claim{Device: "r1", Sender: p.Sender, RemoteAddr: p.RemoteAddr, Received: p.Received}
	f.Pushed(p)
	f.Admit(claim)
	if n := testing.AllocsPerRun(100, func() { f.Admit(claim) }); n > 1 {
		t.Errorf("%v allocations to admit a known device, want at most its id", n)
	}
	if n := testing.AllocsPerRun(100, func() { f.Pushed(p) }); n > 0 {
		t.Errorf("%v allocations for a push of a known device", n)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"version":1,"devices":[{"instance":"a","lastPush":"2024-01-01T00:00:00Z","samples":5}]}`))
	f.Add([]byte(`{"version":1,"devices":[null]}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(dir, "devices.json")
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		fleet, err := New(Config{Path: path, Registerer: nil, Now: func() time.Time { return testStart }})
		if err != nil {
			t.Fatal(err)
		}
		reg := prometheus.NewRegistry()
		if err := errors.Join(reg.Register(fleet.metrics), gather(reg)); err != nil {
			t.Error(err)
		}
		fleet.dirty = true
		if err := fleet.save(); err != nil {
			t.Error(err)
		}
	})
}

func gather(reg *prometheus.Registry) error {
	_, err := reg.Gather()
	return err
}
