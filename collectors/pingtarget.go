package collectors

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Names are looked up again now and then; one that is not found, sooner.
const (
	resolveEvery = 5 * time.Minute
	resolveRetry = 10 * time.Second
	resolveFor   = 5 * time.Second
)

// CheckPingTarget tells what is wrong with a target: HOST, or HOST:PORT.
func CheckPingTarget(s string) error {
	_, _, err := splitTarget(s)
	return err
}

func splitTarget(s string) (host string, port uint16, err error) {
	if _, err := netip.ParseAddr(s); err == nil {
		return s, 0, nil
	}
	host = s
	if strings.Contains(s, ":") {
		h, p, err := net.SplitHostPort(s)
		if err != nil {
			return "", 0, fmt.Errorf("%q is neither HOST nor HOST:PORT", s)
		}
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return "", 0, fmt.Errorf("%q: %q is no port", s, p)
		}
		host, port = h, uint16(n)
	}
	if host == "" || strings.ContainsAny(host, " /@[]") {
		return "", 0, fmt.Errorf("%q is neither HOST nor HOST:PORT", s)
	}
	return host, port, nil
}

// lookUp finds the addresses of the targets that have names, again and again. One
// that cannot be found keeps what it has.
func (s *ping) lookUp(ctx context.Context, log *slog.Logger, lookup func(context.Context, string, string) ([]netip.Addr, error)) {
	failing := map[string]bool{}
	for ctx.Err() == nil {
		wait := resolveEvery
		for _, t := range s.targets {
			if _, err := netip.ParseAddr(t.host); err == nil {
				continue
			}
			ctx, cancel := context.WithTimeout(ctx, resolveFor)
			addrs, err := lookup(ctx, "ip", t.host)
			cancel()
			if err == nil && len(addrs) == 0 {
				err = fmt.Errorf("look up %s: no address", t.host)
			}
			if (err != nil) != failing[t.host] {
				failing[t.host] = err != nil
				if err != nil {
					log.Warn("ping target is not found, it is looked up again", "target", t.name, "err", err)
				} else {
					log.Info("ping target is found", "target", t.name)
				}
			}
			if err != nil {
				wait = resolveRetry
				continue
			}
			best := addrs[0].Unmap()
			for _, a := range addrs {
				if a = a.Unmap(); a.Is4() {
					best = a
					break
				}
			}
			t.address.Store(&best)
		}
		again := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-again.C:
		}
		again.Stop()
	}
}

// move notes that a target has another address.
func (t *pingTarget) move(a netip.Addr) {
	if a == t.at {
		return
	}
	t.at = a
	port := int(t.port)
	if port == 0 {
		port = pingPort
	}
	if a.Is4() {
		t.to, t.toPort = &unix.SockaddrInet4{Addr: a.As4()}, &unix.SockaddrInet4{Addr: a.As4(), Port: port}
		return
	}
	var zone uint32
	if i, err := net.InterfaceByName(a.Zone()); err == nil {
		zone = uint32(i.Index)
	}
	t.to = &unix.SockaddrInet6{Addr: a.As16(), ZoneId: zone}
	t.toPort = &unix.SockaddrInet6{Addr: a.As16(), ZoneId: zone, Port: port}
}
