package receive

import (
	"net/http"
	"time"
)

// Observer is told once of each request whose message was well formed, after it was
// stored or refused. Pushed is called from many goroutines and must not block.
type Observer interface {
	Pushed(p Push)
}

// ObserverFunc is a function as an Observer.
type ObserverFunc func(p Push)

// Pushed calls f.
func (f ObserverFunc) Pushed(p Push) { f(p) }

// Push is what one request said and what became of it. Strings are the client's own
// words, of any length and content.
type Push struct {
	// Device is the instance label of the request's first good series, "" where there
	// is none.
	Device string
	// RemoteAddr is the peer's address and port, UserAgent its User-Agent header.
	RemoteAddr string
	UserAgent  string
	// Sender is its X-Ticktier-Sender header.
	Sender string
	// Protocol is "1.0" or "2.0".
	Protocol string
	// Status is the HTTP status of the answer; 2xx and 400 mean that what is counted
	// in Samples is stored, 503 that no more is.
	Status int
	// Series is the number of TimeSeries messages, Samples the number of stored float
	// and histogram samples, Rejected the number of refused elements.
	Series   int
	Samples  int
	Rejected int
	// Oldest and Newest are the timestamps, in Unix milliseconds, of what is stored;
	// both are 0 where nothing is.
	Oldest, Newest int64
	// Bytes is the body's size as sent.
	Bytes int
	// Received is when the request came, Duration how long it took.
	Received time.Time
	Duration time.Duration
}

func (res *result) push(r *http.Request, status int, took time.Duration) Push {
	p := Push{
		Device:     res.device,
		RemoteAddr: r.RemoteAddr,
		UserAgent:  r.UserAgent(),
		Sender:     res.sender,
		Protocol:   res.proto.String(),
		Status:     status,
		Series:     res.series,
		Samples:    res.samples + res.histograms,
		Rejected:   res.rejected,
		Bytes:      res.bytes,
		Received:   res.began,
		Duration:   took,
	}
	if res.newest >= res.oldest {
		p.Oldest, p.Newest = res.oldest, res.newest
	}
	return p
}
