package ruler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/notifier"
)

// held are alerts that ended only because their device is silent. That nothing comes
// does not say that all is well, so they are told as firing until the device is back,
// and then as what its rule says.
type held struct {
	silent func(instance string) bool // nil holds nothing
	resend time.Duration
	path   string // of the file they outlast a restart in; "" is none
	logger *slog.Logger

	mu     sync.Mutex
	alerts map[string]*heldAlert // guarded by mu, by labels
}

// heldAlert is one of them, and its form in the file.
type heldAlert struct {
	Labels       labels.Labels `json:"labels"`
	Annotations  labels.Labels `json:"annotations"`
	StartsAt     time.Time     `json:"startsAt"`
	GeneratorURL string        `json:"generatorURL"`

	back time.Time // since when the device is no longer silent
}

const (
	// backFor is how long a device must be back until its rules say what is so.
	backFor = 2 * time.Minute
	// maxHeld bounds them, and with heldBytes their file.
	maxHeld   = 10_000
	heldBytes = 64 << 20
)

// load reads what was held at the last stop. A file that cannot be read is none.
func (h *held) load() {
	h.alerts = map[string]*heldAlert{}
	if h.path == "" {
		return
	}
	info, err := os.Stat(h.path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var list []*heldAlert
	if err == nil && info.Size() > heldBytes {
		err = fmt.Errorf("%d bytes", info.Size())
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile(h.path)
	}
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	if err != nil {
		h.logger.Warn("alerts of silent devices may be told as resolved", "file", h.path, "err", err)
		return
	}
	for _, a := range list {
		if a != nil && len(h.alerts) < maxHeld {
			h.alerts[a.Labels.String()] = a
		}
	}
}

// save writes the file; mu is held.
func (h *held) save() {
	if h.path == "" {
		return
	}
	list := make([]*heldAlert, 0, len(h.alerts))
	for _, a := range h.alerts {
		list = append(list, a)
	}
	b, err := json.Marshal(list)
	if err == nil {
		tmp := filepath.Join(filepath.Dir(h.path), "."+filepath.Base(h.path))
		if err = os.WriteFile(tmp, b, 0o644); err == nil {
			err = os.Rename(tmp, h.path)
		}
	}
	if err != nil {
		h.logger.Warn("alerts of silent devices do not outlast a restart", "file", h.path, "err", err)
	}
}

// hold takes an alert that is about to be sent, and says whether it goes on as firing.
func (h *held) hold(n *notifier.Alert, resolved bool, now time.Time) {
	if h.silent == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := n.Labels.String()
	_, known := h.alerts[key]
	if !resolved || !h.silent(n.Labels.Get("instance")) || len(h.alerts) >= maxHeld && !known {
		if known {
			delete(h.alerts, key)
			h.save()
		}
		return
	}
	n.EndsAt = now.Add(4 * h.resend)
	if !known {
		h.alerts[key] = &heldAlert{Labels: n.Labels, Annotations: n.Annotations, StartsAt: n.StartsAt, GeneratorURL: n.GeneratorURL}
		h.save()
	}
}

// due are the alerts to send again: those of devices that are silent, and as resolved
// those whose device has been back for a while.
func (h *held) due(now time.Time) (out []*notifier.Alert) {
	h.mu.Lock()
	defer h.mu.Unlock()
	changed := false
	for key, a := range h.alerts {
		ends := now.Add(4 * h.resend)
		switch {
		case h.silent(a.Labels.Get("instance")):
			a.back = time.Time{}
		case a.back.IsZero():
			a.back = now
		case now.Sub(a.back) >= backFor:
			ends = now
			delete(h.alerts, key)
			changed = true
		}
		out = append(out, &notifier.Alert{Labels: a.Labels, Annotations: a.Annotations, StartsAt: a.StartsAt, EndsAt: ends, GeneratorURL: a.GeneratorURL})
	}
	if changed {
		h.save()
	}
	return out
}

// run sends what is held again until ctx is done.
func (h *held) run(ctx context.Context, to sender) {
	if h.silent == nil {
		return
	}
	tick := time.NewTicker(h.resend)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if out := h.due(time.Now()); len(out) > 0 {
				to.Send(out...)
			}
		}
	}
}

func (h *held) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.alerts)
}
