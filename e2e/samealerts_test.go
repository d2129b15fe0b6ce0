package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ticktier/ticktier/e2e/client"
	"github.com/ticktier/ticktier/e2e/program"
)

var vmalertListening = regexp.MustCompile(`started server at http://([0-9.:]+)/`)

// startVMAlert starts a real vmalert over a VictoriaMetrics.
func startVMAlert(t testing.TB, files []string, store *app) *app {
	t.Helper()
	args := []string{"-httpListenAddr=127.0.0.1:0", "-datasource.url=http://" + store.addr, "-remoteWrite.url=http://" + store.addr,
		"-remoteWrite.flushInterval=200ms", "-rule.evalDelay=1s", "-notifier.blackhole"}
	for _, f := range files {
		args = append(args, "-rule="+f)
	}
	return start(t, program.Config{Name: "vmalert", Path: peerExe(t, "vmalert"), Args: args, Listening: vmalertListening}, "/health")
}

// sick are samples of a device for which several alerts fire, at one time.
func sick(at int64, began int64) []client.Series {
	one := func(name string, v float64, labels ...string) client.Series {
		l := map[string]string{"__name__": name, "instance": "r1", "job": "node"}
		for i := 0; i+1 < len(labels); i += 2 {
			l[labels[i]] = labels[i+1]
		}
		return client.Series{Labels: l, Samples: []client.Sample{{T: at, V: v}}}
	}
	seconds := float64(at-began) / 1000
	return []client.Series{
		one("node_nf_conntrack_entries", 97), one("node_nf_conntrack_entries_limit", 100),
		one("node_filesystem_device_error", 1, "device", "/dev/sda1", "fstype", "ext4", "mountpoint", "/"),
		one("node_filefd_allocated", 95), one("node_filefd_maximum", 100),
		one("node_textfile_scrape_error", 1),
		one("node_netstat_TcpExt_ListenDrops", 100+10*seconds),
		one("node_timex_sync_status", 0), one("node_timex_maxerror_seconds", 20),
		one("node_load1", 0.5),
	}
}

var alertFor = regexp.MustCompile(`(?m)^        for: \w+$`)

// TestSameAlerts has the adapter, Prometheus and vmalert evaluate the repository's rules
// over the same samples of a sick device: the same alerts fire at all three. Intervals
// and times to wait are shortened.
func TestSameAlerts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var files []string
	for _, f := range ruleFiles(t, false) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text = alertFor.ReplaceAll(groupInterval.ReplaceAll(text, []byte("    interval: 1s")), []byte("        for: 3s"))
		files = append(files, writeFile(t, dir, filepath.Base(f), string(text)))
	}
	adapter := startAdapter(t, t.TempDir(), "--rules="+dir+"/*.yml", "--rules.query-offset=1s", "--no-self.store")
	prometheus := startPrometheus(t, "global: {rule_query_offset: 1s}\nrule_files: ['"+dir+"/*.yml']\n", "--web.enable-remote-write-receiver")
	victoria := startVictoriaMetrics(t)
	vmalert := startVMAlert(t, files, victoria)

	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		began := nowMs()
		for ctx.Err() == nil {
			at := nowMs()
			for _, a := range []*app{adapter, prometheus, victoria} {
				v := client.V2
				if a == victoria {
					v = client.V1
				}
				_, _ = a.Push(ctx, v, sick(at, began)) // what is not stored is not found
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	})
	want := []string{"NodeClockNotSynchronised", "NodeFileDescriptorsLow", "NodeFilesystemUnreadable", "NodeListenQueueOverflow", "NodeTextfileError", "RouterConntrackNearLimit"}
	eventually(t, 2*time.Minute, "the same alerts everywhere", func(ctx context.Context) error {
		for _, a := range []*app{adapter, prometheus, vmalert} {
			got, err := firingAlerts(ctx, a)
			if err != nil {
				return fmt.Errorf("%s: %w", a.Name(), err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("alerts of %s (-want +got):\n%s", a.Name(), diff)
			}
		}
		return nil
	})
}

// firingAlerts are the names of what fires for r1, in order.
func firingAlerts(ctx context.Context, a *app) ([]string, error) {
	body, err := a.Get(ctx, "/api/v1/alerts")
	if err != nil {
		return nil, err
	}
	var doc struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, al := range doc.Data.Alerts {
		if al.State == "firing" && al.Labels["instance"] == "r1" {
			names[al.Labels["alertname"]] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}
