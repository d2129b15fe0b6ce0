package receive

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/golang/snappy"
)

// failure is an answer that is not a success: what the sender is told.
type failure struct {
	status int
	text   string
	err    error // for the log; nil where the sender alone is at fault
	// retryAfter is how long a sender is asked to wait with 503; 0 is the usual time.
	retryAfter time.Duration
	challenge  string // of a 401
}

func failed(status int, format string, args ...any) *failure {
	return &failure{status: status, text: fmt.Sprintf(format, args...)}
}

func busy(text string) *failure {
	return &failure{status: http.StatusServiceUnavailable, text: text}
}

// work is everything one request needs, reused by the next.
type work struct {
	batch
	compressed []byte
	decoded    []byte
	request    request
	held       int64 // bytes held of the reading budget
	// heldDecoded are the bytes held of the decoding budget.
	heldDecoded int64
}

// read reads the body into w.compressed. Memory is taken as the body comes, never for
// what it is said to be.
func (w *work) read(h *Handler, rw http.ResponseWriter, r *http.Request) *failure {
	limit := h.cfg.MaxBodyBytes
	if r.ContentLength > limit {
		return failed(http.StatusRequestEntityTooLarge, "the body has %d bytes; at most %d are accepted", r.ContentLength, limit)
	}
	// Not every ResponseWriter has deadlines; the server's own then has to do.
	_ = http.NewResponseController(rw).SetReadDeadline(time.Now().Add(h.cfg.BodyTimeout))
	buf := w.compressed[:0]
	if cap(buf) == 0 {
		buf = make([]byte, 0, 4<<10)
	}
	for {
		if len(buf) == cap(buf) {
			grown, fail := w.grow(h, buf)
			if fail != nil {
				w.compressed = buf
				return fail
			}
			buf = grown
		}
		n, err := r.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			w.compressed = buf
			return failed(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", limit)
		}
		if err == io.EOF {
			w.compressed = buf
			return nil
		}
		if err != nil {
			w.compressed = buf
			return readFailure(err)
		}
	}
}

func readFailure(err error) *failure {
	var timeout net.Error
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return busy("the body did not come in time") // not 408: a sender would drop its samples
	}
	return failed(http.StatusBadRequest, "reading the body: %v", err)
}

// grow doubles a full buffer within the budget.
func (w *work) grow(h *Handler, buf []byte) ([]byte, *failure) {
	size := 2 * int64(cap(buf))
	if need := size - freeBytes - w.held; need > 0 {
		if !h.budget.reading.TryAcquire(need) {
			return nil, busy("too many large requests at once")
		}
		w.held += need
	}
	var grown []byte
	if size > keepBytes {
		grown = h.large.take(size, h.cfg.Now())
	} else {
		grown = make([]byte, 0, size)
	}
	grown = append(grown, buf...)
	if cap(buf) > keepBytes {
		h.large.put(buf, h.cfg.Now())
	}
	return grown, nil
}

// unpack decompresses w.compressed into w.decoded, whose size was checked and is held
// of the decoding budget: release gives it back.
func (w *work) unpack(h *Handler, r *http.Request, now time.Time) (held int64, fail *failure) {
	if len(w.compressed) == 0 {
		return 0, failed(http.StatusBadRequest, "the body is empty")
	}
	n, err := snappy.DecodedLen(w.compressed)
	if err != nil {
		return 0, failed(http.StatusBadRequest, "the body is not snappy (block format): %v", err)
	}
	if int64(n) > h.cfg.MaxDecodedBytes {
		return 0, failed(http.StatusRequestEntityTooLarge,
			"the body declares %d bytes when decompressed; at most %d are accepted", n, h.cfg.MaxDecodedBytes)
	}
	if most := maxExpansion * int64(len(w.compressed)); int64(n) > most {
		return 0, failed(http.StatusBadRequest,
			"the body is not snappy (block format): %d bytes cannot hold the %d they declare", len(w.compressed), n)
	}
	held = int64(n)
	if n > keepBytes {
		held = min(largeFactor*held, h.cfg.BudgetBytes)
	}
	if !h.budget.decode(r.Context(), held) {
		return 0, busy("too many requests at once")
	}
	if n > cap(w.decoded) && n > keepBytes {
		w.decoded = h.large.take(int64(n), now)
	}
	decoded, err := snappy.Decode(w.decoded[:cap(w.decoded)], w.compressed)
	if err != nil {
		return held, failed(http.StatusBadRequest, "the body is not snappy (block format): %v", err)
	}
	w.decoded = decoded
	return held, nil
}

// maxExpansion is more than snappy can do: its densest element is three bytes for 64.
const maxExpansion = 32

// release gives back what w holds and forgets what was in it, whatever became of the
// request; large buffers go to the collector.
func (w *work) release(h *Handler) {
	w.end()
	w.request.reset()
	w.compressed, w.decoded = h.keepLarge(w.compressed), h.keepLarge(w.decoded)
	w.seen.slots = keepSlots(w.seen.slots)
	w.request.symbols = keep(w.request.symbols, 16)
	w.request.series = keep(w.request.series, 8)
	w.request.families = keep(w.request.families, 8)
	s := &w.series
	s.reset()
	s.refs, s.pairs, s.samples = keep(s.refs, 4), keep(s.pairs, 48), keep(s.samples, 24)
	s.histograms, s.exemplars = keep(s.histograms, 8), keep(s.exemplars, 8)
	w.raw.refs, w.raw.pairs = keep(w.raw.refs, 4), keep(w.raw.pairs, 48)
	w.ordered = keep(w.ordered, 64)
	// Only now: whoever waits for a share finds the buffers in their place.
	h.budget.reading.Release(w.held)
	h.budget.decoding.Release(w.heldDecoded)
	w.held, w.heldDecoded = 0, 0
	h.pool.Put(w)
}

// keepLarge empties a buffer, or hands it to who needs a large one next.
func (h *Handler) keepLarge(b []byte) []byte {
	if cap(b) <= keepBytes {
		return b[:0]
	}
	h.large.put(b, h.cfg.Now())
	return nil
}

// keepSlots drops a table that only a large request needs.
func keepSlots(s []last) []last {
	if cap(s)*64 > 4*keepBytes {
		return nil
	}
	return s
}

// keep empties a buffer, or drops it where it is larger than one is kept.
func keep[T any](b []T, size int) []T {
	if cap(b)*size > keepBytes {
		return nil
	}
	return b[:0]
}
