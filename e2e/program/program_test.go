package program

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestListeningLine(t *testing.T) {
	for line, want := range map[string]string{
		`time=2026-01-02T03:04:05.678Z level=INFO msg=listening addr=127.0.0.1:9748 version=dev`: "127.0.0.1:9748",
		`time=2026-01-02T03:04:05.678Z level=INFO msg=listening version=dev addr=[::]:9748`:      "[::]:9748",
		`{"time":"2026-01-02T03:04:05Z","level":"INFO","msg":"listening","addr":"[::1]:9747"}`:   "[::1]:9747",
		`level=INFO msg="was listening" addr=127.0.0.1:1`:                                        "",
		`level=INFO msg=stopping signal=terminated`:                                              "",
	} {
		got := ""
		if m := ListeningLine.FindStringSubmatch(line); m != nil {
			got = m[1]
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestDialable(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:9748": "127.0.0.1:9748",
		"0.0.0.0:9748":   "127.0.0.1:9748",
		"[::]:9748":      "127.0.0.1:9748",
		":9748":          "127.0.0.1:9748",
		"[::1]:9748":     "[::1]:9748",
		"router:9748":    "router:9748",
	} {
		if got := dialable(addr); got != want {
			t.Errorf("dialable(%q) = %q, want %q", addr, got, want)
		}
	}
}

func sh(t *testing.T, script string) *Program {
	t.Helper()
	p, err := Start(Config{Name: "script", Path: "/bin/sh", Args: []string{"-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func TestLifetime(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()

	p := sh(t, `trap 'echo bye; exit 0' TERM; echo msg=listening addr=:1234; while :; do sleep 0.01; done`)
	if addr, err := p.Addr(ctx); err != nil || addr != "127.0.0.1:1234" {
		t.Errorf("Addr = %q, %v", addr, err)
	}
	if err := p.Stop(5 * time.Second); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if !strings.HasSuffix(p.Log(), "bye\n") {
		t.Errorf("the log is %q", p.Log())
	}

	p = sh(t, `echo no luck; exit 3`)
	if addr, err := p.Addr(ctx); err == nil || p.ExitCode() != 3 {
		t.Errorf("a program that ends at once: Addr = %q, %v, exit code %d", addr, err, p.ExitCode())
	}

	p = sh(t, `trap '' TERM; echo msg=listening addr=:1; while :; do sleep 0.01; done`)
	if _, err := p.Addr(ctx); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(50 * time.Millisecond); err == nil || !p.EndedBy(syscall.SIGKILL) {
		t.Errorf("a program that ignores SIGTERM: Stop = %v", err)
	}

	if _, err := Start(Config{Name: "nothing", Path: "/no/such/program"}); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("no such program: %v", err)
	}
}
