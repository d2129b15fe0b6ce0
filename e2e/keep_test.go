package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ticktier/ticktier/e2e/client"
)

// adapterVerb runs a verb of the adapter's and returns what it prints.
func adapterVerb(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), exe(t, "adapter"), args...)
	var errout strings.Builder
	cmd.Stderr = &errout
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, errout.String())
	}
	return strings.TrimSpace(string(out)), err
}

// TestSnapshot: a copy made while samples come in, late ones too, is a data directory
// that verifies and has everything that was acknowledged before it was asked for.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	adapter := startAdapter(t, t.TempDir(), "--no-self.store")
	began := nowMs() - 6*3600_000
	push := func(ctx context.Context, name string, at int64) error {
		s := client.Series{Labels: map[string]string{"__name__": name}}
		for k := range int64(50) {
			s.Samples = append(s.Samples, client.Sample{T: at + k*1000, V: float64(k)})
		}
		resp, err := adapter.Push(ctx, client.V1, []client.Series{s})
		if err == nil && resp.Status != 204 {
			err = fmt.Errorf("push: status %d: %s", resp.Status, resp.Body)
		}
		return err
	}
	const rounds = 400
	for i := range int64(rounds) {
		if err := push(t.Context(), "x", began+i*50_000); err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 { // two hours late
			if err := push(t.Context(), "x", began-7200_000+i*50_000+500); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var g errgroup.Group
	g.Go(func() error { // it goes on meanwhile
		for i := int64(0); ctx.Err() == nil; i++ {
			if err := push(ctx, "y", began+i%rounds*50_000); err != nil && ctx.Err() == nil {
				return err
			}
		}
		return nil
	})
	var dirs []string
	for range 3 {
		dir, err := adapterVerb(t, "snapshot", "--url=http://"+adapter.addr)
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	stop()
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	adapter.stop(t)
	for _, dir := range dirs {
		if out, err := adapterVerb(t, "verify", "--data-dir="+dir); err != nil {
			t.Errorf("verify: %v\n%s", err, out)
		}
		copied := startAdapter(t, dir, "--no-self.store", "--fold.interval=1s")
		for _, tier := range []string{"raw", "5m"} {
			eventually(t, 30*time.Second, "the copy has all of tier "+tier, func(ctx context.Context) error {
				r, err := copied.Query(ctx, "sum(sum_over_time(x[24h]))", nowMs()/300_000*300_000-1, "tier", tier)
				if err != nil {
					return err
				}
				want := float64((rounds + rounds/2) * 50 * 49 / 2)
				// The newest window of five minutes is not closed.
				if v, err := r.Value(); err != nil || v > want || v < want*0.98 || tier == "raw" && v != want {
					return fmt.Errorf("%v, want %v (%v)", v, want, err)
				}
				return nil
			})
		}
		copied.stop(t)
	}
}

// TestBackfillVerb: old samples from a file come into a running adapter and into a
// directory, the same ones twice too, and what cannot be filled in is said so.
func TestBackfillVerb(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("# TYPE x gauge\n")
	const n = 432
	first := nowMs()/1000 - 16*86_400
	for i := range int64(n) {
		fmt.Fprintf(&text, "x %d %d\n", i%7, first+i*600) // three days, the older part of which is kept in hours only
	}
	text.WriteString("# EOF\n")
	file := filepath.Join(t.TempDir(), "old.txt")
	if err := os.WriteFile(file, []byte(text.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	adapter := startAdapter(t, t.TempDir())
	eventually(t, 30*time.Second, "the adapter stores its own metrics", func(ctx context.Context) error {
		_, err := adapter.Query(ctx, "up", nowMs())
		return err
	})
	dir := t.TempDir()
	check := func(a *app) {
		t.Helper()
		r, err := a.Query(t.Context(), "sum(count_over_time(x[60d]))", nowMs())
		if err != nil {
			t.Fatal(err)
		}
		if v, err := r.Value(); err != nil || v < n-24 || v > n+1e-6 {
			t.Errorf("%v samples of %d (%v)", v, n, err)
		}
	}
	for range 2 {
		for _, to := range []string{"--url=http://" + adapter.addr, "--data-dir=" + dir} {
			if out, err := adapterVerb(t, "backfill", to, "--rate=0", file); err != nil {
				t.Fatalf("%s: %v %s", to, err, out)
			}
		}
		check(adapter)
	}
	offline := startAdapter(t, dir, "--no-self.store")
	check(offline)
	offline.stop(t)
	if out, err := adapterVerb(t, "verify", "--data-dir="+dir); err != nil {
		t.Errorf("verify: %v\n%s", err, out)
	}
	out, err := adapterVerb(t, "inspect", "--data-dir="+dir, "--series=x", "--format=json")
	if err != nil || !strings.Contains(out, `{"tier":"1h","series":"{__name__=\"x\"}","start":`) || !strings.Contains(out, `"count":1,"sum":"3","min":"3","max":"3","first":"3","last":"3","resets":"0","ended":false}`) {
		t.Errorf("inspect: %v\n%.500s", err, out)
	}
	if err := os.WriteFile(file, []byte("x 1\n# EOF\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"no timestamp":                 {"--url=http://" + adapter.addr, file},
		"say where to":                 {file},
		"no such file":                 {"--url=http://" + adapter.addr, file + ".none"},
		"no Prometheus data directory": {"--data-dir=" + t.TempDir(), t.TempDir()},
	} {
		if _, err := adapterVerb(t, append([]string{"backfill"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want an error with %q", args, err, want)
		}
	}
}
