package fleet

import (
	"net"
	"strings"
	"time"
	"unicode/utf8"
)

// Push is one push of a device. Its fields are those of adapter/receive's Push, so
// that main can convert one to the other.
type Push struct {
	Device         string
	RemoteAddr     string
	UserAgent      string
	Sender         string
	Protocol       string
	Status         int
	Series         int
	Samples        int
	Rejected       int
	Oldest, Newest int64
	Bytes          int
	Received       time.Time
	Duration       time.Duration
}

// Bounds of what is kept of a client's words, in bytes.
const (
	maxInstance  = 256
	maxAddress   = 64
	maxUserAgent = 200
)

// Device is what is known of one device. Strings are the client's own words, cut and
// made valid UTF-8.
type Device struct {
	// Instance is the value of the instance label.
	Instance string `json:"instance"`
	// Address is the peer's IP address in the last push; behind a proxy, the proxy's.
	Address string `json:"address"`
	// UserAgent is the last push's, Version what it says of the sender's version.
	UserAgent string `json:"userAgent"`
	Version   string `json:"version,omitempty"`
	// Protocol is the remote-write version of the last push.
	Protocol string `json:"protocol"`
	// FirstPush and LastPush are by the adapter's clock. A push that could not be
	// stored counts: the device is there.
	FirstPush time.Time `json:"firstPush"`
	LastPush  time.Time `json:"lastPush"`
	// LastStatus is the HTTP status that answered the last push.
	LastStatus int `json:"lastStatus"`
	// NewestSample is the newest timestamp ever stored of the device, by its clock.
	NewestSample time.Time `json:"newestSample,omitzero"`
	// LagSeconds is how much older than the last push that was stored the newest sample
	// was that was stored until then, whichever push brought it: old samples that are
	// sent late say nothing of the new ones. It is negative where the device's clock is
	// ahead.
	LagSeconds float64 `json:"lagSeconds"`
	// Series is the number of series in the last push, the rest sums over all pushes.
	Series   int    `json:"series"`
	Pushes   uint64 `json:"pushes"`
	Samples  uint64 `json:"samples"`
	Rejected uint64 `json:"rejected"`
	Bytes    uint64 `json:"bytes"`

	// Sender is the id of the run of the exporter that pushed last, "" of a sender that
	// has none; SenderSince when its first push came, Restarts how many runs came before.
	Sender      string    `json:"sender,omitempty"`
	SenderSince time.Time `json:"senderSince,omitzero"`
	Restarts    uint64    `json:"restarts"`
	// IntervalSeconds is the time between pushes that it states, 0 is unknown.
	IntervalSeconds float64 `json:"intervalSeconds,omitempty"`
	// ClockSkewSeconds is how much its clock is ahead of the adapter's, if ClockKnown.
	ClockSkewSeconds float64 `json:"clockSkewSeconds"`
	ClockKnown       bool    `json:"clockKnown"`
	// LostTicks is how many ticks it says it could not keep until they were delivered.
	LostTicks uint64 `json:"lostTicks"`
	history

	// SenderLost is how many of them the present run lost.
	SenderLost uint64 `json:"senderLostTicks,omitempty"`

	remoteAddr string // of which Address was made
	userAgent  string // of which UserAgent and Version were made
}

// observe takes in one push. after is the silence that is an outage, absences are the
// adapter's own.
func (d *Device) observe(p *Push, after time.Duration, absences []Span) {
	if d.FirstPush.IsZero() {
		d.FirstPush = p.Received.Round(0)
		d.Since = d.FirstPush
	} else if s := (Span{d.LastPush, p.Received.Round(0)}); seen(s, absences) > after {
		d.ended(s)
	}
	d.states(parseSender(p.Sender), p.Received)
	d.LastPush = p.Received.Round(0)
	d.LastStatus = p.Status
	d.Protocol = clean(p.Protocol, 8)
	if p.RemoteAddr != d.remoteAddr {
		d.remoteAddr = p.RemoteAddr
		d.Address = address(p.RemoteAddr)
	}
	if p.UserAgent != d.userAgent {
		d.userAgent = strings.Clone(p.UserAgent[:min(len(p.UserAgent), 4*maxUserAgent)])
		d.UserAgent = clean(p.UserAgent, maxUserAgent)
		d.Version = version(d.UserAgent)
	}
	if p.Newest != 0 {
		if newest := time.UnixMilli(p.Newest); newest.After(d.NewestSample) {
			d.NewestSample = newest
		}
		d.LagSeconds = d.LastPush.Sub(d.NewestSample).Round(time.Millisecond).Seconds()
	}
	d.Series = p.Series
	d.Pushes++
	d.Samples += uint64(max(0, p.Samples))
	d.Rejected += uint64(max(0, p.Rejected))
	d.Bytes += uint64(max(0, p.Bytes))
}

// states takes in what the sender says of itself.
func (d *Device) states(s sender, received time.Time) {
	if s.id == "" {
		return
	}
	if s.id != d.Sender {
		if d.Sender != "" {
			d.Restarts++
		}
		d.Sender, d.SenderSince, d.SenderLost = strings.Clone(s.id), received.Round(0), 0
	}
	d.IntervalSeconds = s.interval.Seconds()
	if s.time != 0 {
		d.ClockSkewSeconds, d.ClockKnown = time.UnixMilli(s.time).Sub(received).Seconds(), true
	}
	if s.lost > d.SenderLost {
		d.LostTicks += s.lost - d.SenderLost
		d.SenderLost = s.lost
	}
}

// tidy brings what a file said within bounds.
func (d *Device) tidy() bool {
	d.Address, d.UserAgent = clean(d.Address, maxAddress), clean(d.UserAgent, maxUserAgent)
	d.Sender = d.Sender[:min(len(d.Sender), maxSenderID)]
	d.Outages = d.Outages[max(0, len(d.Outages)-maxOutages):]
	if d.Since.IsZero() {
		d.Since = d.FirstPush
	}
	d.Version, d.Protocol = version(d.UserAgent), clean(d.Protocol, 8)
	return validInstance(d.Instance) && !d.LastPush.Before(d.FirstPush)
}

// validInstance tells whether a device can be known under that name.
func validInstance(s string) bool { return s != "" && len(s) <= maxInstance && utf8.ValidString(s) }

// address is the host part of a peer's address.
func address(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	return clean(host, maxAddress)
}

// version is what stands behind the slash of a User-Agent's first product.
func version(userAgent string) string {
	product, _, _ := strings.Cut(userAgent, " ")
	_, v, _ := strings.Cut(product, "/")
	return v
}

// clean cuts s to n bytes at the beginning of a rune, and makes what is not UTF-8 and
// what does not print into U+FFFD.
func clean(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r < ' ' || r >= 0x7f && r < 0xa0 {
			return utf8.RuneError
		}
		return r
	}, s)
}
