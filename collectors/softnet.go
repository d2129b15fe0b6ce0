package collectors

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// softnetColumns are the columns that mean something, by their place in
// net/softnet_stat. Columns 3 to 7 are zeros that stayed for compatibility, column
// 12 is the CPU id. Kernels print 9 columns up to 2.6.38, 10 up to 3.10 (RPS), 11
// up to 5.13 (flow limit), 13 up to 6.1 (backlog, CPU id), 15 since (both queues):
// softnet_seq_show in net/core/net-procfs.c.
var softnetColumns = [...]struct {
	column int
	metric Metric
}{
	{0, Metric{Name: "node_softnet_processed_total", Type: Counter,
		Help: "Number of processed packets"}},
	{1, Metric{Name: "node_softnet_dropped_total", Type: Counter,
		Help: "Number of dropped packets"}},
	{2, Metric{Name: "node_softnet_times_squeezed_total", Type: Counter,
		Help: "Number of times processing packets ran out of quota"}},
	{8, Metric{Name: "node_softnet_cpu_collision_total", Type: Counter,
		Help: "Number of collision occur while obtaining device lock while transmitting"}},
	{9, Metric{Name: "node_softnet_received_rps_total", Type: Counter,
		Help: "Number of times cpu woken up received_rps"}},
	{10, Metric{Name: "node_softnet_flow_limit_count_total", Type: Counter,
		Help: "Number of times flow limit has been reached"}},
	{11, Metric{Name: "node_softnet_backlog_len", Type: Gauge,
		Help: "Softnet backlog status"}},
	{13, Metric{Name: "node_softnet_input_queue_len", Type: Gauge,
		Help: "Packets in the input queue of the softnet backlog"}},
	{14, Metric{Name: "node_softnet_process_queue_len", Type: Gauge,
		Help: "Packets in the queue of the softnet backlog that is being processed"}},
}

const (
	softnetCPUColumn  = 12
	softnetMaxColumns = 15
)

type softnetRow struct {
	cpu   string
	slots [len(softnetColumns)]int32
	known int // metrics that have a slot
	n     int // metrics of the last read
}

type softnet struct {
	*file
	faults faults
	rows   *table[softnetRow]
	online onlineCPUs
	width  int // columns of the last whole row
	key    []byte
}

func newSoftnet(env Env) (Source, error) {
	f, err := openRows(filepath.Join(env.Procfs, "net/softnet_stat"), 4<<10, rowRecord)
	if err != nil {
		return nil, err
	}
	return &softnet{file: f, faults: newFaults(env, "softnet"), rows: newTable[softnetRow](maxCPUs),
		online: onlineCPUs{path: filepath.Join(env.Sysfs, "devices/system/cpu/online")}}, nil
}

func (s *softnet) Read(out *Out) error {
	text, err := s.file.readInto(out)
	if err != nil {
		return err
	}
	return s.parse(out, text)
}

func (s *softnet) parse(out *Out, text []byte) error {
	s.rows.begin()
	s.online.expect(countLines(text))
	rows := 0
	for i := 0; len(text) > 0; i++ {
		var line []byte
		var whole bool
		line, text, whole = cutLine(text)
		if len(trim(line)) > 0 && s.row(out, line, i, whole) {
			rows++
		}
	}
	s.rows.end(func(r *softnetRow) { r.clear(out, 0) })
	if rows == 0 {
		return fmt.Errorf("read %s: no row is known", s.path)
	}
	return nil
}

// row handles line number i.
func (s *softnet) row(out *Out, line []byte, i int, whole bool) bool {
	var col [softnetMaxColumns]uint64
	n, at := 0, 0
	for n < len(col) {
		v, next, f := hex(line, at)
		if f == bad {
			s.faults.badRow(out, line)
			return false
		}
		if f == none {
			break
		}
		col[n] = v
		at = next
		n++
	}
	if n < 3 || !whole && n < s.width {
		s.faults.badRow(out, line)
		return false
	}
	s.width = n
	cpu := uint64(s.online.id(i))
	if n > softnetCPUColumn {
		cpu = col[softnetCPUColumn]
	}
	s.key = strconv.AppendUint(s.key[:0], cpu, 10)
	r, state := s.rows.find(s.key)
	if r == nil {
		s.faults.refused(out, state, line)
		return false
	}
	if state == rowNew {
		r.cpu = string(s.key)
	}
	r.set(out, col[:n])
	return true
}

func (r *softnetRow) set(out *Out, col []uint64) {
	n := 0
	for n < len(softnetColumns) && softnetColumns[n].column < len(col) {
		if n == r.known {
			r.slots[n] = int32(out.Add(&softnetColumns[n].metric, Label{"cpu", r.cpu}))
			r.known++
		}
		out.Set(int(r.slots[n]), int64(col[softnetColumns[n].column]))
		n++
	}
	if n < r.n {
		r.clear(out, n)
	}
	r.n = n
}

func (r *softnetRow) clear(out *Out, n int) {
	for _, slot := range r.slots[min(n, r.known):r.known] {
		out.Clear(int(slot))
	}
	r.n = n
}
