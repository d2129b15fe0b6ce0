package collectors

import (
	"fmt"
	"strings"
	"testing"
)

// Rows without series do not fill a table: what a filter leaves out may come and go for
// ever, and what has series is the same when it returns.
func TestTableForgets(t *testing.T) {
	tr := newTree(t)
	put := func(names ...string) {
		var b strings.Builder
		for _, name := range names {
			b.WriteString(netdevLine(name, 1))
		}
		tr.write("proc/net/dev", netdevHead+b.String())
	}
	env := tr.env()
	env.Options = map[string]string{"netdev.device-exclude": "^veth"}
	put("eth0", "usb0")
	src, err := newNetdev(env)
	if err != nil {
		t.Fatal(err)
	}
	p := newProbe(t, src)
	p.read()
	slots := p.schema.Len()
	for i := range maxInterfaces / 10 {
		names := []string{"eth0"}
		for j := range 20 {
			names = append(names, fmt.Sprintf("veth%d.%d", i, j))
		}
		put(names...)
		want(t, p.read(), "receive_bytes", map[string]float64{rx("eth0"): 1})
	}
	put("veth1.1", "usb0", "eth0", "veth1.1")
	want(t, p.read(), "receive_bytes", map[string]float64{rx("eth0"): 1, rx("usb0"): 1})
	if p.schema.Len() != slots {
		t.Errorf("%d slots, there were %d", p.schema.Len(), slots)
	}
	p.wantStats(1, 0, 0) // twice in one file
}

// An interrupt that never moved is forgotten with its row, and one that did is not.
func TestTableForgetsHidden(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/interrupts", " CPU0\n 1: 1 GIC a\n")
	p := tr.open("interrupts")
	for i := range maxIRQs + 100 {
		tr.write("proc/interrupts", fmt.Sprintf(" CPU0\n 2: 0 GIC x%d\n", i))
		p.read()
	}
	tr.write("proc/interrupts", " CPU0\n 1: 2 GIC a\n")
	want(t, p.read(), "", map[string]float64{`node_interrupts_total{cpu="0",devices="a",info="GIC",type="1"}`: 2})
	p.wantStats(0, 0, 0)
}
