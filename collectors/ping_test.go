package collectors

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

func TestCheckPingTarget(t *testing.T) {
	for s, good := range map[string]bool{
		"192.0.2.1": true, "192.0.2.1:80": true, "2001:db8::1": true, "[2001:db8::1]:80": true, "fe80::1%eth0": true, "gw.example": true,
		"gw.example:443": true, "gw.example:": false, "gw.example:http": false, ":80": false, "": false, "a b": false, "http://a": false,
		"a:0": false, "a:65536": false, "2001:db8::zz": false,
	} {
		if err := CheckPingTarget(s); (err == nil) != good {
			t.Errorf("%q: got %v, want good: %v", s, err, good)
		}
	}
}

// openPing opens the source for targets with a clock that moves when the test says.
func openPing(t *testing.T, targets ...string) (*ping, *probe) {
	t.Helper()
	src, err := newPing(Env{PingTargets: targets})
	if err != nil {
		t.Fatal(err)
	}
	return src.(*ping), newProbe(t, src)
}

// pinged reads, at intervals of a period, until a series has a value or the patience
// of the test is over.
func pinged(t *testing.T, p *probe, series string, atLeast float64) map[string]float64 {
	t.Helper()
	for range 100 {
		if got := p.read(); got[series] >= atLeast {
			return got
		}
		time.Sleep(20 * time.Millisecond) // the kernel's clock, and its loopback
	}
	t.Fatalf("%s is %v", series, p.present()[series])
	return nil
}

// The loopback answers, within what the kernel measured.
func TestPingLoopback(t *testing.T) {
	for target, family := range map[string]int{"127.0.0.1": unix.AF_INET, "::1": unix.AF_INET6} {
		e, err := openEcho(family)
		if err != nil {
			t.Logf("%s: %v", target, err)
			continue
		}
		e.close()
		_, p := openPing(t, target)
		labels := `{target="` + target + `"}`
		got := pinged(t, p, "node_ping_replies_total"+labels, 3)
		if v, ok := got["node_ping_last_round_trip_seconds"+labels]; !ok || v <= 0 || v > pingPatience.Seconds() {
			t.Errorf("%s: the last answer took %v, %v", target, v, ok)
		}
		if got["node_ping_lost_total"+labels] != 0 || got["node_ping_requests_total"+labels] > 10 {
			t.Errorf("got %v", got)
		}
		if got[`node_ping_info{address="`+target+`",method="icmp",target="`+target+`"}`] != 1 {
			t.Errorf("got %v", got)
		}
		if n := testing.AllocsPerRun(20, func() { _ = p.src.Read(p.out) }); n != 0 {
			t.Errorf("%s: %v allocations a read", target, n)
		}
		p.out.ClearAll() // as after a failure
		if p.read()[`node_ping_info{address="`+target+`",method="icmp",target="`+target+`"}`] != 1 {
			t.Errorf("%s: the information does not come back", target)
		}
	}
}

// A port that accepts and one that refuses both answer; one behind which nobody
// answers loses.
func TestPingTCP(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	open := ln.Addr().String()
	_, p := openPing(t, open)
	got := pinged(t, p, `node_ping_replies_total{target="`+open+`"}`, 1)
	if v := got[`node_ping_last_round_trip_seconds{target="`+open+`"}`]; v <= 0 || v > 0.1 {
		t.Errorf("the answer took %v", v)
	}
	if got[`node_ping_info{address="127.0.0.1",method="tcp",target="`+open+`"}`] != 1 {
		t.Errorf("got %v", got)
	}
	if n := testing.AllocsPerRun(20, func() { _ = p.src.Read(p.out) }); n != 0 {
		t.Errorf("%v allocations a read", n)
	}
	_ = ln.Close()
	_, p = openPing(t, open)
	got = pinged(t, p, `node_ping_replies_total{target="`+open+`"}`, 1)
	if _, ok := got[`node_ping_last_round_trip_seconds{target="`+open+`"}`]; ok {
		t.Error("a refusal has a time that nobody measured")
	}
}

// fakeTime drives a source's clock; the socket is nobody's.
func fakeTime(s *ping) (now *int64) {
	now = new(int64)
	*now = int64(time.Hour)
	s.clock = func() (int64, int64) { return *now, *now + int64(1e18) }
	return now
}

// Requests keep to ten a second however often the source is read, and what nobody
// answers is lost after three seconds.
func TestPingLost(t *testing.T) {
	s, p := openPing(t, "192.0.2.1")
	for _, e := range s.icmp {
		e.close()
	}
	// Both ends are ours: what is sent stays in the socket.
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[1])
	s.icmp = [2]*echo{{fd: fds[0], family: unix.AF_INET}, nil}
	now := fakeTime(s)
	a := s.targets[0].address.Load()
	s.targets[0].at, s.targets[0].to = *a, nil
	labels := `{target="192.0.2.1"}`
	var wire [1500]byte
	sent := 0
	for range 1000 { // ten seconds, 100 reads a second
		p.read()
		*now += int64(10 * time.Millisecond)
		if n, err := unix.Read(fds[1], wire[:]); err == nil && n == echoBytes {
			sent++
		}
	}
	got := p.present()
	if sent < 95 || sent > 105 || got["node_ping_requests_total"+labels] != float64(sent) {
		t.Errorf("%d requests in ten seconds, counted %v", sent, got["node_ping_requests_total"+labels])
	}
	if lost := got["node_ping_lost_total"+labels]; lost < 65 || lost > 75 {
		t.Errorf("%v lost of those of seven seconds", lost)
	}

	// An answer, a second one to the same request, and one that comes too late.
	p.read()
	*now += int64(pingEvery)
	p.read()
	n, err := unix.Read(fds[1], wire[:])
	for m := n; err == nil && m > 0; {
		n = m
		m, err = unix.Read(fds[1], wire[:])
	}
	before := p.present()
	answer := append([]byte{}, wire[:n]...)
	answer[0] = echoReply4
	*now += int64(40 * time.Millisecond)
	for range 2 {
		_, _ = unix.Write(fds[1], answer)
	}
	got = p.read()
	if got["node_ping_replies_total"+labels] != before["node_ping_replies_total"+labels]+1 || got["node_ping_last_round_trip_seconds"+labels] != 0.04 {
		t.Errorf("after an answer in 40 ms: %v", got)
	}
}

// A name is looked up until it is found, and keeps its address when it is not found
// any more.
func TestPingLookUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &ping{targets: []*pingTarget{{name: "gw", host: "gw"}, {name: "192.0.2.7", host: "192.0.2.7"}}}
		answers := [][]netip.Addr{nil, {netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("192.0.2.1")}, nil}
		var at []time.Duration
		begin := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		var log strings.Builder
		s.lookUp(ctx, slog.New(slog.NewTextHandler(&log, nil)), func(_ context.Context, _, host string) ([]netip.Addr, error) {
			at = append(at, time.Since(begin))
			if host != "gw" {
				t.Errorf("%s was looked up", host)
			}
			if len(at) == len(answers) {
				cancel()
			}
			if got := answers[len(at)-1]; got != nil {
				return got, nil
			}
			return nil, errors.New("no such host")
		})
		if len(at) != 3 || at[1] != resolveRetry || at[2] != resolveRetry+resolveEvery {
			t.Errorf("looked up at %v", at)
		}
		if a := s.targets[0].address.Load(); a == nil || a.String() != "192.0.2.1" {
			t.Errorf("the address is %v", a)
		}
		if n := strings.Count(log.String(), "\n"); n != 3 {
			t.Errorf("%d lines in the log:\n%s", n, &log)
		}
	})
}

// Without targets there is nothing to read, which is no failure.
func TestPingNothing(t *testing.T) {
	_, p := openPing(t)
	if got := p.read(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func FuzzEcho(f *testing.F) {
	token := [8]byte{1, 2, 3, 4, 5, 6, 7, 8}
	good := append([]byte{0, 0, 0, 0, 0, 0, 0, 9}, append(token[:], 0, 3)...)
	f.Add(good, true)
	f.Add(append([]byte{0x45, 19: 0}, good...), false)
	f.Fuzz(func(t *testing.T, b []byte, bare bool) {
		if !bare {
			b = ipPayload(b)
		}
		target, seq, ok := parseEcho(b, echoReply4, token)
		if ok && (len(b) < 18 || target != int(binary.BigEndian.Uint16(b[16:])) || seq != binary.BigEndian.Uint16(b[6:])) {
			t.Errorf("%x is target %d, request %d", b, target, seq)
		}
		if sum := checksum(b); len(b)%2 == 0 && len(b) > 0 {
			if again := checksum(binary.BigEndian.AppendUint16(append([]byte{}, b...), sum)); again != 0 {
				t.Errorf("checksum of %x with its checksum is %x", b, again)
			}
		}
	})
}
