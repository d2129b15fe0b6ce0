package collectors

import (
	"bytes"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

var (
	kmsgRecords = Metric{Name: "node_kmsg_records_total", Type: Counter,
		Help: "Records that the kernel logged, by their level, since the exporter started."}
	kmsgDevices = Metric{Name: "node_kmsg_network_records_total", Type: Counter,
		Help: "Records that the kernel logged and whose text names a network device, since the exporter started."}
	kmsgLost = Metric{Name: "node_kmsg_lost_records_total", Type: Counter,
		Help: "Records that the kernel overwrote before they were read."}
	kmsgLevels = [...]string{"emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"}
)

const (
	// kmsgBytes is more than a record with its properties can be
	// (CONSOLE_EXT_LOG_MAX in kernel/printk).
	kmsgBytes = 8 << 10
	// maxRecords bounds one read, so that a flood does not delay a tick for long; what
	// is left is read at the next.
	maxRecords = 500
)

// kmsg counts the records of the kernel's log, of which a read of /dev/kmsg gives
// one (devkmsg_read in kernel/printk/printk.c). It needs privilege. What was logged
// before is left out: it would be counted again at each start.
type kmsg struct {
	path    string
	fd      int
	faults  faults
	event   func(Event)
	levels  [len(kmsgLevels)]int // slots
	lost    int
	known   bool
	counts  [len(kmsgLevels)]uint64
	gone    uint64
	seq     uint64 // of the next record
	started bool

	net     dir
	devices *table[kmsgDevice]
	buf     [kmsgBytes]byte
}

// kmsgDevice is an interface that there is, or was.
type kmsgDevice struct {
	name string
	slot int32 // slot + 1
	n    uint64
	seq  uint64 // of the last record that named it + 1
}

func newKmsg(env Env) (Source, error) {
	s := &kmsg{path: filepath.Join(env.Rootfs, "dev/kmsg"), fd: -1, faults: newFaults(env, "kmsg"), event: env.Event,
		net: newDir(filepath.Join(env.Sysfs, "class/net")), devices: newTable[kmsgDevice](maxInterfaces)}
	return s, s.open()
}

func (s *kmsg) open() error {
	fd, err := unix.Open(s.path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: s.path, Err: err}
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR {
		if _, err := unix.Seek(fd, 0, unix.SEEK_END); err != nil {
			unix.Close(fd)
			return &fs.PathError{Op: "seek", Path: s.path, Err: err}
		}
	}
	s.fd, s.started = fd, false
	return nil
}

func (s *kmsg) Read(out *Out) error {
	if s.fd < 0 {
		if err := s.open(); err != nil {
			return err
		}
	}
	err := s.records(out)
	s.set(out)
	if err != nil {
		unix.Close(s.fd)
		s.fd = -1
		return fmt.Errorf("read %s: %w", s.path, err)
	}
	return nil
}

// records reads what was logged since the last read.
func (s *kmsg) records(out *Out) error {
	for i := range maxRecords {
		n, err := unix.Read(s.fd, s.buf[:])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EPIPE:
			continue // overwritten: the numbers tell how many
		case err == unix.EAGAIN, err == nil && n <= 0:
			return nil
		case err != nil:
			return err
		}
		if i == 0 {
			s.list()
		}
		out.Stats.Bytes.Add(uint64(n))
		s.parse(out, s.buf[:n])
	}
	return nil
}

// list learns which interfaces there are.
func (s *kmsg) list() {
	s.devices.begin()
	err := s.net.each(func(name []byte, _ bool) {
		if d, state := s.devices.find(name); d != nil && state == rowNew {
			d.name = label(name)
		}
	})
	if err != nil {
		s.net.close()
	}
	s.devices.end(func(*kmsgDevice) {})
}

// parse counts records like
//
//	6,1234,5678901,-,caller=T1;eth0: link is up
//	 SUBSYSTEM=net
func (s *kmsg) parse(out *Out, text []byte) {
	for len(text) > 0 {
		var line []byte
		line, text, _ = cutLine(text)
		if len(line) == 0 || blank(line[0]) {
			continue
		}
		head, message, ok := bytes.Cut(line, []byte{';'})
		priority, rest, ok2 := bytes.Cut(head, []byte{','})
		number, rest, ok3 := bytes.Cut(rest, []byte{','})
		micros, _, _ := bytes.Cut(rest, []byte{','})
		p, good := parseValue(priority)
		seq, good2 := parseValue(number)
		if !ok || !ok2 || !ok3 || !good || !good2 || p < 0 || seq < 0 {
			s.faults.badRow(out, line)
			continue
		}
		if s.started && uint64(seq) > s.seq {
			s.gone += uint64(seq) - s.seq
		}
		s.started, s.seq = true, uint64(seq)+1
		s.counts[p&7]++ // the other bits are the facility
		s.name(message)
		if at, ok := parseValue(micros); ok && s.event != nil {
			s.event(Event{Source: "kmsg", Mono: at * 1000, Seq: uint64(seq), Level: int(p & 7), Text: message})
		}
	}
}

// name counts the record for every interface that its text names, once.
func (s *kmsg) name(message []byte) {
	for at := 0; at < len(message); {
		end := at
		for end < len(message) && inName(message[end]) {
			end++
		}
		if i, ok := s.devices.index[string(message[at:end])]; ok {
			if d := &s.devices.rows[i].row; d.seq != s.seq {
				d.seq = s.seq
				d.n++
			}
		}
		at = end + 1
	}
}

// inName tells whether interfaces are called so.
func inName(c byte) bool {
	return c|0x20-'a' < 26 || c-'0' < 10 || c == '_' || c == '-' || c == '.'
}

func (s *kmsg) set(out *Out) {
	if !s.known {
		for i, level := range kmsgLevels {
			s.levels[i] = out.Add(&kmsgRecords, Label{"level", level})
		}
		s.lost = out.Add(&kmsgLost)
		s.known = true
	}
	for i, n := range s.counts {
		out.Set(s.levels[i], int64(n))
	}
	out.Set(s.lost, int64(s.gone))
	for _, e := range s.devices.rows {
		d := &e.row
		if d.n > 0 && d.slot == 0 {
			d.slot = int32(out.Add(&kmsgDevices, Label{"device", d.name})) + 1
		}
		if d.slot > 0 {
			out.Set(int(d.slot-1), int64(d.n))
		}
	}
}

func (s *kmsg) Close() error {
	s.net.close()
	if s.fd >= 0 {
		unix.Close(s.fd)
		s.fd = -1
	}
	return nil
}
