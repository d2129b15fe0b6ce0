package collectors

import (
	"bytes"
	"errors"
	"os"
	"slices"
)

// sockstatKeys are the values that are exported (sockstat_seq_show in
// net/ipv4/proc.c); memory of FRAG is in bytes, mem of TCP and UDP in pages.
var sockstatKeys = []string{"inuse", "orphan", "tw", "alloc", "mem", "memory"}

// sockstatRow is a protocol.
type sockstatRow struct {
	keys *table[sockstatValue]
}

type sockstatValue struct {
	slot, bytes int32 // slot + 1, of the value and of mem in bytes
}

type sockstat struct {
	files  [2]*file
	faults faults
	rows   *table[sockstatRow]
	page   int64
}

func newSockstat(env Env) (Source, error) {
	if err := hostNet(env); err != nil {
		return nil, err
	}
	s := &sockstat{
		files: [2]*file{laterFile(procNet(env, "sockstat"), 1<<10, true),
			laterFile(procNet(env, "sockstat6"), 1<<10, true)},
		faults: newFaults(env, "sockstat"), rows: newTable[sockstatRow](maxProtocols),
		page: int64(os.Getpagesize()),
	}
	err := s.files[0].open()
	if err2 := s.files[1].open(); err != nil && err2 != nil {
		return nil, err
	}
	return s, nil
}

func (s *sockstat) Read(out *Out) error {
	var failed error
	n := 0
	s.rows.begin()
	for _, f := range s.files {
		text, err := f.readInto(out)
		if errors.Is(err, ErrTooLarge) {
			return err
		}
		if err != nil {
			failed = err // IPv6 or IPv4 may be off
			n++
			continue
		}
		s.parse(out, text)
	}
	s.rows.end(func(r *sockstatRow) { r.clear(out) })
	if n == len(s.files) {
		return failed
	}
	return nil
}

func (s *sockstat) parse(out *Out, text []byte) {
	for len(text) > 0 {
		var line []byte
		line, text, _ = cutLine(text)
		if len(trim(line)) > 0 {
			s.row(out, line)
		}
	}
}

func (s *sockstat) row(out *Out, line []byte) {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		s.faults.badRow(out, line)
		return
	}
	protocol := line[:colon]
	r, state := s.rows.find(protocol)
	if r == nil {
		s.faults.refused(out, state, line)
		return
	}
	if r.keys == nil {
		r.keys = newTable[sockstatValue](16)
	}
	r.keys.begin()
	for at := colon + 1; ; {
		start, end := field(line, at)
		if start == end {
			break
		}
		v, next, f := signedNumber(line, end)
		if f != good {
			s.faults.badRow(out, line)
			break
		}
		s.value(out, r, protocol, line[start:end], v)
		at = next
	}
	r.keys.end(func(v *sockstatValue) { v.clear(out) })
}

func (s *sockstat) value(out *Out, r *sockstatRow, protocol, key []byte, n int64) {
	v, state := r.keys.find(key)
	if v == nil {
		s.faults.refused(out, state, key)
		return
	}
	if state == rowNew {
		v.add(out, label(protocol), string(key))
	}
	if v.slot > 0 {
		out.Set(int(v.slot-1), n)
	}
	if v.bytes > 0 {
		out.Set(int(v.bytes-1), n*s.page)
	}
}

func (v *sockstatValue) add(out *Out, protocol, key string) {
	if protocol == "sockets" {
		if key == "used" {
			v.slot = int32(out.Add(&Metric{Name: "node_sockstat_sockets_used", Type: Gauge, Kind: Signed,
				Help: "Number of IPv4 sockets in use."})) + 1
		}
		return
	}
	if !slices.Contains(sockstatKeys, key) {
		return
	}
	v.slot = int32(out.Add(sockstatMetric(protocol, key))) + 1
	if key == "mem" {
		v.bytes = int32(out.Add(sockstatMetric(protocol, "mem_bytes"))) + 1
	}
}

func sockstatMetric(protocol, key string) *Metric {
	return &Metric{Name: "node_sockstat_" + metricName(protocol) + "_" + key, Type: Gauge, Kind: Signed,
		Help: "Number of " + protocol + " sockets in state " + key + "."}
}

func (v *sockstatValue) clear(out *Out) {
	if v.slot > 0 {
		out.Clear(int(v.slot - 1))
	}
	if v.bytes > 0 {
		out.Clear(int(v.bytes - 1))
	}
}

func (r *sockstatRow) clear(out *Out) {
	if r.keys != nil {
		r.keys.begin()
		r.keys.end(func(v *sockstatValue) { v.clear(out) })
	}
}

func (s *sockstat) Close() error {
	for _, f := range s.files {
		f.close()
	}
	return nil
}
