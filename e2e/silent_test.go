package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"
)

// fleetSize is how many devices push: with one alert for all of them, one that stops
// could hide among 70.
const fleetSize = 70

// TestSilentDevice stops two of many devices: exactly one alert names each, it goes on
// over a restart of the adapter, and ends when the device comes back or is retired. The
// rules are those of the repository, with shorter times; a device is down after ten
// seconds.
func TestSilentDevice(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root(t), "rules", "alerts-fleet.yml"))
	if err != nil {
		t.Fatal(err)
	}
	text = groupInterval.ReplaceAll(text, []byte("    interval: 1s"))
	text = regexp.MustCompile(`(?m)^        for: 1m$`).ReplaceAll(text, []byte("        for: 5s"))
	dir, data := t.TempDir(), t.TempDir()
	alerts, box := startAlertmanager(t)
	args := []string{"--rules=" + writeFile(t, dir, "fleet.yml", string(text)), "--devices.down-after=10s", "--rules.query-offset=1s", "--rules.for-grace-period=1s", "--rules.resend-delay=1s", "--alertmanager.url=http://" + alerts.addr}
	adapter := startAdapter(t, data, args...)
	var devices []*device
	for i := range fleetSize {
		devices = append(devices, startDevice(t, "http://"+adapter.addr, fmt.Sprintf("r%d", i), 1))
	}
	// firing are the instances of DeviceSilent that fire at an adapter.
	firing := func(ctx context.Context) (out []string, err error) {
		list, err := rulesOf(ctx, adapter.Client)
		for _, r := range list {
			for _, a := range r.Alerts {
				if r.Name == "DeviceSilent" && a.State == "firing" {
					out = append(out, a.Labels["instance"])
				}
			}
		}
		return out, err
	}
	want := func(within time.Duration, what string, want ...string) {
		t.Helper()
		eventually(t, within, what, func(ctx context.Context) error {
			got, err := firing(ctx)
			if err == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("firing for %v, want %v", got, want)
			}
			return err
		})
	}
	eventually(t, 40*time.Second, "every device is up in the store", func(ctx context.Context) error {
		r, err := adapter.Query(ctx, "sum(ticktier_device_up)", nowMs())
		if err != nil {
			return err
		}
		if v, err := r.Value(); err != nil || v != fleetSize {
			return fmt.Errorf("%v up: %v", v, err)
		}
		return nil
	})
	devices[3].stop()
	devices[42].stop()
	want(110*time.Second, "the alerts of those that stopped", "r3", "r42")

	adapter.stop(t)
	adapter = startAdapterAt(t, adapter.addr, data, args...)
	want(40*time.Second, "the alerts after a restart", "r3", "r42")

	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://"+adapter.addr+"/api/v1/devices/r42", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the retirement of r42 is answered with %s", resp.Status)
	}
	want(40*time.Second, "the alert of the one that is not retired", "r3")

	startDevice(t, "http://"+adapter.addr, "r3", 1)
	want(40*time.Second, "nothing when it is back")
	eventually(t, 20*time.Second, "Alertmanager says resolved", func(context.Context) error {
		list := box.notices()
		if len(list) == 0 || list[len(list)-1].Status != "resolved" {
			return fmt.Errorf("notices %+v", list)
		}
		return nil
	})
	for _, n := range box.notices() {
		for _, a := range n.Alerts {
			if a.Labels["alertname"] == "DeviceSilent" && a.Labels["instance"] != "r3" && a.Labels["instance"] != "r42" {
				t.Errorf("Alertmanager was told of %v", a.Labels)
			}
		}
	}
}
