package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"go.uber.org/goleak"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/exporter/config"
	"github.com/ticktier/ticktier/exporter/ring"
	"github.com/ticktier/ticktier/exporter/tick"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// output is what a run writes, safe to look at meanwhile.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		env  map[string]string
		code int
		want []string // in the output
	}{
		{"help", []string{"--help"}, nil, 0, []string{"Samples the Linux kernel", "--remote-write.url=URL", "--[no-]collector.stat", "--ring.max-bytes=SIZE", "(4MiB)"}},
		{"help of run", []string{"run", "--help"}, nil, 0, []string{"--rate=HZ"}},
		{"version", []string{"--version"}, nil, 0, []string{"ticktier-exporter ", "go1"}},
		{"check", []string{"--check-config"}, nil, 0, []string{"the configuration is good"}},
		{"check of run", []string{"run", "--check-config", "--rate=100"}, nil, 0, []string{"the configuration is good"}},
		{"unknown flag", []string{"--ratte=10"}, nil, 2, []string{"--ratte"}},
		{"options", []string{"--collector.netdev.device-include=(", "--rate=0"}, nil, 2, []string{"--rate: 0", "--collector.netdev.device-include: "}},
		{"ping", []string{"--ping.target=gw,192.0.2.1:http"}, nil, 2, []string{`--ping.target: "192.0.2.1:http": "http" is no port`}},
		{"both options", []string{"--collector.netdev.device-include=a", "--collector.netdev.device-exclude=b"}, nil, 2, []string{"mutually exclusive"}},
		{"an option in the environment", nil, map[string]string{"TICKTIER_EXPORTER_COLLECTOR_VMSTAT_FIELDS": "["}, 2, []string{"--collector.vmstat.fields: "}},
		{"help of options", []string{"--help"}, nil, 0, []string{"--collector.vmstat.fields=REGEXP", "(^(oom_kill|pgpg|pswp|pg.*fault).*)", "--collector.textfile.directory=DIR", "sources [--format"}},
		{"unknown verb", []string{"rum"}, nil, 2, []string{"rum"}},
		{"rate", []string{"--rate=0"}, nil, 2, []string{"ticktier-exporter: --rate: 0 is not between 1 and 1000\n"}},
		{"one fault is one line", []string{"--rate=-1"}, nil, 2, []string{"ticktier-exporter: --rate: -1 is not between 1 and 1000\n"}},
		{"two faults", []string{"--rate=0", "--ring.max-bytes=1"}, nil, 2, []string{"exporter: --rate: 0", "exporter: --ring.max-bytes: 1 "}},
		{"no size", []string{"--ring.max-bytes=4MB"}, nil, 2, []string{"--ring.max-bytes", "4MB"}},
		{"log level", []string{"--log.level=loud"}, nil, 2, []string{"--log.level", "loud"}},
		{"environment", nil, map[string]string{"TICKTIER_EXPORTER_RATE": "1001"}, 2, []string{"--rate: 1001"}},
		{"environment, no number", nil, map[string]string{"TICKTIER_EXPORTER_RATE": "ten"}, 2, []string{"TICKTIER_EXPORTER_RATE", "ten"}},
		{"flag before environment", []string{"--rate=10", "--check-config"}, map[string]string{"TICKTIER_EXPORTER_RATE": "1001"}, 0, nil},
		{"empty environment", []string{"--check-config"}, map[string]string{"TICKTIER_EXPORTER_RATE": "", "TICKTIER_EXPORTER_LISTEN": ""}, 0, nil},
		{"empty where something must be, in the environment", []string{"--check-config"}, map[string]string{"TICKTIER_EXPORTER_REMOTE_WRITE_URL": ""}, 2, []string{"TICKTIER_EXPORTER_REMOTE_WRITE_URL: is empty"}},
		{"list in the environment", []string{"--check-config"}, map[string]string{"TICKTIER_EXPORTER_REMOTE_WRITE_URL": "http://a/ ftp://b/"}, 0, nil},
		{"fault in a list", []string{"--check-config"}, map[string]string{"TICKTIER_EXPORTER_REMOTE_WRITE_URL": "http:///, http://b/"}, 2, []string{"--remote-write.url: http:/// names no host"}},
		{"secret", []string{"--remote-write.url=ftp://me:secret@h/?token=secret"}, nil, 2, []string{"--remote-write.url: ftp://h/ "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			var out output
			if code := realMain(t.Context(), c.args, &out, &out); code != c.code {
				t.Errorf("exit code is %d, want %d", code, c.code)
			}
			for _, w := range c.want {
				if !strings.Contains(out.String(), w) {
					t.Errorf("no %q in:\n%s", w, &out)
				}
			}
			if strings.Contains(out.String(), "secret") {
				t.Errorf("a secret is told: %s", &out)
			}
		})
	}
}

// TestCollectorFlags turns sources on and off.
func TestCollectorFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		env  string
		want bool
	}{
		{nil, "", true},
		{[]string{"--no-collector.stat"}, "", false},
		{[]string{"--collector.stat=false"}, "", false},
		{nil, "false", false},
		{[]string{"--collector.stat"}, "false", true},
	} {
		if c.env != "" {
			t.Setenv("TICKTIER_EXPORTER_COLLECTOR_STAT", c.env)
		}
		r := newRunFlags()
		if err := r.parse(c.args); err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, spec := range r.enabled() {
			got[spec.Name] = true
		}
		for _, spec := range collectors.All() {
			want := spec.Enabled
			if spec.Name == "stat" {
				want = c.want
			}
			if got[spec.Name] != want {
				t.Errorf("%v, environment %q: %s is enabled: %v, want %v", c.args, c.env, spec.Name, got[spec.Name], want)
			}
		}
		_ = os.Unsetenv("TICKTIER_EXPORTER_COLLECTOR_STAT")
	}
}

// TestBounds holds the limits that config names against those of their owners.
func TestBounds(t *testing.T) {
	if config.MinRingBytes != ring.MinBytes {
		t.Errorf("a ring takes %d bytes at least, config says %d", ring.MinBytes, config.MinRingBytes)
	}
	if config.MaxRate != tick.MaxRate {
		t.Errorf("the highest rate is %d, config says %d", tick.MaxRate, config.MaxRate)
	}
}

func TestPortInUse(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var out output
	if code := realMain(t.Context(), []string{"--listen=" + ln.Addr().String()}, &out, &out); code != 1 {
		t.Errorf("exit code is %d, want 1", code)
	}
	if !strings.Contains(out.String(), "address already in use") || !strings.Contains(out.String(), ln.Addr().String()) {
		t.Error(out.String())
	}
}

var listening = regexp.MustCompile(`msg=listening addr=(\S+)`)

// TestRun runs the whole exporter on this machine: it serves, pushes, and at the
// end delivers all that it sampled.
func TestRun(t *testing.T) {
	var mu sync.Mutex
	samples := map[string][]writev2.Sample{} // by name and instance
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		raw, err := snappy.Decode(nil, body)
		var req writev2.Request
		if err == nil {
			err = req.Unmarshal(raw)
		}
		if err != nil {
			t.Error(err)
		}
		n := 0
		mu.Lock()
		defer mu.Unlock()
		for _, ts := range req.Timeseries {
			labels := map[string]string{}
			for i := 0; i < len(ts.LabelsRefs); i += 2 {
				labels[req.Symbols[ts.LabelsRefs[i]]] = req.Symbols[ts.LabelsRefs[i+1]]
			}
			k := labels["__name__"] + " " + labels["instance"] + " " + labels["job"]
			samples[k] = append(samples[k], ts.Samples...)
			n += len(ts.Samples)
		}
		w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", strconv.Itoa(n))
		w.WriteHeader(http.StatusNoContent)
	}))
	defer srv.Close()

	ctx, stop := context.WithCancel(t.Context())
	var out output
	done := make(chan int)
	go func() {
		done <- realMain(ctx, []string{"--listen=127.0.0.1:0", "--rate=50", "--remote-write.interval=200ms",
			"--remote-write.url=" + srv.URL, "--external-label=instance=here"}, &out, &out)
	}()
	// Half a second of ticks, on the real machine's clock.
	time.Sleep(700 * time.Millisecond)
	m := listening.FindStringSubmatch(out.String())
	if m == nil {
		t.Fatalf("no address in:\n%s", &out)
	}
	tr := &http.Transport{}
	resp, err := (&http.Client{Transport: tr}).Get("http://" + m[1] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	page, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	var live struct {
		Sources []sourceInfo `json:"sources"`
	}
	if resp, err = (&http.Client{Transport: tr}).Get("http://" + m[1] + "/api/v1/sources"); err == nil {
		err = json.NewDecoder(resp.Body).Decode(&live)
		_ = resp.Body.Close()
	}
	if err != nil || len(live.Sources) == 0 || live.Sources[0].Name != "stat" || live.Sources[0].Reads < 10 || live.Sources[0].Cost <= 0 {
		t.Errorf("sources: %+v, %v", live.Sources, err)
	}
	tr.CloseIdleConnections()
	stop()
	if code := <-done; code != 0 {
		t.Errorf("exit code is %d:\n%s", code, &out)
	}

	if resp.Header.Get("X-Ticktier-Session") == "" || !strings.Contains(string(page), "ticktier_exporter_session_info") {
		t.Errorf("no session in the answer of %d bytes", len(page))
	}
	mu.Lock()
	defer mu.Unlock()
	ss := samples["node_context_switches_total here node"]
	if len(ss) < 10 {
		t.Fatalf("%d samples of node_context_switches_total:\n%s", len(ss), &out)
	}
	for i, s := range ss[:len(ss)-1] {
		if i > 0 && s.Timestamp <= ss[i-1].Timestamp {
			t.Errorf("sample at %d after one at %d", s.Timestamp, ss[i-1].Timestamp)
		}
		if boot, _ := bootTime("/proc/stat"); s.StartTimestamp/1000 != boot {
			t.Errorf("a counter began at %d ms, the kernel at %d s", s.StartTimestamp, boot)
		}
	}
	if last := ss[len(ss)-1]; last.Value == last.Value || last.StartTimestamp != 0 {
		t.Errorf("the last sample is %+v, not a staleness marker", last)
	}
	if !strings.Contains(out.String(), "everything is delivered") {
		t.Error(out.String())
	}
}

func TestBootTime(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]int64{
		"cpu 1 2\nbtime 1700000000\nprocesses 5\n": 1700000000,
		"cpu 1 2\n":    0,
		"btime x\n":    0,
		"btime 0\n":    0,
		"btime -5\n":   0,
		"xbtime 5\n":   0,
		"btime 170000": 170000,
	} {
		file := filepath.Join(dir, "stat")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, ok := bootTime(file); ok != (want > 0) || ok && got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, ok, want)
		}
	}
	if _, ok := bootTime(filepath.Join(dir, "missing")); ok {
		t.Error("a missing file has a boot time")
	}
}

func TestAuthorizer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	write := func(s string) {
		if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	header := func(c *config.Config) string {
		h := http.Header{}
		if err := authorizer(c)(h); err != nil {
			t.Fatal(err)
		}
		return h.Get("Authorization")
	}
	if authorizer(&config.Config{}) != nil {
		t.Error("credentials out of nothing")
	}
	token := &config.Config{RemoteWriteTokenFile: file}
	write("one\n")
	if got := header(token); got != "Bearer one" {
		t.Error(got)
	}
	write("two")
	if got := header(token); got != "Bearer two" {
		t.Error(got)
	}
	write("pass\n")
	if got := header(&config.Config{RemoteWriteUsername: "me", RemoteWritePasswordFile: file}); got != "Basic bWU6cGFzcw==" {
		t.Error(got)
	}
	_ = os.Remove(file)
	if err := authorizer(token)(http.Header{}); err == nil {
		t.Error("a token out of nothing")
	}
}

func TestCheckMemory(t *testing.T) {
	dir := t.TempDir()
	cgroup := filepath.Join(dir, "memory.max")
	for _, c := range []struct {
		meminfo, cgroup string
		ring            config.Bytes
		want            string
	}{
		{"MemTotal:       131072 kB\n", "", 4 << 20, ""},
		{"MemFree: 1 kB\nMemTotal:       131072 kB\n", "", 1 << 30, "--ring.max-bytes: 1GiB is too much: with what else is needed that is 1038 MiB, and this machine has 128 MiB"},
		{"MemTotal:       131072 kB\n", "max\n", 4 << 20, ""},
		{"MemTotal:       131072 kB\n", "16777216\n", 4 << 20, "this control group has 16 MiB"},
		{"MemTotal:       8192 kB\n", "16777216\n", 4 << 20, "this machine has 8 MiB"},
		{"MemTotal: x kB\n", "", 1 << 40, ""},
		{"", "", 1 << 40, ""},
	} {
		if err := os.WriteFile(filepath.Join(dir, "meminfo"), []byte(c.meminfo), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(cgroup, []byte(c.cgroup), 0o600); err != nil {
			t.Fatal(err)
		}
		err := checkMemory(&config.Config{PathProcfs: dir, RingMaxBytes: c.ring}, cgroup, 64)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

// TestCheckMemory32: a 32-bit process has no use for more than it can address, however
// much the machine has; what fits is not refused.
func TestCheckMemory32(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none")
	for _, c := range []struct {
		kB, ring int64
		want     string
	}{
		{16 << 20, 5 << 30, "a 32-bit process has 2048 MiB"},
		{16 << 20, 4 << 30, "a 32-bit process has 2048 MiB"}, // 0 in 32 bits
		{16 << 20, 1 << 30, ""},
		{0, 3 << 30, "a 32-bit process"}, // the machine's is not known
		{256 << 10, 1 << 30, "this machine has 256 MiB"},
	} {
		text := ""
		if c.kB > 0 {
			text = fmt.Sprintf("MemTotal: %d kB\n", c.kB)
		}
		if err := os.WriteFile(filepath.Join(dir, "meminfo"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := checkMemory(&config.Config{PathProcfs: dir, RingMaxBytes: config.Bytes(c.ring)}, none, 32)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--ring.max-bytes")) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}
