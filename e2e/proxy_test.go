package e2e

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// proxy passes TCP connections on to a target until it is cut, and again once it
// is mended. While it is cut, connections are refused.
type proxy struct {
	addr, target string

	wg sync.WaitGroup

	mu    sync.Mutex
	ln    net.Listener
	conns map[net.Conn]struct{}
}

func startProxy(t testing.TB, target string) *proxy {
	t.Helper()
	p := &proxy{target: target, conns: make(map[net.Conn]struct{})}
	if err := p.mend("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	p.addr = p.ln.Addr().String()
	t.Cleanup(func() {
		p.cut()
		p.wg.Wait()
	})
	return p
}

// mend listens at addr, which is p.addr after the first time.
func (p *proxy) mend(addr string) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.ln = ln
	p.mu.Unlock()
	p.wg.Go(func() { p.accept(ln) })
	return nil
}

func (p *proxy) accept(ln net.Listener) {
	for {
		in, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		} else if err != nil {
			continue
		}
		out, err := net.Dial("tcp", p.target)
		if err != nil {
			in.Close()
			continue
		}
		p.mu.Lock()
		if p.ln != ln { // cut meanwhile
			p.mu.Unlock()
			in.Close()
			out.Close()
			return
		}
		p.conns[in], p.conns[out] = struct{}{}, struct{}{}
		p.mu.Unlock()
		p.wg.Go(func() { p.copy(in, out) })
		p.wg.Go(func() { p.copy(out, in) })
	}
}

func (p *proxy) copy(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	to.Close()
	from.Close()
	p.mu.Lock()
	delete(p.conns, to)
	delete(p.conns, from)
	p.mu.Unlock()
}

// cut breaks every connection at once and takes no new ones.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ln == nil {
		return
	}
	p.ln.Close()
	p.ln = nil
	for c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, as when a machine is gone
		}
		c.Close()
	}
}
