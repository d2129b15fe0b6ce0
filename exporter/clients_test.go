package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestClients runs an exporter and looks at it with each client.
func TestClients(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var log output
	done := make(chan int)
	go func() { done <- realMain(ctx, []string{"--listen=127.0.0.1:0", "--rate=50"}, &log, &log) }()
	defer func() {
		stop()
		<-done
	}()
	var addr []string
	for range 200 {
		if addr = listening.FindStringSubmatch(log.String()); addr != nil {
			break
		}
		time.Sleep(10 * time.Millisecond) // it is another goroutine that opens the port
	}
	if addr == nil {
		t.Fatal(log.String())
	}
	url := "--url=http://" + addr[1]
	client := func(code int, args ...string) string {
		t.Helper()
		var out output
		if got := realMain(t.Context(), args, &out, &out); got != code {
			t.Errorf("%q: exit code %d, want %d:\n%s", args, got, code, &out)
		}
		return out.String()
	}
	file := filepath.Join(t.TempDir(), "record")
	// The machine may be too busy for a tick within a second.
	record := func(for_ time.Duration, args ...string) string {
		t.Helper()
		for ; ; for_ *= 4 {
			var out output
			code := realMain(t.Context(), append([]string{"record", url, "--for=" + for_.String()}, args...), &out, &out)
			if code == 0 || for_ > time.Minute {
				return out.String()
			}
		}
	}
	if got := record(700*time.Millisecond, "--out="+file); !strings.Contains(got, "ticks are in "+file) || strings.HasPrefix(got, "0 ") {
		t.Error(got)
	}
	client(0, "plot", file)
	if b, err := os.ReadFile(file + ".svg"); err != nil || !strings.Contains(string(b), "softirq") && !strings.Contains(string(b), "CPU by mode") {
		t.Errorf("%v, %.300s", err, b)
	}
	if got := client(0, "plot", "--out=-", file); !strings.HasPrefix(got, "<svg") {
		t.Errorf("%.300s", got)
	}
	if got := client(0, "plot", "--out=-", "--format=png", file); !strings.HasPrefix(got, "\x89PNG") {
		t.Errorf("%.300q", got)
	}
	client(0, "plot", "--out="+file+".png", file)
	if b, err := os.ReadFile(file + ".png"); err != nil || !strings.HasPrefix(string(b), "\x89PNG") {
		t.Errorf("%v, %.30q", err, b)
	}
	if got := record(300*time.Millisecond, "--out=-", "--match=node_context_switches_total"); !strings.Contains(got, `"name":"node_context_switches_total"`) || strings.Contains(got, "node_cpu") {
		t.Errorf("%.500s", got)
	}
	watching, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	var out output
	go func() {
		defer end()
		for watching.Err() == nil && !strings.Contains(out.String(), "CPU 0") {
			time.Sleep(10 * time.Millisecond) // a screen comes each second
		}
	}()
	if code := realMain(watching, []string{"top", url}, &out, &out); code != 0 || !strings.Contains(out.String(), "CPU 0") {
		t.Errorf("top: %d, %s", code, &out)
	}

	client(2, "top", "here")
	client(2, "plot")
	client(2, "record", "--for=long")
	client(1, "plot", file+"x")
	client(1, "top", "--url=http://127.0.0.1:1")
	client(1, "record", url, "--match={", "--out="+file)
	if got := client(1, "record", url, "--for=1ns", "--out="+file); !strings.Contains(got, "within 1ns") {
		t.Error(got)
	}
	for _, verb := range []string{"top", "record", "plot"} {
		if got := client(0, verb, "--help"); !strings.Contains(got, "Usage: ticktier-exporter "+verb) {
			t.Error(got)
		}
	}
}
