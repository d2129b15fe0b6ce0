package collectors

import (
	"bytes"
	"fmt"
	"path/filepath"
)

// maxInterfaces is how many interfaces are kept over the exporter's life: names
// that are gone keep their slots.
const maxInterfaces = 2048

// netdevMetrics are the 16 columns of net/dev (dev_seq_printf_stats in
// net/core/net-procfs.c), the same in every kernel since 2.2.
var netdevMetrics = [...]Metric{
	netdevMetric("receive_bytes"), netdevMetric("receive_packets"), netdevMetric("receive_errs"),
	netdevMetric("receive_drop"), netdevMetric("receive_fifo"), netdevMetric("receive_frame"),
	netdevMetric("receive_compressed"), netdevMetric("receive_multicast"),
	netdevMetric("transmit_bytes"), netdevMetric("transmit_packets"), netdevMetric("transmit_errs"),
	netdevMetric("transmit_drop"), netdevMetric("transmit_fifo"), netdevMetric("transmit_colls"),
	netdevMetric("transmit_carrier"), netdevMetric("transmit_compressed"),
}

func netdevMetric(key string) Metric {
	return Metric{Name: "node_network_" + key + "_total", Type: Counter,
		Help: "Network device statistic " + key + "."}
}

type netdevRow struct {
	name    string
	ignored bool
	slots   [len(netdevMetrics)]int32
	guard   [len(netdevMetrics)]stepGuard
}

type netdev struct {
	*file
	faults faults
	filter filter
	rows   *table[netdevRow]
}

// procNet is the path of a file under net. The root's own net directory is a link
// to that of the reading process; in a host's tree mounted elsewhere that would be
// this container's network, so there the file of process 1 is read.
func procNet(env Env, name string) string {
	if filepath.Clean(env.Procfs) != "/proc" {
		if host := filepath.Join(env.Procfs, "1/net"); exists(filepath.Join(host, "dev")) {
			return filepath.Join(host, name) // if it has not this file, the container's is not it
		}
	}
	return filepath.Join(env.Procfs, "net", name)
}

func newNetdev(env Env) (Source, error) {
	if err := hostNet(env); err != nil {
		return nil, err
	}
	f, err := openRows(procNet(env, "dev"), 4<<10, rowRecord)
	if err != nil {
		return nil, err
	}
	return &netdev{file: f, faults: newFaults(env, "netdev"), filter: env.filter("netdev.device", ""),
		rows: newTable[netdevRow](maxInterfaces)}, nil
}

func (s *netdev) Read(out *Out) error {
	text, err := s.file.readInto(out)
	if err != nil {
		return err
	}
	return s.parse(out, text)
}

func (s *netdev) parse(out *Out, text []byte) error {
	s.rows.begin()
	header := false
	for len(text) > 0 {
		var line []byte
		line, text, _ = cutLine(text)
		if bytes.IndexByte(line, '|') >= 0 {
			header = true
			continue
		}
		if len(trim(line)) > 0 {
			s.row(out, line)
		}
	}
	s.rows.end(func(r *netdevRow) { r.clear(out) })
	if !header {
		return fmt.Errorf("read %s: %w", s.path, errNoTable)
	}
	return nil
}

func (s *netdev) row(out *Out, line []byte) {
	// Old kernels glue the first number to the colon, and have aliases like eth0:1.
	colon := bytes.LastIndexByte(line, ':')
	if colon < 0 {
		s.faults.badRow(out, line)
		return
	}
	name := trim(line[:colon])
	var v [len(netdevMetrics)]uint64
	if n, _, _ := numbers(line, colon+1, v[:]); n < len(v) || len(name) == 0 {
		s.faults.badRow(out, line)
		return
	}
	r, state := s.rows.find(name)
	if r == nil {
		s.faults.refused(out, state, line)
		return
	}
	if state == rowNew {
		r.name = label(name)
		if r.ignored = s.filter.ignores(r.name); !r.ignored {
			r.add(out)
		}
	}
	if r.ignored {
		return
	}
	for i := range v {
		if state != rowSame {
			r.guard[i].reset(v[i])
		} else if r.guard[i].held(v[i]) {
			s.faults.corrected(out, r.name)
		}
		out.Set(int(r.slots[i]), int64(r.guard[i].value))
	}
}

func (r *netdevRow) add(out *Out) {
	for i := range netdevMetrics {
		r.slots[i] = int32(out.Add(&netdevMetrics[i], Label{"device", r.name}))
	}
}

func (r *netdevRow) clear(out *Out) {
	if r.ignored {
		return
	}
	for _, slot := range r.slots {
		out.Clear(int(slot))
	}
}

// seriesless tells that the row has no series to keep a place for.
func (r *netdevRow) seriesless() bool { return r.ignored }
