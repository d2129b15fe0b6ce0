package collectors

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

var qdiscMetrics = [...]Metric{
	{Name: "node_qdisc_bytes_total", Type: Counter, Help: "Number of bytes sent."},
	{Name: "node_qdisc_packets_total", Type: Counter, Help: "Number of packets sent."},
	{Name: "node_qdisc_drops_total", Type: Counter, Help: "Number of packets dropped."},
	{Name: "node_qdisc_requeues_total", Type: Counter, Help: "Number of packets dequeued, not transmitted, and requeued."},
	{Name: "node_qdisc_overlimits_total", Type: Counter, Help: "Number of overlimit packets."},
	{Name: "node_qdisc_current_queue_length", Type: Gauge, Help: "Number of packets currently in queue to be sent."},
	{Name: "node_qdisc_backlog", Type: Gauge, Help: "Number of bytes currently in queue to be sent."},
}

// Places in qdiscMetrics.
const (
	qdiscBytes = iota
	qdiscPackets
	qdiscDrops
	qdiscRequeues
	qdiscOverlimits
	qdiscLength
	qdiscBacklog
)

// Attributes of a queueing discipline (include/uapi/linux/rtnetlink.h and
// gen_stats.h); x/sys has no names for them.
const (
	tcaKind    = 1
	tcaStats2  = 7
	statsBasic = 1
	statsQueue = 3
	statsPkt64 = 8
	tcmsgBytes = 20
)

type qdiscRow struct {
	slots   [len(qdiscMetrics)]int32
	ignored bool
}

// qdisc reads the queueing discipline at the root of each interface.
type qdisc struct {
	nl     *netlink
	links  linkNamer
	faults faults
	filter filter
	rows   *table[qdiscRow]
	key    []byte
	out    *Out // during a read
	each   func(uint16, []byte)
}

func newQdisc(env Env) (Source, error) {
	if !env.ContainerNetwork && sysctlNet(env) == netnsContainer {
		return nil, errContainerNet
	}
	nl, err := openNetlink(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	s := &qdisc{nl: nl, faults: newFaults(env, "qdisc"), filter: env.filter("qdisc.device", ""),
		rows: newTable[qdiscRow](maxInterfaces)}
	if err := s.links.open(); err != nil {
		nl.close()
		return nil, err
	}
	s.each = func(typ uint16, body []byte) {
		if typ == unix.RTM_NEWQDISC {
			s.message(s.out, body)
		}
	}
	return s, nil
}

func (s *qdisc) Read(out *Out) error {
	s.out = out
	s.nl.begin(unix.RTM_GETQDISC, unix.NLM_F_DUMP)
	s.nl.zeros(tcmsgBytes)
	s.rows.begin()
	err := s.nl.ask(out, s.each)
	s.rows.end(func(r *qdiscRow) { r.clear(out) })
	return err
}

// message takes a struct tcmsg with its attributes.
func (s *qdisc) message(out *Out, b []byte) {
	if len(b) < tcmsgBytes {
		s.faults.badRow(out, nil)
		return
	}
	index := int32(binary.NativeEndian.Uint32(b[4:]))
	parent := binary.NativeEndian.Uint32(b[12:])
	if parent != 0 && parent != ^uint32(0) {
		return // a class's, or an ingress hook: not at the root
	}
	if name := s.links.name(index); name != nil {
		s.row(out, name, b[tcmsgBytes:])
	}
}

func (s *qdisc) row(out *Out, device, attrs []byte) {
	kind := cString(attribute(attrs, tcaKind))
	stats := attribute(attrs, tcaStats2)
	v, ok := qdiscValues(stats)
	if len(kind) == 0 || !ok {
		s.faults.badRow(out, device)
		return
	}
	s.key = append(append(append(s.key[:0], device...), 0), kind...)
	r, state := s.rows.find(s.key)
	if r == nil {
		s.faults.refused(out, state, s.key)
		return
	}
	if state == rowNew {
		d, k := label(device), label(kind)
		if r.ignored = s.filter.ignores(d); r.ignored {
			return
		}
		for i := range qdiscMetrics {
			r.slots[i] = int32(out.Add(&qdiscMetrics[i], Label{"device", d}, Label{"kind", k}))
		}
	}
	if r.ignored {
		return
	}
	for i, x := range v {
		out.Set(int(r.slots[i]), int64(x))
	}
}

// qdiscValues reads the nested statistics, in the order of qdiscMetrics.
func qdiscValues(b []byte) (v [len(qdiscMetrics)]uint64, ok bool) {
	basic, queue := attribute(b, statsBasic), attribute(b, statsQueue)
	if len(basic) < 12 || len(queue) < 20 {
		return v, false
	}
	v[qdiscBytes] = binary.NativeEndian.Uint64(basic)
	v[qdiscPackets] = uint64(binary.NativeEndian.Uint32(basic[8:]))
	if all := attribute(b, statsPkt64); len(all) >= 8 {
		v[qdiscPackets] = binary.NativeEndian.Uint64(all)
	}
	for i, place := range [...]int{qdiscLength, qdiscBacklog, qdiscDrops, qdiscRequeues, qdiscOverlimits} {
		v[place] = uint64(binary.NativeEndian.Uint32(queue[4*i:]))
	}
	return v, true
}

func (r *qdiscRow) clear(out *Out) {
	if r.ignored {
		return
	}
	for _, slot := range r.slots {
		out.Clear(int(slot))
	}
}

func (s *qdisc) Close() error {
	s.nl.close()
	s.links.close()
	return nil
}

// seriesless tells that the row has no series to keep a place for.
func (r *qdiscRow) seriesless() bool { return r.ignored }
