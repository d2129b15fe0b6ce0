package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// devicesOf are the devices that an adapter lists.
func devicesOf(ctx context.Context, adapter *app, query string) (out []struct {
	Instance, Sender string
	LostTicks        uint64
	Clones           []struct{ Sender string }
}, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+adapter.addr+"/api/v1/devices?"+query, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var a struct{ Data struct{ Devices any } }
	a.Data.Devices = &out
	err = json.NewDecoder(resp.Body).Decode(&a)
	return out, err
}

// TestClones runs two exporters under one name: one of them is stored, and both are
// named. When the first is gone for good, so is the trouble with a new run of it.
func TestClones(t *testing.T) {
	t.Parallel()
	adapter := startAdapter(t, t.TempDir())
	run := func() *app {
		return startExporter(t, "--rate=10", "--remote-write.url=http://"+adapter.addr+"/api/v1/write", "--remote-write.interval=500ms",
			"--external-label=instance=twin")
	}
	// sessions are the runs whose ticks are stored.
	sessions := func(ctx context.Context) (int, error) {
		r, err := adapter.Query(ctx, `count(count by (session) (last_over_time(ticktier_exporter_session_info{instance="twin"}[1h]))) or vector(0)`, nowMs())
		if err != nil {
			return 0, err
		}
		v, err := r.Value()
		return int(v), err
	}
	wait := func(what string, f func(ctx context.Context) error) {
		t.Helper()
		eventually(t, time.Minute, what, f)
	}
	stored := func(want int) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			if n, err := sessions(ctx); err != nil || n != want {
				return fmt.Errorf("%d sessions are stored, want %d: %v", n, want, err)
			}
			return nil
		}
	}
	first := run()
	wait("the first exporter's session", stored(1))
	second := run()
	wait("both are named", func(ctx context.Context) error {
		list, err := devicesOf(ctx, adapter, "state=cloned")
		if err != nil || len(list) != 1 || len(list[0].Clones) != 1 || list[0].Instance != "twin" || list[0].Sender == list[0].Clones[0].Sender {
			return fmt.Errorf("cloned devices: %+v, %v", list, err)
		}
		return nil
	})
	wait("the series that says so", func(ctx context.Context) error {
		r, err := adapter.Query(ctx, `ticktier_device_senders{instance="twin"}`, nowMs())
		if err != nil {
			return err
		}
		if v, err := r.Value(); err != nil || v != 2 {
			return fmt.Errorf("%v senders: %v", v, err)
		}
		return nil
	})
	if err := stored(1)(t.Context()); err != nil {
		t.Errorf("two exporters are mixed: %v", err)
	}
	// A clean stop gives the name away, and what the new run sampled comes.
	second.stop(t)
	first.stop(t)
	run()
	wait("the new run's session", stored(2))
}
