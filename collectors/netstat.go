package collectors

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"regexp"
	"strings"
)

// netstatFields matches the fields that are exported: node_exporter's own default.
const netstatFields = "^(.*_(InErrors|InErrs)|Ip_Forwarding|Ip(6|Ext)_(InOctets|OutOctets)|" +
	"Icmp6?_(InMsgs|OutMsgs)|TcpExt_(Listen.*|Syncookies.*|TCPSynRetrans|TCPTimeouts|TCPOFOQueue|TCPRcvQDrop)|" +
	"Tcp_(ActiveOpens|InSegs|OutSegs|OutRsts|PassiveOpens|RetransSegs|CurrEstab)|" +
	"Udp6?_(InDatagrams|OutDatagrams|NoPorts|RcvbufErrors|SndbufErrors))$"

// maxProtocols is far more than kernels have in one file.
const maxProtocols = 64

// netstatRow is a protocol: its columns, as its first line names them.
type netstatRow struct {
	header uint64  // hash of the line of names
	last   uint64  // hash of the line of values that the series are set to
	clears uint64  // of Out when they were
	slots  []int32 // by column; slot + 1, 0 is not exported
	byName map[string]int32
}

// netstat reads net/snmp and net/netstat, where a protocol has a line of names and a
// line of values (snmp_seq_show in net/ipv4/proc.c), and net/snmp6, which has a line
// for each value (snmp6_seq_show in net/ipv6/proc.c).
type netstat struct {
	pairs  [2]*file
	six    *file
	faults faults
	fields *regexp.Regexp

	protocols [2]*table[netstatRow]
	sixRows   *table[fieldRow]
	sixLines  lineSlots
	seed      maphash.Seed
}

func newNetstat(env Env) (Source, error) {
	if err := hostNet(env); err != nil {
		return nil, err
	}
	s := &netstat{
		pairs: [2]*file{laterFile(procNet(env, "snmp"), 4<<10, true),
			laterFile(procNet(env, "netstat"), 8<<10, true)},
		six:    laterFile(procNet(env, "snmp6"), 8<<10, true),
		faults: newFaults(env, "netstat"), fields: env.option("netstat.fields", netstatFields),
		protocols: [2]*table[netstatRow]{newTable[netstatRow](maxProtocols), newTable[netstatRow](maxProtocols)},
		sixRows:   newTable[fieldRow](maxFields),
	}
	err := s.pairs[0].open()
	if err2 := s.pairs[1].open(); err != nil && err2 != nil {
		return nil, err
	}
	return s, nil
}

// Read reads the three files; one that is not there costs its own series.
func (s *netstat) Read(out *Out) error {
	var failed error
	n := 0
	for i, f := range s.pairs {
		text, err := f.readInto(out)
		if errors.Is(err, ErrTooLarge) {
			return err
		}
		if err != nil {
			failed, text = err, nil
			n++
		}
		s.parsePairs(out, s.protocols[i], text)
	}
	text, err := s.six.readInto(out)
	if errors.Is(err, ErrTooLarge) {
		return err
	}
	if err != nil {
		text = nil // IPv6 may be off
	}
	s.parseSix(out, text)
	if n == len(s.pairs) {
		return failed
	}
	return nil
}

func (s *netstat) parsePairs(out *Out, t *table[netstatRow], text []byte) {
	t.begin()
	for len(text) > 0 {
		var names, values []byte
		names, text, _ = cutLine(text)
		values, text, _ = cutLine(text)
		if len(names) > 0 {
			s.pair(out, t, names, values)
		}
	}
	t.end(func(r *netstatRow) { r.clear(out) })
}

func (s *netstat) pair(out *Out, t *table[netstatRow], names, values []byte) {
	colon := bytes.IndexByte(names, ':')
	if colon <= 0 || !bytes.HasPrefix(values, names[:colon+1]) {
		s.faults.badRow(out, names)
		return
	}
	r, state := t.find(names[:colon])
	if r == nil {
		s.faults.refused(out, state, names)
		return
	}
	if s.seed == (maphash.Seed{}) {
		s.seed = maphash.MakeSeed()
	}
	// Hashes, for to keep the lines would be to have them in the caches, which other
	// programs use between two ticks.
	if h := maphash.Bytes(s.seed, names); r.header != h {
		r.columns(out, s.fields, names, colon)
		r.header, r.last = h, 0
	}
	h := maphash.Bytes(s.seed, values)
	if state == rowSame && r.last == h && r.clears == out.clears {
		return
	}
	r.last, r.clears = h, out.clears
	if !r.values(out, values[colon+1:]) {
		s.faults.badRow(out, values)
		r.clear(out)
		r.last = 0
	}
}

// columns learns the names of the columns.
func (r *netstatRow) columns(out *Out, fields *regexp.Regexp, names []byte, colon int) {
	r.clear(out)
	r.slots = r.slots[:0]
	if r.byName == nil {
		r.byName = map[string]int32{}
	}
	protocol := label(names[:colon])
	for start, end := field(names, colon+1); start < end && len(r.slots) < maxFields; start, end = field(names, end) {
		name := label(names[start:end])
		slot, known := r.byName[name]
		if !known && fields != nil && fields.MatchString(protocol+"_"+name) {
			slot = int32(out.Add(netstatMetric(protocol, name))) + 1
			r.byName[name] = slot
		}
		r.slots = append(r.slots, slot)
	}
}

// values sets what the line of values has; false means that it does not fit its
// names, so that nothing in it can be trusted.
func (r *netstatRow) values(out *Out, line []byte) bool {
	at := 0
	for _, slot := range r.slots {
		start, end := field(line, at)
		if start == end {
			return false
		}
		at = end
		if slot == 0 {
			continue
		}
		v, _, f := number(line[:end], start)
		if f != good {
			return false
		}
		out.Set(int(slot-1), int64(v))
	}
	start, end := field(line, at)
	return start == end
}

func (r *netstatRow) clear(out *Out) {
	for _, slot := range r.slots {
		if slot > 0 {
			out.Clear(int(slot - 1))
		}
	}
}

// parseSix reads lines like Ip6InReceives 12; the protocol ends at the 6.
func (s *netstat) parseSix(out *Out, text []byte) {
	if len(text) > 0 && s.sixLines.again(out, text) {
		return
	}
	s.sixRows.begin()
	s.sixLines.begin(out)
	for len(text) > 0 {
		var line []byte
		line, text, _ = cutLine(text)
		start, end := field(line, 0)
		if start == end {
			continue
		}
		r, state := s.sixRows.find(line[start:end])
		if r == nil {
			s.faults.refused(out, state, line)
			continue
		}
		if state == rowNew {
			protocol, name, ok := strings.Cut(label(line[start:end]), "6")
			if ok && s.fields != nil && s.fields.MatchString(protocol+"6_"+name) {
				r.slot = int32(out.Add(netstatMetric(protocol+"6", name))) + 1
			}
		}
		s.sixLines.add(line[start:end], r.slot)
		if r.slot == 0 {
			continue
		}
		v, _, f := number(line, end)
		if f != good {
			s.faults.badRow(out, line)
			r.clear(out)
			continue
		}
		out.Set(int(r.slot-1), int64(v))
	}
	s.sixLines.end(out)
	s.sixRows.end(func(r *fieldRow) { r.clear(out) })
}

func netstatMetric(protocol, name string) *Metric {
	return &Metric{Name: "node_netstat_" + metricName(protocol+"_"+name), Type: Untyped,
		Help: fmt.Sprintf("Statistic %s%s.", protocol, name)}
}

func (s *netstat) Close() error {
	for _, f := range s.pairs {
		f.close()
	}
	s.six.close()
	return nil
}
