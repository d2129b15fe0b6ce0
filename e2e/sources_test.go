package e2e

import (
	"encoding/json"
	"os/exec"
	"testing"
	"time"
)

// listedSource is a source as both the verb and the API list it.
type listedSource struct {
	Name    string  `json:"name"`
	Enabled bool    `json:"enabled"`
	Success bool    `json:"success"`
	Error   string  `json:"error"`
	Series  int     `json:"series"`
	Cadence float64 `json:"cadence_seconds"`
	Slowed  bool    `json:"slowed"`
	// Deadline of a read, and whether ticks do not wait for it.
	Deadline float64 `json:"deadline_seconds"`
	Beside   bool    `json:"beside_ticks"`
	Reason   string  `json:"reason"`
	Bytes    uint64  `json:"bytes"`
	Cost     float64 `json:"cost_seconds"`
	Reads    uint64  `json:"reads"`
}

func parseSources(t *testing.T, text []byte) []listedSource {
	t.Helper()
	var list struct {
		Sources []listedSource `json:"sources"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatalf("%v in:\n%.500s", err, text)
	}
	return list.Sources
}

// TestSources asks the verb and the running exporter for the sources of this machine:
// they must tell the same, and /metrics must agree with them.
func TestSources(t *testing.T) {
	t.Parallel()
	const target = "--ping.target=127.0.0.1"
	a := startExporter(t, "--rate=10", "--floor-hz=2", target)
	out, err := exec.Command(exe(t, "exporter"), "sources", "--format=json", "--floor-hz=2", target).Output()
	if err != nil {
		t.Fatal(err)
	}
	probed := parseSources(t, out)
	pause(t, 2*time.Second) // every source has been read by then
	body, err := a.Get(t.Context(), "/api/v1/sources")
	if err != nil {
		t.Fatal(err)
	}
	live := parseSources(t, body)
	if len(probed) < 40 || len(live) != len(probed) {
		t.Fatalf("%d sources by the verb, %d by the exporter", len(probed), len(live))
	}
	for i, p := range probed {
		l := live[i]
		if l.Name != p.Name || l.Enabled != p.Enabled || l.Reason != p.Reason || p.Reason == "" ||
			l.Deadline != p.Deadline || l.Deadline <= 0 || l.Beside != p.Beside {
			t.Errorf("the verb lists %+v, the exporter %+v", p, l)
		}
		if p.Success == (p.Error != "") {
			t.Errorf("%s: success %v, error %q", p.Name, p.Success, p.Error)
		}
		if !l.Enabled {
			if l.Reads != 0 {
				t.Errorf("%s is not enabled and was read", l.Name)
			}
			continue
		}
		// A busy machine may have one of them slowed, for what its reads cost.
		if l.Cadence != p.Cadence && !l.Slowed && !p.Slowed {
			t.Errorf("%s is read every %v s by the verb, every %v s by the exporter", p.Name, p.Cadence, l.Cadence)
		}
		if l.Success != p.Success || l.Reads == 0 || l.Success && l.Cost <= 0 {
			t.Errorf("the verb lists %+v, the exporter %+v", p, l)
		}
		success, err := a.Metric(t.Context(), `node_scrape_collector_success{collector="`+l.Name+`"}`)
		if err != nil || (success == 1) != l.Success {
			t.Errorf("%s: node_scrape_collector_success is %v, %v", l.Name, success, err)
		}
	}
	replies, err := a.Metric(t.Context(), `node_ping_replies_total{target="127.0.0.1"}`)
	if err != nil || replies < 1 {
		t.Errorf("%v replies of the loopback, %v", replies, err)
	}
}
