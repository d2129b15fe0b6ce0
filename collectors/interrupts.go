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
	interruptInfo = Metric{Name: "node_interrupt_info", Type: Gauge,
		Help: "What an interrupt is, as /sys/kernel/irq has it: its chip, its number there, what triggers it, and who handles it."}
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
	irqs   string                         // directory with one for each interrupt
}

// interruptErrorRows have one value for all CPUs. Err is ARM's spelling.
var interruptErrorRows = [...]string{"ERR", "MIS", "Err"}

func newInterrupts(env Env) (Source, error) {
	f, err := openFile(filepath.Join(env.Procfs, "interrupts"), 16<<10, false)
	if err != nil {
		return nil, err
	}
	s := &interrupts{file: f, irqs: filepath.Join(env.Sysfs, "kernel/irq")}
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
		info:      s.info,
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

// info tells what a numbered interrupt is, where the kernel does (irq_kobj_type in
// kernel/irq/irqdesc.c, from Linux 4.9 on). node_interrupts_total has of that only what
// can be taken from its row.
func (s *interrupts) info(out *Out, name []byte) int32 {
	if !allDigits(name) || s.irqs == "" {
		return 0
	}
	labels := []Label{{"type", string(name)}}
	for _, f := range [...]struct{ file, label string }{{"chip_name", "chip"}, {"hwirq", "hwirq"}, {"type", "trigger"}, {"actions", "actions"}} {
		if text, err := ReadFile(filepath.Join(s.irqs, string(name), f.file)); err == nil {
			labels = append(labels, Label{f.label, label(trim(text))})
		}
	}
	if len(labels) == 1 {
		return 0
	}
	return int32(out.Add(&interruptInfo, labels...)) + 1
}
