package e2e

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"

	"github.com/ticktier/ticktier/e2e/client"
)

// refuse runs a program that must end by itself, quickly, with a status that is
// not zero and an error that says all of want.
func refuse(t *testing.T, path string, args []string, want ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = t.TempDir()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		t.Errorf("still running after 20 s:\n%s", tail(out.String(), 20))
	case err == nil:
		t.Errorf("exit status 0:\n%s", tail(out.String(), 20))
	case cmd.ProcessState.ExitCode() < 1:
		t.Errorf("ended by %v", err)
	}
	for _, w := range want {
		if !strings.Contains(out.String(), w) {
			t.Errorf("the error does not say %q:\n%s", w, tail(out.String(), 20))
		}
	}
	if strings.Contains(out.String(), "goroutine ") {
		t.Errorf("a stack trace is no clear error:\n%s", tail(out.String(), 20))
	}
}

// TestExporterRefuses: what is wrong on the command line is named.
func TestExporterRefuses(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	missing := filepath.Join(t.TempDir(), "no-such-proc")
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"unknown flag", []string{"--ratte=10"}, []string{"--ratte"}},
		{"unknown verb", []string{"rum"}, []string{"rum"}},
		{"rate 0", []string{"--rate=0"}, []string{"rate", "0"}},
		{"rate too high", []string{"--rate=1001"}, []string{"rate", "1001"}},
		{"rate no number", []string{"--rate=ten"}, []string{"rate", "ten"}},
		{"port in use", []string{"--listen=" + taken.Addr().String()}, []string{taken.Addr().String(), "address already in use"}},
		{"no such procfs", []string{"--path.procfs=" + missing}, []string{"path.procfs", missing}},
		{"URL without a scheme", []string{"--remote-write.url=localhost:9748"}, []string{"remote-write.url", "localhost:9748"}},
		{"URL of another scheme", []string{"--remote-write.url=ftp://localhost/"}, []string{"remote-write.url", "ftp"}},
		{"ring too small", []string{"--ring.max-bytes=1"}, []string{"ring.max-bytes"}},
		{"label without a value", []string{"--external-label=site"}, []string{"external-label", "site"}},
		{"label name", []string{"--external-label=1x=y"}, []string{"external-label", "1x"}},
		{"interval 0", []string{"--remote-write.url=http://localhost:1/", "--remote-write.interval=0s"}, []string{"remote-write.interval"}},
		{"log level", []string{"--log.level=loud"}, []string{"log.level", "loud"}},
		{"check-config", []string{"--check-config", "--rate=0"}, []string{"rate"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := c.args
			if c.name != "port in use" && !strings.Contains(c.name, "verb") {
				args = append([]string{"--listen=127.0.0.1:0"}, args...)
			}
			refuse(t, exe(t, "exporter"), args, c.want...)
		})
	}
}

// TestAdapterRefuses: the same of the adapter.
func TestAdapterRefuses(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	file := writeFile(t, dir, "file", "not a directory\n")
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"unknown flag", []string{"--data-dirr=x"}, []string{"--data-dirr"}},
		{"port in use", []string{"--listen=" + taken.Addr().String()}, []string{taken.Addr().String(), "address already in use"}},
		{"data directory is a file", []string{"--data-dir=" + file}, []string{"data-dir", file}},
		{"data directory below a file", []string{"--data-dir=" + file + "/data"}, []string{"data-dir", file}},
		{"data directory read-only", []string{"--data-dir=/proc/ticktier"}, []string{"data-dir", "/proc/ticktier"}},
		{"retention no duration", []string{"--retention.raw=soon"}, []string{"retention.raw", "soon"}},
		{"retention unsafe", []string{"--retention.raw=1h", "--out-of-order-window=24h"}, []string{"retention.raw", "out-of-order-window"}},
		{"retention leaves a hole", []string{"--retention.raw=30d", "--retention.5m=14d"}, []string{"retention.5m", "retention.raw"}},
		{"log format", []string{"--log.format=xml"}, []string{"log.format", "xml"}},
		{"check-config", []string{"--check-config", "--retention.raw=soon"}, []string{"retention.raw"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{"--data-dir=" + filepath.Join(t.TempDir(), "data")}
			if c.name != "port in use" {
				args = append(args, "--listen=127.0.0.1:0")
			}
			refuse(t, exe(t, "adapter"), append(args, c.args...), c.want...)
		})
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "not a directory\n" {
		t.Errorf("the file was changed: %q, %v", text, err)
	}
}

// TestTwoAdaptersOneDirectory: the second is refused and the first is not harmed.
func TestTwoAdaptersOneDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := startAdapter(t, dir)
	at := nowMs() / 1000 * 1000
	kept := one("kept", at, 1)
	push(t, first.Client, client.V2, kept)
	refuse(t, exe(t, "adapter"), []string{"--listen=127.0.0.1:0", "--data-dir=" + dir}, "in use by another process", dir)
	push(t, first.Client, client.V2, one("kept", at+1000, 2))
	checkKept(t, first, "kept", 2, at+1000)
}

func one(name string, at int64, v float64) []client.Series {
	return []client.Series{{
		Labels:  map[string]string{"__name__": name, "instance": "a", "job": "made"},
		Samples: []client.Sample{{T: at, V: v}},
	}}
}

func checkKept(t *testing.T, adapter *app, name string, samples int, at int64) {
	t.Helper()
	r, err := adapter.Query(t.Context(), name+"[1h]", at)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Series) != 1 || len(r.Series[0].Samples) != samples {
		t.Errorf("%s[1h] = %v, want one series with %d samples", name, r.Series, samples)
		return
	}
	for i, s := range r.Series[0].Samples {
		if want := float64(i + 1); s.V != want {
			t.Errorf("sample %d is %v, want %v", i, s.V, want)
		}
	}
}

// badPush is a push that must be refused.
type badPush struct {
	name   string
	change func(h http.Header, body []byte) []byte
	status int
	want   string // the answer names it
}

func badPushes() []badPush {
	header := func(name, value string) func(http.Header, []byte) []byte {
		return func(h http.Header, body []byte) []byte {
			h.Set(name, value)
			return body
		}
	}
	body := func(b []byte) func(http.Header, []byte) []byte {
		return func(http.Header, []byte) []byte { return b }
	}
	return []badPush{
		{"not snappy", body([]byte("this is not snappy at all")), 400, "snappy"},
		{"empty body", body(nil), 400, "empty"},
		{"empty after snappy", body(snappy.Encode(nil, nil)), 0, ""},
		{"snappy of no protobuf", body(snappy.Encode(nil, []byte("neither is this protobuf"))), 400, ""},
		{"cut off", func(_ http.Header, b []byte) []byte { return b[:len(b)/2] }, 400, "snappy"},
		{"declares 4 GiB", body([]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0x00}), 413, "4294967295"},
		{"JSON", header("Content-Type", "application/json"), 415, "application/json"},
		{"unknown message", header("Content-Type", "application/x-protobuf;proto=io.prometheus.write.v9.Request"), 415, "write.v9"},
		{"unknown encoding", header("Content-Encoding", "br"), 415, "br"},
		{"broken content type", header("Content-Type", "application/x-protobuf; proto"), 415, ""},
	}
}

// TestBadPushes: each is answered with a 4xx that names what is wrong, and nothing
// already stored is harmed.
func TestBadPushes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	adapter := startAdapter(t, dir)
	at := nowMs() / 1000 * 1000
	push(t, adapter.Client, client.V1, one("kept", at, 1))
	for _, v := range []client.Version{client.V1, client.V2} {
		for _, c := range badPushes() {
			t.Run(string(v)+" "+c.name, func(t *testing.T) {
				good, err := client.Encode(v, one("never_stored", at, 1))
				if err != nil {
					t.Fatal(err)
				}
				h := client.PushHeader(v)
				body := c.change(h, good)
				resp, err := adapter.Do(t.Context(), http.MethodPost, "/api/v1/write", h, body)
				if err != nil {
					t.Fatal(err)
				}
				if c.status == 0 { // a message without series: nothing to store, nothing wrong
					return
				}
				if resp.Status != c.status || !bytes.Contains(resp.Body, []byte(c.want)) {
					t.Errorf("status %d: %.200q, want %d and a text with %q", resp.Status, resp.Body, c.status, c.want)
				}
			})
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		resp, err := adapter.Do(t.Context(), method, "/api/v1/write", nil, nil)
		if err != nil || resp.Status != http.StatusMethodNotAllowed {
			t.Errorf("%s: %+v, %v; want status 405", method, resp, err)
		}
	}
	push(t, adapter.Client, client.V2, one("kept", at+1000, 2))
	checkKept(t, adapter, "kept", 2, at+1000)
	if r, err := adapter.Query(t.Context(), "never_stored", at); err != nil || len(r.Series) > 0 {
		t.Errorf("never_stored = %v, %v; want nothing", r, err)
	}
	adapter.stop(t)
	adapter = startAdapter(t, dir)
	checkKept(t, adapter, "kept", 2, at+1000)
}

// TestHalfBadPush: the good part is stored and the answer says how much and why not
// the rest.
func TestHalfBadPush(t *testing.T) {
	t.Parallel()
	adapter := startAdapter(t, t.TempDir())
	at := nowMs() / 1000 * 1000
	bad := client.Series{Labels: map[string]string{"instance": "nameless"}, Samples: []client.Sample{{T: at, V: 7}}}
	resp, err := adapter.Push(t.Context(), client.V2, append(one("kept", at, 1), bad))
	if err != nil {
		t.Fatal(err)
	}
	if resp.Status != http.StatusBadRequest || !bytes.Contains(resp.Body, []byte("name")) {
		t.Errorf("status %d: %.200q, want 400 and what is wrong with the name", resp.Status, resp.Body)
	}
	if got := resp.Header.Get("X-Prometheus-Remote-Write-Samples-Written"); got != "1" {
		t.Errorf("Samples-Written is %q, want 1", got)
	}
	checkKept(t, adapter, "kept", 1, at)
}

// TestBadQueries: a query that is wrong is answered with a 4xx, as Prometheus does.
func TestBadQueries(t *testing.T) {
	t.Parallel()
	adapter := startAdapter(t, t.TempDir())
	for path, want := range map[string]string{
		"/api/v1/query?query=sum(":                                "parse error",
		"/api/v1/query?query=up&tier=7m":                          "7m",
		"/api/v1/query?query=up&time=yesterday":                   "time",
		"/api/v1/query_range?query=up&start=0&end=1&step=0":       "step",
		"/api/v1/query_range?query=up&start=2&end=1&step=1":       "end",
		"/api/v1/query_range?query=up&start=0&end=1000000&step=1": "11,000",
		"/api/v1/query?query=up&max_source_resolution=wide":       "max_source_resolution",
		"/api/v1/label/__name__/values?match[]=%7B":               "parse error",
		"/api/v1/series": "match",
		"/api/v1/query?query=count_over_time(up%5B1h%5D)&timeout=forever": "timeout",
	} {
		resp, err := adapter.Do(t.Context(), http.MethodGet, path, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Status/100 != 4 || !bytes.Contains(resp.Body, []byte(want)) {
			t.Errorf("%s: status %d: %.200s; want 4xx and %q", path, resp.Status, resp.Body, want)
		}
	}
}
