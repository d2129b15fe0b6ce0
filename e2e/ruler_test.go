package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ticktier/ticktier/e2e/client"
)

// device pushes one sample of x five times a second, whether the adapter is there or
// not, as an exporter's live edge.
type device struct {
	mu   sync.Mutex
	v    float64
	stop func()
}

func startDevice(t testing.TB, base, instance string, v float64) *device {
	t.Helper()
	d := &device{v: v}
	c := client.New(base)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			d.mu.Lock()
			v := d.v
			d.mu.Unlock()
			_, _ = c.Push(ctx, client.V2, []client.Series{{
				Labels:  map[string]string{"__name__": "x", "instance": instance, "job": "test"},
				Samples: []client.Sample{{T: nowMs(), V: v}},
			}})
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	d.stop = func() { cancel(); wg.Wait(); c.Close() }
	t.Cleanup(d.stop)
	return d
}

func (d *device) set(v float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.v = v
}

// ruleState is what /api/v1/rules says of a rule.
type ruleState struct {
	Name, Type, State, Health, LastError string

	Alerts []struct {
		State    string
		ActiveAt time.Time
		Labels   map[string]string
	}
}

func rulesOf(ctx context.Context, c *client.Client) ([]ruleState, error) {
	body, err := c.Get(ctx, "/api/v1/rules")
	if err != nil {
		return nil, err
	}
	var doc struct {
		Data struct {
			Groups []struct{ Rules []ruleState }
		}
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, err
	}
	var out []ruleState
	for _, g := range doc.Data.Groups {
		out = append(out, g.Rules...)
	}
	return out, nil
}

// stateOf waits until the one alert is in a state and returns when it became active.
func stateOf(t testing.TB, c *client.Client, want string, within time.Duration) (activeAt time.Time) {
	t.Helper()
	eventually(t, within, "the alert is "+want, func(ctx context.Context) error {
		list, err := rulesOf(ctx, c)
		if err != nil {
			return err
		}
		for _, r := range list {
			if r.Type == "alerting" && r.State == want {
				if len(r.Alerts) > 0 {
					activeAt = r.Alerts[0].ActiveAt
				}
				return nil
			}
		}
		return fmt.Errorf("rules are %+v", list)
	})
	return activeAt
}

const (
	highFor   = 20 * time.Second
	highRules = `
groups:
  - name: test
    rules:
      - record: instance:x:double
        expr: 2 * x
      - alert: High
        expr: instance:x:double > 10
        for: 20s
        labels: {severity: warning}
        annotations: {summary: '{{ $labels.instance }} has {{ $value }}'}
`
)

// TestAlertReachesAlertmanager fires an alert, restarts the adapter while it is
// pending, and resolves it.
func TestAlertReachesAlertmanager(t *testing.T) {
	t.Parallel()
	alerts, box := startAlertmanager(t)
	dir, data := t.TempDir(), t.TempDir()
	file := writeFile(t, dir, "r.yml", highRules)
	args := []string{
		"--rules=" + file, "--rules.evaluation-interval=500ms", "--rules.query-offset=1s", "--rules.for-grace-period=1s", "--rules.resend-delay=1s",
		"--alertmanager.url=http://" + alerts.addr, "--external-label=site=lab", "--external-url=http://adapter.test",
	}
	adapter := startAdapter(t, data, args...)
	dev := startDevice(t, "http://"+adapter.addr, "r1", 3)
	stateOf(t, adapter.Client, "inactive", 10*time.Second)
	dev.set(7)
	before := stateOf(t, adapter.Client, "pending", 10*time.Second)
	pause(t, time.Until(before.Add(highFor*6/10)))
	adapter.stop(t)
	adapter = startAdapterAt(t, adapter.addr, data, args...)
	restarted := time.Now()
	stateOf(t, adapter.Client, "pending", 10*time.Second)
	stateOf(t, adapter.Client, "firing", highFor)
	if took := time.Since(restarted); took > highFor*3/4 {
		t.Errorf("the alert fired %s after the restart: its time before did not count", took)
	}
	if len(box.notices()) > 1 {
		t.Errorf("Alertmanager notified before: %+v", box.notices())
	}

	eventually(t, 10*time.Second, "Alertmanager notifies", func(context.Context) error {
		list := box.notices()
		if len(list) == 0 {
			return errors.New("nothing yet")
		}
		a := list[0].Alerts[0]
		if diff := cmp.Diff(map[string]string{"alertname": "High", "instance": "r1", "job": "test", "severity": "warning", "site": "lab"}, a.Labels); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
		if list[0].Status != "firing" || a.Annotations["summary"] != "r1 has 14" || !strings.HasPrefix(a.GeneratorURL, "http://adapter.test/api/v1/query?query=") {
			t.Errorf("notified %+v", list[0])
		}
		return nil
	})
	for _, q := range []string{`ALERTS{alertname="High",alertstate="firing",instance="r1"}`, `ALERTS_FOR_STATE{alertname="High"}`, `instance:x:double == 14`} {
		eventually(t, 10*time.Second, q, func(ctx context.Context) error {
			r, err := adapter.Query(ctx, q, nowMs()-1500)
			if err == nil && len(r.Series) != 1 {
				err = fmt.Errorf("%d series", len(r.Series))
			}
			return err
		})
	}
	for path, part := range map[string]string{"/api/v1/alertmanagers": alerts.addr, "/api/v1/alerts": `"alertname":"High"`} {
		if body, err := adapter.Get(t.Context(), path); err != nil || !strings.Contains(string(body), part) {
			t.Errorf("%s: %v: %s", path, err, body)
		}
	}
	if v, err := adapter.Metric(t.Context(), "prometheus_notifications_errors_total"); err != nil || v != 0 {
		t.Errorf("errors of notifications: %v, %v", v, err)
	}

	dev.set(3)
	eventually(t, 20*time.Second, "Alertmanager says resolved", func(context.Context) error {
		list := box.notices()
		if last := list[len(list)-1]; last.Status != "resolved" {
			return fmt.Errorf("last: %+v", last)
		}
		return nil
	})
	dev.stop()
}

// TestRulesReload reloads by SIGHUP and by request, good files and bad.
func TestRulesReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := writeFile(t, dir, "r.yml", highRules)
	adapter := startAdapter(t, t.TempDir(), "--rules="+dir+"/*.yml")
	names := func(want ...string) {
		t.Helper()
		eventually(t, 10*time.Second, fmt.Sprintf("rules %v", want), func(ctx context.Context) error {
			list, err := rulesOf(ctx, adapter.Client)
			if err != nil {
				return err
			}
			var got []string
			for _, r := range list {
				got = append(got, r.Name)
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("rules %v", got)
			}
			return nil
		})
	}
	names("instance:x:double", "High")
	post := func(status int, part string) {
		t.Helper()
		resp, err := adapter.Do(t.Context(), http.MethodPost, "/-/reload", nil, nil)
		if err != nil || resp.Status != status || !strings.Contains(string(resp.Body), part) {
			t.Errorf("reload: %v %+v", err, resp)
		}
	}
	writeFile(t, dir, "r.yml", strings.ReplaceAll(highRules, "2 * x", "2 * * x"))
	post(http.StatusInternalServerError, file)
	if err := adapter.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "the log says why", func(context.Context) error {
		if n := strings.Count(adapter.Log(), "rules stay as they were"); n != 2 {
			return fmt.Errorf("said %d times", n)
		}
		return nil
	})
	names("instance:x:double", "High")
	if v, err := adapter.Metric(t.Context(), "ticktier_adapter_rules_load_successful"); err != nil || v != 0 {
		t.Errorf("after a bad reload: %v, %v", v, err)
	}
	writeFile(t, dir, "r.yml", strings.ReplaceAll(highRules, "High", "Higher"))
	if err := adapter.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	names("instance:x:double", "Higher")
	writeFile(t, dir, "s.yml", "groups: [{name: s, rules: [{record: s, expr: x}]}]")
	post(http.StatusOK, "3 rules in 2 groups")
	names("instance:x:double", "Higher", "s")
	resp, err := adapter.Do(t.Context(), http.MethodGet, "/-/reload", nil, nil)
	if err != nil || resp.Status == http.StatusOK {
		t.Errorf("GET /-/reload: %v %+v", err, resp)
	}
}
