package collectors

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// netlinkBytes is the most that the kernel puts into one answer of a dump
	// (NLMSG_GOODSIZE and what it grows to in net/netlink/af_netlink.c).
	netlinkBytes = 32 << 10
	// netlinkAnswers bounds one dump: 256 times the most of an answer is 8 MiB.
	netlinkAnswers = 4096
)

// netlink is a socket over which the kernel is asked for a table. Its room is taken
// once; a dump allocates nothing.
type netlink struct {
	proto int
	fd    int
	seq   uint32
	out   []byte
	in    [netlinkBytes]byte
}

// openNetlink opens a socket of a protocol such as NETLINK_ROUTE.
func openNetlink(proto int) (*netlink, error) {
	n := &netlink{proto: proto, fd: -1}
	return n, n.open()
}

func (n *netlink) open() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, n.proto)
	if err != nil {
		return fmt.Errorf("open a netlink socket: %w", err)
	}
	// The kernel answers at once or not at all; a lost answer must not hold us.
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 2})
	n.fd = fd
	return nil
}

func (n *netlink) close() {
	if n != nil && n.fd >= 0 {
		unix.Close(n.fd)
		n.fd = -1
	}
}

// begin starts a request of a type; the caller appends what belongs behind the head to
// n.out, with put and attribute.
func (n *netlink) begin(typ, flags uint16) {
	n.seq++
	n.out = append(n.out[:0], make([]byte, unix.NLMSG_HDRLEN)...)
	binary.NativeEndian.PutUint16(n.out[4:], typ)
	binary.NativeEndian.PutUint16(n.out[6:], unix.NLM_F_REQUEST|flags)
	binary.NativeEndian.PutUint32(n.out[8:], n.seq)
}

// zeros appends so many bytes.
func (n *netlink) zeros(count int) {
	for range count {
		n.out = append(n.out, 0)
	}
}

// attribute appends one, padded.
func (n *netlink) attribute(typ uint16, value []byte) {
	n.out = binary.NativeEndian.AppendUint16(n.out, uint16(unix.NLA_HDRLEN+len(value)))
	n.out = binary.NativeEndian.AppendUint16(n.out, typ)
	n.out = append(n.out, value...)
	n.zeros(-len(value) & 3)
}

// ask sends the request and calls each for what is behind the head of every message
// of the answer, which is valid during the call. The answer ends with the kernel's word
// that it does, or, where no dump was asked for, with its first message.
func (n *netlink) ask(out *Out, each func(typ uint16, body []byte)) error {
	if n.fd < 0 {
		if err := n.open(); err != nil {
			return err
		}
	}
	binary.NativeEndian.PutUint32(n.out, uint32(len(n.out)))
	dump := binary.NativeEndian.Uint16(n.out[6:])&unix.NLM_F_DUMP == unix.NLM_F_DUMP
	if err := n.send(); err != nil {
		n.close()
		return fmt.Errorf("ask the kernel by netlink: %w", err)
	}
	for range netlinkAnswers {
		m, err := n.receive()
		if err != nil {
			n.close() // what is still under way is of no use
			return fmt.Errorf("read the kernel's answer by netlink: %w", err)
		}
		out.Stats.Bytes.Add(uint64(m))
		done, err := messages(n.in[:m], n.seq, each)
		if err != nil {
			return err
		}
		if done || !dump {
			return nil
		}
	}
	n.close()
	return fmt.Errorf("read the kernel's answer by netlink: more than %d parts", netlinkAnswers)
}

// send and receive are the system calls, without the addresses that x/sys would
// allocate.
func (n *netlink) send() error {
	for {
		_, err := unix.Write(n.fd, n.out)
		if err != unix.EINTR {
			return err
		}
	}
}

func (n *netlink) receive() (int, error) {
	for {
		m, _, errno := unix.Syscall6(unix.SYS_RECVFROM, uintptr(n.fd), uintptr(unsafe.Pointer(&n.in[0])), uintptr(len(n.in)),
			unix.MSG_TRUNC, 0, 0)
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0:
			return 0, errno
		case int(m) > len(n.in):
			return 0, unix.EMSGSIZE
		}
		return int(m), nil
	}
}

// messages goes through one answer. done tells that the last message was there; an
// error is the kernel's own.
func messages(b []byte, seq uint32, each func(typ uint16, body []byte)) (done bool, err error) {
	for len(b) >= unix.NLMSG_HDRLEN {
		size := int(binary.NativeEndian.Uint32(b))
		typ := binary.NativeEndian.Uint16(b[4:])
		if size < unix.NLMSG_HDRLEN || size > len(b) {
			return false, fmt.Errorf("a netlink message of %d bytes in %d", size, len(b))
		}
		body := b[unix.NLMSG_HDRLEN:size]
		ours := binary.NativeEndian.Uint32(b[8:]) == seq
		b = b[min((size+3)&^3, len(b)):]
		switch {
		case !ours: // of a request that was given up
		case typ == unix.NLMSG_DONE:
			return true, nil
		case typ == unix.NLMSG_ERROR:
			if len(body) < 4 {
				return false, unix.EIO
			}
			if code := int32(binary.NativeEndian.Uint32(body)); code != 0 {
				return false, unix.Errno(-code)
			}
			return true, nil
		case typ >= unix.NLMSG_MIN_TYPE:
			each(typ, body)
		}
	}
	return false, nil
}

// attributes takes the first attribute off b: its type without flags, its value, and
// what follows. ok is false at the end, and where b is cut short.
func attributes(b []byte) (typ uint16, value, rest []byte, ok bool) {
	if len(b) < unix.NLA_HDRLEN {
		return 0, nil, nil, false
	}
	size := int(binary.NativeEndian.Uint16(b))
	typ = binary.NativeEndian.Uint16(b[2:]) & ^uint16(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER)
	if size < unix.NLA_HDRLEN || size > len(b) {
		return 0, nil, nil, false
	}
	return typ, b[unix.NLA_HDRLEN:size], b[min((size+3)&^3, len(b)):], true
}

// attribute finds an attribute's value in b; nil if it is not there.
func attribute(b []byte, want uint16) []byte {
	for {
		typ, value, rest, ok := attributes(b)
		if !ok {
			return nil
		}
		if typ == want {
			return value
		}
		b = rest
	}
}

// num32 is the number at the start of a value, and whether there is one.
func num32(b []byte) (uint32, bool) {
	if len(b) < 4 {
		return 0, false
	}
	return binary.NativeEndian.Uint32(b), true
}

// linkNamer finds the names of interfaces by their numbers.
type linkNamer struct {
	fd  int
	req struct {
		name  [unix.IFNAMSIZ]byte
		index int32
		_     [20]byte
	}
}

func (l *linkNamer) open() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		// A machine without IPv4.
		if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			l.fd = -1
			return fmt.Errorf("open a socket: %w", err)
		}
	}
	l.fd = fd
	return nil
}

// name is an interface's, valid until the next call; nil if it is gone.
func (l *linkNamer) name(index int32) []byte {
	l.req.index = index
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), unix.SIOCGIFNAME, uintptr(unsafe.Pointer(&l.req)))
	if errno != 0 {
		return nil
	}
	return cString(l.req.name[:])
}

func (l *linkNamer) close() {
	if l.fd >= 0 {
		unix.Close(l.fd)
		l.fd = -1
	}
}
