package query

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ClientBy says by what requests are taken to be of one client.
type ClientBy string

const (
	// ByCredentials: by the user of Basic authentication, or by the token of another
	// kind; of a request with neither, by its address.
	ByCredentials ClientBy = "credentials"
	// ByAddress: by the address that the connection comes from.
	ByAddress ClientBy = "address"
	// ByForwarded: as ByCredentials, but with the last address in X-Forwarded-For,
	// which is what the nearest proxy saw, in place of the connection's.
	ByForwarded ClientBy = "forwarded"
)

// ClientLimits bound what one client may use. Zero is no limit.
type ClientLimits struct {
	By ClientBy // ByCredentials when empty
	// MaxConcurrency is how many requests of a client run at once; more wait.
	MaxConcurrency int
	// What a client may use in a minute, on average over some minutes: a client that has
	// used up what it had saved is refused until it has some again, for a minute at most.
	MaxSamples       int64         // samples read of any tier
	MaxSeries        int64         // series selected
	MaxTime          time.Duration // of requests, added up
	MaxResponseBytes int64         // of answers, before they are compressed
}

// saved is how many minutes' worth a client can save up.
const saved = 2

// owed is how many minutes' worth a client can owe at most: one request that used very
// much does not keep it waiting for longer.
const owed = 1

// maxClients is how many clients are remembered; those who did nothing for long are
// forgotten first.
const maxClients = 10_000

// The things that a client has a budget of.
const (
	useSamples = iota
	useSeries
	useTime
	useBytes
	uses
)

// usage is what requests used, by thing; time is in seconds.
type usage [uses]float64

// useNames name them, and useFlags the flags that bound them.
var (
	useNames = [uses]string{"samples read", "series selected", "seconds of requests", "bytes of answers"}
	useFlags = [uses]string{"--query.client-max-samples", "--query.client-max-series", "--query.client-max-time", "--query.client-max-response-bytes"}
)

// perMinute are the limits by thing.
func (l ClientLimits) perMinute() usage {
	return usage{float64(l.MaxSamples), float64(l.MaxSeries), l.MaxTime.Seconds(), float64(l.MaxResponseBytes)}
}

// clients keeps account of who asks. It is safe for concurrent use.
type clients struct {
	limits  ClientLimits
	rate    usage
	now     func() time.Time
	refused *prometheus.CounterVec

	mu   sync.Mutex
	list map[string]*client
}

// client is one of them. Its fields are guarded by clients.mu.
type client struct {
	slots chan struct{}
	level usage     // what is left; below zero it owes
	at    time.Time // when level was right
	seen  time.Time // when it last asked
	under int       // requests under way or waiting
}

func newClients(l ClientLimits, now func() time.Time, reg prometheus.Registerer) *clients {
	c := &clients{limits: l, rate: l.perMinute(), now: now, list: map[string]*client{}}
	c.refused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ticktier_adapter_query_clients_refused_total", Help: "Requests refused because their client had used up what it may use, by what.",
	}, []string{"limit"})
	if reg != nil {
		reg.MustRegister(c.refused)
	}
	return c
}

// name is whom a request is from.
func (c *clients) name(r *http.Request) string {
	if c.limits.By != ByAddress {
		if user, _, ok := r.BasicAuth(); ok && user != "" {
			return "user " + user
		}
		if auth := r.Header.Get("Authorization"); auth != "" {
			sum := sha256.Sum256([]byte(auth))
			return "token " + hex.EncodeToString(sum[:4])
		}
	}
	if c.limits.By == ByForwarded {
		if list := r.Header.Values("X-Forwarded-For"); len(list) > 0 {
			all := strings.Split(list[len(list)-1], ",")
			if last := strings.TrimSpace(all[len(all)-1]); last != "" {
				return last
			}
		}
	}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

// tooMuch says that a client has used up what it may use.
type tooMuch struct {
	msg  string
	wait time.Duration
}

func (e *tooMuch) Error() string { return e.msg }

// enter waits for a place among the client's requests. Call leave when the request is
// answered. The error is a *tooMuch, or that of ctx.
func (c *clients) enter(ctx context.Context, name string) (*client, error) {
	c.mu.Lock()
	cl := c.get(name)
	if err := c.owes(name, cl); err != nil {
		c.mu.Unlock()
		return nil, err
	}
	cl.under++
	c.mu.Unlock()
	if cl.slots == nil {
		return cl, nil
	}
	select {
	case cl.slots <- struct{}{}:
		return cl, nil
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		cl.under--
		return nil, fmt.Errorf("wait for the client's other requests: %w", ctx.Err())
	}
}

// leave charges a client for a request and gives its place to the next.
func (c *clients) leave(cl *client, used usage) {
	if cl.slots != nil {
		<-cl.slots
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cl.under--
	c.refill(cl)
	for i, limit := range c.rate {
		if limit > 0 {
			cl.level[i] = max(cl.level[i]-used[i], -owed*limit)
		}
	}
}

// get finds or makes a client. c.mu is held.
func (c *clients) get(name string) *client {
	if cl, ok := c.list[name]; ok {
		c.refill(cl)
		cl.seen = c.now()
		return cl
	}
	if len(c.list) >= maxClients {
		c.forget()
	}
	cl := &client{at: c.now(), seen: c.now()}
	if n := c.limits.MaxConcurrency; n > 0 {
		cl.slots = make(chan struct{}, n)
	}
	for i, limit := range c.rate {
		cl.level[i] = saved * limit
	}
	c.list[name] = cl
	return cl
}

// refill gives a client what it saved since it was looked at. c.mu is held.
func (c *clients) refill(cl *client) {
	now := c.now()
	minutes := max(now.Sub(cl.at).Minutes(), 0)
	cl.at = now
	for i, limit := range c.rate {
		cl.level[i] = min(cl.level[i]+limit*minutes, saved*limit)
	}
}

// forget drops the clients that owe nothing and ask for nothing, or else the one that
// was seen longest ago and asks for nothing. c.mu is held.
func (c *clients) forget() {
	var oldest string
	for name, cl := range c.list {
		if cl.under > 0 {
			continue
		}
		if c.refill(cl); cl.level == c.full() {
			delete(c.list, name)
			continue
		}
		if oldest == "" || cl.seen.Before(c.list[oldest].seen) {
			oldest = name
		}
	}
	if len(c.list) >= maxClients {
		delete(c.list, oldest)
	}
}

func (c *clients) full() (u usage) {
	for i, limit := range c.rate {
		u[i] = saved * limit
	}
	return u
}

// owes says what a client has used up, if anything. c.mu is held.
func (c *clients) owes(name string, cl *client) error {
	for i, limit := range c.rate {
		if limit <= 0 || cl.level[i] > 0 {
			continue
		}
		c.refused.WithLabelValues(strings.TrimPrefix(useFlags[i], "--query.client-max-")).Inc()
		wait := time.Duration(math.Ceil((1-cl.level[i])/limit*60)) * time.Second
		return &tooMuch{wait: max(wait, time.Second), msg: fmt.Sprintf(
			"the client %q has used up its %s (%g a minute): ask for less or less often, wait %s, or raise %s", name, useNames[i], limit, max(wait, time.Second), useFlags[i])}
	}
	return nil
}

// refusal is the status for a request whose client was refused, or waited too long, and
// after which time to ask again.
func refusal(err error) (code int, kind string, wait time.Duration) {
	var much *tooMuch
	switch {
	case errors.As(err, &much):
		return http.StatusTooManyRequests, "unavailable", much.wait
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable, "timeout", 0
	}
	return statusClientGone, "canceled", 0
}

// statusClientGone is what Prometheus answers a client that is gone.
const statusClientGone = 499
