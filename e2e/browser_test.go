package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// chromium returns the browser's path. There is no silent way around it: without a
// browser the test fails, unless the environment asks for it to be left out.
func chromium(t *testing.T) string {
	t.Helper()
	if os.Getenv("TICKTIER_E2E_BROWSER") == "off" {
		t.Skip("TICKTIER_E2E_BROWSER=off")
	}
	if path := os.Getenv("TICKTIER_E2E_CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no browser: `make chromium` installs Debian's package chromium; TICKTIER_E2E_CHROMIUM names another one; TICKTIER_E2E_BROWSER=off leaves the test out")
	return ""
}

// visit opens url in a headless Chromium and returns the document as it stands
// after the page has had some seconds, and what the console said.
func visit(t *testing.T, url string, more ...string) (dom, console string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	args := append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-default-apps", "--disable-extensions", "--metrics-recording-only", "--no-pings",
		// Whatever else it may want to reach is not there.
		"--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
		"--user-data-dir=" + t.TempDir(),
		"--enable-logging=stderr", "--v=0",
		"--window-size=1200,900", "--virtual-time-budget=8000", "--dump-dom",
	}, append(more, url)...)
	cmd := exec.CommandContext(ctx, chromium(t), args...)
	// The browser starts processes of its own; they go with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("chromium: %v\n%s", err, tail(errs.String(), 20))
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	for line := range strings.Lines(errs.String()) {
		if strings.Contains(line, ":CONSOLE") {
			console += line
		}
	}
	return out.String(), console
}

// chartPath is a drawn line: a path or polyline of more than a few points.
var chartPath = regexp.MustCompile(`<(?:path[^>]*\sd|polyline[^>]*\spoints)="([^"]{40,})"`)

// TestPageInBrowser: in a real browser the device is listed, its chart is drawn and
// the console has no error.
func TestPageInBrowser(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	adapter := startAdapter(t, t.TempDir())
	startExporter(t, "--rate=10", "--remote-write.interval=1s",
		"--remote-write.url="+adapter.URL("/api/v1/write"), "--external-label=instance=router-of-the-test")
	eventually(t, 40*time.Second, "15 s of samples", func(ctx context.Context) error {
		r, err := adapter.Query(ctx, `count_over_time(node_cpu_seconds_total{cpu="0",mode="idle"}[1m])`, nowMs())
		if err != nil {
			return err
		}
		if n, err := r.Value(); err != nil || n < 150 {
			return fmt.Errorf("%v samples: %w", n, errors.Join(err))
		}
		return nil
	})

	shot := filepath.Join(t.TempDir(), "page.png")
	dom, console := visit(t, adapter.URL("/"), "--screenshot="+shot)
	if dir := os.Getenv("TICKTIER_E2E_SHOTS"); dir != "" {
		if png, err := os.ReadFile(shot); err != nil || os.WriteFile(filepath.Join(dir, "page.png"), png, 0o644) != nil {
			t.Errorf("keep the screenshot: %v", err)
		}
	}
	if !strings.Contains(dom, "router-of-the-test") {
		t.Errorf("%s: the device is not listed:\n%.3000s", browser, dom)
	}
	if !chartPath.MatchString(dom) {
		t.Errorf("no chart is drawn:\n%.3000s", dom)
	}
	for _, bad := range []string{"NaN", "undefined", "[object Object]"} {
		if strings.Contains(visible(dom), bad) {
			t.Errorf("the page shows %q:\n%.3000s", bad, visible(dom))
		}
	}
	if console != "" {
		t.Errorf("the console says:\n%s", console)
	}
	if regexp.MustCompile(`(?i)(?:src|href)="(?:https?:)?//`).MatchString(dom) {
		t.Errorf("the page wants something from elsewhere:\n%.3000s", dom)
	}
}

// TestEmptyPageInBrowser: before anything was pushed the page says so.
func TestEmptyPageInBrowser(t *testing.T) {
	t.Parallel()
	adapter := startAdapter(t, t.TempDir())
	dom, console := visit(t, adapter.URL("/"))
	if text := strings.TrimSpace(visible(dom)); len(text) < 20 {
		t.Errorf("the page shows only %q", text)
	}
	if console != "" {
		t.Errorf("the console says:\n%s", console)
	}
}

var hidden = regexp.MustCompile(`(?s)<script.*?</script>|<style.*?</style>|<[^>]*>`)

// visible is the text of a document without markup, scripts and styles.
func visible(dom string) string { return hidden.ReplaceAllString(dom, " ") }
