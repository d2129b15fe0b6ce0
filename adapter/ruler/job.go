package ruler

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/prometheus/rules"
)

// job is one evaluation over a stretch of the past.
type job struct {
	spans []span
	group string // its name, "" for all

	mu    sync.Mutex
	state Backfill // guarded by mu
}

// Backfill is what a client is told of an evaluation that it asked for.
type Backfill struct {
	ID    int       `json:"id"`
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Group string    `json:"group,omitempty"`
	// State is waiting, running, done or failed.
	State string `json:"state"`
	// Evaluations is how many there are, Done how many are done, Changed how many
	// samples they changed.
	Evaluations int    `json:"evaluations"`
	Done        int    `json:"done"`
	Changed     int    `json:"samplesChanged"`
	Error       string `json:"error,omitempty"`
}

func (j *job) wants(g *rules.Group) bool { return j.group == "" || j.group == g.Name() }

func (j *job) begin(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state.State, j.state.Evaluations = "running", n
}

func (j *job) step(changed int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state.Done++
	j.state.Changed += changed
}

func (j *job) end(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state.State = "done"
	if err != nil {
		j.state.State, j.state.Error = "failed", err.Error()
	}
}

func (j *job) report() Backfill {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state
}

// Bounds of the evaluations that clients ask for.
const (
	maxWaiting = 16  // that wait
	maxKnown   = 100 // that are told of
)

// errFull answers one more than may wait.
var errFull = errors.New("too many evaluations are waiting; ask again when some are done")

// Backfill has recording rules evaluated over the past, those of one group or all. It
// returns at once; what differs from what is stored is stored, so that asking twice is
// the same as once.
func (r *Ruler) Backfill(from, to time.Time, group string) (Backfill, error) {
	j := &job{spans: []span{{from.UnixMilli(), to.UnixMilli()}}, group: group}
	r.jobsMu.Lock()
	defer r.jobsMu.Unlock()
	r.jobID++
	j.state = Backfill{ID: r.jobID, From: from.UTC(), To: to.UTC(), Group: group, State: "waiting"}
	select {
	case r.jobs <- j:
	default:
		return Backfill{}, errFull
	}
	r.known = append(r.known, j)
	r.known = r.known[max(0, len(r.known)-maxKnown):]
	return j.report(), nil
}

// ServeBackfill answers POST /api/v1/rules/backfill?from=&to=&group=, and GET with how
// far those asked for are.
func (r *Ruler) ServeBackfill(w http.ResponseWriter, req *http.Request) {
	switch req.Method {
	case http.MethodGet:
		r.jobsMu.Lock()
		list := []Backfill{}
		for _, j := range r.known {
			list = append(list, j.report())
		}
		r.jobsMu.Unlock()
		r.reply(w, http.StatusOK, map[string]any{"status": "success", "data": list})
	case http.MethodPost:
		from, to, err := r.backfillSpan(req)
		if err != nil {
			r.reply(w, http.StatusBadRequest, map[string]any{"status": "error", "errorType": "bad_data", "error": err.Error()})
			return
		}
		b, err := r.Backfill(from, to, req.FormValue("group"))
		if err != nil {
			w.Header().Set("Retry-After", "30")
			r.reply(w, http.StatusServiceUnavailable, map[string]any{"status": "error", "errorType": "unavailable", "error": err.Error()})
			return
		}
		r.reply(w, http.StatusAccepted, map[string]any{"status": "success", "data": b})
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "the method is not allowed; use GET or POST", http.StatusMethodNotAllowed)
	}
}

// backfillSpan reads and checks what is asked for.
func (r *Ruler) backfillSpan(req *http.Request) (from, to time.Time, err error) {
	now := time.Now()
	if from, err = parseTime(req.FormValue("from")); err != nil {
		return from, to, fmt.Errorf("from: %w", err)
	}
	to = now
	if s := req.FormValue("to"); s != "" {
		if to, err = parseTime(s); err != nil {
			return from, to, fmt.Errorf("to: %w", err)
		}
	}
	if !from.Before(to) {
		return from, to, fmt.Errorf("from (%s) is not before to (%s)", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
	}
	if oldest := now.Add(-r.cfg.FillWindow); from.Before(oldest) {
		return from, to, fmt.Errorf("from (%s) is older than samples can still be stored (%s, --rules.fill-window)", from.UTC().Format(time.RFC3339), oldest.UTC().Format(time.RFC3339))
	}
	group := req.FormValue("group")
	if group == "" {
		return from, to, nil
	}
	for _, g := range r.manager.RuleGroups() {
		if g.Name() == group && records(g) {
			return from, to, nil
		}
	}
	return from, to, fmt.Errorf("group: none with recording rules is named %q", group)
}

// parseTime reads Unix seconds or RFC 3339, as Prometheus' API does.
func parseTime(s string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f > 1e11 {
		return time.Time{}, fmt.Errorf("%q is neither Unix seconds nor a time like 2026-11-30T12:00:00Z", s)
	}
	return time.UnixMilli(int64(f * 1000)), nil
}

func (r *Ruler) reply(w http.ResponseWriter, status int, doc any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(doc); err != nil {
		r.cfg.Logger.Debug("answering about evaluations", "err", err)
	}
}
