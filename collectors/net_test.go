package collectors

import (
	"fmt"
	"strings"
	"testing"
)

const netdevHead = "Inter-|   Receive  |  Transmit\n face |bytes packets errs|bytes\n"

func netdevLine(name string, rx uint64) string {
	return fmt.Sprintf("%s: %d 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", name, rx)
}

func rx(name string) string { return fmt.Sprintf("node_network_receive_bytes_total{device=%q}", name) }

// Under a host's tree the interfaces are the host's, not those of the container
// that reads it.
func TestNetdevHostTree(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/net/dev", netdevHead+netdevLine("eth0", 1))
	want(t, tr.open("netdev").read(), "receive_bytes", map[string]float64{rx("eth0"): 1})
	tr.write("proc/1/net/dev", netdevHead+netdevLine("wan0", 2)+netdevLine("lan1", 3))
	want(t, tr.open("netdev").read(), "receive_bytes", map[string]float64{rx("wan0"): 2, rx("lan1"): 3})
}

func TestProcNetOfThisMachine(t *testing.T) {
	if got := procNet(Env{Procfs: "/proc/"}, "dev"); got != "/proc/net/dev" {
		t.Errorf("got %s", got)
	}
}

func TestNetdevOddRows(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/net/dev", netdevHead+
		strings.Replace(netdevLine("glued", 18446744073709551615), ": ", ":", 1)+
		netdevLine("eth0:1", 5)+
		netdevLine("bad\xffname", 6)+
		"short: 1 2 3\n"+
		"nocolon 1 2 3\n"+
		netdevLine("", 1)+
		netdevLine("eth0:1", 7)+
		strings.Replace(netdevLine("more", 8), "\n", " 17 18\n", 1)+
		strings.TrimSuffix(netdevLine("last", 9), " 16\n"))
	p := tr.open("netdev")
	want(t, p.read(), "receive_bytes", map[string]float64{rx("glued"): 18446744073709551615,
		rx("eth0:1"): 5, rx("bad\uFFFDname"): 6, rx("more"): 8})
	p.wantStats(5, 0, 0)
	tr.write("proc/net/dev", "rubbish\n")
	if err := p.src.Read(p.out); err == nil {
		t.Error("a file without the table is no error")
	}
}

// An interface that prints zero for one read is held; one that stays low was reset.
func TestNetdevZero(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/net/dev", netdevHead)
	p := tr.open("netdev")
	wanted := []float64{1000, 1000, 1001, 1001, 5, 6}
	for i, v := range []uint64{1000, 0, 1001, 4, 5, 6} {
		tr.write("proc/net/dev", netdevHead+netdevLine("eth0", v))
		if got := p.read()[rx("eth0")]; got != wanted[i] {
			t.Errorf("read %d: got %v, want %v", i, got, wanted[i])
		}
	}
	p.wantStats(0, 2, 0)
}

// An interface that goes and returns is the same series, with what it has then.
func TestNetdevReturns(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/net/dev", netdevHead+netdevLine("usb0", 1000)+netdevLine("lo", 1))
	p := tr.open("netdev")
	p.read()
	slots := p.schema.Len()
	tr.write("proc/net/dev", netdevHead+netdevLine("lo", 2))
	want(t, p.read(), "receive_bytes", map[string]float64{rx("lo"): 2})
	tr.write("proc/net/dev", netdevHead+netdevLine("lo", 3)+netdevLine("usb0", 7))
	want(t, p.read(), "receive_bytes", map[string]float64{rx("lo"): 3, rx("usb0"): 7})
	if p.schema.Len() != slots {
		t.Errorf("got %d slots, want %d", p.schema.Len(), slots)
	}
	p.wantStats(0, 0, 0)
}

func TestNetdevCap(t *testing.T) {
	tr := newTree(t)
	var b strings.Builder
	b.WriteString(netdevHead)
	for i := range maxInterfaces + 3 {
		b.WriteString(netdevLine(fmt.Sprint("veth", i), 1))
	}
	tr.write("proc/net/dev", b.String())
	p := tr.open("netdev")
	if got := len(p.read()); got != maxInterfaces*len(netdevMetrics) {
		t.Errorf("got %d series", got)
	}
	p.wantStats(0, 0, 3)
}
