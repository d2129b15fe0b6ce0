package collectors

import (
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	echoHead  = 8
	echoBytes = echoHead + 8 + 2 + 46 // head, token, target, and up to the 64 bytes of every ping

	echoRequest4, echoReply4 = 8, 0
	echoRequest6, echoReply6 = 128, 129
)

// echo is a socket for ICMP echo requests and replies. It sends and receives without
// waiting, and without allocation.
type echo struct {
	fd     int
	family int
	raw    bool // as opposed to the kernel's own sockets for ping, which need no privilege

	out     [echoBytes]byte
	in      [1500]byte
	control [64]byte
	iov     unix.Iovec
	msg     unix.Msghdr
}

// openEcho opens a socket of the kernel's for ping, or a raw one: which of them a
// process may have is up to net.ipv4.ping_group_range and its capabilities.
func openEcho(family int) (*echo, error) {
	protocol := unix.IPPROTO_ICMP
	if family == unix.AF_INET6 {
		protocol = unix.IPPROTO_ICMPV6
	}
	e := &echo{family: family}
	var err error
	if e.fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol); err != nil {
		if e.fd, err = unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol); err != nil {
			return nil, fmt.Errorf("open a socket for ICMP: %w", err)
		}
		e.raw = true
		e.filter()
	}
	// The kernel notes when each packet came.
	_ = unix.SetsockoptInt(e.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	return e, nil
}

// filter has a raw socket see replies only, not what others of the machine get.
func (e *echo) filter() {
	if e.family == unix.AF_INET6 {
		var f unix.ICMPv6Filter // a bit that is set blocks
		for i := range f.Data {
			f.Data[i] = ^uint32(0)
		}
		f.Data[echoReply6>>5] &^= 1 << (echoReply6 & 31)
		_ = unix.SetsockoptICMPv6Filter(e.fd, unix.IPPROTO_ICMPV6, unix.ICMPV6_FILTER, &f)
		return
	}
	const icmpFilter = 1 // include/uapi/linux/icmp.h
	blocked := ^uint32(1 << echoReply4)
	_ = unix.SetsockoptInt(e.fd, unix.SOL_RAW, icmpFilter, int(int32(blocked)))
}

func (e *echo) replyType() byte {
	if e.family == unix.AF_INET6 {
		return echoReply6
	}
	return echoReply4
}

// send sends the request that the target's seq has the number of.
func (e *echo) send(t *pingTarget, token [8]byte) error {
	b := e.out[:]
	b[0], b[1], b[2], b[3] = echoRequest4, 0, 0, 0
	if e.family == unix.AF_INET6 {
		b[0] = echoRequest6
	}
	binary.BigEndian.PutUint16(b[4:], uint16(os.Getpid())) // the kernel's own sockets put theirs
	binary.BigEndian.PutUint16(b[6:], t.seq)
	copy(b[echoHead:], token[:])
	binary.BigEndian.PutUint16(b[echoHead+8:], t.index)
	if e.family == unix.AF_INET {
		binary.BigEndian.PutUint16(b[2:], checksum(b)) // of ICMPv6 the kernel makes it
	}
	return unix.Sendto(e.fd, b, 0, t.to)
}

// receive takes the next packet, valid until the next call, and the wall time in ns
// at which it came, 0 where the kernel does not say. ok is false when there is none.
func (e *echo) receive() (b []byte, wall int64, ok bool) {
	e.iov.Base = &e.in[0]
	e.iov.SetLen(len(e.in))
	e.msg.Iov = &e.iov
	e.msg.SetIovlen(1)
	e.msg.Control = &e.control[0]
	e.msg.SetControllen(len(e.control))
	n, _, errno := unix.Syscall(unix.SYS_RECVMSG, uintptr(e.fd), uintptr(unsafe.Pointer(&e.msg)), 0)
	if errno != 0 {
		// An error of an earlier request, such as that a host is unreachable, is told
		// in place of a packet; there may be packets behind it.
		return nil, 0, errno != unix.EAGAIN && errno != unix.EBADF && errno != unix.ENOTSOCK && errno != unix.EINVAL
	}
	b = e.in[:n]
	if e.raw && e.family == unix.AF_INET {
		b = ipPayload(b)
	}
	return b, e.stamp(), true
}

// stamp is the time in the control message.
func (e *echo) stamp() int64 {
	if int(e.msg.Controllen) < unix.CmsgSpace(int(unsafe.Sizeof(unix.Timespec{}))) {
		return 0
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&e.control[0]))
	if h.Level != unix.SOL_SOCKET || h.Type != unix.SO_TIMESTAMPNS {
		return 0
	}
	return (*unix.Timespec)(unsafe.Pointer(&e.control[unix.CmsgLen(0)])).Nano()
}

func (e *echo) close() {
	if e != nil && e.fd >= 0 {
		unix.Close(e.fd)
		e.fd = -1
	}
}

// ipPayload is what is behind an IPv4 header.
func ipPayload(b []byte) []byte {
	if len(b) < 20 {
		return nil
	}
	return b[min(int(b[0]&15)*4, len(b)):]
}

// parseEcho reads a reply of ours: whose it is, and to which request.
func parseEcho(b []byte, reply byte, token [8]byte) (target int, seq uint16, ok bool) {
	if len(b) < echoHead+len(token)+2 || b[0] != reply || b[1] != 0 || [8]byte(b[echoHead:]) != token {
		return 0, 0, false
	}
	return int(binary.BigEndian.Uint16(b[echoHead+8:])), binary.BigEndian.Uint16(b[6:]), true
}

// checksum is the Internet's (RFC 1071).
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) > 0 {
		sum += uint32(b[0]) << 8
	}
	sum = sum>>16 + sum&0xffff
	return ^uint16(sum>>16 + sum)
}
