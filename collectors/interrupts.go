package collectors

import (
	"bytes"
	"path/filepath"
)

var (
	interruptsTotal = Metric{Name: "node_interrupts_total", Type: Counter,
		Help: "Interrupt details."}
	interruptErrors = Metric{Name: "node_interrupt_errors_total", Type: Counter,
		Help: "Interrupts that belong to no CPU: ERR are spurious ones, MIS were routed wrongly."}
)

// maxIRQs is how many rows are kept, those that never moved included.
const maxIRQs = 8192

// interrupts reads /proc/interrupts: one column for each CPU that is online, one
// row for each interrupt, then rows with names (show_interrupts in
// kernel/irq/proc.c, arch_show_interrupts).
type interrupts struct {
	*file
	matrix matrix
	errors [len(interruptErrorRows)]int32 // slot + 1
}

// interruptErrorRows have one value for all CPUs. Err is ARM's spelling.
var interruptErrorRows = [...]string{"ERR", "MIS", "Err"}

func newInterrupts(env Env) (Source, error) {
	f, err := openFile(filepath.Join(env.Procfs, "interrupts"), 16<<10, false)
	if err != nil {
		return nil, err
	}
	s := &interrupts{file: f}
	s.matrix = s.newMatrix(env)
	return s, nil
}

func (s *interrupts) newMatrix(env Env) matrix {
	return matrix{
		path:      s.path,
		faults:    newFaults(env, "interrupts"),
		metric:    &interruptsTotal,
		hideZeros: true,
		filter:    env.filter("interrupts.name", ""),
		labels:    interruptLabels,
		odd:       s.single,
		rows:      newTable[matrixRow](maxIRQs),
	}
}

func (s *interrupts) Read(out *Out) error {
	text, err := s.file.readInto(out)
	if err != nil {
		return err
	}
	return s.matrix.parse(out, text)
}

// interruptLabels splits a row as node_exporter does: behind a number stands the
// controller, then what is left names the devices; a named row has only a text.
func interruptLabels(name, tail []byte) []Label {
	info, devices := tail, []byte(nil)
	if allDigits(name) {
		_, end := field(tail, 0)
		info, devices = tail[:end], trim(tail[end:])
	}
	return []Label{
		{"type", label(name)},
		{"info", label(appendFields(nil, info))},
		{"devices", label(appendFields(nil, devices))},
	}
}

// single takes the rows ERR and MIS, hidden while they are zero.
func (s *interrupts) single(out *Out, name []byte, v uint64) bool {
	for i, known := range interruptErrorRows {
		if !bytes.Equal(name, []byte(known)) {
			continue
		}
		if s.errors[i] == 0 {
			if v == 0 {
				return true
			}
			s.errors[i] = int32(out.Add(&interruptErrors, Label{"type", known})) + 1
		}
		out.Set(int(s.errors[i]-1), int64(v))
		return true
	}
	return false
}
