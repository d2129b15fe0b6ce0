package receive

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"
)

// Config is what a Handler needs. The zero value of a limit means its default.
type Config struct {
	// Store takes the samples. Its appenders must take exemplars
	// (storage.ExemplarAppenderV2), or exemplars are refused.
	Store storage.AppendableV2
	// Observer is told of each request that was decoded; it may be nil.
	Observer Observer
	// Door says who requests are from; nil lets all in.
	Door Door
	// Gate judges who may write; nil lets all.
	Gate Gate
	// Logger may be nil.
	Logger *slog.Logger
	// Registerer gets the ticktier_adapter_receive_* metrics; it may be nil.
	Registerer prometheus.Registerer
	// Now is the wall clock; nil is time.Now.
	Now func() time.Time

	// InOrder says that the store takes no out-of-order samples.
	InOrder bool
	// MaxBodyBytes and MaxDecodedBytes bound one body as sent and decompressed. The
	// second must be less than 4 GiB.
	MaxBodyBytes    int64
	MaxDecodedBytes int64
	// BudgetBytes bounds what all requests together may hold decompressed, and
	// again what they may hold as sent.
	BudgetBytes int64
	// MaxSamples bounds one request; a histogram or exemplar counts for eight.
	MaxSamples int
	// MaxAhead is how far a timestamp may be ahead of the wall clock.
	MaxAhead time.Duration
	// MaxBehind is how far a timestamp may be behind the wall clock; 0 is any time:
	// the store has bounds of its own, but an empty one takes its first sample from
	// any year.
	MaxBehind time.Duration
	// BodyTimeout is how long the body of a request may take to come.
	BodyTimeout time.Duration
	// QueueTimeout is how long a request waits for a share of the budget.
	QueueTimeout time.Duration
	// MaxSeries bounds the cache of resolved label sets, MaxFamilies the metadata.
	MaxSeries   int
	MaxFamilies int
	// Quota bounds what devices send.
	Quota Quota
	// MaxLabels bounds the labels of a series.
	MaxLabels int
}

func (c Config) withDefaults() Config {
	orDefault(&c.MaxBodyBytes, defaultMaxBodyBytes)
	orDefault(&c.MaxDecodedBytes, defaultMaxDecodedBytes)
	orDefault(&c.BudgetBytes, max(defaultDecodeBudget, c.MaxDecodedBytes, c.MaxBodyBytes))
	orDefault(&c.MaxSamples, defaultMaxSamples)
	orDefault(&c.MaxAhead, defaultMaxAhead)
	orDefault(&c.BodyTimeout, defaultBodyTimeout)
	orDefault(&c.QueueTimeout, defaultQueueTimeout)
	orDefault(&c.MaxSeries, defaultMaxSeries)
	orDefault(&c.MaxFamilies, defaultMaxFamilies)
	orDefault(&c.MaxLabels, maxLabels)
	c.MaxLabels = min(c.MaxLabels, maxLabels)
	c.MaxDecodedBytes = min(c.MaxDecodedBytes, 1<<32-1)
	c.BudgetBytes = max(c.BudgetBytes, c.MaxDecodedBytes, 2*c.MaxBodyBytes)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// oldest is the oldest timestamp that is accepted.
func (c *Config) oldest(now time.Time) int64 {
	if c.MaxBehind <= 0 {
		return 1
	}
	return now.Add(-c.MaxBehind).UnixMilli()
}

func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Handler is the remote-write endpoint. It is safe for concurrent use.
type Handler struct {
	cfg      Config
	budget   *budget
	cache    *cache
	families *families
	metrics  *metrics
	accounts *accounts // nil: nothing is bounded
	seed     maphash.Seed
	large    large
	pool     sync.Pool // of *work

	failing atomic.Int64 // requests in a row that the store could not take
}

// New returns a Handler. It panics where its metrics are registered already.
func New(cfg Config) *Handler {
	cfg = cfg.withDefaults()
	h := &Handler{
		cfg:      cfg,
		budget:   newBudget(cfg.BudgetBytes, cfg.BudgetBytes, cfg.QueueTimeout),
		cache:    newCache(cfg.MaxSeries, cfg.MaxSeries*256),
		families: newFamilies(cfg.MaxFamilies),
		seed:     maphash.MakeSeed(),
	}
	h.metrics = newMetrics(cfg.Registerer, h)
	h.accounts = newAccounts(cfg.Quota)
	h.large.most = cfg.BudgetBytes
	h.pool.New = func() any {
		w := new(work)
		w.resolver = resolver{cache: h.cache, seed: h.seed, maxLabels: h.cfg.MaxLabels}
		w.batch.families, w.batch.accounts, w.batch.metrics = h.families, h.accounts, h.metrics
		return w
	}
	return h
}

// Metadata returns what senders told of metric families: a copy. At most
// Config.MaxFamilies entries; it is empty after a restart until the next pushes.
func (h *Handler) Metadata() map[string]metadata.Metadata { return h.families.get() }

// IsCounter tells whether series of that metric name are counters: by their metadata
// where it is known, else by the name's suffix (_total, _count, _sum, _bucket).
func (h *Handler) IsCounter(name string) bool { return h.families.isCounter(name) }

// TypeOf returns what senders said of series of that metric name:
// model.MetricTypeUnknown where they said nothing. The parts of a classic histogram or
// summary (_bucket, _count) are counters.
func (h *Handler) TypeOf(name string) model.MetricType { return h.families.seriesType(name) }

// ServeHTTP takes one remote-write request.
func (h *Handler) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	began := h.cfg.Now()
	h.metrics.inFlight.Inc()
	defer h.metrics.inFlight.Dec()

	res := result{began: began}
	fail := h.serve(rw, r, began, &res)
	status := http.StatusNoContent
	if fail != nil {
		status = fail.status
	}
	took := h.cfg.Now().Sub(began)
	if res.decoded && h.cfg.Observer != nil {
		h.cfg.Observer.Pushed(res.push(r, status, took))
	}
	h.metrics.count(&res, status, took)
	h.log(r, fail)
	h.large.settle(began)
	reply(rw, &res, fail)
}

// result is what became of a request.
type result struct {
	began                          time.Time
	proto                          protocol
	decoded                        bool // the message was well formed
	bytes                          int
	series                         int
	samples, histograms, exemplars int
	refused                        *[numReasons]int // nil: nothing
	rejected                       int
	oldest, newest                 int64
	device, sender                 string
}

// serve does all but answer. A nil failure is a success.
func (h *Handler) serve(rw http.ResponseWriter, r *http.Request, now time.Time, res *result) *failure {
	if r.Method != http.MethodPost {
		return failed(http.StatusMethodNotAllowed, "the method %s is not allowed; use POST", quote([]byte(r.Method)))
	}
	var entry Entry
	if h.cfg.Door != nil {
		if entry = h.cfg.Door.Enter(r); entry.Status != 0 {
			return entry.failure()
		}
	}
	p, problem := negotiate(r.Header)
	if problem != "" {
		return failed(http.StatusUnsupportedMediaType, "%s", problem)
	}
	res.proto = p
	w := h.pool.Get().(*work)
	defer w.release(h)
	fail := w.read(h, rw, r)
	if fail != nil {
		return fail
	}
	res.bytes = len(w.compressed)
	if w.heldDecoded, fail = w.unpack(h, r, now); fail != nil {
		return fail
	}
	claim := Claim{RemoteAddr: r.RemoteAddr, Sender: entry.senderOf(r), Received: now}
	res.sender, w.entry = claim.Sender, entry
	return h.store(r.Context(), w, claim, now, res)
}

// store scans and appends the decompressed message in w, and commits or rolls back.
func (h *Handler) store(ctx context.Context, w *work, claim Claim, now time.Time, res *result) *failure {
	q := &w.request
	if err := q.scan(w.decoded, res.proto); err != nil {
		return decodeFailure(err, res.proto, kept{})
	}
	w.target, w.ctx, w.app = h.cfg.Store, ctx, h.cfg.Store.AppenderV2(ctx)
	defer func() { // also when it panics: an open appender would hold back the store
		if w.app != nil {
			if err := w.app.Rollback(); err != nil {
				h.cfg.Logger.Error("rolling back a remote write", "err", err)
			}
		}
	}()
	w.gate, w.claim = h.cfg.Gate, claim
	w.begin(len(q.series), h.cfg.MaxSamples, h.cfg.oldest(now), now.Add(h.cfg.MaxAhead).UnixMilli(), h.cfg.InOrder)
	err := w.add(q)
	if err == nil {
		err = w.commit()
	}
	k := w.kept
	if k != (kept{}) {
		res.samples, res.histograms, res.exemplars = k.samples, k.histograms, k.exemplars
		res.oldest, res.newest = w.oldest, w.newest
	}
	if w.account != nil && err == nil {
		h.accounts.spend(w.account, h.cfg.MaxSamples-w.room)
	}
	if err != nil {
		var refused gateError
		if errors.As(err, &refused) {
			return refused.failure()
		}
		var stored storeError
		if errors.As(err, &stored) {
			res.decoded, res.series, res.device = true, len(q.series), w.device
			return storeFailure(ctx, err, k)
		}
		return decodeFailure(err, res.proto, k)
	}
	res.decoded, res.series, res.device = true, len(q.series), w.device
	if w.refused.total == 0 {
		return nil
	}
	counts := w.refused.count
	res.refused, res.rejected = &counts, w.refused.total
	return failed(http.StatusBadRequest, "%s, %d elements are refused\n%s", k, w.refused.total, w.refused.String())
}

func decodeFailure(err error, p protocol, k kept) *failure {
	var limit limitError
	if errors.As(err, &limit) {
		return failed(http.StatusRequestEntityTooLarge, "%v; %s", err, k)
	}
	name := message1
	if p == proto2 {
		name = message2
	}
	if k != (kept{}) {
		return failed(http.StatusBadRequest, "the body is not a protobuf %s message: %v; %s", name, err, k)
	}
	return failed(http.StatusBadRequest, "the body is not a protobuf %s message: %v", name, err)
}

func storeFailure(ctx context.Context, err error, k kept) *failure {
	text := "the samples cannot be stored now: " + clip(err.Error(), maxExampleBytes)
	if k != (kept{}) {
		text += "; " + k.String()
	}
	if ctx.Err() != nil {
		err = nil // the sender is gone, nobody's fault
	}
	return &failure{status: http.StatusServiceUnavailable, text: text, err: err}
}

// reply writes the answer. The Written headers are there whenever the body was looked at.
func reply(rw http.ResponseWriter, res *result, fail *failure) {
	head := rw.Header()
	if res.proto != protoNone && (fail == nil || fail.status != http.StatusUnsupportedMediaType) {
		head.Set("X-Prometheus-Remote-Write-Samples-Written", strconv.Itoa(res.samples))
		head.Set("X-Prometheus-Remote-Write-Histograms-Written", strconv.Itoa(res.histograms))
		head.Set("X-Prometheus-Remote-Write-Exemplars-Written", strconv.Itoa(res.exemplars))
	}
	if fail == nil {
		rw.WriteHeader(http.StatusNoContent)
		return
	}
	switch fail.status {
	case http.StatusUnauthorized:
		head.Set("WWW-Authenticate", fail.challenge)
	case http.StatusMethodNotAllowed:
		head.Set("Allow", http.MethodPost)
	case http.StatusUnsupportedMediaType:
		head.Set("Accept-Post", acceptable)
		head.Set("Accept-Encoding", encoding)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		wait := retryAfter
		if fail.retryAfter > 0 {
			wait = fail.retryAfter
		}
		head.Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	}
	http.Error(rw, fail.text, fail.status)
}

// log reports the store's failures: the first of a row, and its end with their number.
// What is a sender's fault goes back to the sender, and to the log only for debugging.
func (h *Handler) log(r *http.Request, fail *failure) {
	if fail != nil && fail.err != nil {
		if h.failing.Add(1) == 1 {
			h.cfg.Logger.Error("samples cannot be stored; senders are told to retry", "err", fail.err)
		}
		return
	}
	if fail == nil && h.failing.Load() > 0 {
		if n := h.failing.Swap(0); n > 0 {
			h.cfg.Logger.Info("samples are stored again", "requests_failed", n)
		}
	}
	if fail != nil {
		h.cfg.Logger.Debug("remote write refused", "remote", r.RemoteAddr, "status", fail.status, "reason", fail.text)
	}
}
