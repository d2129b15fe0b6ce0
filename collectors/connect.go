package collectors

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tcpConnect is a connection to a target that is being made, only to see how long
// that takes.
type tcpConnect struct {
	fd    int // −1 is none
	since int64
	poll  [1]unix.PollFd
	info  unix.TCPInfo
	told  netip.Addr // the address that the info series tells
}

// begin starts a connection.
func (t *pingTarget) begin(mono int64) {
	family := unix.AF_INET
	if t.at.Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.lose()
		return
	}
	// Reset when it is closed, so that neither side waits for late packets.
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	t.connect.fd, t.connect.since = fd, mono
	switch err := unix.Connect(fd, t.toPort); err {
	case unix.EINPROGRESS, nil:
		return // connected looks
	case unix.ECONNREFUSED:
		t.answer(-1)
	default:
		t.lose()
	}
	t.connect.close()
}

// connected looks whether the connection is made. The time is what the kernel took
// between SYN and its answer; of a refusal it does not say.
func (t *pingTarget) connected(mono int64) {
	c := &t.connect
	if c.fd < 0 {
		return
	}
	c.poll[0] = unix.PollFd{Fd: int32(c.fd), Events: unix.POLLOUT}
	n, err := unix.Poll(c.poll[:], 0)
	if err != nil || n == 0 {
		if mono-c.since > int64(pingPatience) {
			c.close()
			t.lose()
		}
		return
	}
	errno, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	switch {
	case err == nil && errno == 0:
		t.answer(c.roundTrip())
	case err == nil && unix.Errno(errno) == unix.ECONNREFUSED:
		t.answer(-1)
	default:
		t.lose()
	}
	c.close()
}

// roundTrip is the kernel's measurement in ns, below 0 where it has none.
func (c *tcpConnect) roundTrip() int64 {
	size := uint32(unsafe.Sizeof(c.info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(c.fd), unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&c.info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 || c.info.Rtt == 0 {
		return -1
	}
	return int64(c.info.Rtt) * 1000
}

func (c *tcpConnect) close() {
	if c.fd >= 0 {
		unix.Close(c.fd)
		c.fd = -1
	}
}
