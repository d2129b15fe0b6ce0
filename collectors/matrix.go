package collectors

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// maxMatrixSeries bounds what a matrix exports: 300 interrupts on 128 CPUs fit.
const maxMatrixSeries = 40_000

var (
	errNoHeader = errors.New("the first line does not name the CPUs")
	errNoTable  = errors.New("there is no table in it")
)

// matrix reads a file with one column for each CPU, named in the first line, and
// one row for each kind of event: interrupts and softirqs.
type matrix struct {
	path   string
	faults faults
	metric *Metric
	// hideZeros leaves out rows that never moved.
	hideZeros bool
	// labels returns the labels of a row but for the CPU. It is called once for
	// each row.
	labels func(name, tail []byte) []Label
	filter filter
	// odd takes rows with fewer numbers than CPUs and no text behind them, and tells
	// whether it knows the row.
	odd func(out *Out, name []byte, v uint64) bool

	// info adds a series that tells more of a row, and returns its slot + 1, or 0. It is
	// called once for each row that is exported.
	info func(out *Out, name []byte) int32

	header []byte
	cols   []int32  // column → index in cpus
	cpus   []string // ids of all CPUs that were ever seen
	rows   *table[matrixRow]
	vals   []uint64
	key    []byte
	memo   matrixMemo
}

type matrixRow struct {
	name, tail []byte  // as the kernel prints them
	labels     []Label // without the CPU
	slots      []int32 // by index in cpus; slot + 1
	info       int32   // slot + 1
	moved      bool
	told       bool // info was asked for
	ignored    bool
}

func (m *matrix) parse(out *Out, text []byte) error {
	line, text, _ := cutLine(text)
	if len(m.header) == 0 || !bytes.Equal(line, m.header) {
		m.memo.whole = false
		if err := m.columns(out, line); err != nil {
			return fmt.Errorf("read %s: %w", m.path, err)
		}
	}
	// A panic leaves it false.
	if whole := m.memo.whole; whole {
		m.memo.whole = false
		if m.again(out, text) {
			m.memo.whole = true
			return nil
		}
	}
	m.all(out, text)
	return nil
}

// columns learns which CPUs the columns are.
func (m *matrix) columns(out *Out, line []byte) error {
	cols := m.cols[:0]
	for start, end := field(line, 0); start < end; start, end = field(line, end) {
		id, isCPU := bytes.CutPrefix(line[start:end], []byte("CPU"))
		if !isCPU || !allDigits(id) || len(cols) == maxCPUs {
			m.header = m.header[:0]
			return errNoHeader
		}
		cols = append(cols, m.cpu(id))
	}
	if len(cols) == 0 {
		m.header = m.header[:0]
		return errNoHeader
	}
	m.cols = cols
	m.header = append(m.header[:0], line...)
	m.vals = make([]uint64, len(cols))
	// CPUs that are gone must not keep their last values.
	for _, e := range m.rows.rows {
		e.row.clear(out)
	}
	return nil
}

// cpu returns the index of a CPU id, made if need be.
func (m *matrix) cpu(id []byte) int32 {
	for i, known := range m.cpus {
		if known == string(id) {
			return int32(i)
		}
	}
	m.cpus = append(m.cpus, string(id))
	return int32(len(m.cpus) - 1)
}

// row handles one row and tells whether it is hidden.
func (m *matrix) row(out *Out, line []byte, whole bool) (hidden bool) {
	colon := bytes.IndexByte(line, ':')
	if colon < 0 {
		if len(trim(line)) > 0 {
			m.faults.badRow(out, line)
		}
		return false
	}
	name := trim(line[:colon])
	n, next, f := numbers(line, colon+1, m.vals)
	tail := trim(line[next:])
	switch {
	case f == bad && len(tail) > 0 && tail[0]-'0' <= 9, len(name) == 0:
		m.faults.badRow(out, line) // a number too large, or text glued to it
		return false
	case n == 0:
		return false // FIQ on ARM: a name and no counts
	case len(tail) == 0 && n == 1 && m.odd != nil && m.odd(out, name, m.vals[0]):
		return false
	case n < len(m.cols), !whole && len(tail) == 0 && m.odd != nil, startsWithNumber(tail):
		// The CPUs changed after the first line was printed, or the line is cut:
		// which number belongs to which CPU cannot be told.
		m.faults.badRow(out, line)
		return false
	}
	r, state := m.find(name, tail)
	if r == nil {
		m.faults.refused(out, state, line)
		return false
	}
	if r.ignored {
		return false
	}
	if !r.moved {
		if m.hideZeros && allZero(m.vals) {
			return true
		}
		r.moved = true
	}
	m.set(out, r, line)
	return false
}

// find returns the row of that name and text. Both are its identity: an interrupt
// number may be given to another device.
func (m *matrix) find(name, tail []byte) (*matrixRow, rowState) {
	if e := m.rows.expected(); e != nil && bytes.Equal(e.row.name, name) && bytes.Equal(e.row.tail, tail) {
		return m.rows.takeExpected()
	}
	m.key = append(append(m.key[:0], name...), ':')
	m.key = appendFields(m.key, tail)
	r, state := m.rows.find(m.key)
	if r == nil {
		return nil, state
	}
	if state == rowNew {
		r.labels = m.labels(name, tail)
		r.ignored = m.filter.ignores(filterName(r.labels))
	}
	r.name = append(r.name[:0], name...)
	r.tail = append(r.tail[:0], tail...)
	return r, state
}

func (m *matrix) set(out *Out, r *matrixRow, line []byte) {
	if m.info != nil && !r.told {
		r.info, r.told = m.info(out, r.name), true
	}
	if r.info > 0 {
		out.Set(int(r.info-1), 1)
	}
	for len(r.slots) < len(m.cpus) {
		r.slots = append(r.slots, 0)
	}
	for i, v := range m.vals {
		cpu := m.cols[i]
		if r.slots[cpu] == 0 {
			if out.Len() >= maxMatrixSeries {
				m.faults.overflow(out, line)
				return
			}
			labels := append([]Label{{"cpu", m.cpus[cpu]}}, r.labels...)
			r.slots[cpu] = int32(out.Add(m.metric, labels...)) + 1
		}
		out.Set(int(r.slots[cpu]-1), int64(v))
	}
}

func (r *matrixRow) clear(out *Out) {
	clearSlots(out, r.info)
	for _, slot := range r.slots {
		if slot > 0 {
			out.Clear(int(slot - 1))
		}
	}
}

// filterName is what a row is filtered by: the values of its labels.
func filterName(labels []Label) string {
	values := make([]string, len(labels))
	for i, l := range labels {
		values[i] = l.Value
	}
	return strings.Join(values, ";")
}

func allZero(vals []uint64) bool {
	for _, v := range vals {
		if v != 0 {
			return false
		}
	}
	return true
}

// startsWithNumber tells that the first field is a number and nothing else.
func startsWithNumber(b []byte) bool {
	_, end := field(b, 0)
	return allDigits(b[:end])
}

// appendFields appends the fields of b with one space between them.
func appendFields(dst, b []byte) []byte {
	for start, end := field(b, 0); start < end; start, end = field(b, end) {
		if start > 0 {
			dst = append(dst, ' ')
		}
		dst = append(dst, b[start:end]...)
	}
	return dst
}

// seriesless tells that the row has no series to keep a place for.
func (r *matrixRow) seriesless() bool { return r.ignored || !r.moved }
