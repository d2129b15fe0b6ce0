package fleet

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// listed is a device as the API shows it.
type listed struct {
	Device
	Up bool `json:"up"`
	// AgeSeconds is how long ago the last push was, by the adapter's clock.
	AgeSeconds   float64      `json:"ageSeconds"`
	Availability Availability `json:"availability"`
	// Clones are other senders that claim to be the device.
	Clones []clone `json:"clones,omitempty"`
}

// clone is another sender that claims to be a device.
type clone struct {
	Sender  string    `json:"sender"`
	Address string    `json:"address"`
	Since   time.Time `json:"since"`
	Seen    time.Time `json:"seen"`
}

// list is the data of the answer about many devices.
type list struct {
	Now time.Time `json:"now"`
	// Total is how many devices match, Next what the next page is asked for after, ""
	// where this is the last.
	Total   int      `json:"total"`
	Next    string   `json:"next,omitempty"`
	Devices []listed `json:"devices"`
}

// answer is the API's document, in the shape of Prometheus' own.
type answer struct {
	Status    string `json:"status"`
	Data      any    `json:"data,omitempty"`
	ErrorType string `json:"errorType,omitempty"`
	Error     string `json:"error,omitempty"`
}

// Handler serves the devices below /api/v1/devices: all of them, one, and the
// retirement of one.
func (f *Fleet) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/devices", f.serveList)
	mux.HandleFunc("GET /api/v1/devices/{id...}", f.serveDevice)
	mux.HandleFunc("DELETE /api/v1/devices/{id...}", f.serveRetire)
	return mux
}

// serveList answers GET /api/v1/devices, ordered by instance: with limit and after in
// pages, with state=up, silent or cloned and search=TEXT those that match.
func (f *Fleet) serveList(w http.ResponseWriter, r *http.Request) {
	q, err := parseListQuery(r.URL.Query())
	if err != nil {
		f.fail(w, http.StatusBadRequest, "bad_data", err.Error())
		return
	}
	now := f.cfg.Now()
	l := list{Now: now.Round(0), Devices: []listed{}}
	for _, d := range f.Devices() {
		shown := f.listed(d, now)
		if !q.matches(&shown) {
			continue
		}
		l.Total++
		switch {
		case d.Instance <= q.after && q.after != "":
		case q.limit > 0 && len(l.Devices) == q.limit:
			l.Next = l.Devices[q.limit-1].Instance
		default:
			l.Devices = append(l.Devices, shown)
		}
	}
	f.reply(w, http.StatusOK, answer{Status: "success", Data: l})
}

// listed is d as it is at a time, without the outages: they are shown with one device.
func (f *Fleet) listed(d Device, now time.Time) listed {
	l := listed{
		Device: d, Up: f.up(&d, now), AgeSeconds: now.Sub(d.LastPush).Round(time.Millisecond).Seconds(),
		Availability: d.availability(now, f.cfg.DownAfter, f.absences), Clones: f.clones(d.Instance),
	}
	l.Outages = nil
	return l
}

// clones are those that are proven to be others.
func (f *Fleet) clones(instance string) (out []clone) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.gates[instance]
	if g == nil {
		return nil
	}
	now := f.cfg.Now()
	for _, r := range g.rivals {
		if r.proven && now.Sub(r.seen) <= rivalMemory {
			out = append(out, clone{r.id, r.address, r.since, r.seen})
		}
	}
	return out
}

// listQuery is what a request for many devices asks.
type listQuery struct {
	limit         int
	after         string
	state, search string
}

func parseListQuery(v url.Values) (q listQuery, err error) {
	for name := range v {
		if !slices.Contains([]string{"limit", "after", "state", "search"}, name) {
			return q, fmt.Errorf("there is no parameter %q; there are limit, after, state and search", name)
		}
	}
	q.after, q.state, q.search = v.Get("after"), v.Get("state"), strings.ToLower(v.Get("search"))
	if s := v.Get("limit"); s != "" {
		if q.limit, err = strconv.Atoi(s); err != nil || q.limit < 0 {
			return q, fmt.Errorf("limit %q is no number of devices", s)
		}
	}
	if !slices.Contains([]string{"", "up", "silent", "cloned"}, q.state) {
		return q, fmt.Errorf("state %q is not up, silent or cloned", q.state)
	}
	return q, nil
}

func (q *listQuery) matches(l *listed) bool {
	switch {
	case q.state == "up" && !l.Up, q.state == "silent" && l.Up, q.state == "cloned" && len(l.Clones) == 0:
		return false
	case q.search == "":
		return true
	}
	return strings.Contains(strings.ToLower(l.Instance+" "+l.Address+" "+l.UserAgent), q.search)
}

// serveDevice answers GET /api/v1/devices/{id}, with its outages.
func (f *Fleet) serveDevice(w http.ResponseWriter, r *http.Request) {
	d, ok := f.Device(r.PathValue("id"))
	if !ok {
		f.unknown(w, r)
		return
	}
	l := f.listed(d, f.cfg.Now())
	l.Outages = d.Outages
	f.reply(w, http.StatusOK, answer{Status: "success", Data: l})
}

// serveRetire answers DELETE /api/v1/devices/{id}.
func (f *Fleet) serveRetire(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !f.Retire(id) {
		f.unknown(w, r)
		return
	}
	f.cfg.Logger.Info("device retired", "instance", id, "remote", r.RemoteAddr)
	f.reply(w, http.StatusOK, answer{Status: "success"})
}

func (f *Fleet) unknown(w http.ResponseWriter, r *http.Request) {
	f.fail(w, http.StatusNotFound, "not_found", fmt.Sprintf("no device is known as %q", r.PathValue("id")))
}

func (f *Fleet) fail(w http.ResponseWriter, status int, kind, text string) {
	f.reply(w, status, answer{Status: "error", ErrorType: kind, Error: text})
}

func (f *Fleet) reply(w http.ResponseWriter, status int, a answer) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(a); err != nil {
		f.cfg.Logger.Debug("answering about devices", "err", err)
	}
}
