package fleet

import (
	"encoding/json"
	"net/http"
	"time"
)

// listed is a device as the API shows it.
type listed struct {
	Device
	Up bool `json:"up"`
	// AgeSeconds is how long ago the last push was, by the adapter's clock.
	AgeSeconds float64 `json:"ageSeconds"`
}

// answer is the API's document, in the shape of Prometheus' own.
type answer struct {
	Status string `json:"status"`
	Data   struct {
		Now     time.Time `json:"now"`
		Devices []listed  `json:"devices"`
	} `json:"data"`
}

// ServeHTTP answers GET /api/v1/devices with every known device, ordered by instance.
func (f *Fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the method is not allowed; use GET", http.StatusMethodNotAllowed)
		return
	}
	now := f.cfg.Now()
	a := answer{Status: "success"}
	a.Data.Now = now.Round(0)
	a.Data.Devices = []listed{}
	for _, d := range f.Devices() {
		a.Data.Devices = append(a.Data.Devices, listed{
			Device: d, Up: f.up(&d, now), AgeSeconds: now.Sub(d.LastPush).Round(time.Millisecond).Seconds(),
		})
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if err := json.NewEncoder(w).Encode(a); err != nil {
		f.cfg.Logger.Debug("answering with the list of devices", "err", err)
	}
}
