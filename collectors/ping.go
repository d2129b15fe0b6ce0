package collectors

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

var (
	pingRequests = Metric{Name: "node_ping_requests_total", Type: Counter,
		Help: "Requests sent to the target."}
	pingReplies = Metric{Name: "node_ping_replies_total", Type: Counter,
		Help: "Requests that the target answered in time."}
	pingLost = Metric{Name: "node_ping_lost_total", Type: Counter,
		Help: "Requests that could not be sent, or that the target did not answer within three seconds."}
	pingTime = Metric{Name: "node_ping_round_trip_seconds_total", Type: Counter, Unit: "seconds", Div: 1e9,
		Help: "Time that all answers took."}
	pingLast = Metric{Name: "node_ping_last_round_trip_seconds", Type: Gauge, Unit: "seconds", Div: 1e9,
		Help: "Time that the newest answer took; absent while answers are lost."}
	pingInfo = Metric{Name: "node_ping_info", Type: Gauge,
		Help: "The address that the target has, and how it is asked."}
)

const (
	// MaxPingTargets bounds the targets.
	MaxPingTargets = 64
	// pingEvery is the shortest time between two requests to a target, tcpEvery
	// between two connections: they cost the target more.
	pingEvery = 100 * time.Millisecond
	tcpEvery  = time.Second
	// pingPatience is how long an answer may take: a bloated queue takes seconds.
	pingPatience = 3 * time.Second
	// pingWindow is how many requests may be without answer, a power of two larger
	// than pingPatience ÷ pingEvery.
	pingWindow = 64
	// pingPort is where a target is connected to if ICMP is refused to us and it has
	// no port: that it refuses is an answer too.
	pingPort = 443
	// maxPingInfos bounds the addresses that one target is seen at.
	maxPingInfos = 16
)

// pingClock is monotonic time and the wall clock, in ns.
type pingClock func() (mono, wall int64)

func readPingClock() (mono, wall int64) {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	mono = ts.Nano()
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &ts)
	return mono, ts.Nano()
}

// ping asks targets how long an answer takes. A read sends the next requests and takes
// the answers that have come since the last: it waits for none. The kernel notes when
// an answer came, so that it does not matter when it is taken.
type ping struct {
	clock   pingClock
	icmp    [2]*echo // IPv4, IPv6; nil where it is refused to us
	targets []*pingTarget
	token   [8]byte // tells our requests from those of others

	stop    context.CancelFunc
	resolve sync.WaitGroup
}

func newPing(env Env) (Source, error) {
	log := env.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &ping{clock: readPingClock, stop: func() {}}
	_, _ = rand.Read(s.token[:])
	names := false
	for _, name := range env.PingTargets[:min(len(env.PingTargets), MaxPingTargets)] {
		host, port, err := splitTarget(name)
		if err != nil {
			return nil, err
		}
		t := &pingTarget{name: name, host: host, port: port, index: uint16(len(s.targets)), last: -1, connect: tcpConnect{fd: -1}}
		if a, err := netip.ParseAddr(host); err == nil {
			t.address.Store(&a)
		} else {
			names = true
		}
		s.targets = append(s.targets, t)
	}
	if len(s.targets) == 0 {
		return s, nil
	}
	refused := ""
	for i, family := range []int{unix.AF_INET, unix.AF_INET6} {
		e, err := openEcho(family)
		if err == nil {
			s.icmp[i] = e
		} else if reason := err.Error(); reason != refused { // one word for both
			refused = reason
			log.Info("ICMP is refused, targets without a port are asked by TCP", "ip", [...]int{4, 6}[i], "port", pingPort, "err", err)
		}
	}
	if names {
		ctx, cancel := context.WithCancel(context.Background())
		s.stop = cancel
		s.resolve.Add(1)
		go func() {
			defer s.resolve.Done()
			s.lookUp(ctx, log, net.DefaultResolver.LookupNetIP)
		}()
	}
	return s, nil
}

func (s *ping) Read(out *Out) error {
	for _, e := range s.icmp {
		if e != nil {
			s.answers(out, e)
		}
	}
	mono, _ := s.clock()
	for _, t := range s.targets {
		t.expire(mono)
		if a := t.address.Load(); a != nil {
			t.move(*a)
			s.request(t, mono)
		}
		method, _ := s.method(t)
		t.set(out, method)
	}
	return nil
}

// method is how a target is asked, and the socket for it.
func (s *ping) method(t *pingTarget) (method string, e *echo) {
	if t.port == 0 {
		e = s.icmp[0]
		if t.at.Is6() {
			e = s.icmp[1]
		}
	}
	if e == nil {
		return "tcp", nil
	}
	return "icmp", e
}

// request sends the next request, if it is time.
func (s *ping) request(t *pingTarget, mono int64) {
	_, e := s.method(t)
	if e == nil {
		t.connected(mono)
	}
	if mono < t.next || e == nil && t.connect.fd >= 0 {
		return
	}
	every := pingEvery
	if e == nil {
		every = tcpEvery
	}
	// It keeps its place, within half of a period: reads come a little early or late.
	t.next = max(t.next, mono-int64(every)/2) + int64(every)
	if t.next > mono+int64(every) {
		t.next = mono + int64(every)
	}
	t.requests++
	if e == nil {
		t.begin(mono)
		return
	}
	t.seq++
	r := &t.window[t.seq%pingWindow]
	if r.open {
		t.lose()
	}
	*r = pingRequest{seq: t.seq, open: true}
	r.mono, r.wall = s.clock() // now, not when the read began
	if e.send(t, s.token) != nil {
		r.open = false
		t.lose()
	}
}

// answers takes the answers that have come.
func (s *ping) answers(out *Out, e *echo) {
	for range MaxPingTargets * pingWindow {
		b, wall, ok := e.receive()
		if !ok {
			return
		}
		out.Stats.Bytes.Add(uint64(len(b)))
		target, seq, ok := parseEcho(b, e.replyType(), s.token)
		if !ok || target >= len(s.targets) {
			continue
		}
		t := s.targets[target]
		r := &t.window[seq%pingWindow]
		if !r.open || r.seq != seq {
			continue // too late, or a second answer
		}
		r.open = false
		t.answer(s.took(r, wall))
	}
}

// took is how long an answer took that came at a wall time, 0 for one that is not
// known. A clock that was stepped meanwhile tells nothing.
func (s *ping) took(r *pingRequest, wall int64) int64 {
	mono, now := s.clock()
	step := (now - mono) - (r.wall - r.mono)
	d := wall - r.wall
	if wall == 0 || step > int64(time.Millisecond) || step < -int64(time.Millisecond) || d < 0 || d > now-r.wall {
		return mono - r.mono
	}
	return d
}

func (s *ping) Close() error {
	s.stop()
	s.resolve.Wait()
	for _, e := range s.icmp {
		e.close()
	}
	for _, t := range s.targets {
		t.connect.close()
	}
	return nil
}
