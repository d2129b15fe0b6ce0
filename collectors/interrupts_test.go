package collectors

import (
	"fmt"
	"strings"
	"testing"
)

func irq(typ, info, devices, cpu string) string {
	s := fmt.Sprintf("node_interrupts_total{cpu=%q", cpu)
	if devices != "" {
		s += fmt.Sprintf(",devices=%q", devices)
	}
	return s + fmt.Sprintf(",info=%q,type=%q}", info, typ)
}

func TestInterruptsOddRows(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/interrupts", "      CPU0 CPU1\n"+
		" 1: 1 2 GICv2 30 Level  arch timer,  x\n"+
		" 2: 0 0 GICv2 31 Level idle\n"+
		"IPI0:1234567890 1234567891 Rescheduling   interrupts\n"+
		" 3: 18446744073709551615 1 PCI-MSI  eth0\n"+
		" 4: 18446744073709551616 1 PCI-MSI  eth1\n"+ // too large
		" 5: 1 PCI-MSI  eth2\n"+ // a CPU went while the file was printed
		" 6: 1 2 3 PCI-MSI  eth3\n"+ // a CPU came
		" 1: 1 2 GICv2 30 Level  arch timer,  x\n"+ // twice
		" 7: 1 1x PCI-MSI eth4\n"+
		"no colon\n"+
		": 1 2 no name\n"+
		"FIQ:              usb_fiq\n"+
		" 8: 5 6\n"+
		"ERR: 7\n"+
		"MIS: 0\n")
	p := tr.open("interrupts")
	want(t, p.read(), "", map[string]float64{
		irq("1", "GICv2", "30 Level arch timer, x", "0"): 1,
		irq("1", "GICv2", "30 Level arch timer, x", "1"): 2,
		irq("IPI0", "Rescheduling interrupts", "", "0"):  1234567890,
		irq("IPI0", "Rescheduling interrupts", "", "1"):  1234567891,
		irq("3", "PCI-MSI", "eth0", "0"):                 18446744073709551615,
		irq("3", "PCI-MSI", "eth0", "1"):                 1,
		`node_interrupts_total{cpu="0",type="8"}`:        5,
		`node_interrupts_total{cpu="1",type="8"}`:        6,
		`node_interrupt_errors_total{type="ERR"}`:        7,
	})
	p.wantStats(7, 0, 0)
	if got := p.out.Stats.Hidden.Load(); got != 1 {
		t.Errorf("got %d hidden rows, want 1", got)
	}
}

// What an interrupt is comes from sysfs, with the row and no longer than it.
func TestInterruptInfo(t *testing.T) {
	tr := newTree(t)
	for file, text := range map[string]string{"chip_name": "GICv3\n", "hwirq": "37\n", "type": "level\n", "actions": "eth0,eth1\n"} {
		tr.write("sys/kernel/irq/24/"+file, text)
	}
	const row24, rest = " 24: 1 GICv3 37 Level eth0, eth1\n", " 25: 1 GICv3 38 Level eth2\nIPI0: 1 Rescheduling interrupts\n"
	tr.write("proc/interrupts", " CPU0\n"+row24+rest)
	p := tr.open("interrupts")
	info := map[string]float64{`node_interrupt_info{actions="eth0,eth1",chip="GICv3",hwirq="37",trigger="level",type="24"}`: 1}
	want(t, p.read(), "node_interrupt_info", info)
	tr.write("proc/interrupts", " CPU0\n"+rest)
	want(t, p.read(), "node_interrupt_info", map[string]float64{})
	tr.write("proc/interrupts", " CPU0\n"+row24+rest)
	want(t, p.read(), "node_interrupt_info", info)
}

// Rows that never moved are hidden until they do, and then stay.
func TestInterruptsHidden(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/interrupts", "CPU0 CPU1\n")
	p := tr.open("interrupts")
	for i, test := range []struct{ v, series int }{{0, 0}, {3, 2}, {0, 2}} {
		tr.write("proc/interrupts", fmt.Sprintf("CPU0 CPU1\n 1: 0 %d chip dev\n", test.v))
		if got := len(p.read()); got != test.series {
			t.Errorf("read %d: got %d series, want %d", i, got, test.series)
		}
	}
}

// Columns are CPUs by the kernel's id, and a number that goes to another device is
// another series.
func TestInterruptsChange(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/interrupts", "CPU0 CPU1 CPU2\n 1: 1 2 3 chip a\n")
	p := tr.open("interrupts")
	p.read()
	tr.write("proc/interrupts", "CPU0 CPU2\n 1: 4 5 chip a\n")
	want(t, p.read(), "", map[string]float64{irq("1", "chip", "a", "0"): 4, irq("1", "chip", "a", "2"): 5})
	tr.write("proc/interrupts", "CPU0 CPU2\n 1: 6 7 chip b\n")
	want(t, p.read(), "", map[string]float64{irq("1", "chip", "b", "0"): 6, irq("1", "chip", "b", "2"): 7})
	tr.write("proc/interrupts", "CPU0 CPU1 CPU2\n 1: 7 8 9 chip    a\n")
	want(t, p.read(), "", map[string]float64{irq("1", "chip", "a", "0"): 7, irq("1", "chip", "a", "1"): 8,
		irq("1", "chip", "a", "2"): 9})
	if got := p.schema.Len(); got != 5 {
		t.Errorf("got %d slots, want 5", got)
	}
}

func TestInterruptsHeader(t *testing.T) {
	for _, text := range []string{"\n", "1: 2 3 x\n", "CPU0 CPUx\n 1: 1 1 a b\n"} {
		tr := newTree(t)
		tr.write("proc/interrupts", text)
		p := tr.open("interrupts")
		if err := p.src.Read(p.out); err == nil {
			t.Errorf("%q: no error", text)
		}
		tr.write("proc/interrupts", "CPU0\n 1: 1 a b\n")
		want(t, p.read(), "", map[string]float64{irq("1", "a", "b", "0"): 1})
	}
}

// 64 CPUs and a line of 64 KiB.
func TestInterruptsLarge(t *testing.T) {
	tr := newTree(t)
	head, row := "", ""
	for i := range 64 {
		head += fmt.Sprintf(" CPU%d", i)
		row += fmt.Sprintf(" %10d", i+1)
	}
	text := head + "\n"
	for i := range 300 {
		text += fmt.Sprintf("%4d:%s PCI-MSI %d-edge eth%d\n", i, row, i, i)
	}
	tr.write("proc/interrupts", text+" 999:"+row+" chip "+strings.Repeat("x", 64<<10)+"\n")
	p := tr.open("interrupts")
	if got := len(p.read()); got != 301*64 {
		t.Errorf("got %d series, want %d", got, 301*64)
	}
	p.wantStats(0, 0, 0)
}
