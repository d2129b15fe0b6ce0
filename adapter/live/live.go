package live

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Path is where the hub is served.
const Path = "/api/v1/live"

const (
	behind     = 60_000 // ms before now in which samples are looked for
	ahead      = 60_000 // ms that a device's clock may be ahead
	queue      = 8      // events that wait for a viewer
	heartbeat  = 15     // seconds after which a silent stream says that it lives
	maxViewers = 1000
)

// gzipHeader begins a gzip stream. Events are deflate blocks, each without a look back
// at the one before and ended on a byte, so that the same bytes fit into any stream.
var gzipHeader = string([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff})

// Line is one series with its samples: milliseconds since 1970 and value, in order.
type Line struct {
	Labels  map[string]string `json:"labels"`
	Samples [][2]float64      `json:"samples"`

	// Key tells lines of a device apart.
	Key string `json:"-"`
}

// Source reads the lines of a device from one time to another, both inclusive, in ms.
type Source func(ctx context.Context, instance string, from, to int64) ([]Line, error)

// Config is what a Hub needs.
type Config struct {
	Source Source
	Now    func() time.Time
	Logger *slog.Logger
}

// event is what viewers get, in both forms.
type event struct{ plain, packed []byte }

// topic is a device that is watched.
type topic struct {
	viewers map[chan event]struct{}
	pushed  bool             // since the last round
	newest  map[string]int64 // by line, what was sent
	quiet   int              // rounds without an event
}

// Hub is safe for concurrent use. Run does its work.
type Hub struct {
	cfg Config

	mu      sync.Mutex
	topics  map[string]*topic
	viewers int
	stopped bool

	// Only Run uses these.
	buf    bytes.Buffer
	packer *flate.Writer
}

// New returns a hub without viewers.
func New(cfg Config) *Hub {
	h := &Hub{cfg: cfg, topics: map[string]*topic{}}
	w, err := flate.NewWriter(&h.buf, flate.BestSpeed)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	h.packer = w
	return h
}

// Pushed tells that a device pushed. It returns at once.
func (h *Hub) Pushed(instance string) {
	h.mu.Lock()
	if t := h.topics[instance]; t != nil {
		t.pushed = true
	}
	h.mu.Unlock()
}

// Run makes events once a second until ctx is done, and then ends all streams.
func (h *Hub) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			h.stop()
			return nil
		case <-tick.C:
			h.round(ctx)
		}
	}
}

func (h *Hub) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	for name, t := range h.topics {
		for c := range t.viewers {
			close(c)
		}
		delete(h.topics, name)
	}
	h.viewers = 0
}

// round makes one event for each watched device that pushed.
func (h *Hub) round(ctx context.Context) {
	h.mu.Lock()
	due := map[string]*topic{}
	for name, t := range h.topics {
		if t.quiet++; t.pushed || t.quiet >= heartbeat {
			due[name] = t
		}
	}
	h.mu.Unlock()
	for name, t := range due {
		h.mu.Lock()
		pushed := t.pushed
		t.pushed = false
		h.mu.Unlock()
		text := []byte(": nothing new\n\n")
		if pushed {
			if text = h.read(ctx, name, t); text == nil {
				continue
			}
		}
		h.send(t, event{text, h.pack(text)})
	}
}

// read builds the event of a topic, nil where there is nothing new. Only Run's
// goroutine touches newest.
func (h *Hub) read(ctx context.Context, instance string, t *topic) []byte {
	now := h.cfg.Now().UnixMilli()
	lines, err := h.cfg.Source(ctx, instance, now-behind, now+ahead)
	if err != nil {
		h.cfg.Logger.Debug("reading for viewers", "instance", instance, "err", err)
		return nil
	}
	fresh := lines[:0]
	for _, l := range lines {
		after, first := t.newest[l.Key], 0
		for first < len(l.Samples) && int64(l.Samples[first][0]) <= after {
			first++
		}
		if l.Samples = l.Samples[first:]; len(l.Samples) > 0 {
			t.newest[l.Key] = int64(l.Samples[len(l.Samples)-1][0])
			fresh = append(fresh, l)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	body, err := json.Marshal(struct {
		Now   int64  `json:"now"`
		Lines []Line `json:"lines"`
	}{now, fresh})
	if err != nil {
		h.cfg.Logger.Debug("building for viewers", "instance", instance, "err", err)
		return nil
	}
	return append(append([]byte("data: "), body...), "\n\n"...)
}

func (h *Hub) pack(text []byte) []byte {
	h.buf.Reset()
	h.packer.Reset(&h.buf)
	h.packer.Write(text) //nolint:errcheck // into memory
	h.packer.Flush()     //nolint:errcheck
	return bytes.Clone(h.buf.Bytes())
}

// send hands an event to all viewers of a topic; one whose queue is full is cut off.
func (h *Hub) send(t *topic, e event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.quiet = 0
	for c := range t.viewers {
		select {
		case c <- e:
		default:
			delete(t.viewers, c)
			h.viewers--
			close(c)
		}
	}
}

// watch registers a viewer. A topic starts anew for its first one; one that comes
// later gets what is new from then on.
func (h *Hub) watch(instance string) (chan event, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped || h.viewers >= maxViewers {
		return nil, false
	}
	t := h.topics[instance]
	if t == nil {
		t = &topic{viewers: map[chan event]struct{}{}, newest: map[string]int64{}, pushed: true}
		h.topics[instance] = t
	}
	c := make(chan event, queue)
	t.viewers[c] = struct{}{}
	h.viewers++
	return c, true
}

func (h *Hub) leave(instance string, c chan event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[instance]
	if t == nil {
		return
	}
	if _, ok := t.viewers[c]; ok {
		delete(t.viewers, c)
		h.viewers--
	}
	if len(t.viewers) == 0 {
		delete(h.topics, instance)
	}
}

// ServeHTTP streams the ticks of ?instance= until the viewer goes or Run ends.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	instance := r.URL.Query().Get("instance")
	if instance == "" {
		http.Error(w, "say which device: ?instance=NAME", http.StatusBadRequest)
		return
	}
	c, ok := h.watch(instance)
	if !ok {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "there are too many viewers, or the adapter is stopping", http.StatusServiceUnavailable)
		return
	}
	defer h.leave(instance, c)
	packed := strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-store")
	head.Set("X-Accel-Buffering", "no")
	head.Set("X-Content-Type-Options", "nosniff")
	begin := event{plain: []byte("retry: 2000\n\n")}
	if packed {
		head.Set("Content-Encoding", "gzip")
		begin.packed = []byte(gzipHeader)
	}
	out := http.NewResponseController(w)
	for e, ok := begin, true; ok; {
		body := e.plain
		if packed {
			body = e.packed
		}
		if _, err := w.Write(body); err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case e, ok = <-c:
		}
	}
}
