package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ticktier/ticktier/e2e/client"
	"github.com/ticktier/ticktier/e2e/program"
)

var thanosListening = regexp.MustCompile(`msg="listening for requests and metrics" address=([0-9.:]+)`)

// startThanos starts one of Thanos' components.
func startThanos(t *testing.T, component, grpc string, args ...string) *app {
	t.Helper()
	a := start(t, program.Config{
		Name:      "thanos " + component,
		Path:      peerExe(t, "thanos"),
		Args:      append([]string{component, "--grpc-address=" + grpc, "--http-address=" + freeAddr(t)}, args...),
		Listening: thanosListening,
	}, "/-/ready")
	a.peer = true
	return a
}

// bucketOf is a bucket on disk with the adapter's blocks, and its configuration
// file. It returns how many blocks there are.
func bucketOf(t *testing.T, data string) (config string, blocks int) {
	t.Helper()
	bucket := t.TempDir()
	for _, tier := range []string{"5m", "1h"} {
		dirs, err := filepath.Glob(filepath.Join(data, tier, "01*"))
		if err != nil || len(dirs) == 0 {
			t.Fatalf("no blocks of tier %s: %v", tier, err)
		}
		for _, d := range dirs {
			if err := os.CopyFS(filepath.Join(bucket, filepath.Base(d)), os.DirFS(d)); err != nil {
				t.Fatal(err)
			}
			blocks++
		}
	}
	return writeFile(t, t.TempDir(), "bucket.yml", "type: FILESYSTEM\nconfig:\n  directory: "+bucket+"\n"), blocks
}

// thanosTools runs one of Thanos' bucket tools.
func thanosTools(t *testing.T, config, tool string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, peerExe(t, "thanos"), "tools", "bucket", tool, "--objstore.config-file="+config).CombinedOutput()
	if err != nil {
		t.Fatalf("thanos tools bucket %s: %v\n%s", tool, err, tail(string(out), 20))
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "level=warn") || strings.Contains(line, "level=error") {
			t.Errorf("thanos tools bucket %s complains: %s", tool, line)
		}
	}
	return string(out)
}

// TestThanosReadsBlocks: Thanos' own tools accept every block, and its store
// gateway and querier give the answers that the samples give.
//
// Some of its answers are faults of its own, and this test says so: count_over_time
// counts buckets, avg_over_time weighs every bucket alike however many samples it
// has, and an increase has its edges at windows' ends, so it is only close.
func TestThanosReadsBlocks(t *testing.T) {
	t.Parallel()
	start, end := threeDays()
	series := madeUp(testSeed(t), start, end)
	dir := t.TempDir()
	adapter := startAdapter(t, dir, tierFlags...)
	pushAll(t, adapter.Client, series, start, end, 6*hourMs)
	waitFolded(t, adapter)
	adapter.stop(t)

	config, blocks := bucketOf(t, dir)
	thanosTools(t, config, "verify")
	if n := strings.Count(thanosTools(t, config, "inspect"), "| ticktier |"); n != blocks {
		t.Errorf("thanos inspect lists %d blocks, want %d", n, blocks)
	}
	grpc := freeAddr(t)
	startThanos(t, "store", grpc, "--data-dir="+t.TempDir(), "--objstore.config-file="+config)
	query := startThanos(t, "query", freeAddr(t), "--endpoint="+grpc)
	eventually(t, 30*time.Second, "the querier sees the store", func(ctx context.Context) error {
		r, err := query.Query(ctx, "made_level", start+30*hourMs, "max_source_resolution", "5m")
		if err == nil && len(r.Series) != 2 {
			err = fmt.Errorf("%d series", len(r.Series))
		}
		return err
	})
	// The last full day: every window in it is in a block of both tiers.
	day := start / dayMs * dayMs
	for _, tier := range []string{"5m", "1h"} {
		for _, s := range series {
			for _, at := range []int64{day + dayMs + 12*hourMs, day + 2*dayMs} {
				checkThanos(t, query, tier, s, at)
			}
		}
	}
}

func checkThanos(t *testing.T, query *app, tier string, s client.Series, at int64) {
	t.Helper()
	window := 5 * int64(60_000)
	if tier == "1h" {
		window = hourMs
	}
	const rng = 12 * hourMs
	for _, fn := range rangeFunctions {
		if !askable(fn, s) || fn == "resets" {
			continue
		}
		expr := selector(fn, s, rng)
		r, err := query.Query(t.Context(), expr, at, "max_source_resolution", tier)
		if err != nil {
			t.Error(err)
			continue
		}
		// A bucket holds what a half-open window holds, so the oracle's range, which
		// is open on the left, is moved by a millisecond.
		want, ok := oracle(fn, s, at-1, rng)
		tolerance := 1e-9
		switch fn {
		case "count_over_time":
			want, ok = buckets(s, at-rng, at, window)
		case "avg_over_time":
			if strings.Contains(s.Labels["__name__"], "gaps") {
				continue // its buckets have more samples and fewer
			}
		case "increase":
			// Its range holds one window's rise less, and it extrapolates.
			tolerance = 2 * float64(window) / float64(rng)
			if s.Labels["__name__"] != "made_work_total" {
				continue // gaps and resets move it further
			}
		}
		if !ok {
			continue
		}
		if got, err := r.Value(); err != nil || !alike(got, want, tolerance) {
			t.Errorf("thanos at %s: %s at %d = %v, want %v (%v)", tier, expr, at, got, want, err)
		}
	}
}

// buckets is the number of windows in [from, to) in which a series has samples.
func buckets(s client.Series, from, to, window int64) (n float64, ok bool) {
	last := int64(-1)
	for _, p := range cut(s.Samples, from, to) {
		if w := p.T / window; w != last && !isStale(p.V) {
			n++
			last = w
		}
	}
	return n, n > 0
}
