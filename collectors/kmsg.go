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

	devices kmsgDevices
	buf     [kmsgBytes]byte
}

func newKmsg(env Env) (Source, error) {
	s := &kmsg{path: filepath.Join(env.Rootfs, "dev/kmsg"), fd: -1, faults: newFaults(env, "kmsg"), event: env.Event,
		devices: newKmsgDevices(filepath.Join(env.Sysfs, "class/net"))}
	s.devices.list() // what is gone when it is first named is known all the same
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
			s.devices.list()
		}
		out.Stats.Bytes.Add(uint64(n))
		s.parse(out, s.buf[:n])
	}
	return nil
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
		e := Event{Source: "kmsg", Seq: uint64(seq), Level: int(p & 7), Facility: int(p >> 3), Text: message}
		if s.started && e.Seq > s.seq {
			e.Lost = e.Seq - s.seq
			s.gone += e.Lost
		}
		s.started, s.seq = true, e.Seq+1
		s.counts[e.Level]++
		e.Devices = s.devices.count(message)
		if at, ok := parseValue(micros); ok && s.event != nil {
			e.Mono = at * 1000
			s.event(e)
		}
	}
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
	s.devices.set(out)
}

func (s *kmsg) Close() error {
	s.devices.dir.close()
	if s.fd >= 0 {
		unix.Close(s.fd)
		s.fd = -1
	}
	return nil
}
